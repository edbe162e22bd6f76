from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from fuseboard import conventions as c

Rows = Callable[[str], list[dict[str, Any]]]
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
AT = datetime(2026, 11, 30, 0, 53, 20, 123456)
RESOURCE = {
    c.SERVICE_NAME: "trips", c.SERVICE_INSTANCE_ID: "i-1", c.DEPLOYMENT_ENVIRONMENT: "staging",
    c.CLOUD_REGION: "us-east",
}  # fmt: skip
TRANSITION = {
    c.BREAKER_NAME: "weather/eu-west", c.BREAKER_FROM: "closed", c.BREAKER_TO: "open",
    c.BREAKER_REASON: "failure ratio", c.BREAKER_FAILURE_RATIO: 0.6, c.BREAKER_CALLS: 20,
    c.BREAKER_FAILURES: 12, c.GEN_AI_TOOL_NAME: "weather", c.CLOUD_REGION: "eu-west",
    c.SERVER_ADDRESS: "api.test", c.ERROR_CLASSIFIED_AS: "L3_transient",
}  # fmt: skip


@pytest.mark.parametrize("protobuf", [True, False])
def test_a_transition_is_stored_with_all_that_it_says(
    otlp: Any, send: Any, export: Rows, protobuf: bool
) -> None:
    document = otlp.logs(
        c.EVENT_BREAKER_TRANSITION, TRANSITION, RESOURCE, traceId=TRACE, spanId=SPAN
    )
    for _ in range(2):  # resent, it is the same transition
        assert send(document, protobuf=protobuf).status_code == 200
    assert export("transitions") == [
        {
            "time": AT, "breaker": "weather/eu-west", "tool": "weather", "region": "eu-west",
            "upstream": "api.test", "service": "trips", "instance": "i-1",
            "environment": "staging", "from_state": "closed", "to_state": "open",
            "reason": "failure ratio", "failure_ratio": 0.6, "calls": 20, "failures": 12,
            "error_class": "L3_transient", "trace_id": TRACE,
        }
    ]  # fmt: skip


def test_an_event_may_carry_its_name_as_an_attribute(otlp: Any, send: Any, export: Rows) -> None:
    named = {**TRANSITION, "event.name": c.EVENT_BREAKER_TRANSITION}
    send(otlp.logs("", named))
    assert len(export("transitions")) == 1


def test_a_heartbeat_is_stored_with_its_lists(otlp: Any, send: Any, rows: Rows) -> None:
    breakers = [{"breaker": "weather", "state": "open", "since": "2026-11-30T00:00:00Z"}]
    attributes = {
        c.SERVICE_INSTANCE_ID: "i-1", c.FUSEBOARD_VERSION: "0.1.0",
        c.HEARTBEAT_BREAKERS: json.dumps(breakers), c.HEARTBEAT_CALLS_IN_FLIGHT: "[]",
        c.HEARTBEAT_DROPPED: '{"spans/queue_full": 3}', c.HEARTBEAT_OVERFLOW: "not json",
    }  # fmt: skip
    for _ in range(2):
        assert send(otlp.logs(c.EVENT_HEARTBEAT, attributes, RESOURCE)).status_code == 200
    (row,) = rows("heartbeats")
    assert (row["time"], row["instance"], row["version"]) == (AT, "i-1", "0.1.0")
    assert (row["service"], row["environment"], row["region"]) == ("trips", "staging", "us-east")
    assert json.loads(row["breakers"]) == breakers
    assert json.loads(row["dropped"]) == {"spans/queue_full": 3}
    assert (json.loads(row["calls_in_flight"]), row["overflow"]) == ([], None)


UNSAMPLED = {
    c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL, c.GEN_AI_TOOL_NAME: "search", c.OUTCOME: "ok",
    c.ATTEMPTS: 1, c.LAYER: "tool", c.CALL_SPAN_NAME: "execute_tool search",
    c.CALL_START_UNIX_NANO: 1_796_000_000_000_000_000, c.CALL_DURATION_SECONDS: 0.25,
}  # fmt: skip


def test_a_call_without_a_span_is_a_call_like_any_other(
    otlp: Any, send: Any, export: Rows, rows: Rows
) -> None:
    document = otlp.logs(c.EVENT_TOOL_CALL, UNSAMPLED, traceId=TRACE, spanId=SPAN)
    for protobuf in (True, False):
        assert send(document, protobuf=protobuf).status_code == 200
    (call,) = export("calls")
    assert (call["tool"], call["outcome"], call["attempts"]) == ("search", "ok", 1)
    assert call["start"] == datetime(2026, 11, 30, 0, 53, 20)
    assert call["duration_seconds"] == 0.25
    assert len(export("attempts")) == 1
    assert rows("tool_calls")[0]["attributes"] is None


def test_a_call_that_comes_as_span_and_as_event_is_one_call(
    otlp: Any, send: Any, export: Rows
) -> None:
    send(otlp.logs(c.EVENT_TOOL_CALL, UNSAMPLED, traceId=TRACE, spanId=SPAN))
    send(otlp.traces(otlp.span(trace=TRACE, span=SPAN)))
    assert len(export("calls")) == 1


@pytest.mark.parametrize(
    ("event", "attributes", "missing"),
    [
        (c.EVENT_BREAKER_TRANSITION, {**TRANSITION, c.BREAKER_NAME: ""}, c.BREAKER_NAME),
        (c.EVENT_BREAKER_TRANSITION, {}, c.BREAKER_NAME),
        (c.EVENT_TOOL_CALL, UNSAMPLED, "trace and span id"),
        (c.EVENT_HEARTBEAT, {}, c.SERVICE_INSTANCE_ID),
    ],
)
def test_an_event_of_ours_that_lacks_something_is_rejected_and_says_what(
    otlp: Any, send: Any, event: str, attributes: dict[str, Any], missing: str
) -> None:
    answer = send(otlp.logs(event, attributes, resource={}))
    partial = answer.json()["partialSuccess"]
    assert partial["rejectedLogRecords"] == "1"
    assert missing in partial["errorMessage"]


def test_other_peoples_logs_are_accepted_and_not_stored(otlp: Any, send: Any, store: Any) -> None:
    answer = send(otlp.logs("some.event", {"password": "x"}))
    assert (answer.status_code, answer.json()) == (200, {})
    assert store.stats.get("ignored_logs") == 1
    assert store.stats.get("commits") == 0


def test_an_event_without_a_time_gets_that_of_its_arrival(
    otlp: Any, send: Any, export: Rows
) -> None:
    send(otlp.logs(c.EVENT_BREAKER_TRANSITION, TRANSITION, timeUnixNano=0))
    (row,) = export("transitions")
    assert row["time"] > datetime(2026, 1, 1)
