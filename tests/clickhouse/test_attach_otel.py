"""A table of the OpenTelemetry Collector's exporter becomes calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from engines import Database
from otel_table import OTEL_TRACES, insertion, span

from fuseboard import conventions as c
from fuseboard_collector.errors import StoreError
from fuseboard_collector.normalise.sampling import weight
from fuseboard_collector.store import Batch, ToolCall
from fuseboard_collector.store.clickhouse.attaching import KEYS, attach

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TOOL = {c.GEN_AI_OPERATION_NAME: "execute_tool", c.GEN_AI_TOOL_NAME: "search"}
EVERYTHING = {"since": None, "until": None}
TRAILING_ZERO = "ot=th:8"


def attached(database: Database, table: str = "otel_traces") -> list[str]:
    client = database.connect()
    try:
        client.database = database.address.database
        return attach(client, "engine", table)
    finally:
        client.close()


def records(database: Database, kind: str = "calls") -> list[dict[str, Any]]:
    store = database.open()
    try:
        return store.query(f"export_{kind}", EVERYTHING).to_pylist()
    finally:
        store.close()


@pytest.fixture
def exported(database: Database) -> Database:
    database.command(OTEL_TRACES)
    return database


def test_a_span_of_our_own_is_read_in_full(exported: Database) -> None:
    own = {
        **TOOL, c.OUTCOME: "error", c.ATTEMPTS: "3", c.BACKOFF_SECONDS: "1.5",
        c.ERROR_CLASSIFIED_AS: "L3_transient", c.ERROR_TYPE: "httpx.ReadTimeout",
        c.ERROR_RETRYABLE: "true", c.HTTP_RESPONSE_STATUS_CODE: "503", c.COST: "0.25",
        c.GEN_AI_AGENT_NAME: "планер", c.GEN_AI_CONVERSATION_ID: "s-1", c.CLOUD_REGION: "eu",
        c.ARGS_HASH: "v1:00ff", c.ERROR_MESSAGE: "503 from https://example.org",
    }  # fmt: skip
    attached(exported)
    exported.command(insertion([span(NOON, SpanAttributes=own, ParentSpanId="EF" * 8)]))
    (row,) = records(exported)
    expected = {
        "trace_id": "ab" * 16, "span_id": "cd" * 8, "tool": "search", "outcome": "error",
        "start": NOON.replace(tzinfo=None), "duration_seconds": 0.25, "attempts": 3,
        "end": (NOON + timedelta(seconds=0.25)).replace(tzinfo=None), "backoff_seconds": 1.5,
        "error_class": "L3_transient", "error_type": "httpx.ReadTimeout", "retryable": True,
        "http_status": 503, "cost": 0.25, "agent": "планер", "session": "s-1", "region": "eu",
        "args_hash": "v1:00ff", "error_message": "503 from https://example.org",
        "service": "trip", "weight": 1.0, "layer": None,
    }  # fmt: skip
    assert {key: row[key] for key in expected} == expected
    ((scope, parent),) = exported.ask("SELECT instrumentation, parent_span_id FROM tool_calls")
    assert (scope, parent) == ("fuseboard", "ef" * 8)


def test_a_span_of_others_is_read_simply(exported: Database) -> None:
    attached(exported)
    failed = {**TOOL, c.ERROR_TYPE: "ToolError"}
    exported.command(
        insertion([
            span(NOON, SpanAttributes={c.GEN_AI_OPERATION_NAME: "execute_tool"}),
            span(NOON, SpanId="01" * 8, SpanAttributes=failed, StatusCode="Error",
                 StatusMessage="password=hunter2"),
            span(NOON, SpanId="02" * 8, SpanAttributes={c.GEN_AI_OPERATION_NAME: "chat"}),
            span(NOON, SpanId="03" * 8, SpanAttributes={**TOOL, c.DUPLICATE: "true"}),
            span(NOON, SpanId="04" * 8, SpanAttributes={}, SpanName="GET /"),
        ])
    )  # fmt: skip
    rows = {row["span_id"]: row for row in records(exported)}
    assert rows.keys() == {"cd" * 8, "01" * 8}
    good, bad = rows["cd" * 8], rows["01" * 8]
    assert (good["tool"], good["outcome"], good["error_class"]) == ("search", "ok", None)
    assert (bad["outcome"], bad["error_class"], bad["error_type"]) == (
        "error", "unclassified", "ToolError",
    )  # fmt: skip
    assert bad["error_message"] is None, "it has not been through the redactor"


def test_what_is_there_already_is_taken_once_however_often_it_is_attached(
    exported: Database,
) -> None:
    exported.command(insertion([span(NOON, SpanId=f"{n:016x}") for n in range(1, 51)]))
    assert "50 calls and 0 attempts" in attached(exported)[-1]
    exported.command(insertion([span(NOON, SpanId=f"{n:016x}") for n in range(26, 76)]))
    attached(exported)
    assert len(records(exported)) == 75
    # A successful call has an attempt, which is derived from it.
    assert len(records(exported, "attempts")) == 75


def test_a_span_of_our_own_that_comes_both_ways_counts_once(exported: Database) -> None:
    attached(exported)
    end = NOON + timedelta(seconds=0.25)
    call = ToolCall("search", end=end, duration_seconds=0.25, trace_id="ab" * 16, span_id="cd" * 8)
    store = exported.open()
    store.append(Batch(calls=[call])).result(30)
    store.close()
    exported.command(
        insertion([span(NOON, SpanAttributes={**TOOL, c.OUTCOME: "ok", c.ATTEMPTS: "1"})])
    )
    assert len(records(exported)) == 1
    assert len(records(exported, "attempts")) == 1


def test_attempts_are_read_too(exported: Database) -> None:
    attached(exported)
    attempt = {c.GEN_AI_TOOL_NAME: "search", c.ATTEMPT_NUMBER: "2", c.ATTEMPT_DELAY_SECONDS: "0.5",
               c.ERROR_CLASSIFIED_AS: "L3_transient", c.ERROR_TYPE: "E"}  # fmt: skip
    exported.command(
        insertion([span(NOON, SpanName="tool_attempt search", ParentSpanId="ef" * 8,
                        SpanAttributes=attempt, StatusCode="Error")])
    )  # fmt: skip
    (row,) = records(exported, "attempts")
    assert (row["call_span_id"], row["number"], row["delay_seconds"]) == ("ef" * 8, 2, 0.5)
    assert (row["result"], row["error_class"]) == ("failure", "L3_transient")


STATES = ["", "ot=th:8", "ot=rv:12;th:c", "a=b, ot=th:ff8;rv:1", "ot=x:1"]


def test_a_sampled_span_stands_for_as_many_calls_as_the_receiver_says(exported: Database) -> None:
    attached(exported)
    exported.command(
        insertion([
            span(NOON, SpanId=f"{n:016x}", TraceState=state) for n, state in enumerate(STATES, 1)
        ])
    )  # fmt: skip
    found = exported.ask("SELECT weight FROM tool_calls ORDER BY span_id")
    assert found == [(pytest.approx(weight(state)),) for state in STATES]


def test_the_columns_answer_the_exporters_own_users(exported: Database) -> None:
    attached(exported)
    exported.command(insertion([span(NOON, SpanAttributes=TOOL)]))
    columns = ", ".join(KEYS)
    (row,) = exported.ask(f"SELECT {columns} FROM otel_traces")
    assert row[:2] == ("search", "execute_tool")


def test_what_is_no_such_table_is_refused(exported: Database) -> None:
    exported.command("CREATE TABLE other (SpanAttributes String, TraceId String) ENGINE = Memory")
    for table, message in (
        ("nowhere", "no table nowhere; name the exporter's with --table"),
        ("a; DROP TABLE tool_calls", "no name of a table"),
        ("other", "not as the ClickHouse exporter makes it: .*SpanAttributes.*JSON"),
    ):
        with pytest.raises(StoreError, match=message):
            attached(exported, table)


def test_without_the_rights_the_statements_are_shown(
    exported: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clickhouse_connect.driver.exceptions import DatabaseError

    client = exported.connect()
    client.database = exported.address.database
    command = client.command

    def refuse(sql: str, *rest: object, **more: object) -> object:
        if sql.startswith("ALTER"):
            raise DatabaseError("Code: 497. Not enough privileges. (ACCESS_DENIED)", code=497)
        return command(sql, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "command", refuse)
    with pytest.raises(StoreError, match=r"(?s)not let this user.*ALTER TABLE otel_tr") as caught:
        attach(client, "engine")
    client.close()
    assert "CREATE MATERIALIZED VIEW IF NOT EXISTS calls_from_otel_traces" in str(caught.value)
