"""The counts of one tool in one region, updated under one lock and read at scrape.

prometheus_client's own metrics take a lock and a method call for each of the five updates that
an ordinary call makes. Here such a call is one number in one histogram: a call that made a
single attempt (a plain one) is counted once, by its error class, and spread over all metrics
when they are read.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Exemplar

from fuseboard import conventions as c
from fuseboard.telemetry.families import (
    ACTIONS,
    ATTEMPT_SECONDS,
    ATTEMPTED,
    ATTEMPTS,
    BACKOFF,
    CALL_SECONDS,
    CALLS,
    COSTS,
    ZERO_SERIES,
    Family,
    Labels,
)
from fuseboard.waiting import take_waiting

_BOUNDS: Final = c.DURATION_BUCKETS
_UNCOUNTED: Final = 512
"""Most successes that wait to be sorted into buckets, all at once."""
_LE: Final = (*(repr(bound) for bound in _BOUNDS), "+Inf")


def plain_labels(error_class: str) -> Mapping[Family, Labels]:
    """Return how a plain call counts in each metric."""
    if error_class == c.NO_ERROR:
        outcome, result = c.Outcome.OK.value, c.AttemptResult.SUCCESS.value
    else:
        outcome, result = c.Outcome.ERROR.value, c.AttemptResult.FAILURE.value
    return {
        CALLS: (outcome, error_class),
        ATTEMPTED: (result, c.RetryEnd.NONE.value),
        ATTEMPTS: (result, error_class),
    }


_PLAIN: Final[Mapping[str, Mapping[Family, Labels]]] = {
    error_class: plain_labels(error_class)
    for error_class in (c.NO_ERROR, *(cls.value for cls in c.ErrorClass))
}

Counts = dict[Labels, float]


class Buckets:
    """A histogram's counts, not cumulative, and its sum in seconds."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.sum += seconds

    def plus(self, other: Buckets) -> Buckets:
        """Return the sum of two histograms."""
        both = Buckets()
        both.counts = [
            mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)
        ]
        both.sum = self.sum + other.sum
        return both


@dataclass(frozen=True, slots=True)
class Reading:
    """The counts of one cell as of one moment."""

    labels: tuple[str, str]
    counts: Mapping[Family, Counts]
    seconds: Mapping[Family, Buckets]
    exemplars: Mapping[int, Exemplar]


