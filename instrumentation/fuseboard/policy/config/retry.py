"""When to try again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fuseboard.errors import ConfigurationError
from fuseboard.policy.config.checks import (
    MAX_SECONDS,
    check_bool,
    check_int,
    check_number,
    check_positive,
)

MAX_ATTEMPTS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Try again after a fault that is expected to pass, with full jitter.

    Before retry ``n`` (from 0) a call waits a random time, uniform in
    ``[0, min(wait_max, wait_initial * 2**n)]``; a ``Retry-After`` of the server wins.

    Attributes:
        attempts: Most attempts in all, the first included; 1 to 100.
        wait_initial: Bound of the first wait, seconds; at least 0.
        wait_max: Bound of every wait, seconds; at least ``wait_initial``.
        budget: Seconds from the start of the call after which no attempt begins; None for no
            bound. An attempt that runs is not cut short (see ``Policy.budget``).
        semantic: Whether an unusable answer (``L5_semantic``) is retried as well.

    Since 0.1.
    """

    attempts: int = 3
    wait_initial: float = 0.5
    wait_max: float = 30.0
    budget: float | None = 30.0
    semantic: bool = False

    def __post_init__(self) -> None:
        check_int("Retry", "attempts", self.attempts, 1, MAX_ATTEMPTS)
        check_number("Retry", "wait_initial", self.wait_initial, 0, MAX_SECONDS)
        check_number("Retry", "wait_max", self.wait_max, 0, MAX_SECONDS)
        check_positive("Retry", "budget", self.budget)
        check_bool("Retry", "semantic", self.semantic)
        if self.wait_max < self.wait_initial:
            raise ConfigurationError(
                f"Retry(wait_max={self.wait_max!r}): must be at least wait_initial "
                f"({self.wait_initial!r})"
            )
