"""What the calls of one session may use up together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fuseboard.errors import ConfigurationError
from fuseboard.policy.config.checks import check_int, check_number

MAX_COUNT: Final = 1_000_000_000
MAX_COST: Final = 1e15


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What all calls of a session may use up together; see :class:`fuseboard.session`.

    At least one of them must be given.

    Attributes:
        retries: Attempts after a call's first, over all calls; past that, calls are no longer
            retried and their fallbacks serve at once. 3 to 5 per task is usual.
        requests: Attempts in all; past that, calls are rejected.
        cost: What attempts may cost in all, in the unit of ``set_cost``; once it is reached,
            calls are rejected. A call that runs then is not cut short.

    Since 0.1.
    """

    retries: int | None = None
    requests: int | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        if self.retries is None and self.requests is None and self.cost is None:
            raise ConfigurationError(
                "Budget(): must be given retries=..., requests=... or cost=..., such as "
                "Budget(retries=5, requests=100)"
            )
        if self.retries is not None:
            check_int("Budget", "retries", self.retries, 0, MAX_COUNT)
        if self.requests is not None:
            check_int("Budget", "requests", self.requests, 1, MAX_COUNT)
        if self.cost is not None:
            check_number("Budget", "cost", self.cost, 0, MAX_COST)
            if self.cost == 0:
                raise ConfigurationError("Budget(cost=0): must be above 0, or None for no bound")
