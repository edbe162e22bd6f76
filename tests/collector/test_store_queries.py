from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from fuseboard_collector.errors import QueryParameterError, StoreError, UnknownQueryError
from fuseboard_collector.store import Batch, Store, ToolCall, named_queries

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("name", named_queries.names())
def test_every_query_file_parses_and_casts_its_parameters(name: str) -> None:
    query = named_queries.load(name)
    assert query.statements
    for statement in query.statements:
        for parameter in statement.parameters:
            assert f"${parameter}::" in statement.sql, f"cast ${parameter} in {name}.sql"


@pytest.mark.parametrize(
    "since",
    [
        NOON,
        NOON.replace(tzinfo=None),
        NOON.astimezone(timezone(timedelta(hours=9))),
        "2026-11-30T12:00:00Z",
        "2026-11-30T12:00:00.000000Z",
        "2026-11-30T14:00:00+02:00",
        "2026-11-30T06:30:00-05:30",
        "2026-11-30 12:00:00",
    ],
)
def test_times_mean_the_same_in_every_spelling(store: Store, since: object) -> None:
    """The window is open at its start and closed at its end."""
    times = (NOON, NOON + timedelta(microseconds=1), NOON + timedelta(hours=1))
    store.append(Batch(calls=[ToolCall("a", end=end) for end in times])).result(10)
    until = NOON + timedelta(microseconds=1)
    found = store.query("export_calls", {"since": since, "until": until})
    assert found.column("end").to_pylist() == [datetime(2026, 11, 30, 12, 0, 0, 1)]


def test_wrong_parameters_are_named(store: Store) -> None:
    store.append(Batch(calls=[ToolCall("a", end=NOON)])).result(10)
    with pytest.raises(QueryParameterError, match=r"needs \$until too.*are \$since, \$until"):
        store.query("export_calls", {"since": None})
    with pytest.raises(QueryParameterError, match=r"no parameter \$tool; its parameters are"):
        store.query("export_calls", {"since": None, "until": None, "tool": "a"})
    with pytest.raises(QueryParameterError, match=r"export_calls.*yesterday"):
        store.query("export_calls", {"since": "yesterday", "until": None})


@pytest.mark.parametrize(
    "name", ["export_cals", "../writes/oldest_row", "", pytest.param("x" * 5000, id="long"), "a.b"]
)
def test_an_unknown_query_is_refused(store: Store, name: str) -> None:
    with pytest.raises(UnknownQueryError):
        store.query(name, {})


def test_a_near_name_is_offered(store: Store) -> None:
    with pytest.raises(UnknownQueryError, match="did you mean 'export_calls'"):
        store.query("export_cals", {})


def test_reading_never_writes(store: Store, own_queries: Callable[[str, str], None]) -> None:
    own_queries("evil", "DELETE FROM tool_calls")
    own_queries("sly", "SELECT 1; DELETE FROM tool_calls")
    store.append(Batch(calls=[ToolCall("a", end=NOON)])).result(10)
    for name in ("evil", "sly"):
        with pytest.raises(UnknownQueryError, match="writes"):
            store.query(name, {})
        with pytest.raises(UnknownQueryError, match="writes"), store.stream(name):
            pytest.fail("it was run")
    assert store.query("export_calls", {"since": None, "until": None}).num_rows == 1


def test_an_answer_can_be_read_piece_by_piece(
    store: Store, own_queries: Callable[[str, str], None]
) -> None:
    own_queries("many", "SELECT i FROM range($n::BIGINT) t(i)")
    with store.stream("many", {"n": 25_000}) as answer:
        assert answer.schema.names == ["i"]
        pieces = list(answer.pieces)
    assert len(pieces) > 1
    assert [i for piece in pieces for i in piece.column(0).to_pylist()] == list(range(25_000))


def test_an_answer_that_breaks_off_is_an_error_and_no_short_answer(
    store: Store, own_queries: Callable[[str, str], None]
) -> None:
    own_queries(
        "late",
        "SELECT CASE WHEN i > 900000 THEN error('too late') ELSE i END AS i "
        "FROM range(1000000) t(i)",
    )
    with store.stream("late") as answer, pytest.raises(StoreError, match=r"'late'.*too late"):
        for _ in answer.pieces:
            pass


