from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from fuseboard_collector.store import Attempt, Batch, Heartbeat, Span, Store, ToolCall
from fuseboard_collector.store.rows import (
    ARROW_SCHEMAS,
    ROW_TYPES,
    cells_to_arrow,
    micros,
    to_arrow,
)

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("row_type", ROW_TYPES)
def test_a_row_type_has_the_columns_of_its_table(store: Store, row_type: type) -> None:
    table = row_type.TABLE
    with store._open_database().cursor() as cursor:
        columns = cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = $t", {"t": table}
        ).fetchall()
    filled_by_the_store = {"attempts": {"end"}, "tool_calls": {"step", "args_key"}}
    expected = set(ARROW_SCHEMAS[table].names) | filled_by_the_store.get(table, set())
    assert {name for (name,) in columns} == expected


def test_a_call_ends_where_its_duration_says() -> None:
    call = ToolCall("search", end=NOON, duration_seconds=1.5)
    assert call.start == micros(NOON) - 1_500_000
    call = ToolCall("search", start=NOON, duration_seconds=1.5)
    assert call.end == micros(NOON) + 1_500_000
    assert call.received_at == call.end


def test_a_call_without_any_time_is_refused() -> None:
    with pytest.raises(ValueError, match="'search' has neither start nor end"):
        ToolCall("search")


def test_ids_are_random_and_well_formed() -> None:
    first, second = ToolCall("a", end=NOON), ToolCall("a", end=NOON)
    assert first.key() != second.key()
    assert len(first.trace_id) == 32
    assert len(first.span_id) == 16


@pytest.mark.parametrize(
    "instant",
    [
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(timezone(timedelta(hours=-5))),
        micros(NOON),
    ],
)
def test_every_kind_of_instant_is_the_same_time(instant: datetime | int) -> None:
    assert micros(instant) == 1_796_040_000_000_000
    column = to_arrow([ToolCall("a", end=instant)]).column("end")
    assert column[0].as_py() == datetime(2026, 11, 30, 12, 0)


def test_a_batch_counts_its_rows() -> None:
    batch = Batch(
        calls=[ToolCall("a", end=NOON)],
        attempts=[Attempt("ab" * 16, "cd" * 8, 1, NOON, 0.1, "a", "failure")],
        heartbeats=[Heartbeat(NOON, "i-1")],
        spans=[Span("ab" * 16, "ef" * 8, "chat", NOON, 1.0)],
    )
    assert len(batch) == 4
    assert [rows[0].TABLE for rows in batch.lists()] == [
        "tool_calls", "attempts", "heartbeats", "spans",
    ]  # fmt: skip
    assert len(Batch()) == 0


def test_calls_as_cells_are_the_same_calls(store: Store) -> None:
    given = ToolCall("a", end=NOON, region="eu", attempts=2, attributes='{"x": 1}')
    cells = [getattr(given, name) for name in ARROW_SCHEMAS["tool_calls"].names]
    batch = Batch(call_cells=[cells])
    assert len(batch) == 1
    assert batch.all_calls() == [given]
    assert cells_to_arrow("tool_calls", [cells]).equals(to_arrow([given]))
    store.append(batch).result(10)
    store.append(Batch(calls=[given])).result(10)
    assert store.query("export_calls", {"since": None, "until": None}).num_rows == 1
