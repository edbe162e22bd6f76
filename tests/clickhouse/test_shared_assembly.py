"""Foreign spans become calls in a database that several servers share."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from engines import Database

from fuseboard_collector.store import Batch, Span, ToolCall
from fuseboard_collector.store.clickhouse.store import ClickHouseStore
from fuseboard_collector.store.rows import Sighting

NOW = datetime.now(UTC)
TRACE = "ab" * 16


def outer(**fields: Any) -> Sighting:
    """Return a framework's span of a call."""
    return Sighting(TRACE, "01" * 8, "tool", NOW, 2.0, "openinference", "search",
                    received_at=NOW, **fields)  # fmt: skip


def inner(**fields: Any) -> Sighting:
    """Return the span of the same call by another instrumentation, within the first."""
    later = NOW + timedelta(milliseconds=10)
    return Sighting(TRACE, "02" * 8, "execute_tool search", later, 1.9, "genai", "search",
                    parent_span_id="01" * 8, received_at=NOW + timedelta(seconds=1),
                    **fields)  # fmt: skip


def context() -> Span:
    return Span(TRACE, "03" * 8, "agent", NOW - timedelta(seconds=1), 9.0, session="s-1",
                operation="invoke_agent", received_at=NOW + timedelta(seconds=2))  # fmt: skip


def calls(store: ClickHouseStore) -> list[dict[str, Any]]:
    return store.query("export_calls", {"since": None, "until": None}).to_pylist()


def facts(store: ClickHouseStore) -> list[tuple[object, ...]]:
    """Return what must not depend on the order of events."""
    attempts = store.query("export_attempts", {"since": None, "until": None}).to_pylist()
    return [
        *((row["span_id"], row["tool"], row["outcome"], row["end"]) for row in calls(store)),
        *sorted((row["call_span_id"], row["number"], row["result"]) for row in attempts),
    ]


@pytest.fixture
def servers(database: Database) -> Iterator[list[ClickHouseStore]]:
    stores = [database.open(), database.open()]
    yield stores
    for store in stores:
        store.close()


def test_a_foreign_span_is_a_call_after_the_grace_time(servers: list[ClickHouseStore]) -> None:
    one, two = servers
    one.append(Batch(sightings=[outer()])).result(30)
    assert calls(one) == []
    one.settle()
    assert [row["tool"] for row in calls(two)] == ["search"]
    assert len(facts(two)) == 2, "the call and its attempt"


def expected(database: Database) -> list[tuple[object, ...]]:
    store = database.open()
    store.append(Batch(sightings=[outer(), inner()], spans=[context()])).result(30)
    store.settle()
    found = facts(store)
    assert len(calls(store)) == 1, "both spans are of one call"
    store.close()
    for table in ("tool_calls", "attempts", "spans", "sightings"):
        database.command(f"TRUNCATE TABLE {table}")
    return found


_wanted: list[list[tuple[object, ...]]] = []


def wanted_of(database: Database) -> list[tuple[object, ...]]:
    """Return what one server makes of the trace; asked of the first database only."""
    if not _wanted:
        _wanted.append(expected(database))
    return _wanted[0]


PARTS = [Batch(sightings=[outer()]), Batch(sightings=[inner()]), Batch(spans=[context()])]


def orders() -> Iterator[Any]:
    """Yield each order in which parts come, with the time of assembly; three of them are quick."""
    for order in itertools.permutations(range(3)):
        is_rotation = order in {(0, 1, 2), (1, 2, 0), (2, 0, 1)}
        yield pytest.param(order, "each", marks=() if is_rotation else pytest.mark.long)
        yield pytest.param(order, "end", marks=pytest.mark.long)


@pytest.mark.parametrize(("order", "settling"), list(orders()))
def test_parts_of_a_trace_at_two_servers_come_to_the_same(
    database: Database, order: tuple[int, ...], settling: str
) -> None:
    wanted = wanted_of(database)
    servers = [database.open(), database.open()]
    for place, part in enumerate(order):
        server = servers[place % 2]
        server.append(PARTS[part]).result(30)
        if settling == "each":
            server.settle()
    for server in (*servers, *servers):
        server.settle()
    assert facts(servers[0]) == wanted
    for server in servers:
        server.close()


def test_a_server_that_knew_less_and_writes_late_does_not_win(
    servers: list[ClickHouseStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuseboard_collector.store.clickhouse import assembling

    one, two = servers
    one.append(Batch(sightings=[inner()])).result(30)
    store = assembling.Made.store
    late = []

    def hold(made: assembling.Made, client: Any) -> None:
        late.append((made, client))

    monkeypatch.setattr(assembling.Made, "store", hold)
    one.settle()  # it has read the trace, and writes …
    monkeypatch.setattr(assembling.Made, "store", store)
    two.append(Batch(sightings=[outer()])).result(30)
    two.settle()
    right = facts(two)
    for made, client in late:  # … only now
        made.store(client)
    two.settle()
    assert facts(one) == right
    assert len(calls(one)) == 1


def test_what_a_server_left_is_taken_up_by_the_next(database: Database) -> None:
    gone = database.open()
    gone.append(Batch(sightings=[outer()])).result(30)
    gone._writer.stop()  # it is killed within the grace time
    store = database.open()
    assert store.describe()["staged"]["traces"] == 1  # type: ignore[index]
    store.settle()
    assert len(calls(store)) == 1
    store.close()
    again = database.open()
    assert again.describe()["staged"]["traces"] == 0  # type: ignore[index]
    again.close()


def test_a_foreign_span_with_the_id_of_our_own_call_does_not_take_its_place(
    servers: list[ClickHouseStore],
) -> None:
    one, two = servers
    own = ToolCall("search", start=NOW, duration_seconds=1.9, trace_id=TRACE, span_id="01" * 8,
                   outcome="error", instrumentation="fuseboard", received_at=NOW)  # fmt: skip
    one.append(Batch(calls=[own])).result(30)
    two.append(Batch(sightings=[outer(), inner()])).result(30)
    for server in (two, one):
        server.settle()
    assert [(row["span_id"], row["outcome"]) for row in calls(two)] == [("01" * 8, "error")]


def test_a_call_of_our_own_beats_its_foreign_relatives(servers: list[ClickHouseStore]) -> None:
    one, two = servers
    one.append(Batch(sightings=[outer()])).result(30)
    one.settle()
    own = ToolCall("search", start=NOW + timedelta(milliseconds=5), duration_seconds=1.9,
                   trace_id=TRACE, span_id="09" * 8, parent_span_id="01" * 8,
                   instrumentation="fuseboard", received_at=NOW + timedelta(seconds=3))  # fmt: skip
    one.append(Batch(calls=[own])).result(30)
    one.settle()
    assert [row["span_id"] for row in calls(two)] == ["09" * 8]
    assert two.query("export_attempts", {"since": None, "until": None}).num_rows == 1
