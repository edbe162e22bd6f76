"""What should be seen of a call, and what the reference goes by."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fault_scripts import Kind

from fuseboard.conventions import ErrorClass, Outcome


@dataclass
class Expected:
    """What should be seen of a call from all sides.

    Attributes:
        attempts: (result, class) of each.
        sees: ``value``, ``error`` with the number of the attempt that it comes from, or the
            name of an exception of ours; ``fallback`` with the place of the one that is served;
            ``kept`` with an answer from the cache.
        items: Items that the consumer gets.
        mistakes: (class, number of the attempt) of each that is told to whoever corrects it.
        is_open: Whether it failed and may have taken effect.
    """

    start: float
    outcome: Outcome = Outcome.OK
    error_class: ErrorClass | None = None
    attempts: list[tuple[str, str]] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    retry_end: str = "none"
    backoff: float = 0.0
    duration: float = 0.0
    sees: tuple[str, Any] = ("value", 0)
    items: int = 0
    actions: Counter[tuple[str, str]] = field(default_factory=Counter)
    breaker_state: str | None = None
    mistakes: list[tuple[str, int]] = field(default_factory=list)
    is_open: bool = False


@dataclass(frozen=True)
class Shape:
    """What kind of function the tool is.

    Attributes:
        cuts: Whether an attempt can be cut short: an async tool, or a function in a thread.
        streams: Whether it is a generator.
        is_async: Whether it is a coroutine function or an async generator.
    """

    cuts: bool
    streams: bool
    is_async: bool


@dataclass(frozen=True)
class Ended:
    """How one attempt ended."""

    what: Kind
    is_final: bool = False
    is_left: bool = False
    by: str | None = None
    """The name of an exception of ours that ended it."""
    is_raised: bool = True


@dataclass(frozen=True)
class Repair:
    """What whoever corrects a request does.

    Attributes:
        how: ``corrects``, ``gives up`` or ``raises``.
        took: Seconds.
    """

    how: str
    took: float = 0.0
