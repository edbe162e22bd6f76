from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fuseboard_collector.store import (
    Attempt,
    Batch,
    BreakerTransition,
    Heartbeat,
    Span,
    Store,
    ToolCall,
    open_store,
)
from fuseboard_collector.store.repeats import RepeatFilter
from fuseboard_collector.store.rows import Sighting

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TABLES = ("tool_calls", "attempts", "breaker_transitions", "heartbeats", "spans")
Rows = Callable[[str], list[dict[str, Any]]]


def everything() -> Batch:
    """One row of each table; the attempts table gets a derived one as well."""
    return Batch(
        calls=[ToolCall("search", end=NOW)],
        attempts=[Attempt("ab" * 16, "cd" * 8, 1, NOW, 0.1, "search", "failure")],
        transitions=[BreakerTransition(NOW, "search/eu", "search", "closed", "open", instance="i")],
        heartbeats=[Heartbeat(NOW, "i")],
        spans=[Span("ab" * 16, "ef" * 8, "chat", NOW, 1.0)],
    )


def counts(rows: Rows) -> dict[str, int]:
    return {table: len(rows(table)) for table in TABLES}


ONCE = {"tool_calls": 1, "attempts": 2, "breaker_transitions": 1, "heartbeats": 1, "spans": 1}


def test_hc_38_a_batch_sent_twice_in_a_row_is_stored_once(store: Store, rows: Rows) -> None:
    batch = everything()
    store.append(batch).result(10)
    store.append(batch).result(10)
    assert counts(rows) == ONCE
    assert sum(store.stats.get("repeats", table) for table in TABLES) == 5


def test_hc_38_a_batch_with_repeats_inside_is_stored_once(store: Store, rows: Rows) -> None:
    batch = everything()
    for field in dataclasses.fields(batch):
        getattr(batch, field.name).extend(getattr(batch, field.name) * 3)
    store.append(batch).result(10)
    assert counts(rows) == ONCE


def test_hc_38_a_batch_sent_by_many_at_once_is_stored_once(store: Store, rows: Rows) -> None:
    batch = everything()
    barrier = threading.Barrier(8)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            barrier.wait()
            for _ in range(5):
                store.append(batch).result(30)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert counts(rows) == ONCE


def test_only_the_repeats_of_a_mixed_batch_are_left_out(store: Store, rows: Rows) -> None:
    calls = [ToolCall("search", end=NOW) for _ in range(10)]
    store.append(Batch(calls=calls[::2])).result(10)
    store.append(Batch(calls=calls)).result(10)
    assert len(rows("tool_calls")) == 10
    assert len(rows("attempts")) == 10


def test_repeats_are_known_after_a_restart_however_long_ago_it_stopped(tmp_path: Path) -> None:
    """The rows are old when the store opens again: what counts is the newest row's time."""
    batch = everything()
    first = open_store(tmp_path / "f.duckdb", retention_days=None)
    first.append(batch).result(10)
    first.close()
    second = open_store(tmp_path / "f.duckdb", retention_days=None)
    second.append(batch).result(10)
    assert sum(second.stats.get("repeats", table) for table in TABLES) == 5
    assert second.query("export_attempts", {"since": None, "until": None}).num_rows == 2
    second.close()


@pytest.mark.parametrize(
    "change",
    [
        {"instance": "other"},
        {"service": "other"},
        {"breaker": "search/us"},
        {"time": NOW + timedelta(microseconds=1)},
        {"to_state": "isolated"},
    ],
)
def test_different_transitions_are_no_repeats(
    store: Store, rows: Rows, change: dict[str, Any]
) -> None:
    first = everything().transitions[0]
    store.append(Batch(transitions=[first, dataclasses.replace(first, **change)])).result(10)
    assert len(rows("breaker_transitions")) == 2


def test_keys_are_remembered_for_the_window_at_least() -> None:
    now = 0.0
    repeats = RepeatFilter(lambda: now, window=600)
    repeats.remember([b"a"])
    now = 599.0
    repeats.remember([b"b"])
    now = 601.0
    repeats.remember([b"c"])
    assert repeats.fresh([b"a", b"b", b"c"], set()) == [False, False, False]
    now = 1198.0
    assert repeats.fresh([b"b"], set()) == [False]
    now = 1202.0
    repeats.remember([b"d"])
    assert repeats.fresh([b"a", b"b", b"c", b"d"], set()) == [True, True, False, False]


def received(batch: Batch, after: timedelta) -> Batch:
    """Return the rows as they would come so long after they began."""
    late = Batch()
    for field in dataclasses.fields(batch):
        for row in getattr(batch, field.name):
            getattr(late, field.name).append(dataclasses.replace(row, received_at=NOW + after))
    return late


@pytest.mark.parametrize(
    "after", [timedelta(minutes=11), timedelta(days=1), timedelta(days=29)], ids=str
)
def test_hc_38_a_batch_sent_again_when_memory_has_forgotten_it_is_stored_once(
    make_store: Callable[..., Store], clock: Any, after: timedelta
) -> None:
    """A collector that was down for the night sends what it had in its queue once more."""
    store = make_store(retention_days=None, clock=clock)
    batch = Batch(
        calls=everything().calls, attempts=everything().attempts, spans=everything().spans,
        sightings=[Sighting("ab" * 16, "0f" * 8, "t", NOW, 0.1, "genai", "other")],
    )  # fmt: skip
    store.append(received(batch, timedelta(seconds=1))).result(10)
    for _ in range(3):
        clock.now += timedelta(seconds=601)
        store.append(Batch(calls=[ToolCall("later", end=NOW + after)])).result(10)
    other = ToolCall("search", end=NOW)
    again = received(batch, after)
    again.calls.append(dataclasses.replace(other, received_at=NOW + after))
    store.append(again).result(10)
    tables = ("tool_calls", "attempts", "spans", "sightings")
    assert [store.stats.get("repeats", name) for name in tables] == [1] * 4
    window = {"since": None, "until": None}
    assert store.query("export_calls", window)["tool"].to_pylist().count("search") == 2
    store.append(again).result(10)
    assert store.stats.get("repeats", "tool_calls") == 3


def test_where_more_keys_come_than_fit_memory_reaches_back_less() -> None:
    now = 0.0
    repeats = RepeatFilter(lambda: now, max_keys=2)
    assert repeats.reach == 600.0
    for second in range(1, 9):
        now = float(second)
        repeats.remember([str(second).encode()])
    assert repeats.reach < 5.0
    asked = [str(second).encode() for second in range(1, 9) if now - second < repeats.reach]
    assert asked
    assert not any(repeats.fresh(asked, set()))


def test_memory_is_bounded() -> None:
    repeats = RepeatFilter(lambda: 0.0, max_keys=10)
    for number in range(1000):
        repeats.remember([str(number).encode()])
    assert len(repeats) <= 20
    assert repeats.fresh([b"999", b"0"], set()) == [False, True]


def test_keys_of_the_same_transaction_count() -> None:
    repeats = RepeatFilter(lambda: 0.0)
    pending: set[bytes] = set()
    assert repeats.fresh([b"a", b"a", b"b"], pending) == [True, False, True]
    assert repeats.fresh([b"b", b"c"], pending) == [False, True]
    assert len(repeats) == 0
