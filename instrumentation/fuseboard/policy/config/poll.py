"""How to wait for a tool that only takes a job on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from fuseboard.errors import ConfigurationError
from fuseboard.policy.config.checks import check_int, check_plain, check_positive

GROWTH: Final = 1.5
"""By how much each wait is longer than the one before."""


@dataclass(frozen=True, slots=True)
class Pending:
    """What a check returns while the job is not done.

    Attributes:
        progress: How far it is, in any form; handed to ``Poll.on_pending``.
        wait: Seconds until the next check, if the server says so; default the next interval.

    Since 0.1.
    """

    progress: object = None
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """Ask for the result of a job that the tool has submitted, until it is there.

    The tool returns a ticket; what ``check`` returns for it is the answer of the call. From the
    ticket on the job is never submitted again because asking for it failed.

    Attributes:
        check: Gets the ticket; returns the result, or a :class:`Pending`; raises if the job has
            failed. It may be async for an async tool.
        interval: Seconds until the first check; each further wait is half as long again.
        interval_max: Bound of every wait that the job itself does not ask for, seconds; at least
            ``interval``.
        timeout: Seconds from the ticket to the result.
        faults: Transient faults of ``check`` in a row that are tolerated; 0 to 100.
        on_pending: Told of each :class:`Pending`.

    Since 0.1.
    """

    check: Callable[[Any], Any | Awaitable[Any]]
    interval: float = 1.0
    interval_max: float = 30.0
    timeout: float = 600.0
    faults: int = 3
    on_pending: Callable[[Pending], object] | None = None

    def __post_init__(self) -> None:
        if not callable(self.check):
            raise ConfigurationError(
                f"Poll(check={self.check!r}): must be a function of the ticket that the tool "
                "returns"
            )
        for name in ("interval", "interval_max", "timeout"):
            check_positive("Poll", name, getattr(self, name), is_optional=False)
        check_int("Poll", "faults", self.faults, 0, 100)
        if self.interval_max < self.interval:
            raise ConfigurationError(
                f"Poll(interval_max={self.interval_max!r}): must be at least interval "
                f"({self.interval!r})"
            )
        check_plain("Poll", "on_pending", self.on_pending)
