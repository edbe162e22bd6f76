"""Writing to, deleting from and sharing a ClickHouse database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, OperationalError
from engines import Database

from fuseboard_alerts.mutes import draft, ended, load, save
from fuseboard_collector.errors import (
    QueryParameterError,
    StoreAwayError,
    StoreBusyError,
    StoreError,
    StoreVersionError,
    UnknownQueryError,
)
from fuseboard_collector.metrics import Exposition
from fuseboard_collector.store import (
    Attempt,
    Batch,
    BreakerTransition,
    Heartbeat,
    Span,
    ToolCall,
    open_store,
)
from fuseboard_collector.store.clickhouse.connection import translated
from fuseboard_collector.store.clickhouse.setup import SCHEMA_VERSION, initialise
from fuseboard_collector.store.clickhouse.store import ClickHouseStore

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.now(UTC).replace(microsecond=0)
EVERYTHING = {"since": None, "until": None}


def calls(store: ClickHouseStore) -> list[dict[str, Any]]:
    return store.query("export_calls", EVERYTHING).to_pylist()


def a_bit_of_everything() -> Batch:
    call = ToolCall("search", end=NOW, trace_id="ab" * 16, span_id="01" * 8)
    return Batch(
        calls=[call, ToolCall("search", end=NOW, outcome="error", attempts=2)],
        attempts=[Attempt("ab" * 16, "02" * 8, 1, NOW, 0.1, "search", "failure")],
        transitions=[BreakerTransition(NOW, "search", "search", "closed", "open")],
        heartbeats=[Heartbeat(NOW, "i-1", breakers="[]")],
        spans=[Span("ab" * 16, "03" * 8, "chat", NOW, 1.0)],
    )


def test_init_creates_what_is_missing_and_says_so(empty: Database) -> None:
    client = empty.connect()
    done = initialise(client, "engine", empty.address.database)
    assert f"created the database {empty.address.database}" in done
    assert "created the table tool_calls" in done
    assert done[-1] == f"the schema has version {SCHEMA_VERSION} now"
    assert initialise(client, "engine", empty.address.database) == []
    client.close()


def test_a_database_without_our_tables_is_refused_with_the_command(empty: Database) -> None:
    empty.connect().command(f"CREATE DATABASE {empty.address.database}")
    with pytest.raises(StoreError, match=r"no tables of fuseboard's yet.*`fuseboard store init"):
        empty.open()


def test_a_newer_schema_is_refused(database: Database) -> None:
    database.command("INSERT INTO meta VALUES ('schema_version', '99'), ('written_by', '9.9')")
    with pytest.raises(StoreVersionError, match=r"version 99, made by fuseboard 9\.9"):
        database.open()
    with pytest.raises(StoreVersionError, match="Upgrade fuseboard"):
        initialise(database.connect(), "engine", database.address.database)


def test_an_old_server_is_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = database.connect()
    monkeypatch.setattr(client, "server_version", "24.8.1.2")
    with pytest.raises(StoreError, match=r"is ClickHouse 24\.8\.1\.2; fuseboard needs 26\.3"):
        initialise(client, "engine", database.address.database)


def test_tables_have_the_columns_of_the_embedded_store(database: Database, tmp_path: Path) -> None:
    embedded = open_store(tmp_path / "fuseboard.duckdb")
    assert embedded._database is not None
    with embedded._database.cursor() as cursor:
        wanted: dict[str, set[str]] = {}
        for table, column in cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
        ).fetchall():
            wanted.setdefault(table, set()).add(column)
    embedded.close()
    wanted["tool_calls"] -= {"step", "args_key"}  # for what this engine does not do
    found: dict[str, set[str]] = {}
    for table, column in database.ask(
        "SELECT table, name FROM system.columns WHERE database = currentDatabase()"
    ):
        found.setdefault(str(table), set()).add(str(column))
    for table in ("tool_calls", "attempts", "breaker_transitions", "heartbeats", "spans",
                  "sightings", "alert_events", "alert_memory", "mutes", "meta"):  # fmt: skip
        assert found[table] - {"is_deleted"} == wanted[table] | (found[table] & {"version"}), table


def test_what_is_sent_twice_counts_once(store: ClickHouseStore) -> None:
    for _ in range(2):
        store.append(a_bit_of_everything()).result(30)
    assert len([row for row in calls(store) if row["span_id"] == "01" * 8]) == 1
    assert store.stats.get("repeats", "tool_calls") == 1
    assert store.stats.get("repeats", "heartbeats") == 1


def test_what_is_sent_to_two_servers_counts_once(database: Database) -> None:
    one, two = database.open(), database.open()
    try:
        batch = a_bit_of_everything()
        for server in (one, two, one):
            server.append(batch).result(30)
        # As from a client that repeats to another server after it waited: it arrives later.
        for call in batch.calls:
            call.received_at = NOW + timedelta(days=1)
        two.append(batch).result(30)
        for server in (one, two):
            assert len(calls(server)) == 2
            assert server.query("page_store").to_pylist()[0]["calls"] == 2
            assert server.query("export_attempts", EVERYTHING).num_rows == 2
            assert server.query("export_transitions", EVERYTHING).num_rows == 1
    finally:
        one.close()
        two.close()


def test_a_restart_forgets_nothing_and_doubles_nothing(database: Database) -> None:
    batch = a_bit_of_everything()
    for _ in range(2):
        store = database.open()
        store.append(batch).result(30)
        store.close()
    assert len(calls(database.open())) == 2


def test_the_attempt_of_a_call_without_attempts_is_derived(store: ClickHouseStore) -> None:
    store.append(a_bit_of_everything()).result(30)
    rows = store.query("export_attempts", EVERYTHING).to_pylist()
    derived = [row for row in rows if row["span_id"] is None]
    assert [(row["call_span_id"], row["result"]) for row in derived] == [("01" * 8, "success")]


def test_a_request_that_fails_half_way_is_refused_and_counts_once_when_it_comes_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuseboard_collector.store.clickhouse import session

    store = database.open()
    insert, failing = session.insert, True

    def fragile(client: Any, place: str, table: str, *rest: Any) -> None:
        if table == "tool_calls" and failing:
            raise StoreError("stop")
        insert(client, place, table, *rest)

    monkeypatch.setattr(session, "insert", fragile)
    batch = a_bit_of_everything()
    with pytest.raises(StoreError, match="stop"):
        store.append(batch).result(30)
    assert calls(store) == []
    failing = False
    store.append(batch).result(30)
    assert len(calls(store)) == 2
    assert store.query("export_attempts", EVERYTHING).num_rows == 2
    store.close()


def test_requests_are_put_together_into_few_inserts(store: ClickHouseStore) -> None:
    done = [store.append(Batch(calls=[ToolCall("a", end=NOW)])) for _ in range(200)]
    for future in done:
        future.result(60)
    assert store.stats.get("commits") < 20
    assert store.query("page_store").to_pylist()[0]["calls"] == 200


@pytest.mark.parametrize("days", [0.5, 2, pytest.param(30, marks=pytest.mark.long)])
def test_retention_deletes_by_arrival_to_the_moment(database: Database, days: float) -> None:
    store = database.open(retention_days=days)
    limit = timedelta(days=days)
    ages = [timedelta(0), limit / 2, limit - timedelta(minutes=5), limit + timedelta(minutes=5),
            limit + timedelta(days=1), limit * 3 + timedelta(days=2)]  # fmt: skip
    now = datetime.now(UTC)
    rows = [ToolCall(f"t{n}", end=NOW, received_at=now - age) for n, age in enumerate(ages)]
    store.append(Batch(calls=rows)).result(30)
    store.apply_retention()
    assert {row["tool"] for row in calls(store)} == {"t0", "t1", "t2"}
    store.close()


def test_retention_forgets_a_mute_whole_or_not_at_all(database: Database) -> None:
    """The last row of one ends earlier than its first: without it the mute would begin again."""
    store = database.open(retention_days=7)
    now, day = datetime.now(UTC), timedelta(days=1)
    lasting = draft("ToolCallSlow", "why", now + 5 * day, now - 20 * day)
    over = draft("ToolCallSlow", "why", now - 10 * day, now - 20 * day)
    for one in (lasting, ended(lasting, now - 19 * day), over, ended(over, now - 11 * day)):
        save(store, one)
    for _ in range(2):  # the second finds nothing to delete
        store.apply_retention()
        left = database.ask("SELECT id, count() FROM mutes GROUP BY id")
        assert left == [(lasting.id, 2)]
    assert load(store, now) == []
    store.close()


def test_memory_and_history_of_the_evaluator(store: ClickHouseStore) -> None:
    assert store.query("alert_memory_load").num_rows == 0
    for second, document in enumerate(['{"a": 1}', '{"b": "ü\\\\n\'"}']):
        moment = (NOW + timedelta(seconds=second)).replace(tzinfo=None)
        store.execute("alert_memory_save", {"saved_at": moment, "document": document})
        rows = store.query("alert_memory_load").to_pylist()
        assert [(row["document"], row["saved_at"]) for row in rows] == [(document, moment)]
    event = {"time": [NOW.replace(tzinfo=None)], "alert": ["A"], "severity": ["warning"],
             "labels": ["{}"], "state": ["firing"], "value": [0.5]}  # fmt: skip
    table = pa.table(event)
    store.insert("alert_events", table.set_column(0, "time", table["time"].cast("timestamp[us]")))
    assert [row["alert"] for row in store.query("export_alerts", EVERYTHING).to_pylist()] == ["A"]
    with pytest.raises(StoreError, match="no table 'meta'"):
        store.insert("meta", table)


def test_mutes_are_those_of_the_embedded_store(store: ClickHouseStore, tmp_path: Path) -> None:
    embedded = open_store(tmp_path / "fuseboard.duckdb", retention_days=None)
    hour = timedelta(hours=1)
    lasting = draft("ToolCallSlow", "it's <slow>", NOW + 2 * hour, NOW, tool="ü")
    over = draft("ToolCallSlow", "over", NOW + 3 * hour, NOW, severity="warning", author="Ann")
    for to in (store, embedded):
        for row in (lasting, over, ended(over, NOW + hour)):
            save(to, row)
    for moment in (NOW, NOW + hour / 2, NOW + hour, NOW + 2 * hour):
        assert load(store, moment) == load(embedded, moment), moment
    assert load(store, NOW + hour / 2) == [lasting, over]
    assert load(store, NOW + hour) == [lasting]
    embedded.close()


def test_wrong_parameters_are_named(store: ClickHouseStore) -> None:
    with pytest.raises(QueryParameterError, match=r"needs \$until too"):
        store.query("export_calls", {"since": None})
    with pytest.raises(QueryParameterError, match=r"export_calls.*\$since.*yesterday.*a time"):
        store.query("export_calls", {"since": "yesterday", "until": None})
    for value in ("\ud800", 10**50, [1], {"a": 1}):
        with pytest.raises(QueryParameterError, match="export_calls"):
            store.query("export_calls", {"since": value, "until": None})
    with pytest.raises(UnknownQueryError, match="writes"):
        store.query("alert_memory_save", {})


def test_times_mean_the_same_in_every_spelling(store: ClickHouseStore) -> None:
    noon = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    store.append(Batch(calls=[ToolCall("a", end=noon + timedelta(microseconds=1))])).result(30)
    for since in (noon, noon.replace(tzinfo=None), "2026-11-30T12:00:00Z",
                  "2026-11-30T14:00:00+02:00", "2026-11-30 12:00:00"):  # fmt: skip
        assert store.query("export_calls", {"since": since, "until": None}).num_rows == 1
    late = "2026-11-30T12:00:00.000001Z"
    assert store.query("export_calls", {"since": late, "until": None}).num_rows == 0


def test_an_answer_can_be_read_piece_by_piece(store: ClickHouseStore) -> None:
    with store.stream("export_calls", EVERYTHING) as answer:
        assert "trace_id" in answer.schema.names
        assert list(answer.pieces) == []
    rows = [ToolCall("a", end=NOW) for _ in range(25_000)]
    store.append(Batch(calls=rows)).result(60)
    with store.stream("export_calls", EVERYTHING) as answer:
        pieces = list(answer.pieces)
    assert sum(piece.num_rows for piece in pieces) == 25_000
    assert len(pieces) > 1


def test_a_server_that_goes_away_is_waited_for(database: Database) -> None:
    gone = threading.Event()

    def connect() -> Any:
        if gone.is_set():
            raise StoreAwayError("no answer from engine")
        client = database.connect()
        insert = client.insert_arrow

        def fragile(*args: Any, **more: Any) -> Any:
            if gone.is_set():
                raise OperationalError("Connection refused")
            return insert(*args, **more)

        client.insert_arrow = fragile  # type: ignore[method-assign]
        return client

    store = Database(database.address, connect).open()
    store.append(Batch(calls=[ToolCall("before", end=NOW)])).result(30)
    gone.set()
    with pytest.raises(StoreBusyError, match=r"no answer from clickhouse://default@engine:1/"):
        store.append(Batch(calls=[ToolCall("lost", end=NOW)])).result(30)
    wait_until(lambda: store.unavailable_because() is not None)
    with pytest.raises(StoreBusyError, match="not available"):
        store.append(Batch(calls=[ToolCall("lost", end=NOW)]))
    with pytest.raises(StoreAwayError):
        store.query("page_store")
    gone.clear()
    wait_until(lambda: store.unavailable_because() is None)
    store.append(Batch(calls=[ToolCall("after", end=NOW)])).result(30)
    assert {row["tool"] for row in calls(store)} == {"before", "after"}
    assert store.stats.get("reopened") == 1
    store.close()


def test_a_server_that_is_not_there_yet_is_waited_for(database: Database) -> None:
    gone = threading.Event()
    gone.set()

    def connect() -> Any:
        if gone.is_set():
            raise StoreAwayError("no answer from engine")
        return database.connect()

    store = Database(database.address, connect).open()
    assert isinstance(store.unavailable_because(), StoreAwayError)
    assert store.describe()["size_bytes"] is None
    shown, _ = Exposition(store).text("")
    assert b"fuseboard_collector_store_available 0.0" in shown, "that is what metrics are for"
    assert b"fuseboard_collector_store_size_bytes" not in shown
    gone.clear()
    wait_until(lambda: store.unavailable_because() is None)
    store.append(Batch(calls=[ToolCall("a", end=NOW)])).result(30)
    assert len(calls(store)) == 1
    store.close()


def test_after_closing_nothing_is_taken_or_given(database: Database) -> None:
    store = database.open()
    done = store.append(Batch(calls=[ToolCall("a", end=NOW)]))
    store.close()
    assert done.done(), "what was queued is stored"
    with pytest.raises(StoreError, match="closed"):
        store.append(Batch(calls=[ToolCall("a", end=NOW)]))
    with pytest.raises(StoreError, match="closed"):
        store.query("page_store")


def test_it_describes_itself(store: ClickHouseStore) -> None:
    store.append(a_bit_of_everything()).result(30)
    said = store.describe()
    assert said["size_bytes"] == store.size_bytes() > 0  # type: ignore[operator]
    assert said["queue_rows"] == 0
    assert str(said["oldest_row"]).startswith(f"{NOW:%Y-%m-%dT%H:%M:%S}")


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (497, StoreError, "does not let this user"),
        (516, StoreError, "Check the user, the password"),
        (60, StoreError, "fuseboard store init"),
        (164, StoreError, "readonly"),
        (241, StoreBusyError, "shorter time range"),
        (457, QueryParameterError, "query 'x'"),
        (None, StoreAwayError, "no answer from"),
        (1, StoreError, "failed"),
    ],
)
def test_faults_of_the_server_say_what_to_do(
    code: int | None, kind: type[Exception], words: str
) -> None:
    with pytest.raises(StoreError, match=words) as caught, translated("place", "query 'x'"):
        raise DatabaseError("Code: 0. DB::Exception: said", code=code)
    assert type(caught.value) is kind


def wait_until(holds: Callable[[], bool], seconds: float = 20) -> None:
    waited = threading.Event()
    for _ in range(round(seconds / 0.05)):
        if holds():
            return
        waited.wait(0.05)
    raise AssertionError("it never came true")
