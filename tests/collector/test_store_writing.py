from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fuseboard_collector.errors import StoreBusyError, StoreError
from fuseboard_collector.store import Attempt, Batch, Store, ToolCall, open_store, space
from fuseboard_collector.store.named_queries import load

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
Rows = Callable[[str], list[dict[str, Any]]]


def calls(count: int, **fields: Any) -> list[ToolCall]:
    return [ToolCall("search", end=NOW, **fields) for _ in range(count)]


def test_rows_are_there_when_the_future_resolves(store: Store, export: Rows) -> None:
    call = ToolCall("search", end=NOW, region="us-east", http_status=503, retryable=True)
    store.append(Batch(calls=[call])).result(10)
    (row,) = export("calls")
    assert row["trace_id"] == call.trace_id
    assert row["end"] == datetime(2026, 11, 30, 12, 0)
    assert (row["region"], row["http_status"], row["retryable"]) == ("us-east", 503, True)
    assert row["server"] is None


@pytest.mark.parametrize(
    ("outcome", "attempts", "layer", "result"),
    [
        ("ok", 1, "tool", "success"),
        ("ok", 1, None, "success"),
        ("partial", 1, "validation", "success"),
        ("cancelled", 1, "tool", "failure"),
        ("abandoned", 1, "tool", "failure"),
        ("interrupted", 1, "tool", "failure"),
        # The attempt had failed before: it has a span of its own.
        ("cancelled", 1, "retry", None),
        ("cancelled", 1, "fallback", None),
        ("error", 1, "tool", None),
        ("degraded", 1, "fallback", None),
        ("rejected", 0, "breaker", None),
        ("ok", 0, "cache", None),
        ("ok", 2, "retry", None),
    ],
)
def test_the_attempt_of_a_call_that_sends_none_is_derived(
    store: Store, export: Rows, outcome: str, attempts: int, layer: str | None, result: str | None
) -> None:
    call = ToolCall(
        "search", end=NOW, outcome=outcome, attempts=attempts, attempt_seconds=0.07, region="eu",
        layer=layer,
    )  # fmt: skip
    store.append(Batch(calls=[call])).result(10)
    found = export("attempts")
    assert [row["result"] for row in found] == ([] if result is None else [result])
    if found:
        (row,) = found
        assert (row["call_span_id"], row["span_id"], row["number"]) == (call.span_id, None, 1)
        assert (row["duration_seconds"], row["delay_seconds"]) == (0.07, 0)
        assert (row["tool"], row["region"], row["error_class"]) == ("search", "eu", None)


@pytest.mark.parametrize(
    ("condition", "column"),
    [
        ("\"end\" > TIMESTAMP '2026-11-30'", "end"),
        ("\"start\" > TIMESTAMP '2026-11-30'", "start"),
        ("received_at > TIMESTAMP '2026-11-30'", "received_at"),
        ("tool > 'tool_1'", "tool"),
    ],
)
def test_conditions_on_attempts_pass_over_blocks_of_calls(
    store: Store, condition: str, column: str
) -> None:
    around = [NOW - timedelta(days=2), NOW + timedelta(days=2)]
    made = [ToolCall(f"tool_{end:%d}", end=end) for end in around]
    store.append(Batch(calls=made)).result(10)
    with store._open_database().cursor() as cursor:
        cursor.execute(
            "EXPLAIN (FORMAT json) SELECT sum(duration_seconds) FROM attempts WHERE " + condition
        )
        (plan,) = json.loads(cursor.fetchall()[0][1])
    (scan,) = (node for node in nodes(plan) if "tool_calls" in str(node["extra_info"]))
    assert column in str(scan["extra_info"]["Filters"])


def test_only_attempts_that_came_are_searched_for_spans(store: Store) -> None:
    attempt = Attempt("ab" * 16, "cd" * 8, 1, NOW, 0.1, "x", "failure")
    store.append(Batch(calls=calls(1), attempts=[attempt])).result(10)
    with store._open_database().cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT json) " + load("import_known_spans").statements[0].sql,
                       {"traces": ["ab" * 16]})  # fmt: skip
        (plan,) = json.loads(cursor.fetchall()[0][1])
    read = [str(node["extra_info"]) for node in nodes(plan)]
    assert sum("attempt_rows" in facts for facts in read) == 1
    assert sum("tool_calls" in facts for facts in read) == 1, "that for calls themselves"


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a query's plan does, of those steps that read a table."""
    if "SCAN" in plan["name"].upper():
        yield plan
    for child in plan["children"]:
        yield from nodes(child)


def test_attributes_keep_their_types(store: Store) -> None:
    text = '{"big":9223372036854775807,"nested":{"a":[1,"x",null,true,1.5]}}'
    store.append(Batch(calls=calls(1, attributes=text))).result(10)
    with store._open_database().cursor() as cursor:
        query = "SELECT attributes.big::BIGINT, attributes.nested.a[2]::VARCHAR FROM tool_calls"
        assert cursor.execute(query).fetchall() == [(9223372036854775807, "x")]


def test_many_threads_append_at_once_and_nothing_is_lost(store: Store, export: Rows) -> None:
    def work() -> None:
        for _ in range(20):
            store.append(Batch(calls=calls(5))).result(30)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(export("calls")) == 800
    assert store.stats.get("stored_rows", "tool_calls") == 800
    assert store.stats.get("commits") <= 160


