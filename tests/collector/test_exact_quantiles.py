"""Exact answers of long windows, found by counts and short columns, against the plain queries."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuseboard_collector.errors import StoreError
from fuseboard_collector.store import Attempt, Batch, Store, ToolCall, named_queries, open_store
from fuseboard_collector.store.migrations import SCHEMA_FILES, schema
from fuseboard_collector.store.rollups import choice, keeper
from fuseboard_collector.store.rows import micros

NOW = datetime(2026, 3, 10, 9, 41, 23, tzinfo=UTC)
LENGTHS = [timedelta(minutes=40), timedelta(minutes=95), timedelta(hours=7), timedelta(hours=24),
           timedelta(hours=25)]  # fmt: skip
MEASURING = ["page_totals", "page_tools", "page_series", "page_latency", "page_attempt_latency",
             "page_latency_series",
             "page_latency_heatmap", "page_error_arguments"]  # fmt: skip
ODD = [0.0, 1e-9, 1e-6, 0.0005, 0.001, 0.25, 0.25, 0.25, 1 / 3, 2 ** (1 / 8) / 1000, 5.0, 86_400.0,
       3e9]  # fmt: skip
HASHES = [None, "v1:0000000000000000", "v1:00000000000000ff", "v1:ffffffffffffffff",
          "v1:abcdef", "v1:00000000000000FF", "raw:0123456789abcdef",
          "v2:00000000000000ff"]  # fmt: skip
NARROWED: list[dict[str, object]] = [
    {}, {"tools": ["alpha"]}, {"regions": ["unknown"]}, {"classes": ["L3_transient"]},
    {"bucket_us": 900_000_000}, {"bucket_us": 3_600_000_000}, {"bucket_us": 7_000_000},
]  # fmt: skip


class FixedClock:
    """Stands at ``NOW``; monotonic time runs as it pleases."""

    def time_ns(self) -> int:
        return int(NOW.timestamp() * 1e9)

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "fuseboard.duckdb", retention_days=None, clock=FixedClock())
    yield store
    store.close()


def some_calls(rng: random.Random, number: int, hours: float = 26.0) -> list[ToolCall]:
    """Return calls that stand for themselves alone, some of them on the stroke of an hour."""
    calls = []
    for _ in range(number):
        end = NOW - timedelta(seconds=rng.uniform(0, hours * 3600))
        if rng.random() < 0.1:
            end = end.replace(minute=rng.choice([0, 30]), second=0, microsecond=0)
        attempts = rng.choice([0, 1, 1, 1, 2])
        fault = rng.choice([None, None, "L3_transient", "L5_semantic"])
        calls.append(
            ToolCall(
                rng.choice(["alpha", "beta"]), end=micros(end), attempts=attempts,
                duration_seconds=rng.choice([*ODD, rng.lognormvariate(-1, 1)]),
                attempt_seconds=rng.choice([None, rng.lognormvariate(-1, 1)]),
                region=rng.choice(["us-east", None]), error_class=fault,
                outcome="error" if fault else rng.choice(["ok", "ok", "cancelled"]),
                args_hash=rng.choice(HASHES),
            )
        )  # fmt: skip
    return calls


def attempts_of(calls: list[ToolCall]) -> list[Attempt]:
    """Return an attempt with a span for each call that failed."""
    return [
        Attempt(call.trace_id, call.span_id, 1, int(call.end) - 300_000, 0.2, call.tool, "failure",
                region=call.region, error_class=call.error_class)  # type: ignore[arg-type]
        for call in calls
        if call.outcome == "error"
    ]  # fmt: skip


def fill(store: Store, seed: int, number: int = 600) -> None:
    calls = some_calls(random.Random(seed), number)
    store.append(Batch(calls=calls, attempts=attempts_of(calls))).result(30)


def parameters(name: str, length: timedelta, **extra: object) -> dict[str, Any]:
    from fuseboard_dashboard.view import QUERY_PARAMETERS

    values = {
        "since": NOW - length, "until": NOW, "tools": None, "classes": None, "regions": None,
        "bucket_us": 1_800_000_000, **extra,
    }  # fmt: skip
    return {key: values[key] for key in QUERY_PARAMETERS[name]}


def plain(store: Store, name: str, asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the query says without anything that makes it fast."""
    query = named_queries.load(name)
    with store._open_database().cursor() as cursor:
        found = cursor.sql(query.statements[0].sql, params=query.bind(asked))
        return found.to_arrow_table().to_pylist()


def check(store: Store, **extra: object) -> None:
    """Hold every measuring query to its plain form in windows of all kinds."""
    for name in MEASURING:
        for length in LENGTHS:
            check_one(store, name, parameters(name, length, **extra))


