"""The collector's own metrics for Prometheus: names ``fuseboard_collector_…``, public and stable.

Everything is read when it is asked for; nothing is counted twice.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from fuseboard_collector.errors import StoreError
from fuseboard_collector.stats import BUCKETS
from fuseboard_collector.store.surface import AnyStore

PREFIX: Final = "fuseboard_collector_"


class _Counter(NamedTuple):
    """How a counter of :class:`~fuseboard_collector.stats.Stats` is shown.

    Attributes:
        labels: What its label means, as many words as there are.
        fixed: Labels that are always the same here.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ()
    fixed: tuple[tuple[str, str], ...] = ()


_REJECTED = "Records that can't be stored, by reason."
_IGNORED = "Records that are none of fuseboard's, and were left out."
COUNTERS: Final = {
    "answers": _Counter(
        "requests_total",
        "Export requests that were answered; status is HTTP's or the gRPC code.",
        ("protocol", "signal", "status"),
    ),
    "received_bytes": _Counter("received_bytes_total", "Bytes of bodies, as they came."),
    "accepted_spans": _Counter(
        "accepted_records_total",
        "Records that are stored, or were already.",
        fixed=(("signal", "traces"),),
    ),
    "accepted_events": _Counter(
        "accepted_records_total",
        "Records that are stored, or were already.",
        fixed=(("signal", "logs"),),
    ),
    "ignored_logs": _Counter("ignored_records_total", _IGNORED, fixed=(("signal", "logs"),)),
    "ignored_metrics": _Counter("ignored_records_total", _IGNORED, fixed=(("signal", "metrics"),)),
    "rejected_traces": _Counter(
        "rejected_records_total", _REJECTED, ("reason",), (("signal", "traces"),)
    ),
    "rejected_logs": _Counter(
        "rejected_records_total", _REJECTED, ("reason",), (("signal", "logs"),)
    ),
    "stored_rows": _Counter("stored_rows_total", "Rows that were new.", ("table",)),
    "repeats": _Counter("repeated_rows_total", "Rows that were stored already.", ("table",)),
    "expired_rows": _Counter(
        "expired_rows_total", "Rows that retention found to delete.", ("why",)
    ),
    "compactions": _Counter("compactions_total", "Times that the data file was compacted."),
    "late_rows": _Counter(
        "late_rows_total", "Calls that came too late for the alerts' shortest window.", ("table",)
    ),
    "commits": _Counter("commits_total", "Transactions of the store."),
    "queries": _Counter("queries_total", "Queries that were begun."),
    "foreign_spans": _Counter(
        "foreign_spans_total",
        "Spans of other instrumentation that tell of a tool's call, by the dialect of their words.",
        ("dialect",),
    ),
    "staged_traces": _Counter(
        "staged_traces_total", "Times that a trace with spans of others began to wait for assembly."
    ),
    "assembled_calls": _Counter(
        "assembled_calls_total", "Calls stored of spans of others, put right ones once more."
    ),
    "reassembled_traces": _Counter(
        "reassembled_traces_total", "Traces assembled again because a relative came later."
    ),
    "late_relatives": _Counter(
        "late_relatives_total", "Spans whose relatives had been deleted already."
    ),
    "assembly_failures": _Counter(
        "assembly_failures_total", "Traces that could not be assembled; the log says why."
    ),
    "reopened": _Counter("store_reopened_total", "Times that a broken store was opened anew."),
}
"""Counter → metric. One that is not here is shown under its own name, its label as ``kind``."""
STATE: Final = {
    "store_available": "1 if data can be stored and read.",
    "queue_rows": "Rows that wait to be stored.",
    "staged_spans": "Spans of tools, of other instrumentation, that wait to be assembled.",
    "store_size_bytes": "What the data take on disk.",
    "store_free_block_bytes": "The part of the data file that is free for new rows.",
    "oldest_row_age_seconds": "Since the oldest call arrived.",
    "build_info": "Always 1.",
}
"""Gauge → help."""
COMMIT_SECONDS: Final = "commit_seconds"
NAMES: Final = frozenset(
    PREFIX + name for name in (*(shown.name for shown in COUNTERS.values()), *STATE, COMMIT_SECONDS)
)
"""Every metric that has a name of its own."""
_LEFT_OUT: Final = frozenset({"requests", "refused_requests"})
"""Said in more detail by ``answers``."""


class CollectorMetrics(Collector):
    """Turns a store's counters and state into metrics.

    Args:
        store: Whose.
    """

    def __init__(self, store: AnyStore) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        """Yield every metric as it is now."""
        yield from self._counters()
        yield from self._state()
        yield self._commits()
        info = GaugeMetricFamily(PREFIX + "build_info", STATE["build_info"], labels=("version",))
        info.add_metric((version("fuseboard"),), 1)
        yield info

    def _counters(self) -> Iterator[Metric]:
        families: dict[str, CounterMetricFamily] = {}
        for key, amount in self._store.stats.snapshot().items():
            name, _, rest = key.partition("{")
            if name in _LEFT_OUT:
                continue
            label = rest.removesuffix("}")
            shown = COUNTERS.get(name) or _unnamed(name, bool(label))
            values = _values(shown, label)
            family = families.get(shown.name)
            if family is None:
                family = CounterMetricFamily(PREFIX + shown.name, shown.help, labels=list(values))
                families[shown.name] = family
            family.add_metric(list(values.values()), amount)
        yield from families.values()

    def _state(self) -> Iterator[Metric]:
        store = self._store
        is_available = store.unavailable_because() is None
        found: dict[str, float] = {
            "store_available": float(is_available),
            "queue_rows": store.queue_rows(),
        }
        with suppress(StoreError):  # a database server may be away
            found["store_size_bytes"] = store.size_bytes()
        described: dict[str, object] = {}
        if is_available:
            with suppress(StoreError):  # it went away meanwhile
                described = store.describe()
        free = described.get("free_block_bytes")
        if isinstance(free, int):
            found["store_free_block_bytes"] = free
        staged = described.get("staged")
        if isinstance(staged, dict):
            found["staged_spans"] = staged["spans"]
        oldest = described.get("oldest_row")
        if isinstance(oldest, str):
            arrived = datetime.fromisoformat(oldest).astimezone(UTC).timestamp()
            found["oldest_row_age_seconds"] = time.time() - arrived
        for name, value in found.items():
            yield GaugeMetricFamily(PREFIX + name, STATE[name], value)

    def _commits(self) -> Metric:
        timing = self._store.stats.timing("commit")
        cumulated = list(itertools.accumulate(timing.counts))
        bounds = [*(str(bound) for bound in BUCKETS), "+Inf"]
        family = HistogramMetricFamily(
            PREFIX + COMMIT_SECONDS, "From handing a request's rows to the store to their commit."
        )
        family.add_metric((), list(zip(bounds, cumulated, strict=True)), timing.total)
        return family


def _unnamed(name: str, has_label: bool) -> _Counter:
    words = name.replace("_", " ")
    return _Counter(f"{name}_total", f"Number of {words}.", ("kind",) if has_label else ())


def _values(shown: _Counter, label: str) -> dict[str, str]:
    parts = label.split(" ", len(shown.labels) - 1) if shown.labels else []
    return {**dict(shown.fixed), **dict(zip(shown.labels, parts, strict=False))}


class Exposition:
    """Writes the collector's metrics, and those of its process, in Prometheus' formats.

    Args:
        store: Whose.
    """

    def __init__(self, store: AnyStore) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(CollectorMetrics(store))
        ProcessCollector(registry=self._registry)

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their content type.

        Args:
            accept: The request's ``Accept`` header.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type
