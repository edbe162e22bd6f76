"""The Prometheus metrics of CONTRACT §4, through prometheus_client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import Counter, Histogram
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fuseboard import conventions as c
from fuseboard.conventions import (
    NO_ERROR,
    UNKNOWN_REGION,
    AttemptResult,
    ErrorClass,
    Outcome,
    RetryEnd,
)
from fuseboard.record import AttemptRecord, BreakerStatus, BreakerTransition, CallRecord, ToolInfo
from fuseboard.telemetry.attributes import FAULTY
from fuseboard.telemetry.breakers import BreakerSeries
from fuseboard.telemetry.in_flight import InFlight
from fuseboard.telemetry.labels import MAX_REGIONS, MAX_TOOLS, BoundedLabel
from fuseboard.telemetry.losses import Losses

SECONDS_BETWEEN_EXEMPLARS: Final = 1.0
SERIES_PER_TOOL: Final = 95
"""Most series of one tool in one region, its breakers apart; of a breaker there are 16."""
SERIES_PER_BREAKER: Final = 16
_TOOL: Final = ("tool", "region")
_USED: Final = frozenset({Outcome.OK, Outcome.PARTIAL})
_ATTEMPTED: Final = (
    (AttemptResult.SUCCESS.value, RetryEnd.NONE.value),
    *((AttemptResult.FAILURE.value, end.value) for end in RetryEnd),
)
_RESULTS: Final = (
    (AttemptResult.SUCCESS.value, NO_ERROR),
    # Cut short: cancelled, left or interrupted before it could succeed or fail.
    (AttemptResult.FAILURE.value, NO_ERROR),
    *((AttemptResult.FAILURE.value, cls.value) for cls in ErrorClass),
)


class Families:
    """The metric families, bound to no registry."""

    def __init__(self) -> None:
        self.calls = _counter(c.METRIC_CALLS, "Tool calls that ended.", "outcome", "error_class")
        self.duration = _histogram(
            c.METRIC_CALL_DURATION, "Duration of tool calls in seconds, back-off included."
        )
        self.attempted = _counter(
            c.METRIC_ATTEMPTED_CALLS,
            "Tool calls that made at least one attempt.",
            "first_attempt",
            "retry",
        )
        self.attempts = _counter(
            c.METRIC_ATTEMPTS, "Physical attempts at tools.", "result", "error_class"
        )
        self.attempt_duration = _histogram(
            c.METRIC_ATTEMPT_DURATION, "Duration of single attempts in seconds."
        )
        self.backoff = _counter(c.METRIC_BACKOFF, "Seconds that calls waited between attempts.")
        self.actions = _counter(
            c.METRIC_LAYER_ACTIONS, "What the layers around tools did.", "layer", "action"
        )
        self.cost = _counter(c.METRIC_COST, "Cost that tools reported.", "wasted")

    def all(self) -> Iterator[MetricWrapperBase]:
        """Yield every family."""
        yield from vars(self).values()


def _error_class(call: CallRecord, outcome: Outcome) -> str:
    if outcome not in FAULTY:
        return NO_ERROR
    if outcome is Outcome.PARTIAL:
        return ErrorClass.L5_SEMANTIC.value
    return (call.fault.verdict.error_class if call.fault else ErrorClass.UNCLASSIFIED).value


def _count_cost(series: ToolSeries, call: CallRecord, outcome: Outcome) -> None:
    """Count what attempts cost; the cost of those whose result was not used is wasted."""
    is_used = outcome in _USED
    priced = [attempt for attempt in call.attempts if attempt.cost is not None]
    for attempt in priced:
        is_last = attempt is call.attempts[-1]
        series.cost(not (is_used and is_last and attempt.fault is None)).inc(attempt.cost or 0.0)
    if not priced and call.cost is not None:
        series.cost(not is_used).inc(call.cost)


def _counter(name: str, words: str, *labels: str) -> Counter:
    return Counter(name, words, (*_TOOL, *labels), registry=None)


def _histogram(name: str, words: str) -> Histogram:
    return Histogram(name, words, _TOOL, registry=None, buckets=c.DURATION_BUCKETS)


class ToolSeries:
    """The bound series of one tool in one region; made once, so that updates are cheap."""

    def __init__(self, families: Families, tool: str, region: str) -> None:
        self._families = families
        self.labels = (tool, region)
        self.duration = families.duration.labels(tool, region)
        self.attempt_duration = families.attempt_duration.labels(tool, region)
        self.backoff = families.backoff.labels(tool, region)
        self._calls: dict[tuple[str, str], Counter] = {}
        self._attempted: dict[tuple[str, str], Counter] = {}
        self._attempts: dict[tuple[str, str], Counter] = {}
        self._actions: dict[tuple[str, str], Counter] = {}
        self.exemplar_due = 0.0
        # A series that is born at 1 hides its first event from increase().
        for outcome, error_class in c.legal_outcome_classes():
            self.calls(outcome, error_class)
        for first, end in _ATTEMPTED:
            self.attempted(first, end)
        for result, error_class in _RESULTS:
            self.attempts(result, error_class)
        for layer, action in c.LAYER_ACTIONS:
            self.action(layer, action)

    def calls(self, outcome: str, error_class: str) -> Counter:
        """Return the bound counter of calls."""
        return _bound(self._calls, self._families.calls, self.labels, outcome, error_class)

    def attempted(self, first: str, end: str) -> Counter:
        """Return the bound counter of calls that made an attempt."""
        return _bound(self._attempted, self._families.attempted, self.labels, first, end)

    def attempts(self, result: str, error_class: str) -> Counter:
        """Return the bound counter of attempts."""
        return _bound(self._attempts, self._families.attempts, self.labels, result, error_class)

    def action(self, layer: str, action: str) -> Counter:
        """Return the bound counter of a layer's action."""
        return _bound(self._actions, self._families.actions, self.labels, layer, action)

    def cost(self, is_wasted: bool) -> Counter:
        """Return the counter of costs."""
        return self._families.cost.labels(*self.labels, "true" if is_wasted else "false")


