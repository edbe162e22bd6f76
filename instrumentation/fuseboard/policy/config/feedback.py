"""Whom to tell what was wrong, and how often."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fuseboard.conventions import ErrorClass
from fuseboard.errors import ConfigurationError, Problem
from fuseboard.policy.config.checks import check_choices, check_int

MAX_CORRECTIONS: Final = 10
CORRECTABLE: Final = (ErrorClass.L1_INPUT, ErrorClass.L5_SEMANTIC)


@dataclass(frozen=True, slots=True)
class Mistake:
    """What was wrong with an attempt, for whoever corrects its arguments.

    Attributes:
        tool: Name of the tool.
        arguments: The arguments by name, without defaults.
        error_class: ``L1_input`` or ``L5_semantic``.
        message: What was wrong, in words.
        problems: The same by place and reason, as far as somebody says so.
        attempt: The number of the attempt, from 1.

    Since 0.1.
    """

    tool: str
    arguments: Mapping[str, object]
    error_class: ErrorClass
    message: str
    problems: tuple[Problem, ...]
    attempt: int


Repair = Callable[[Mistake], Mapping[str, Any] | Awaitable[Mapping[str, Any] | None] | None]


@dataclass(frozen=True, slots=True)
class Feedback:
    """Correct the arguments and try again, where trying again as it is would fail again.

    Attributes:
        repair: Gets a :class:`Mistake` and returns all of the arguments anew, by name, or None
            to give up. It may be async for an async tool. One that raises gives up.
        corrections: Most corrections of one call, on top of its retries; 1 to 10.
        on: The classes of fault that are corrected.

    Since 0.1.
    """

    repair: Repair
    corrections: int = 2
    on: Collection[ErrorClass] = CORRECTABLE

    def __post_init__(self) -> None:
        if not callable(self.repair):
            raise ConfigurationError(
                f"Feedback(repair={self.repair!r}): must be a function of a fuseboard.Mistake"
            )
        check_int("Feedback", "corrections", self.corrections, 1, MAX_CORRECTIONS)
        check_choices("Feedback", "on", self.on, CORRECTABLE)
