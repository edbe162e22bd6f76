"""Counts for several worker processes, through prometheus_client's own metrics.

With ``PROMETHEUS_MULTIPROC_DIR`` set, prometheus_client keeps each value in a file, and whichever
worker is scraped adds up the files of all of them. A collector of our own has no part in that,
so here every count goes through its counters and histograms, at their price and without
exemplars.
"""

from __future__ import annotations

import threading
from typing import Final, TypeVar

from prometheus_client import Counter, Gauge, Histogram, values

from fuseboard import conventions as c
from fuseboard.telemetry.cells import plain_labels
from fuseboard.telemetry.families import (
    ATTEMPT_SECONDS,
    CALL_SECONDS,
    ZERO_SERIES,
    Family,
    Labels,
)

Shared = TypeVar("Shared", Counter, Gauge, Histogram)

_LOCK: Final = type(threading.Lock())
_REENTRANT_LOCK: Final = type(threading.RLock())


def is_shared() -> bool:
    """Tell whether prometheus_client, as it was imported, shares its values over processes."""
    return bool(getattr(values.ValueClass, "_multiprocess", False))


def make_reentrant() -> None:
    """Make prometheus_client's lock of all shared values one that a thread may take twice.

    A signal's handler or the garbage collector may end a call in the middle of counting another
    one, and would wait for ever for the lock that its own thread holds. The lock is a variable
    within a function of theirs.
    """
    for cell in getattr(values.ValueClass.__init__, "__closure__", None) or ():
        lock = cell.cell_contents
        if isinstance(lock, _LOCK):
            with lock:
                cell.cell_contents = threading.RLock()


def renew_lock_in_child() -> None:
    """Replace that lock in a forked child: whoever held it is no thread of this process."""
    for cell in getattr(values.ValueClass.__init__, "__closure__", None) or ():
        if isinstance(cell.cell_contents, _LOCK | _REENTRANT_LOCK):
            cell.cell_contents = threading.RLock()


def with_reentrant_lock(metric: Shared) -> Shared:
    """Return a metric with labels, whose lock its thread may take twice from now on."""
    metric._lock = threading.RLock()  # type: ignore[assignment]
    return metric


class SharedFamilies:
    """The metrics that are counted per tool and region, bound to no registry."""

    def __init__(self) -> None:
        self.counters = {
            family: with_reentrant_lock(
                Counter(family.name, family.words, family.labels, registry=None)
            )
            for family in ZERO_SERIES
        }
        self.histograms = {
            family: with_reentrant_lock(
                Histogram(
                    family.name,
                    family.words,
                    family.labels,
                    registry=None,
                    buckets=c.DURATION_BUCKETS,
                )
            )
            for family in (CALL_SECONDS, ATTEMPT_SECONDS)
        }


class SharedCell:
    """What :class:`~fuseboard.telemetry.cells.Cell` does, for values in files.

    Args:
        families: The metrics.
        tool: Label value.
        region: Label value.
    """

    exemplar_due: float = float("inf")
    """Never: values in files carry no exemplars."""

    def __init__(self, families: SharedFamilies, tool: str, region: str) -> None:
        self._labels: Final = (tool, region)
        self._families = families
        for family, series in ZERO_SERIES.items():
            for labels in series:
                self._counter(family, labels)
        self._seconds = {
            family: histogram.labels(tool, region)
            for family, histogram in families.histograms.items()
        }

    def _counter(self, family: Family, labels: Labels) -> Counter:
        return self._families.counters[family].labels(*self._labels, *labels)

    def count_success(self, seconds: float) -> None:
        """Count a call whose only attempt succeeded."""
        self.count_plain(c.NO_ERROR, max(0.0, seconds))

    def count_plain(self, error_class: str, seconds: float) -> None:
        """Count a call that made one attempt; see :meth:`Cell.count_plain`."""
        for family, labels in plain_labels(error_class).items():
            self._counter(family, labels).inc()
        for histogram in self._seconds.values():
            histogram.observe(seconds)

    def add(self, family: Family, labels: Labels, amount: float = 1.0) -> None:
        """Add to a counter."""
        self._counter(family, labels).inc(amount)

    def observe(self, family: Family, seconds: float) -> None:
        """Count a duration in a histogram."""
        self._seconds[family].observe(seconds)

    def exemplify(self, seconds: float, trace_id: int, now: float) -> None:
        """Do nothing: values in files carry no exemplars."""
