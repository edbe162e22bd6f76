"""Counts in one cell: what is read equals what prometheus_client would have counted."""

from __future__ import annotations

import threading
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from tests.instrumentation.interrupted import Interrupted

from fuseboard import conventions as c
from fuseboard.conventions import ErrorClass
from fuseboard.telemetry import cells
from fuseboard.telemetry.cells import Cell
from fuseboard.telemetry.families import ATTEMPT_SECONDS, ATTEMPTS, CALL_SECONDS, CALLS, COSTS

seconds = st.one_of(
    st.sampled_from(c.DURATION_BUCKETS), st.floats(0, 1000), st.just(0.0), st.just(600.0001)
)
classes = st.sampled_from(["none", *(cls.value for cls in ErrorClass)])


class Cells(Collector):
    def __init__(self, *kept: Cell) -> None:
        self.kept = kept

    def collect(self) -> Any:
        return cells.collect(self.kept)


def series(*kept: Cell) -> dict[tuple[Any, ...], float]:
    registry = CollectorRegistry()
    registry.register(Cells(*kept))
    return _series(registry)


def _series(registry: CollectorRegistry) -> dict[tuple[Any, ...], float]:
    text = generate_latest(registry).decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(classes, seconds), max_size=60))
def test_plain_calls_count_as_five_updates_would(calls: list[tuple[str, float]]) -> None:
    cell = Cell("search", "eu")
    registry = CollectorRegistry()
    tool = ["tool", "region"]
    ended = Counter(c.METRIC_CALLS, "x", [*tool, "outcome", "error_class"], registry=registry)
    attempted = Counter(
        c.METRIC_ATTEMPTED_CALLS, "x", [*tool, "first_attempt", "retry"], registry=registry
    )
    attempts = Counter(c.METRIC_ATTEMPTS, "x", [*tool, "result", "error_class"], registry=registry)
    took, took_attempt = (
        Histogram(name, "x", tool, buckets=c.DURATION_BUCKETS, registry=registry)
        for name in (c.METRIC_CALL_DURATION, c.METRIC_ATTEMPT_DURATION)
    )
    for error_class, duration in calls:
        cell.count_plain(error_class, duration)
        has_failed = error_class != "none"
        result = "failure" if has_failed else "success"
        ended.labels("search", "eu", "error" if has_failed else "ok", error_class).inc()
        attempted.labels("search", "eu", result, "none").inc()
        attempts.labels("search", "eu", result, error_class).inc()
        took.labels("search", "eu").observe(duration)
        took_attempt.labels("search", "eu").observe(duration)
    found = series(cell)
    for key, value in _series(registry).items():
        assert abs(found[key] - value) <= 1e-9 * max(1.0, value), key
    assert sum(v for k, v in found.items() if k[0] == c.METRIC_CALLS) == len(calls)


def test_plain_and_other_calls_add_up() -> None:
    cell = Cell("search", "eu")
    cell.count_plain("none", 0.3)
    cell.add(CALLS, ("ok", "none"))
    cell.observe(CALL_SECONDS, 0.3)
    cell.add(ATTEMPTS, ("success", "none"), 3)
    cell.observe(ATTEMPT_SECONDS, 0.1)
    cell.add(COSTS, ("true",), 1.5)
    found = series(cell)
    at = (("region", "eu"), ("tool", "search"))

    def value(name: str, **labels: str) -> float:
        return found[(name, *sorted([*at, *labels.items()]))]

    assert value(c.METRIC_CALLS, outcome="ok", error_class="none") == 2
    assert value(c.METRIC_ATTEMPTS, result="success", error_class="none") == 4
    assert value(c.METRIC_CALL_DURATION + "_count") == 2
    assert value(c.METRIC_CALL_DURATION + "_bucket", le="0.25") == 0
    assert value(c.METRIC_CALL_DURATION + "_bucket", le="0.5") == 2
    assert value(c.METRIC_ATTEMPT_DURATION + "_bucket", le="0.25") == 1
    assert value(c.METRIC_COST, wasted="true") == 1.5


def test_cells_of_several_tools_stay_apart() -> None:
    one, other = Cell("a", "eu"), Cell("b", "eu")
    one.count_plain("none", 0.1)
    found = series(one, other)
    calls = {dict(k[1:])["tool"]: v for k, v in found.items()
             if k[0] == c.METRIC_CALLS and dict(k[1:])["outcome"] == "ok"}  # fmt: skip
    assert calls == {"a": 1, "b": 0}


def test_no_count_is_lost_between_threads_and_scrapes() -> None:
    cell = Cell("search", "eu")
    is_over = threading.Event()

    def scrape() -> None:
        while not is_over.is_set():
            found = series(cell)
            calls = sum(v for k, v in found.items() if k[0] == c.METRIC_CALLS)
            timed = sum(v for k, v in found.items() if k[0] == c.METRIC_CALL_DURATION + "_count")
            assert calls == timed, "one reading is of one moment"

    def count() -> None:
        for number in range(5000):
            cell.count_plain("none" if number % 2 else "L3_transient", 0.01)

    scraper = threading.Thread(target=scrape)
    scraper.start()
    counters = [threading.Thread(target=count) for _ in range(4)]
    for thread in counters:
        thread.start()
    for thread in counters:
        thread.join()
    is_over.set()
    scraper.join()
    assert sum(v for k, v in series(cell).items() if k[0] == c.METRIC_CALLS) == 20_000


def test_no_success_is_lost_between_threads_and_scrapes() -> None:
    cell = Cell("search", "eu")
    is_over = threading.Event()

    def scrape() -> None:
        while not is_over.is_set():
            series(cell)

    def count() -> None:
        for _ in range(5003):  # no multiple of what is sorted at once
            cell.count_success(0.25)

    scraper = threading.Thread(target=scrape)
    scraper.start()
    counters = [threading.Thread(target=count) for _ in range(8)]
    for thread in counters:
        thread.start()
    for thread in counters:
        thread.join()
    is_over.set()
    scraper.join()
    found = series(cell)
    assert sum(v for k, v in found.items() if k[0] == c.METRIC_CALLS) == 8 * 5003
    assert sum(v for k, v in found.items() if k[0] == c.METRIC_CALL_DURATION + "_sum") == (
        8 * 5003 * 0.25
    )


def test_successes_that_come_while_others_are_sorted_are_neither_lost_nor_fatal() -> None:
    cell = Cell("search", "eu")

    def call_tools() -> None:
        for _ in range(700):
            cell.count_success(0.5)

    cell._successes = Interrupted(call_tools)
    for _ in range(600):
        cell.count_success(0.5)

    found = series(cell)
    assert sum(v for k, v in found.items() if k[0] == c.METRIC_CALLS) == 1300
    assert sum(v for k, v in found.items() if k[0] == c.METRIC_CALL_DURATION + "_sum") == 650.0


def test_a_clock_that_went_back_takes_nothing_off_the_sum() -> None:
    cell = Cell("search", "eu")
    cell.count_success(-5.0)
    cell.count_success(0.25)
    found = series(cell)
    sums = [v for k, v in found.items() if k[0] == c.METRIC_CALL_DURATION + "_sum"]
    assert sums == [0.25]
