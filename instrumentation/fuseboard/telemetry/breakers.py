"""The Prometheus series of circuit breakers: state, transitions, time spent in each state."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from fuseboard import conventions as c
from fuseboard.conventions import BreakerState
from fuseboard.record import BreakerStatus, BreakerTransition
from fuseboard.telemetry.labels import MAX_BREAKERS, BoundedLabel

_CLOSED, _OPEN, _HALF_OPEN, _ISOLATED = BreakerState
POSSIBLE_TRANSITIONS: Final = (
    (_CLOSED, _OPEN),
    (_OPEN, _HALF_OPEN),
    (_HALF_OPEN, _CLOSED),
    (_HALF_OPEN, _OPEN),
    (_OPEN, _CLOSED),
    (_CLOSED, _ISOLATED),
    (_OPEN, _ISOLATED),
    (_HALF_OPEN, _ISOLATED),
    (_ISOLATED, _CLOSED),
)
_LABELS: Final = ("tool", "region", "breaker")


@dataclass(slots=True)
class _Series:
    state: BreakerState
    since: float
    seconds: dict[BreakerState, float] = field(
        default_factory=lambda: dict.fromkeys(BreakerState, 0.0)
    )
    transitions: dict[tuple[BreakerState, BreakerState], int] = field(
        default_factory=lambda: dict.fromkeys(POSSIBLE_TRANSITIONS, 0)
    )


class BreakerSeries:
    """Keeps one set of series per breaker.

    Args:
        monotonic: Source of time, seconds.
        tools: The bounded ``tool`` label.
        regions: The bounded ``region`` label.
    """

    def __init__(
        self, monotonic: Callable[[], float], tools: BoundedLabel, regions: BoundedLabel
    ) -> None:
        self.names = BoundedLabel("breaker", MAX_BREAKERS, admits_new=True)
        self._monotonic = monotonic
        self._tools = tools
        self._regions = regions
        self._series: dict[tuple[str, str, str], _Series] = {}
        self._lock = threading.RLock()

    def after_fork(self) -> None:
        """Start counting anew from the present states."""
        self._lock = threading.RLock()
        now = self._monotonic()
        self._series = {key: _Series(old.state, now) for key, old in self._series.items()}

    def created(self, status: BreakerStatus) -> None:
        """Make a breaker's series exist."""
        # Only decorated tools have breakers, so this name is as good as registered.
        self._tools.declare([status.tool])
        key = self._key(status)
        with self._lock:
            self._series.setdefault(key, _Series(status.state, self._monotonic()))

    def changed(self, transition: BreakerTransition) -> None:
        """Count a transition and the time spent in the state that ended."""
        key = self._key(transition)
        now = self._monotonic()
        move = (transition.from_state, transition.to_state)
        with self._lock:
            series = self._series.setdefault(key, _Series(transition.from_state, now))
            series.seconds[series.state] += max(0.0, now - series.since)
            series.transitions[move] = series.transitions.get(move, 0) + 1
            series.state = transition.to_state
            series.since = now

    def _key(self, breaker: BreakerStatus | BreakerTransition) -> tuple[str, str, str]:
        return (
            self._tools.value(breaker.tool),
            self._regions.value(breaker.region or c.UNKNOWN_REGION),
            self.names.value(breaker.name),
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the three families with their present values."""
        state = GaugeMetricFamily(
            c.METRIC_BREAKER_STATE,
            "Whether a breaker is in this state; exactly one series of a breaker is 1.",
            labels=(*_LABELS, "state"),
        )
        moves = CounterMetricFamily(
            c.METRIC_BREAKER_TRANSITIONS,
            "State changes of breakers.",
            labels=(*_LABELS, "from_state", "to_state"),
        )
        spent = CounterMetricFamily(
            c.METRIC_BREAKER_STATE_SECONDS,
            "Seconds that breakers spent in each state.",
            labels=(*_LABELS, "state"),
        )
        with self._lock:
            now = self._monotonic()
            for key, series in self._series.items():
                for each in BreakerState:
                    is_current = each is series.state
                    running = max(0.0, now - series.since) if is_current else 0.0
                    state.add_metric((*key, each.value), float(is_current))
                    spent.add_metric((*key, each.value), series.seconds[each] + running)
                for (before, after), count in series.transitions.items():
                    moves.add_metric((*key, before.value, after.value), count)
        yield from (state, moves, spent)
