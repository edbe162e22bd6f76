"""The keeper, and what marks hours: late rows, replaced calls, deletions, files from before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fuseboard_collector.store import Attempt, Batch, Heartbeat, Store, ToolCall, open_store
from fuseboard_collector.store.migrations import SCHEMA_FILES, schema
from fuseboard_collector.store.rollups import keeper
from fuseboard_collector.store.rollups.keeper import Keeper
from fuseboard_collector.store.rows import micros, to_arrow

from .rollup_truth import wrong_rollups

NOW = datetime(2026, 3, 10, 9, 41, tzinfo=UTC)
OLD = NOW - timedelta(days=3)


class HandClock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = NOW
        self.ticks = 1000.0

    def time_ns(self) -> int:
        return micros(self.now) * 1000

    def monotonic(self) -> float:
        return self.ticks


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def store(make_store: Callable[..., Store], clock: HandClock) -> Store:
    return make_store(retention_days=None, clock=clock)


def call(end: datetime, **columns: Any) -> ToolCall:
    return ToolCall(columns.pop("tool", "alpha"), end=micros(end), **columns)


def put(store: Store, *calls: ToolCall) -> None:
    store.append(Batch(calls=list(calls))).result(30)


def wrong(store: Store) -> list[str]:
    with store._open_database().cursor() as cursor:
        return wrong_rollups(cursor)


def dirty(store: Store) -> list[tuple[datetime, int, bool]]:
    with store._open_database().cursor() as cursor:
        return cursor.execute("SELECT * FROM dirty_spans ORDER BY ALL").fetchall()


def calls_of(store: Store, days: float = 30) -> float:
    given = {"since": NOW - timedelta(days=days), "until": NOW, "tools": None, "classes": None,
             "regions": None}  # fmt: skip
    total: float = store.query("page_totals", given)["calls"][0].as_py()
    return total


def test_an_insert_marks_the_hours_and_six_hours_that_it_touches_once(store: Store) -> None:
    hour = OLD.replace(minute=0)
    put(store, call(OLD, duration_seconds=0.1), call(OLD, duration_seconds=0.1))
    put(store, call(OLD + timedelta(minutes=1), duration_seconds=0.1))
    naive = hour.replace(tzinfo=None)
    six = naive.replace(hour=6)
    day = naive.replace(hour=0)
    assert dirty(store) == [(day, 24, False), (six, 6, False), (naive, 1, False)]
    assert store.hours_to_roll_up() == 1
    assert store.describe()["hours_to_roll_up"] == 1


def test_a_call_that_ends_on_the_stroke_belongs_to_the_hour_before(store: Store) -> None:
    put(store, call(OLD.replace(minute=0), duration_seconds=0.1))
    assert (OLD.replace(minute=0, tzinfo=None) - timedelta(hours=1), 1, False) in dirty(store)


def test_an_attempt_that_ended_in_another_hour_than_its_call_marks_that_too(store: Store) -> None:
    late = call(OLD.replace(minute=5), duration_seconds=1200.0, attempt_seconds=2.0, attempts=2)
    began = OLD.replace(minute=5) - timedelta(minutes=20)
    first = Attempt(late.trace_id, late.span_id, 1, began, 1.0, late.tool, "failure")
    store.append(Batch(calls=[late], attempts=[first])).result(10)
    assert store.hours_to_roll_up() == 2
    store.roll_up()
    assert wrong(store) == []


def test_a_derived_attempt_belongs_to_the_hour_of_its_call(store: Store) -> None:
    put(store, call(OLD.replace(minute=5), duration_seconds=1200.0, attempt_seconds=1.0))
    assert store.hours_to_roll_up() == 1
    store.roll_up()
    assert wrong(store) == []
    with store._open_database().cursor() as cursor:
        (found,) = cursor.execute("SELECT span FROM attempt_durations_h").fetchall()
    assert found == (OLD.replace(minute=0, tzinfo=None),)


def test_only_hours_that_are_over_are_rolled_up(store: Store, clock: HandClock) -> None:
    put(store, call(NOW - timedelta(minutes=1)), call(NOW - timedelta(hours=2)))
    assert store.roll_up() == 1
    assert store.hours_to_roll_up() == 1
    assert wrong(store) == []
    clock.now += timedelta(hours=7)
    assert store.roll_up() == 2  # the hour, and the six hours that both are part of
    assert [hours for _, hours, _ in dirty(store)] == [24]
    clock.now += timedelta(hours=8)
    assert store.roll_up() == 1  # the day
    assert dirty(store) == []
    assert wrong(store) == []


def test_the_thread_rolls_up_by_itself(
    make_store: Callable[..., Store], clock: HandClock, monkeypatch: pytest.MonkeyPatch,
    until: Callable[..., None],
) -> None:  # fmt: skip
    monkeypatch.setattr(Keeper.__init__, "__defaults__", (0.01,))
    store = make_store("own.duckdb", retention_days=None, clock=clock)
    put(store, call(OLD), call(OLD - timedelta(days=2)))
    until(lambda: dirty(store) == [], "the keeper's work")
    assert wrong(store) == []


def test_a_row_that_comes_while_its_hour_is_counted_keeps_the_hour_dirty(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, call(OLD))
    counted = Keeper._counted

    def slowly(self: Keeper, run: keeper.Run) -> Any:
        rows = counted(self, run)
        if run.hours == 1 and calls_of(store) == 1:
            put(store, call(OLD + timedelta(seconds=1)))
        return rows

    monkeypatch.setattr(Keeper, "_counted", slowly)
    run = store._keeper._next(impatient=True)
    assert run is not None
    assert store._keeper._roll(run) == 0, "an outdated rollup was put in place"
    assert calls_of(store) == 2
    store.roll_up()
    assert (calls_of(store), wrong(store), dirty(store)) == (2, [], [])


def test_an_hour_that_rows_keep_coming_for_rests_between_rollups(
    store: Store, clock: HandClock
) -> None:
    put(store, call(OLD))
    run = store._keeper._next()
    assert run is not None
    store._keeper._roll(run)
    put(store, call(OLD))
    assert store._keeper._next() is None or store._keeper._next().hours == 6  # type: ignore[union-attr]
    clock.ticks += keeper.REST_SECONDS
    again = store._keeper._next()
    assert again == run


def test_an_hour_claimed_by_a_process_that_died_is_dirty_and_rolled_up_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, call(OLD))

    def die(self: Keeper, run: keeper.Run) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(Keeper, "_counted", die)
        store.roll_up()
    assert any(is_claimed for _, _, is_claimed in dirty(store))
    put(store, call(OLD))
    assert calls_of(store) == 2
    store.roll_up()
    assert (calls_of(store), wrong(store), dirty(store)) == (2, [], [])


def test_neighbouring_hours_are_rolled_up_together_and_full_ones_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[keeper.Run] = []
    roll = Keeper._roll

    def noted(self: Keeper, run: keeper.Run) -> int:
        runs.append(run)
        return roll(self, run)

    monkeypatch.setattr(Keeper, "_roll", noted)
    put(store, *(call(OLD - timedelta(hours=n)) for n in range(30)))
    store.roll_up()
    assert max(len(run.spans) for run in runs if run.hours == 1) == 30
    assert wrong(store) == []
    runs.clear()
    monkeypatch.setattr(keeper, "MOST_ROWS", 3)
    put(store, *(call(OLD - timedelta(hours=n)) for n in range(30)))
    store.roll_up()
    assert max(len(run.spans) for run in runs) <= 3
    assert wrong(store) == []


def test_expired_rows_leave_the_rollups_too(
    make_store: Callable[..., Store], clock: HandClock
) -> None:
    store = make_store("short.duckdb", retention_days=5, clock=clock)
    put(store, *(call(NOW - timedelta(days=n)) for n in (1, 2, 6, 7)))
    store.append(Batch(heartbeats=[Heartbeat(micros(NOW - timedelta(days=6)), "one")])).result(30)
    store.roll_up()
    assert calls_of(store) == 4
    store.apply_retention()
    assert calls_of(store) == 2, "deleted calls are still counted"
    store.roll_up()
    assert (calls_of(store), wrong(store), dirty(store)) == (2, [], [])
    with store._open_database().cursor() as cursor:
        assert cursor.execute("SELECT count(*) FROM beats_h").fetchall() == [(0,)]


def test_a_file_from_before_rollups_is_rolled_up_whole(
    tmp_path: Path, make_store: Callable[..., Store], clock: HandClock
) -> None:
    path = tmp_path / "data" / "before.duckdb"
    path.parent.mkdir()
    connection = duckdb.connect(str(path))
    for name in SCHEMA_FILES[:2]:
        connection.execute(schema(name))
    connection.execute("INSERT INTO meta VALUES ('schema_version', '2'), ('written_by', 'old')")
    calls = [call(NOW - timedelta(hours=5 * n), agent="a", weight=2.0) for n in range(40)]
    connection.register("incoming", to_arrow(calls))
    connection.execute(
        "INSERT INTO tool_calls BY NAME SELECT * REPLACE (NULL AS attributes) FROM incoming"
    )
    connection.execute(
        "INSERT INTO attempts BY NAME SELECT trace_id, span_id AS call_span_id, 1 AS number,"
        " \"start\", duration_seconds, 0 AS delay_seconds, tool, 'success' AS result, received_at "
        "FROM incoming"
    )
    connection.close()
    store = make_store("before.duckdb", retention_days=None, clock=clock)
    assert store.hours_to_roll_up() == 40
    assert calls_of(store) == 80
    store.roll_up()
    assert (calls_of(store), wrong(store)) == (80, [])
    with store._open_database().cursor() as cursor:
        found = cursor.execute('SELECT DISTINCT agent, weight, "end" IS NULL FROM attempts')
        assert found.fetchall() == [("a", 2.0, False)]


def test_a_store_at_rest_reads_dirty_hours_from_the_rows(tmp_path: Path, clock: HandClock) -> None:
    from fuseboard_collector.store import open_at_rest

    path = tmp_path / "rest.duckdb"
    store = open_store(path, retention_days=None, clock=clock)
    put(store, call(OLD), call(NOW - timedelta(days=9)))
    store.roll_up()
    put(store, call(OLD))
    store.close()
    resting = open_at_rest(path)
    assert calls_of(resting) == 3  # type: ignore[arg-type]
    resting.close()


def test_writes_go_on_while_an_hour_is_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, call(OLD))
    counting, done = threading.Event(), threading.Event()
    counted = Keeper._counted

    def waiting(self: Keeper, run: keeper.Run) -> Any:
        counting.set()
        assert done.wait(30)
        return counted(self, run)

    monkeypatch.setattr(Keeper, "_counted", waiting)
    thread = threading.Thread(target=store.roll_up)
    thread.start()
    assert counting.wait(30)
    put(store, call(NOW))  # would time out if the keeper held the writer
    done.set()
    thread.join(30)
    assert wrong(store) == []
