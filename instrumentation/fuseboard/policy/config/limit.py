"""How many calls of a tool may run at once, and how often one may begin."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from fuseboard.errors import ConfigurationError
from fuseboard.policy.config.checks import check_int, check_number

MAX_WAIT: Final = 3600.0
MAX_QUEUE: Final = 100_000
MAX_RATE: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Bound the attempts at a tool, per tool, region and upstream of one process.

    For a tool that many calls share, ``Limit(concurrency=20, rate=30, burst=50)`` is a fair
    start. At least one of ``concurrency`` and ``rate`` must be given.

    Attributes:
        concurrency: Attempts that may run at once; None for no bound.
        rate: Attempts that may begin per second, on average; None for no bound.
        burst: Attempts that may begin at once after a rest; default ``rate``, rounded up.
        wait: Seconds that an attempt waits for its turn before it is rejected; 0 rejects at
            once. A total budget or a deadline may end the wait earlier.
        queue: Attempts that may wait at a time; whoever comes then is rejected at once.

    Since 0.1.
    """

    concurrency: int | None = None
    rate: float | None = None
    burst: int | None = None
    wait: float = 1.0
    queue: int = 100

    def __post_init__(self) -> None:
        if self.concurrency is None and self.rate is None:
            raise ConfigurationError(
                "Limit(): must be given concurrency=... or rate=..., such as "
                "Limit(concurrency=20, rate=30, burst=50)"
            )
        if self.concurrency is not None:
            check_int("Limit", "concurrency", self.concurrency, 1, 100_000)
        if self.rate is not None:
            check_number("Limit", "rate", self.rate, 0, MAX_RATE)
            if self.rate < 1e-6:
                raise ConfigurationError(
                    f"Limit(rate={self.rate!r}): must be a number of attempts per second of at "
                    f"least 1e-06, at most {MAX_RATE:g}, or None"
                )
        if self.burst is not None:
            check_int("Limit", "burst", self.burst, 1, 1_000_000)
            if self.rate is None:
                raise ConfigurationError(f"Limit(burst={self.burst!r}): needs a rate=... as well")
        check_number("Limit", "wait", self.wait, 0, MAX_WAIT)
        check_int("Limit", "queue", self.queue, 0, MAX_QUEUE)

    @property
    def allowance(self) -> int:
        """How many attempts may begin at once after a rest."""
        if self.burst is not None:
            return self.burst
        return max(1, ceil(self.rate or 0))
