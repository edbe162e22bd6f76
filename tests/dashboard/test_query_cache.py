"""HC-46: cached answers are fresh, bounded, and never another viewer's."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from fuseboard_collector.errors import StoreError
from fuseboard_collector.store import Batch, Store, ToolCall
from fuseboard_dashboard.data import MAX_ENTRIES, TTL_SECONDS, QueryCache
from fuseboard_dashboard.filters import PRESETS, Filters

from .conftest import FlakyReader, at, open_page, serve, stat


class Echo:
    """A reader that answers with a running number."""

    def __init__(self, store_id: str = "one") -> None:
        self.store_id = store_id
        self.asked = 0

    def query(self, name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        self.asked += 1
        return pa.table({"n": [self.asked]})


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def _now() -> datetime:
    return datetime(2026, 1, 5, tzinfo=UTC)


def test_hc_46_an_answer_is_asked_again_after_its_time() -> None:
    clock, reader = Clock(), Echo()
    cache = QueryCache(ttl=5.0, monotonic=clock)
    first = cache.ask(reader, "q", {}, _now)
    clock.time += 4.9
    assert cache.ask(reader, "q", {}, _now) is first
    clock.time += 0.1
    assert cache.ask(reader, "q", {}, _now).table["n"].to_pylist() == [2]


def test_hc_46_everything_that_changes_the_answer_is_in_the_key() -> None:
    cache, one, other = QueryCache(), Echo("one"), Echo("two")
    variants = [
        (one, "q", {"tools": ["a"], "until": "t1"}),
        (one, "q", {"tools": ["b"], "until": "t1"}),
        (one, "q", {"tools": None, "until": "t1"}),
        (one, "q", {"tools": ["a"], "until": "t2"}),
        (one, "p", {"tools": ["a"], "until": "t1"}),
        (other, "q", {"tools": ["a"], "until": "t1"}),
    ]
    answers = [cache.ask(*variant, _now) for variant in variants]
    assert len({id(answer) for answer in answers}) == len(variants)


def test_hc_46_a_thousand_filters_leave_bounded_memory() -> None:
    cache, reader = QueryCache(), Echo()
    for number in range(1000):
        cache.ask(reader, "q", {"tools": [str(number)]}, _now)
    assert len(cache) == MAX_ENTRIES


def test_hc_46_nothing_lives_longer_than_the_shortest_refresh() -> None:
    assert min(Filters(range=key).refresh_seconds for key in PRESETS) >= TTL_SECONDS


def test_hc_46_a_frame_that_was_changed_changes_no_other() -> None:
    cache, reader = QueryCache(), Echo()
    mine = cache.ask(reader, "q", {}, _now).frame()
    mine["n"] = 99
    assert cache.ask(reader, "q", {}, _now).frame()["n"].to_list() == [1]


def test_an_error_is_not_kept(flaky: FlakyReader) -> None:
    cache = QueryCache()
    flaky.failing = "page_store"
    with pytest.raises(StoreError):
        cache.ask(flaky, "page_store", {}, _now)
    flaky.failing = None
    assert cache.ask(flaky, "page_store", {}, _now).frame()["calls"][0] == 11


def test_viewers_who_ask_at_once_share_one_query() -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(Echo):
        def query(self, name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
            entered.set()
            assert leave.wait(20)
            return super().query(name, parameters)

    cache, reader = QueryCache(), Slow()
    threads = [threading.Thread(target=cache.ask, args=(reader, "q", {}, _now)) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert entered.wait(20)
    leave.set()
    for thread in threads:
        thread.join(20)
    assert reader.asked == 1


def test_hc_46_two_sessions_with_different_filters_see_different_numbers(store: Store) -> None:
    serve(store)
    assert stat(open_page("", {"tool": "alpha"}), "calls") == 8
    assert stat(open_page("", {"tool": "beta"}), "calls") == 4


def test_hc_46_another_store_is_another_answer(store: Store, empty_store: Store) -> None:
    serve(store)
    assert stat(open_page(), "calls") == 12
    empty_store.append(Batch(calls=[ToolCall("alpha", end=at(60))])).result(30)
    serve(empty_store)
    assert stat(open_page(), "calls") == 1