def test_waiting_requests_share_a_transaction(store: Store) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def block(_connection: object) -> None:
        entered.set()
        assert go_on.wait(10)

    blocker = threading.Thread(target=store._command, args=(block,))
    blocker.start()
    assert entered.wait(10)
    futures = [store.append(Batch(calls=calls(3))) for _ in range(10)]
    assert store.queue_rows() == 30
    go_on.set()
    blocker.join()
    for future in futures:
        future.result(10)
    assert store.stats.get("commits") == 2
    assert store.queue_rows() == 0


def test_a_bad_batch_fails_alone_and_as_a_whole(store: Store, export: Rows) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def block(_connection: object) -> None:
        entered.set()
        assert go_on.wait(10)

    blocker = threading.Thread(target=store._command, args=(block,))
    blocker.start()
    assert entered.wait(10)
    bad_attempt = Attempt("ab" * 16, "cd" * 8, 1, NOW, 0.1, "x", "failure")
    bad = Batch(calls=calls(1, attributes="{no json"), attempts=[bad_attempt])
    futures = [store.append(Batch(calls=calls(1))), store.append(bad), store.append(
        Batch(calls=calls(1)))]  # fmt: skip
    go_on.set()
    blocker.join()
    futures[0].result(10)
    futures[2].result(10)
    with pytest.raises(StoreError, match="could not be stored"):
        futures[1].result(10)
    assert len(export("calls")) == 2
    assert all(row["result"] == "success" for row in export("attempts"))


def test_a_failed_batch_may_be_sent_again(store: Store, export: Rows) -> None:
    call = ToolCall("search", end=NOW, attributes="{no json")
    with pytest.raises(StoreError):
        store.append(Batch(calls=[call])).result(10)
    call.attributes = "{}"
    store.append(Batch(calls=[call])).result(10)
    assert [row["span_id"] for row in export("calls")] == [call.span_id]


def test_a_full_queue_refuses_but_takes_a_large_batch_when_empty(
    store: Store, export: Rows
) -> None:
    store._writer._queue_rows = 10
    store.append(Batch(calls=calls(50))).result(10)
    entered, go_on = threading.Event(), threading.Event()

    def block(_connection: object) -> None:
        entered.set()
        assert go_on.wait(10)

    blocker = threading.Thread(target=store._command, args=(block,))
    blocker.start()
    assert entered.wait(10)
    last = store.append(Batch(calls=calls(8)))
    with pytest.raises(StoreBusyError, match="8 rows wait"):
        store.append(Batch(calls=calls(3)))
    go_on.set()
    blocker.join()
    last.result(10)
    assert len(export("calls")) == 58


def test_a_nearly_full_disk_refuses_and_says_so(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store()
    monkeypatch.setattr(space, "_CHECK_SECONDS", 0.0)
    usage = space.shutil.disk_usage(store.path.parent)
    monkeypatch.setattr(space.shutil, "disk_usage", lambda _path: usage._replace(free=200 << 20))
    with pytest.raises(StoreBusyError, match="200 MiB left; nothing is stored below 256 MiB"):
        store.append(Batch(calls=calls(1)))
    assert isinstance(store.unavailable_because(), StoreBusyError)
    monkeypatch.setattr(space.shutil, "disk_usage", lambda _path: usage)
    store.append(Batch(calls=calls(1))).result(10)
    assert store.unavailable_because() is None


def test_a_data_folder_that_is_gone_refuses_and_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_path: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(space.shutil, "disk_usage", gone)
    with pytest.raises(StoreBusyError, match="can't be reached"):
        store.append(Batch(calls=calls(1)))


def test_closing_writes_what_is_queued(tmp_path: Path) -> None:
    store = open_store(tmp_path / "f.duckdb")
    futures = [store.append(Batch(calls=calls(10))) for _ in range(20)]
    store.close()
    assert all(future.done() and future.exception() is None for future in futures)
    with pytest.raises(StoreError, match="closed"):
        store.append(Batch(calls=calls(1)))
    with pytest.raises(StoreError, match="closed"):
        store.query("export_calls", {"since": None, "until": None})
    again = open_store(tmp_path / "f.duckdb")
    assert again.query("export_calls", {"since": None, "until": None}).num_rows == 200
    again.close()


def test_small_tables_are_inserted_by_name(store: Store, export: Rows) -> None:
    event = {
        "alert": "ToolCallRetryRateHigh", "severity": "warning", "labels": '{"tool":"a"}',
        "state": "firing", "time": NOW.replace(tzinfo=None), "value": 0.07,
    }  # fmt: skip
    store.insert("alert_events", pa.Table.from_pylist([event]))
    (row,) = export("alerts")
    assert (row["alert"], row["state"], row["value"]) == ("ToolCallRetryRateHigh", "firing", 0.07)
    assert row["resolved_at"] is None


def test_a_command_that_takes_too_long_is_an_error_of_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuseboard_collector.store.store._COMMAND_TIMEOUT", 0.05)
    go_on = threading.Event()
    with pytest.raises(StoreBusyError, match="did not come to it"):
        store._command(lambda _connection: go_on.wait(20) and None)
    go_on.set()


def test_insert_names_the_tables_that_there_are(store: Store) -> None:
    with pytest.raises(StoreError, match=r"no table 'meta; DROP TABLE meta'.*tool_calls"):
        store.insert("meta; DROP TABLE meta", pa.table({"a": [1]}))


def test_the_state_is_described(store: Store) -> None:
    assert store.describe()["oldest_row"] is None
    store.append(Batch(calls=calls(2))).result(10)
    described = store.describe()
    assert described["oldest_row"] == "2026-11-30T12:00:00Z"
    assert described["size_bytes"] == store.size_bytes() > 0
    assert described["counters"]["stored_rows{tool_calls}"] == 2