class Cell:
    """Everything that is counted for one tool in one region.

    Args:
        tool: Label value.
        region: Label value.
    """

    def __init__(self, tool: str, region: str) -> None:
        self._labels = (tool, region)
        # Reentrant: a generator that is collected in the middle of an update ends a call, too.
        self._lock = threading.RLock()
        self.exemplar_due = 0.0
        """When the next trace may be shown, monotonic seconds."""
        self._successes: deque[float] = deque()
        self._plain = {error_class: Buckets() for error_class in _PLAIN}
        self._seconds = {CALL_SECONDS: Buckets(), ATTEMPT_SECONDS: Buckets()}
        self._exemplars: dict[int, Exemplar] = {}
        # A series that is born at 1 hides its first event from increase().
        self._counts: dict[Family, Counts] = {
            family: dict.fromkeys(series, 0.0) for family, series in ZERO_SERIES.items()
        }

    def count_success(self, seconds: float) -> None:
        """Count a call whose only attempt succeeded and took as long as the call did.

        No lock is taken but for every so many of them: appending is atomic.
        """
        successes = self._successes
        successes.append(seconds)
        if len(successes) >= _UNCOUNTED:
            self._count_successes()

    def _count_successes(self) -> None:
        successes = self._successes
        with self._lock:
            found = take_waiting(successes)
            found.sort()
            if found and found[0] < 0.0:  # a clock that was set back or replaced meanwhile
                found = [max(0.0, seconds) for seconds in found]
            total = sum(found)
            buckets = self._plain[c.NO_ERROR]
            counted = 0
            for index, bound in enumerate(_BOUNDS):
                below = bisect_right(found, bound, counted)
                buckets.counts[index] += below - counted
                counted = below
            buckets.counts[-1] += len(found) - counted
            buckets.sum += total

    def count_plain(self, error_class: str, seconds: float) -> None:
        """Count a call that made one attempt, which took as long and ended as the call did.

        Args:
            error_class: What it failed with; ``none`` if it succeeded.
            seconds: How long it took.
        """
        buckets = self._plain[error_class]
        index = bisect_left(_BOUNDS, seconds)
        with self._lock:
            buckets.counts[index] += 1
            buckets.sum += seconds

    def add(self, family: Family, labels: Labels, amount: float = 1.0) -> None:
        """Add to a counter.

        Args:
            family: The metric.
            labels: Its further labels' values.
            amount: How much to add.
        """
        with self._lock:
            counts = self._counts[family]
            if labels not in counts:
                counts[labels] = 0.0
            # Nothing is called between reading and writing, for a signal's handler could come in.
            counts[labels] += amount

    def observe(self, family: Family, seconds: float) -> None:
        """Count a duration in a histogram."""
        with self._lock:
            self._seconds[family].add(seconds)

    def exemplify(self, seconds: float, trace_id: int, now: float) -> None:
        """Show a call's trace beside the bucket that it was counted in.

        Args:
            seconds: How long the call took.
            trace_id: Its trace.
            now: Unix seconds.
        """
        exemplar = Exemplar({"trace_id": f"{trace_id:032x}"}, seconds, now)
        with self._lock:
            self._exemplars[bisect_left(_BOUNDS, seconds)] = exemplar

    def read(self) -> Reading:
        """Return all counts as of one moment."""
        self._count_successes()
        with self._lock:
            counts = {family: dict(series) for family, series in self._counts.items()}
            seconds = dict(self._seconds)
            for error_class, plain in self._plain.items():
                calls = sum(plain.counts)
                if not calls:
                    continue
                for family, labels in _PLAIN[error_class].items():
                    counts[family][labels] += calls
                seconds = {family: own.plus(plain) for family, own in seconds.items()}
            return Reading(self._labels, counts, seconds, dict(self._exemplars))


def collect(cells: Iterable[Cell]) -> Iterator[Metric]:
    """Yield the metrics that are counted per tool and region."""
    readings = [cell.read() for cell in cells]
    for family in (CALLS, ATTEMPTED, ATTEMPTS, BACKOFF, ACTIONS, COSTS):
        yield _counter(family, readings)
    yield _histogram(CALL_SECONDS, readings, has_exemplars=True)
    yield _histogram(ATTEMPT_SECONDS, readings, has_exemplars=False)


def _counter(family: Family, readings: Iterable[Reading]) -> Metric:
    metric = CounterMetricFamily(family.name, family.words, labels=family.labels)
    for reading in readings:
        for labels, count in reading.counts[family].items():
            metric.add_metric((*reading.labels, *labels), count)
    return metric


def _histogram(family: Family, readings: Iterable[Reading], *, has_exemplars: bool) -> Metric:
    metric = HistogramMetricFamily(family.name, family.words, labels=family.labels)
    for reading in readings:
        buckets = reading.seconds[family]
        exemplars = reading.exemplars if has_exemplars else {}
        metric.add_metric(reading.labels, list(_cumulative(buckets, exemplars)), buckets.sum)
    return metric


def _cumulative(
    buckets: Buckets, exemplars: Mapping[int, Exemplar]
) -> Iterator[tuple[str, float] | tuple[str, float, Exemplar]]:
    total = 0.0
    for index, (le, count) in enumerate(zip(_LE, buckets.counts, strict=True)):
        total += count
        exemplar = exemplars.get(index)
        yield (le, total) if exemplar is None else (le, total, exemplar)
