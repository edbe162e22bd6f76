"""What a worker process says of itself, in files that whichever worker is scraped adds up.

Counters of calls are shared as they are counted (:mod:`fuseboard.telemetry.shared_cells`). All
else of a process (running calls, breakers, losses) is kept in memory by the process itself; here
it is copied into prometheus_client's own metrics. Gauges count for living processes only: a sum
of what runs, the worst of what is a state. So no series carries a process id, and a worker that
is gone takes its running calls and its open breakers with it.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

from prometheus_client import Counter, Gauge
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from fuseboard import conventions as c
from fuseboard.record import CallRecord
from fuseboard.telemetry.shared_cells import with_reentrant_lock

ENV_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
_SUMMED: Final = frozenset({c.METRIC_IN_FLIGHT, c.METRIC_ABANDONED_THREADS})
_LIVE_FILE: Final = re.compile(r"gauge_live\w*?_(\d+)\.db")


class Mirror:
    """Copies metric families of this process into shared metrics."""

    def __init__(self) -> None:
        self._metrics: dict[str, Counter | Gauge] = {}
        self._seen: dict[tuple[str, tuple[str, ...]], float] = {}
        self._lock = threading.RLock()

    def show(self, families: Iterable[Metric]) -> None:
        """Bring the shared metrics up to date."""
        with self._lock:
            for family in families:
                for sample in family.samples:
                    self._show(family, sample)

    def running(self, tool: str, region: str) -> Gauge:
        """Return what counts the running calls of a tool in a region."""
        with self._lock:
            gauge = self._gauge(
                c.METRIC_IN_FLIGHT, "Tool calls that are running.", ("tool", "region")
            )
            return gauge.labels(tool, region)

    def _show(self, family: Metric, sample: Sample) -> None:
        names, values = tuple(sample.labels), tuple(sample.labels.values())
        if family.type == "gauge":
            gauge = self._gauge(family.name, family.documentation, names)
            (gauge.labels(*values) if names else gauge).set(sample.value)
            return
        counter = self._counter(family.name, family.documentation, names)
        key = (family.name, values)
        grown = sample.value - self._seen.get(key, 0.0)
        self._seen[key] = sample.value
        (counter.labels(*values) if names else counter).inc(max(0.0, grown))

    def _gauge(self, name: str, words: str, labels: tuple[str, ...]) -> Gauge:
        found = self._metrics.get(name)
        if not isinstance(found, Gauge):
            mode: Literal["livesum", "livemax"] = "livesum" if name in _SUMMED else "livemax"
            found = with_reentrant_lock(
                Gauge(name, words, labels, registry=None, multiprocess_mode=mode)
            )
            self._metrics[name] = found
        return found

    def _counter(self, name: str, words: str, labels: tuple[str, ...]) -> Counter:
        found = self._metrics.get(name)
        if not isinstance(found, Counter):
            found = with_reentrant_lock(Counter(name, words, labels, registry=None))
            self._metrics[name] = found
        return found


class CountedCalls(dict[int, CallRecord]):
    """The running calls, counted for all workers as they begin and end.

    Args:
        running: Returns what counts the running calls of a call's tool and region.
    """

    def __init__(self, running: Callable[[CallRecord], Gauge]) -> None:
        super().__init__()
        self._running = running

    def __setitem__(self, key: int, call: CallRecord) -> None:
        super().__setitem__(key, call)
        self._running(call).inc()

    def pop(self, key: int, default: object = None) -> CallRecord | None:  # type: ignore[override] # noqa: ARG002
        """Remove a call that ended, once."""
        call = super().pop(key, None)
        if call is not None:
            self._running(call).dec()
        return call


class WorkersCollector(Collector):
    """All workers' values, without the gauges of those that are gone.

    Args:
        publish: Brings what this process shares up to date.
    """

    def __init__(self, publish: Callable[[], None]) -> None:
        self._publish = publish
        self._files = MultiProcessCollector(None)  # type: ignore[no-untyped-call]

    def describe(self) -> Iterable[Metric]:
        """Name nothing beforehand: what there is depends on all workers."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield every family, summed up over the workers."""
        self._publish()
        forget_dead_workers()
        yield from self._files.collect()  # type: ignore[no-untyped-call]


def forget_dead_workers() -> None:
    """Remove the gauges of processes that ended without a word; their counts stay."""
    folder = os.environ.get(ENV_FOLDER)
    if not folder:
        return
    for path in Path(folder).glob("gauge_live*.db"):
        found = _LIVE_FILE.fullmatch(path.name)
        if found is not None and not is_alive(int(found[1])):
            path.unlink(missing_ok=True)


def forget_worker(pid: int) -> None:
    """Remove the gauges of one process that ends or has ended."""
    folder = os.environ.get(ENV_FOLDER)
    for path in Path(folder).glob(f"gauge_live*_{pid}.db") if folder else ():
        path.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that nobody has waited for yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state not in {"Z", "X"}
