"""How much a fuse needs somebody: its level, and the order of the board."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import pandas as pd

from fuseboard.conventions import BreakerState
from fuseboard_alerts.model import Severity
from fuseboard_dashboard import thresholds
from fuseboard_dashboard.alerting import FIRING, place_of
from fuseboard_dashboard.data import rows
from fuseboard_dashboard.theme import UNKNOWN_STATE, is_missing, ratio

LEVELS: Final = ("tripped", "failing", "strained", "few", "fine", "idle")
"""From worst to quietest; ``few``: too few calls to say that all is fine."""
TROUBLED: Final = LEVELS[:3]

_STATE_RANK: Final = {
    BreakerState.OPEN: 4,
    BreakerState.ISOLATED: 3,
    BreakerState.HALF_OPEN: 2,
    UNKNOWN_STATE: 1,
}


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert that fires for a fuse."""

    alert: str
    severity: str
    since: datetime | None = None


@dataclass(frozen=True)
class Fuse:
    """One tool in one region, over the window.

    Counts are weighted calls; ``p99`` is seconds, None without calls. ``state`` is the breaker's,
    None where no breaker is known; ``since`` is None where it never changed. ``alerts`` are most
    urgent first.
    """

    tool: str
    region: str
    state: str | None = None
    since: datetime | None = None
    calls: float = 0.0
    judged: float = 0.0
    errors: float = 0.0
    input_faults: float = 0.0
    degraded: float = 0.0
    faults: float = 0.0
    attempted: float = 0.0
    retried: float = 0.0
    p99: float | None = None
    alerts: tuple[Firing, ...] = ()

    @property
    def error_ratio(self) -> float | None:
        """Return errors over judged calls."""
        return ratio(self.errors, self.judged)

    @property
    def success_ratio(self) -> float | None:
        """Return judged calls that neither failed nor were wrong themselves over judged calls.

        Not 1 − error rate: a fault of the request (L1) is no error of the tool, nor a success.
        """
        return ratio(max(0.0, self.judged - self.errors - self.input_faults), self.judged)

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
    def only_fails(self) -> bool:
        """Tell whether not a single call succeeded: trouble, however few they are."""
        return self.success_ratio == 0

    @property
    def has_few_calls(self) -> bool:
        """Tell whether there are fewer calls than the error alert needs to judge."""
        return self.judged < thresholds.ERRORS.minimum_calls

    @cached_property
    def level(self) -> str:
        """Return one of ``LEVELS``."""
        if self.state in (BreakerState.OPEN, BreakerState.ISOLATED):
            return "tripped"
        if self.is_failing or any(a.severity == Severity.CRITICAL for a in self.alerts):
            return "failing"
        if self._is_strained:
            return "strained"
        if not self.calls:
            return "idle"
        return "few" if self.has_few_calls else "fine"

    @property
    def _is_strained(self) -> bool:
        half_open = self.state == BreakerState.HALF_OPEN
        over = self.is_erring or self.is_retrying or self.is_slow
        return half_open or over or self.only_fails or bool(self.alerts)


def _order(fuse: Fuse) -> tuple[float | str, ...]:
    return (
        LEVELS.index(fuse.level),
        -_STATE_RANK.get(fuse.state or "", 0),
        -len(fuse.alerts),
        -(fuse.error_ratio or 0),
        -(fuse.retry_ratio or 0),
        -fuse.calls,
        fuse.tool,
        fuse.region,
    )


def fuses(tools: pd.DataFrame, breakers: pd.DataFrame, alerts: pd.DataFrame) -> list[Fuse]:
    """Join calls, breakers and alerts into fuses, worst first.

    Args:
        tools: Rows of ``page_tools``.
        breakers: Rows of ``page_breaker_states``, worst first; the worst breaker of a tool and
            region is its state, and a tripped one without calls still has its fuse.
        alerts: Rows of ``page_alerts_now``, most urgent first; those that fire for a tool and
            region weigh on its fuse.
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
    firing = _firing(alerts)
    return sorted((_with_alerts(fuse, firing) for fuse in found), key=_order)


def _fuse(row: Any) -> Fuse:
    return Fuse(
        tool=row.tool, region=row.region, calls=row.calls, judged=row.judged, errors=row.errors,
        input_faults=row.input_faults, degraded=row.degraded, faults=row.faults,
        attempted=row.attempted, retried=row.retried,
        p99=None if is_missing(row.p99) else float(row.p99),
    )  # fmt: skip


def _with_breaker(fuse: Fuse, breaker: Any) -> Fuse:
    if breaker is None:
        return fuse
    return replace(fuse, state=breaker.state, since=_moment(breaker.since_time))


def _firing(alerts: pd.DataFrame) -> dict[tuple[str, str | None], list[Firing]]:
    found: dict[tuple[str, str | None], list[Firing]] = {}
    for row in rows(alerts):
        tool, region = place_of(row.labels)
        if row.state == FIRING and tool is not None:
            here = found.setdefault((tool, region), [])
            if row.alert not in (other.alert for other in here):  # its worst severity came first
                here.append(Firing(row.alert, row.severity, _moment(row.fired_at)))
    return found


def _with_alerts(fuse: Fuse, firing: dict[tuple[str, str | None], list[Firing]]) -> Fuse:
    here = (*firing.get((fuse.tool, fuse.region), ()), *firing.get((fuse.tool, None), ()))
    return replace(fuse, alerts=here) if here else fuse


def _moment(value: Any) -> datetime | None:
    if value is None or pd.isna(value):
        return None
    moment: datetime = value.to_pydatetime()
    return moment