def _bound(
    children: dict[tuple[str, str], Counter],
    family: Counter,
    labels: tuple[str, str],
    third: str,
    fourth: str,
) -> Counter:
    child = children.get((third, fourth))
    if child is None:
        child = children[third, fourth] = family.labels(*labels, third, fourth)
    return child


class Metrics(Collector):
    """Counts calls and offers the counts to a registry, as one collector.

    A collector of our own, rather than metrics registered one by one, leaves out the
    ``_created`` samples of our metrics without touching prometheus_client's global switch.

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
        self._monotonic = monotonic
        self._abandoned_threads = abandoned_threads
        self.regions.declare(self._default_regions)
        self._reset()

    def _reset(self) -> None:
        self._families = Families()
        self._series: dict[tuple[str, str], ToolSeries] = {}
        self._by_call: dict[tuple[str, str | None], ToolSeries] = {}

    def after_fork(self) -> None:
        """Start at zero with fresh locks: a forked child is a process of its own."""
        for label in self._labels():
            label.after_fork()
        known = list(self._series)
        self._reset()
        self.in_flight.after_fork()
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

    def _make(self, tool: str, region: str) -> ToolSeries:
        series = self._series.get((tool, region))
        if series is None:
            series = self._series[tool, region] = ToolSeries(self._families, tool, region)
        return series

    def _of(self, call: CallRecord) -> ToolSeries:
        series = self._by_call.get((call.tool.name, call.region))
        return series if series is not None else self._look_up(call.tool.name, call.region)

    def _look_up(self, tool: str, region: str | None) -> ToolSeries:
        tool_label = self.tools.value(tool)
        region_label = self.regions.value(region or self._own_region)
        series = self._make(tool_label, region_label)
        if tool_label != c.OTHER_LABEL and region_label != c.OTHER_LABEL:
            self._by_call[tool, region] = series
        return series

    def attempt_ended(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Count an attempt."""
        series = self._of(call)
        fault = attempt.fault
        error_class = fault.verdict.error_class.value if fault is not None else NO_ERROR
        series.attempts(attempt.result.value, error_class).inc()
        series.attempt_duration.observe(max(0.0, attempt.duration))

    def call_ended(self, call: CallRecord, trace_id: int | None) -> None:
        """Count a call.

        Args:
            call: The call.
            trace_id: The id of its trace, if it is sampled.
        """
        series = self._of(call)
        outcome = call.outcome or Outcome.ERROR
        series.calls(outcome.value, _error_class(call, outcome)).inc()
        self._observe(series, max(0.0, call.duration), trace_id)
        if call.attempts:
            series.attempted(call.attempts[0].result.value, call.retry_end.value).inc()
        if call.backoff_seconds > 0:
            series.backoff.inc(call.backoff_seconds)
        for layer, action in call.layer_actions:
            series.action(layer, action).inc()
        _count_cost(series, call, outcome)

    def _observe(self, series: ToolSeries, duration: float, trace_id: int | None) -> None:
        now = self._monotonic()
        # An exemplar costs more than all else here, and a scrape keeps only the last one.
        if trace_id is None or (now < series.exemplar_due and duration < 1.0):
            series.duration.observe(duration)
            return
        series.exemplar_due = now + SECONDS_BETWEEN_EXEMPLARS
        series.duration.observe(duration, {"trace_id": f"{trace_id:032x}"})

    def breaker_created(self, status: BreakerStatus) -> None:
        """Make a breaker's series exist."""
        self.breakers.created(status)

    def breaker_changed(self, transition: BreakerTransition) -> None:
        """Count a transition and the time spent in the state that ended."""
        self.breakers.changed(transition)

    def overflow(self) -> dict[str, int]:
        """Return how often each label's value was folded into ``_other``."""
        return {label.label: label.folded for label in self._labels()}

    # --- Collector -------------------------------------------------------------------------
    def describe(self) -> Iterable[Metric]:
        """Name the families, so that a registry can refuse duplicates without collecting."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its present values."""
        for family in self._families.all():
            for metric in family.collect():
                metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
                yield metric
        yield from self._in_flight_families()
        yield from self.breakers.collect()
        yield from self._process_families()

    def _in_flight_families(self) -> Iterator[Metric]:
        count = GaugeMetricFamily(c.METRIC_IN_FLIGHT, "Tool calls that are running.", labels=_TOOL)
        age = GaugeMetricFamily(
            c.METRIC_OLDEST_CALL_AGE, "Age of the oldest running call in seconds.", labels=_TOOL
        )
        running: dict[tuple[str, str], tuple[int, float]] = dict.fromkeys(
            tuple(self._series), (0, 0.0)
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
