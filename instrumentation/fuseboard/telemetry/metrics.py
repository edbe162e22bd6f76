"""The Prometheus metrics of tool calls, offered to a registry by a collector of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from prometheus_client import Gauge
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fuseboard import conventions as c
from fuseboard.conventions import NO_ERROR, UNKNOWN_REGION, ErrorClass, Outcome
from fuseboard.record import AttemptRecord, BreakerStatus, BreakerTransition, CallRecord, ToolInfo
from fuseboard.telemetry import cells
from fuseboard.telemetry.attributes import FAULTY
from fuseboard.telemetry.breakers import BreakerSeries
from fuseboard.telemetry.cells import Cell
from fuseboard.telemetry.families import (
    ACTIONS,
    ATTEMPT_SECONDS,
    ATTEMPTED,
    ATTEMPTS,
    BACKOFF,
    CALL_SECONDS,
    CALLS,
    COSTS,
)
from fuseboard.telemetry.in_flight import InFlight
from fuseboard.telemetry.labels import MAX_REGIONS, MAX_TOOLS, BoundedLabel
from fuseboard.telemetry.losses import Losses
from fuseboard.telemetry.shared_cells import (
    SharedCell,
    SharedFamilies,
    is_shared,
    make_reentrant,
    renew_lock_in_child,
)
from fuseboard.telemetry.shared_gauges import CountedCalls, Mirror

SECONDS_BETWEEN_EXEMPLARS: Final = 1.0
SLOW_SECONDS: Final = 1.0
"""Calls that take longer show their trace always."""
SERIES_PER_TOOL: Final = 95
"""Most series of one tool in one region, its breakers apart; of a breaker there are 17."""
SERIES_PER_BREAKER: Final = 17
_TOOL: Final = ("tool", "region")
_USED: Final = frozenset({Outcome.OK, Outcome.PARTIAL})


AnyCell = Cell | SharedCell


def _error_class(call: CallRecord, outcome: Outcome) -> str:
    if outcome not in FAULTY:
        return NO_ERROR
    if outcome is Outcome.PARTIAL:
        return ErrorClass.L5_SEMANTIC.value
    return (call.fault.verdict.error_class if call.fault else ErrorClass.UNCLASSIFIED).value


def _count_cost(cell: AnyCell, call: CallRecord, outcome: Outcome) -> None:
    """Count what attempts and fallbacks cost; that of a result nobody got is wasted."""
    # Of a stream that its consumer left, what was taken was used.
    is_used = outcome in _USED or (outcome is Outcome.ABANDONED and bool(call.stream_items))
    priced = [attempt for attempt in call.attempts if attempt.cost is not None]
    for attempt in priced:
        is_last = attempt is call.attempts[-1]
        is_wasted = not (is_used and is_last and attempt.fault is None)
        cell.add(COSTS, _wasted(is_wasted), attempt.cost or 0.0)
    if call.fallback_cost is not None:
        cell.add(COSTS, _wasted(outcome is not Outcome.DEGRADED), call.fallback_cost)
    if call.spoilt_cost:
        cell.add(COSTS, _wasted(True), call.spoilt_cost)
    elif not priced and call.fallback_cost is None and call.cost is not None:
        cell.add(COSTS, _wasted(not is_used), call.cost)


def _wasted(is_wasted: bool) -> tuple[str]:
    return ("true" if is_wasted else "false",)


class Metrics(Collector):
    """Counts calls and offers the counts to a registry, as one collector.

    Args:
        version: Version of fuseboard.
        region: The process's own region, if it has one.
        regions: Regions declared for the process.
        losses: Telemetry records that did not arrive.
        monotonic: Source of time, seconds.
        abandoned_threads: Counts threads that outlived their call.
    """

    def __init__(
        self,
        version: str,
        region: str | None,
        regions: tuple[str, ...],
        losses: Losses,
        monotonic: Callable[[], float],
        abandoned_threads: Callable[[], int],
    ) -> None:
        self.tools = BoundedLabel("tool", MAX_TOOLS, admits_new=False)
        self.regions = BoundedLabel("region", MAX_REGIONS, admits_new=True)
        self.breakers = BreakerSeries(monotonic, self.tools, self.regions)
        self.in_flight = InFlight(monotonic)
        self._version = version
        self._own_region = region or UNKNOWN_REGION
        self._default_regions = regions or (self._own_region,)
        self._losses = losses
        self._abandoned_threads = abandoned_threads
        self.regions.declare(self._default_regions)
        self._reset()

    def _reset(self) -> None:
        self._cells: dict[tuple[str, str], AnyCell] = {}
        self._by_call: dict[tuple[str, str | None], AnyCell] = {}
        if is_shared():
            make_reentrant()
        self._shared = SharedFamilies() if is_shared() else None
        self._mirror = Mirror() if is_shared() else None
        if self._mirror is not None:
            self.in_flight.calls = CountedCalls(partial(self._running, self._mirror))

    def after_fork(self) -> None:
        """Start at zero with fresh locks: a forked child is a process of its own."""
        if self._mirror is not None:
            renew_lock_in_child()
        for label in self._labels():
            label.after_fork()
        known = list(self._cells)
        self.in_flight.after_fork()
        self._reset()
        self.breakers.after_fork()
        for tool, region in known:
            self._make(tool, region)

    def _labels(self) -> tuple[BoundedLabel, ...]:
        return (self.tools, self.regions, self.breakers.names)

    def tool_registered(self, tool: ToolInfo) -> None:
        """Make a tool's series exist at zero in each of its declared regions."""
        self.tools.declare([tool.name])
        self.regions.declare(tool.regions)
        for region in tool.regions or self._default_regions:
            self._make(self.tools.value(tool.name), self.regions.value(region))

    def _make(self, tool: str, region: str) -> AnyCell:
        cell = self._cells.get((tool, region))
        if cell is None:
            cell = self._cells.setdefault((tool, region), self._new_cell(tool, region))
        return cell

    def _new_cell(self, tool: str, region: str) -> AnyCell:
        if self._shared is None or self._mirror is None:
            return Cell(tool, region)
        self._mirror.running(tool, region)  # from 0
        return SharedCell(self._shared, tool, region)

    def _of(self, call: CallRecord) -> AnyCell:
        cell = self._by_call.get((call.tool.name, call.region))
        return cell if cell is not None else self._look_up(call.tool.name, call.region)

    def _look_up(self, tool: str, region: str | None) -> AnyCell:
        tool_label = self.tools.value(tool)
        region_label = self.regions.value(region or self._own_region)
        cell = self._make(tool_label, region_label)
        if tool_label != c.OTHER_LABEL and region_label != c.OTHER_LABEL:
            self._by_call[tool, region] = cell
        return cell

    def attempt_ended(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Count an attempt."""
        cell = self._of(call)
        fault = attempt.fault
        error_class = fault.verdict.error_class.value if fault is not None else NO_ERROR
        cell.add(ATTEMPTS, (attempt.result.value, error_class))
        cell.observe(ATTEMPT_SECONDS, max(0.0, attempt.duration))

    def call_ended(self, call: CallRecord, trace_id: int | None) -> None:
        """Count a call.

        Args:
            call: The call.
            trace_id: The id of its trace, if it is sampled.
        """
        cell = self._of(call)
        outcome = call.outcome or Outcome.ERROR
        seconds = max(0.0, call.duration)
        cell.add(CALLS, (outcome.value, _error_class(call, outcome)))
        cell.observe(CALL_SECONDS, seconds)
        if call.attempts:
            cell.add(ATTEMPTED, (call.attempts[0].result.value, call.retry_end.value))
        if call.backoff_seconds > 0:
            cell.add(BACKOFF, (), call.backoff_seconds)
        for action in call.layer_actions:
            cell.add(ACTIONS, action)
        _count_cost(cell, call, outcome)
        self._exemplify(cell, call, seconds, trace_id)

    def finished(self, call: CallRecord, trace_id: int) -> None:
        """Count a sampled call and its only attempt, which took as long as the call."""
        cell = self._of(call)
        seconds = max(0.0, call.duration)
        fault = call.fault
        cell.count_plain(NO_ERROR if fault is None else fault.verdict.error_class.value, seconds)
        for action in call.layer_actions:
            cell.add(ACTIONS, action)
        if call.cost is not None:
            _count_cost(cell, call, call.outcome or Outcome.ERROR)
        if call.started + seconds >= cell.exemplar_due or seconds >= SLOW_SECONDS:
            self._exemplify(cell, call, seconds, trace_id)

    def succeeded(self, call: CallRecord, trace_id: int) -> None:
        """Count a sampled plain call that succeeded."""
        key = (call.tool.name, call.region)
        cell = self._by_call.get(key)
        if cell is None:
            cell = self._look_up(*key)
        seconds = call.duration
        cell.count_success(seconds)
        if call.started + seconds >= cell.exemplar_due or seconds >= SLOW_SECONDS:
            self._exemplify(cell, call, seconds, trace_id)

    def _exemplify(
        self, cell: AnyCell, call: CallRecord, seconds: float, trace_id: int | None
    ) -> None:
        # A scrape keeps only the last one, and each costs more than counting the call.
        ended = call.started + seconds
        if trace_id is None or (ended < cell.exemplar_due and seconds < SLOW_SECONDS):
            return
        cell.exemplar_due = ended + SECONDS_BETWEEN_EXEMPLARS
        cell.exemplify(seconds, trace_id, call.started_unix_ns / 1e9 + seconds)

    def _running(self, mirror: Mirror, call: CallRecord) -> Gauge:
        return mirror.running(
            self.tools.peek(call.tool.name), self.regions.peek(call.region or self._own_region)
        )

    def breaker_created(self, status: BreakerStatus) -> None:
        """Make a breaker's series exist."""
        self.breakers.created(status)
        if self._mirror is not None:
            self._mirror.show(self.breakers.collect())

    def breaker_changed(self, transition: BreakerTransition) -> None:
        """Count a transition and the time spent in the state that ended."""
        self.breakers.changed(transition)
        if self._mirror is not None:
            self._mirror.show(self.breakers.collect())

    def overflow(self) -> dict[str, int]:
        """Return how often each label's value was folded into ``_other``."""
        return {label.label: label.folded for label in self._labels()}

    def publish(self) -> None:
        """Bring what this process shares with other workers up to date, if it shares anything."""
        if self._mirror is not None:
            _, ages = self._in_flight_families()  # the calls are counted as they begin and end
            self._mirror.show((ages, *self.breakers.collect(), *self._process_families()))

    # --- Collector -------------------------------------------------------------------------
    def describe(self) -> Iterable[Metric]:
        """Name the families, so that a registry can refuse duplicates without collecting."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its present values."""
        yield from cells.collect(
            [cell for cell in tuple(self._cells.values()) if isinstance(cell, Cell)]
        )
        yield from self._in_flight_families()
        yield from self.breakers.collect()
        yield from self._process_families()

    def _in_flight_families(self) -> Iterator[Metric]:
        count = GaugeMetricFamily(c.METRIC_IN_FLIGHT, "Tool calls that are running.", labels=_TOOL)
        age = GaugeMetricFamily(
            c.METRIC_OLDEST_CALL_AGE, "Age of the oldest running call in seconds.", labels=_TOOL
        )
        running: dict[tuple[str, str], tuple[int, float]] = dict.fromkeys(
            tuple(self._cells), (0, 0.0)
        )
        for call, seconds in self.in_flight.ages():
            key = (
                self.tools.peek(call.tool.name),
                self.regions.peek(call.region or self._own_region),
            )
            calls, oldest = running.get(key, (0, 0.0))
            running[key] = (calls + 1, max(oldest, seconds))
        for labels, (calls, oldest) in running.items():
            count.add_metric(labels, calls)
            age.add_metric(labels, oldest)
        yield count
        yield age

    def _process_families(self) -> Iterator[Metric]:
        threads = GaugeMetricFamily(
            c.METRIC_ABANDONED_THREADS, "Threads of sync calls that outlived their timeout."
        )
        threads.add_metric((), self._abandoned_threads())
        yield threads
        dropped = CounterMetricFamily(
            c.METRIC_TELEMETRY_DROPPED,
            "Telemetry records that were lost.",
            labels=("signal", "reason"),
        )
        for (signal, reason), count in self._losses.counts().items():
            dropped.add_metric((signal.value, reason.value), count)
        yield dropped
        folded = CounterMetricFamily(
            c.METRIC_LABEL_OVERFLOW, "Label values that were folded into _other.", labels=("label",)
        )
        for label, count in self.overflow().items():
            folded.add_metric((label,), count)
        yield folded
        build = GaugeMetricFamily(
            c.METRIC_BUILD_INFO, "Version of fuseboard; always 1.", labels=("version",)
        )
        build.add_metric((self._version,), 1)
        yield build
