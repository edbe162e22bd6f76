"""How much a fuse needs somebody: its level, and the order of the board."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import pandas as pd

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import thresholds
from fuseboard_dashboard.data import rows
from fuseboard_dashboard.theme import UNKNOWN_STATE, is_missing, ratio

LEVELS: Final = ("tripped", "failing", "strained", "fine", "idle")
"""From worst to quietest."""

_STATE_RANK: Final = {
    BreakerState.OPEN: 4,
    BreakerState.ISOLATED: 3,
    BreakerState.HALF_OPEN: 2,
    UNKNOWN_STATE: 1,
}


@dataclass(frozen=True, slots=True)
class Fuse:
    """One tool in one region, over the window.

    Counts are weighted calls; ``p99`` and ``slowest`` are seconds, None without calls.
    """

    tool: str
    region: str
    state: str = BreakerState.CLOSED
    since: datetime | None = None
    calls: float = 0.0
    judged: float = 0.0
    errors: float = 0.0
    degraded: float = 0.0
    faults: float = 0.0
    attempted: float = 0.0
    retried: float = 0.0
    p99: float | None = None

    @property
    def error_ratio(self) -> float | None:
        """Return errors over judged calls."""
        return ratio(self.errors, self.judged)

    @property
    def success_ratio(self) -> float | None:
        """Return 1 − error rate."""
        return None if self.error_ratio is None else 1 - self.error_ratio

    @property
    def retry_ratio(self) -> float | None:
        """Return retried calls over calls that made an attempt."""
        return ratio(self.retried, self.attempted)

    @property
    def degraded_ratio(self) -> float | None:
        """Return degraded calls over judged calls."""
        return ratio(self.degraded, self.judged)

    # One blip among a few calls is no trouble: the guards are those of the alerts.
    @property
    def is_failing(self) -> bool:
        """Tell whether errors are over the critical line."""
        over = (self.error_ratio or 0) > thresholds.ERROR_RATIO_CRITICAL
        return over and self.errors >= thresholds.ERRORS_CRITICAL.minimum_events

    @property
    def is_erring(self) -> bool:
        """Tell whether errors are over the warning line."""
        over = (self.error_ratio or 0) > thresholds.ERROR_RATIO
        return over and self.errors >= thresholds.ERRORS.minimum_events

    @property
    def is_retrying(self) -> bool:
        """Tell whether retries are over their line."""
        over = (self.retry_ratio or 0) > thresholds.RETRY_RATIO
        return over and self.retried >= thresholds.RETRIES.minimum_events

    @property
    def is_slow(self) -> bool:
        """Tell whether the slowest hundredth is over the line of slow calls."""
        over = self.p99 is not None and self.p99 > thresholds.SLOW_SECONDS
        return over and self.calls >= thresholds.SLOW.minimum_calls

    @property
    def level(self) -> str:
        """Return one of ``LEVELS``."""
        if self.state in (BreakerState.OPEN, BreakerState.ISOLATED):
            return "tripped"
        if self.is_failing:
            return "failing"
        half_open = self.state == BreakerState.HALF_OPEN
        if half_open or self.is_erring or self.is_retrying or self.is_slow:
            return "strained"
        return "fine" if self.calls else "idle"


def _order(fuse: Fuse) -> tuple[float | str, ...]:
    return (
        LEVELS.index(fuse.level),
        -_STATE_RANK.get(fuse.state, 0),
        -(fuse.error_ratio or 0),
        -(fuse.retry_ratio or 0),
        -fuse.calls,
        fuse.tool,
        fuse.region,
    )


def fuses(tools: pd.DataFrame, breakers: pd.DataFrame) -> list[Fuse]:
    """Join calls and breakers into fuses, worst first.

    Args:
        tools: Rows of ``page_tools``.
        breakers: Rows of ``page_breaker_states``, worst first; the worst breaker of a tool and
            region is its state, and a tripped one without calls still has its fuse.
    """
    worst: dict[tuple[str, str], Any] = {}
    for row in rows(breakers):
        worst.setdefault((row.tool, row.region), row)
    found = [_with_breaker(_fuse(row), worst.pop((row.tool, row.region), None))
             for row in rows(tools)]  # fmt: skip
    found += [
        _with_breaker(Fuse(tool, region), row)
        for (tool, region), row in worst.items()
        if row.state != BreakerState.CLOSED
    ]
    return sorted(found, key=_order)


def _fuse(row: Any) -> Fuse:
    return Fuse(
        tool=row.tool, region=row.region, calls=row.calls, judged=row.judged, errors=row.errors,
        degraded=row.degraded, faults=row.faults, attempted=row.attempted, retried=row.retried,
        p99=None if is_missing(row.p99) else float(row.p99),
    )  # fmt: skip


def _with_breaker(fuse: Fuse, breaker: Any) -> Fuse:
    if breaker is None:
        return fuse
    return replace(fuse, state=breaker.state, since=breaker.since_time.to_pydatetime())