@pytest.mark.parametrize("value", ["\ud800", 10**50, "x", [1], {"a": 1}])
def test_a_value_that_the_engine_can_not_take_is_the_askers_fault(
    store: Store, value: object
) -> None:
    store.append(Batch(calls=[ToolCall("a", end=NOON)])).result(10)
    with pytest.raises(QueryParameterError, match="export_calls"):
        store.query("export_calls", {"since": value, "until": None})


def test_execute_runs_its_statements_together_or_not_at_all(
    store: Store, own_queries: Callable[[str, str], None]
) -> None:
    own_queries("note", "INSERT INTO meta VALUES ($key::VARCHAR, $value::VARCHAR);")
    own_queries("half", "INSERT INTO meta VALUES ('half', 'x'); SELECT error('stop');")
    own_queries("read_note", "SELECT value FROM meta WHERE key = $key::VARCHAR")
    store.execute("note", {"key": "colour", "value": "red"})
    assert store.query("read_note", {"key": "colour"}).to_pylist() == [{"value": "red"}]
    with pytest.raises(StoreError, match="stop"):
        store.execute("half")
    assert store.query("read_note", {"key": "half"}).num_rows == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/proc/self/environ')",
        "SELECT * FROM glob('/*')",
    ],
)
def test_a_query_can_not_reach_the_file_system(
    store: Store, own_queries: Callable[[str, str], None], sql: str
) -> None:
    own_queries("nosy", sql)
    with pytest.raises(StoreError, match=r"disabled by configuration"):
        store.query("nosy", {})


def test_a_query_that_needs_too_much_memory_fails_alone(
    make_store: Callable[..., Store], own_queries: Callable[[str, str], None]
) -> None:
    store = make_store(memory_limit="60MB")
    own_queries("huge", "SELECT list(md5(i::VARCHAR) ORDER BY i) AS l FROM range(5000000) t(i)")
    own_queries("small", "SELECT 1 AS one")
    with pytest.raises(StoreError, match="60MB; choose a shorter time range"):
        store.query("huge", {})
    assert store.query("small", {}).to_pylist() == [{"one": 1}]
    store.append(Batch(calls=[ToolCall("a", end=NOON)])).result(20)


def test_a_large_sort_spills_beside_the_data_file(
    make_store: Callable[..., Store], own_queries: Callable[[str, str], None]
) -> None:
    store = make_store(memory_limit="100MB")
    own_queries(
        "wide",
        "SELECT count(*) AS n FROM (SELECT md5(i::VARCHAR) AS h FROM range(3000000) t(i) "
        "ORDER BY h OFFSET 1)",
    )
    assert store.query("wide", {}).to_pylist() == [{"n": 2_999_999}]


def test_hc_41_each_of_many_threads_gets_its_own_rows_while_rows_are_stored(
    store: Store, own_queries: Callable[[str, str], None]
) -> None:
    own_queries("mine", "SELECT $n::BIGINT AS n, i FROM range(50) t(i)")
    wrong: list[object] = []
    stop = threading.Event()

    def ingest() -> None:
        while not stop.is_set():
            rows = [ToolCall("a", end=NOON, attributes='{"k":1}') for _ in range(50)]
            store.append(Batch(calls=rows)).result(30)

    def ask(thread: int) -> None:
        try:
            for turn in range(50):
                number = thread * 1000 + turn
                found: dict[str, list[Any]] = store.query("mine", {"n": number}).to_pydict()
                if found != {"n": [number] * 50, "i": list(range(50))}:
                    wrong.append((number, found))
        except Exception as error:
            wrong.append(error)

    writer = threading.Thread(target=ingest)
    writer.start()
    readers = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    stop.set()
    writer.join()
    assert wrong == []
    assert store.stats.get("stored_rows", "tool_calls") > 0