def check_one(store: Store, name: str, asked: dict[str, Any]) -> None:
    """Hold an answer to that of the query's plain form."""
    check_rows(store.query(name, asked).to_pylist(), plain(store, name, asked), name, asked)


def check_rows(found: list[dict[str, Any]], right: list[dict[str, Any]], *told: object) -> None:
    """Hold rows to others, one by one."""
    assert len(found) == len(right), told
    for row, other in zip(found, right, strict=True):
        assert row.keys() == other.keys()
        for column, value in row.items():
            assert alike(value, other[column]), (*told, column, row, other)


def alike(value: object, other: object) -> bool:
    """Return whether two values are equal; sums may be added up in another order."""
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=1e-12, abs_tol=1e-12)
    return value == other


def chosen(store: Store, name: str, length: timedelta, **extra: object) -> str:
    """Return the SQL that answers a query."""
    query = named_queries.load(name)
    with store._open_database().cursor() as cursor:
        return choice.choose(cursor, query, query.bind(parameters(name, length, **extra)))[0]


@pytest.mark.parametrize("extra", NARROWED, ids=str)
def test_answers_equal_the_plain_ones_before_and_after_the_keeper_and_in_between(
    store: Store, extra: dict[str, object]
) -> None:
    fill(store, seed=1)
    if not extra:
        check(store)
    store.roll_up()
    if not extra:
        check(store)
    fill(store, seed=2, number=5)
    check(store, **extra)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), number=st.integers(1, 40), late=st.integers(0, 3))
def test_quantiles_of_few_calls_are_those_of_their_sorted_durations(
    tmp_path_factory: pytest.TempPathFactory, seed: int, number: int, late: int
) -> None:
    path = tmp_path_factory.mktemp("few") / "fuseboard.duckdb"
    store = open_store(path, retention_days=None, clock=FixedClock())
    try:
        fill(store, seed, number)
        store.roll_up()
        fill(store, seed + 1, late)
        since = micros(NOW - timedelta(hours=24))
        durations = sorted(
            call.duration_seconds
            for part, size in ((seed, number), (seed + 1, late))
            for call in some_calls(random.Random(part), size)
            if int(call.end) > since  # type: ignore[arg-type]
        )
        (row,) = store.query(
            "page_totals", parameters("page_totals", timedelta(hours=24))
        ).to_pylist()
        for share in (50, 95, 99):
            right = durations[-(-len(durations) * share // 100) - 1] if durations else None
            assert row[f"p{share}"] == right
    finally:
        store.close()


def test_rows_from_before_the_short_columns_count_as_others_do(tmp_path: Path) -> None:
    path = tmp_path / "fuseboard.duckdb"
    store = open_store(path, retention_days=None, clock=FixedClock())
    fill(store, seed=3)
    store.roll_up()
    store.close()
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "UPDATE tool_calls SET step = NULL, args_key = NULL WHERE hash(span_id) % 2 = 0"
        )
    store = open_store(path, retention_days=None, clock=FixedClock())
    try:
        check(store)
        check(store, bucket_us=3_600_000_000)
    finally:
        store.close()


def test_hashes_are_known_by_their_numbers_and_others_by_their_text(store: Store) -> None:
    fill(store, seed=4)
    rows = store.query(
        "page_error_arguments", parameters("page_error_arguments", timedelta(hours=24))
    ).to_pylist()
    assert {row["args_hash"] for row in rows} == {known for known in HASHES if known}


def test_long_windows_sort_only_what_lies_near_a_quantile(store: Store) -> None:
    fill(store, seed=5)
    store.roll_up()
    day, hour = timedelta(hours=24), timedelta(hours=1)
    assert "durations_h" in chosen(store, "page_tools", day)
    assert "near AS" not in chosen(store, "page_tools", hour)
    assert "near AS" in chosen(store, "page_series", day)
    assert "near AS" not in chosen(store, "page_latency", day, classes=["L3_transient"])
    store.append(Batch(calls=[ToolCall("alpha", end=micros(NOW), duration_seconds=1.0, weight=2.0)])
                 ).result(30)  # fmt: skip
    assert "near AS" not in chosen(store, "page_tools", day)


def test_parts_that_a_window_lacks_are_left_out(store: Store) -> None:
    fill(store, seed=6)
    day = timedelta(hours=24)
    store.roll_up()
    assert "$dirty_hours" not in chosen(store, "page_tools", day)
    assert "calls_d" not in chosen(store, "page_retries", day)
    middle = NOW - timedelta(hours=12)
    store.append(Batch(calls=[ToolCall("alpha", end=micros(middle), duration_seconds=1.0)])).result(
        30
    )
    assert "$dirty_hours" in chosen(store, "page_tools", day)


def test_windows_may_begin_and_end_anywhere_and_be_empty(store: Store) -> None:
    fill(store, seed=7)
    store.roll_up()
    fill(store, seed=8, number=3)
    rng = random.Random(7)
    on_the_stroke = NOW.replace(minute=0, second=0)
    for _ in range(12):
        until = rng.choice([NOW, on_the_stroke]) - timedelta(hours=rng.randrange(5))
        until += timedelta(microseconds=rng.choice([-1, 0, 0, 1, 1_234_567_890]))
        length = timedelta(hours=rng.choice([1, 2, 9, 24]), microseconds=rng.choice([0, 0, -1]))
        for name in ("page_tools", "page_latency"):
            asked = parameters(name, length, since=until - length, until=until)
            check_one(store, name, asked)
    check(store, tools=["nothing of this name"])


@pytest.mark.parametrize("tables", [1, 3, 5])
def test_hours_whose_rollups_are_replaced_in_part_are_taken_from_the_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch, tables: int
) -> None:
    fill(store, seed=9, number=100)
    store.roll_up()
    fill(store, seed=10, number=20)
    put, left = keeper._put, iter(range(tables))

    def die(*args: Any, **named: Any) -> None:
        if next(left, None) is None:
            raise RuntimeError("the process ends here")
        put(*args, **named)

    with monkeypatch.context() as context, pytest.raises(StoreError, match="ends here"):
        context.setattr(keeper, "_put", die)
        store.roll_up()
    day = timedelta(hours=24)
    for name in MEASURING:
        check_one(store, name, parameters(name, day))


def before_short_columns(path: Path, old: Path) -> None:
    """Make the file of an older fuseboard that has the rows and the rollups of a present one."""
    with duckdb.connect(str(old)) as connection:
        for name in SCHEMA_FILES[:5]:
            connection.execute(schema(name))
        connection.execute("DELETE FROM dirty_spans")
        connection.execute(f"ATTACH '{path}' AS present (READ_ONLY)")
        tables = connection.execute(
            "SELECT table_name, string_agg('\"' || column_name || '\"', ', ') "
            "FROM duckdb_columns() JOIN duckdb_tables() USING (database_name, table_name) "
            "WHERE database_name = current_database() AND table_name <> 'meta' GROUP BY 1"
        ).fetchall()
        for table, columns in tables:
            connection.execute(f"INSERT INTO {table} BY NAME SELECT {columns} FROM present.{table}")
        connection.execute("INSERT INTO meta VALUES ('schema_version', '5'), ('written_by', 'old')")


def test_a_file_from_before_the_lists_answers_before_the_keeper_has_made_them(
    tmp_path: Path,
) -> None:
    path, old = tmp_path / "fuseboard.duckdb", tmp_path / "old.duckdb"
    store = open_store(path, retention_days=None, clock=FixedClock())
    fill(store, seed=11, number=200)
    store.roll_up()
    store.close()
    before_short_columns(path, old)
    store = open_store(old, retention_days=None, clock=FixedClock())
    try:
        assert store.hours_to_roll_up() > 20
        check(store)
        store.roll_up()
        assert "durations_h" in chosen(store, "page_tools", timedelta(hours=24))
        check(store)
    finally:
        store.close()


def test_series_over_all_tools_are_counted_by_quarters_alone(store: Store) -> None:
    fill(store, seed=7)
    store.roll_up()
    day, week = timedelta(hours=24), timedelta(days=7)
    width = {"bucket_us": 10_800_000_000}
    assert "steps_15m" in chosen(store, "page_series", day)
    assert "steps_15m" not in chosen(store, "page_series", day, tools=["alpha"])
    assert "durations_h" not in chosen(store, "page_series", week, **width)
    assert "durations_h" in chosen(store, "page_series", week, **width, regions=["us-east"])
    for name in ("page_series", "page_latency_series", "page_latency_heatmap"):
        found = store.query(name, parameters(name, week, **width)).to_pylist()
        every = parameters(name, week, **width, tools=["alpha", "beta"])
        other = store.query(name, every).to_pylist()
        check_rows(found, other, name)


def test_hashes_are_read_only_where_one_has_no_number(store: Store) -> None:
    day = timedelta(hours=24)
    one = ToolCall("alpha", end=micros(NOW), duration_seconds=1.0, args_hash="v1:00000000000000ff")
    store.append(Batch(calls=[one])).result(30)
    assert "hash(args_hash)" not in chosen(store, "page_error_arguments", day)
    odd = ToolCall("alpha", end=micros(NOW), duration_seconds=1.0, args_hash="raw:00000000000000ff")
    store.append(Batch(calls=[odd])).result(30)
    assert "hash(args_hash)" in chosen(store, "page_error_arguments", day)
