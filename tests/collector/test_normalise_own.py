from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from fuseboard import conventions as c

Rows = Callable[[str], list[dict[str, Any]]]
FULL = {
    c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL,
    c.GEN_AI_TOOL_NAME: "weather",
    c.GEN_AI_TOOL_TYPE: "function",
    c.GEN_AI_TOOL_CALL_ID: "call_1",
    c.GEN_AI_AGENT_NAME: "planner",
    c.GEN_AI_CONVERSATION_ID: "trip-7",
    c.CLOUD_REGION: "eu-west",
    c.SERVER_ADDRESS: "api.weather.test",
    c.ARGS_HASH: "v1:0123456789abcdef",
    c.OUTCOME: "degraded",
    c.ATTEMPTS: 3,
    c.ATTEMPT_SECONDS: 0.2,
    c.BACKOFF_SECONDS: 0.05,
    c.LAYER: "fallback",
    c.BREAKER_STATE: "closed",
    c.RESULT_SOURCE: "cache",
    c.RESULT_AGE_SECONDS: 30.5,
    c.RESULT_CONFIDENCE: "medium",
    c.FALLBACK_TOOL: "weather_cache",
    c.PARTIAL_FAILURES: 2,
    c.COST: 0.25,
    c.STREAM_ITEMS: 4,
    c.ERROR_TYPE: "httpx.HTTPStatusError",
    c.ERROR_CLASSIFIED_AS: "L3_transient",
    c.ERROR_CLASSIFIER_ID: "http_5xx_matcher",
    c.ERROR_RETRY_STRATEGY: "retry_after",
    c.ERROR_RETRYABLE: True,
    c.ERROR_ORIGIN: "tool",
    c.ERROR_CAUSE_TYPE: "OSError",
    c.ERROR_MESSAGE: "503",
    c.HTTP_RESPONSE_STATUS_CODE: 503,
}
RESOURCE = {
    c.SERVICE_NAME: "trips",
    c.SERVICE_INSTANCE_ID: "i-1",
    c.DEPLOYMENT_ENVIRONMENT: "production",
    c.CLOUD_REGION: "us-east",
}


@pytest.mark.parametrize("protobuf", [True, False])
def test_every_attribute_of_a_call_has_its_column(
    otlp: Any, send: Any, export: Rows, rows: Rows, protobuf: bool
) -> None:
    document = otlp.traces(otlp.span(attributes=FULL), resource=RESOURCE)
    assert send(document, protobuf=protobuf).status_code == 200
    (record,) = export("calls")
    received = record.pop("received_at")
    assert abs((datetime.now().timestamp()) - received.timestamp()) < 86_400
    assert record == {
        "trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331",
        "start": datetime(2026, 11, 30, 0, 53, 20, 123456),
        "end": datetime(2026, 11, 30, 0, 53, 20, 373456),
        "duration_seconds": 0.250000001, "attempt_seconds": 0.2, "tool": "weather",
        "server": None, "region": "eu-west", "environment": "production", "service": "trips",
        "instance": "i-1", "agent": "planner", "session": "trip-7", "framework": "fuseboard",
        "outcome": "degraded", "error_class": "L3_transient",
        "error_type": "httpx.HTTPStatusError", "cause_type": "OSError",
        "classifier_id": "http_5xx_matcher", "retry_strategy": "retry_after", "http_status": 503,
        "error_message": "503", "retryable": True, "origin": "tool", "attempts": 3,
        "backoff_seconds": 0.05, "layer": "fallback", "breaker_state": "closed",
        "result_source": "cache", "result_age_seconds": 30.5, "confidence": "medium",
        "fallback_tool": "weather_cache", "partial_failures": 2, "cost": 0.25,
        "args_hash": "v1:0123456789abcdef", "upstream": "api.weather.test",
        "call_id": "call_1", "weight": 1.0,
    }  # fmt: skip
    (row,) = rows("tool_calls")
    assert row["attributes"] == {c.GEN_AI_TOOL_TYPE: "function", c.STREAM_ITEMS: 4}


def test_a_bare_call_has_nulls_and_no_empty_strings(otlp: Any, send: Any, export: Rows) -> None:
    bare = {
        c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL, c.GEN_AI_TOOL_NAME: "a", c.OUTCOME: "ok",
        c.ERROR_MESSAGE: "", c.CLOUD_REGION: "",
    }  # fmt: skip
    send(otlp.traces(otlp.span(attributes=bare), resource={}))
    (record,) = export("calls")
    filled = {key for key, value in record.items() if value is not None}
    assert filled == {
        "trace_id", "span_id", "start", "end", "received_at", "duration_seconds", "tool",
        "framework", "outcome", "attempts", "weight",
    }  # fmt: skip
    assert record["attempts"] == 0


def test_the_region_of_the_process_counts_where_the_call_names_none(
    otlp: Any, send: Any, export: Rows
) -> None:
    send(otlp.traces(otlp.span(), resource=RESOURCE))
    assert export("calls")[0]["region"] == "us-east"


def attempt_span(otlp: Any, number: int, error: str | None = None) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        c.GEN_AI_TOOL_NAME: "search", c.ATTEMPT_NUMBER: number, c.ATTEMPT_DELAY_SECONDS: 0.5,
        c.COST: 0.1,
    }  # fmt: skip
    if error:
        attributes |= {
            c.ERROR_TYPE: error, c.ERROR_CLASSIFIED_AS: "L3_transient",
            c.HTTP_RESPONSE_STATUS_CODE: 503,
        }  # fmt: skip
    return otlp.span(
        span=f"{number:016x}", name="tool_attempt search", attributes=attributes,
        parentSpanId="b7ad6b7169203331", status={"code": 2} if error else {},
    )  # fmt: skip


@pytest.mark.parametrize("call_first", [True, False])
def test_attempts_belong_to_their_call_in_whatever_order_they_come(
    otlp: Any, send: Any, export: Rows, call_first: bool
) -> None:
    call = otlp.traces(otlp.span(attributes={**FULL, c.OUTCOME: "ok", c.ATTEMPTS: 2}))
    attempts = otlp.traces(attempt_span(otlp, 1, "OSError"), attempt_span(otlp, 2))
    for document in (call, attempts) if call_first else (attempts, call):
        assert send(document).status_code == 200
    first, second = export("attempts")
    assert first["call_span_id"] == second["call_span_id"] == "b7ad6b7169203331"
    assert (first["number"], first["result"], first["error_class"]) == (
        1, "failure", "L3_transient",
    )  # fmt: skip
    assert (first["error_type"], first["http_status"], first["delay_seconds"]) == (
        "OSError", 503, 0.5,
    )  # fmt: skip
    assert (second["number"], second["result"], second["error_class"]) == (2, "success", None)
    assert (second["span_id"], second["cost"]) == (f"{2:016x}", 0.1)
    assert len(export("calls")) == 1


def test_a_negative_duration_is_zero_and_said_to_be_so(otlp: Any, send: Any, rows: Rows) -> None:
    send(otlp.traces(otlp.span(endTimeUnixNano="1795000000000000000")))
    (row,) = rows("tool_calls")
    assert (row["duration_seconds"], row["start"]) == (0.0, row["end"])
    assert row["attributes"] == {"fuseboard.received.marks": ["negative duration"]}


@pytest.mark.parametrize(
    ("attribute", "value", "column", "stored"),
    [
        (c.COST, float("nan"), "cost", None),
        (c.COST, "0.5", "cost", 0.5),
        (c.BACKOFF_SECONDS, -3.0, "backoff_seconds", 0.0),
        (c.BACKOFF_SECONDS, float("inf"), "backoff_seconds", None),
        (c.ATTEMPTS, 10**15, "attempts", 2**31 - 1),
        (c.ATTEMPTS, -1, "attempts", 0),
        (c.HTTP_RESPONSE_STATUS_CODE, 70_000, "http_status", 999),
        (c.HTTP_RESPONSE_STATUS_CODE, "404", "http_status", 404),
        (c.HTTP_RESPONSE_STATUS_CODE, "teapot", "http_status", None),
        (c.ERROR_RETRYABLE, "yes", "retryable", None),
        (c.GEN_AI_AGENT_NAME, "x" * 1000, "agent", "x" * 256),
        (c.ERROR_MESSAGE, "m" * 1000, "error_message", "m" * 512),
        (c.GEN_AI_AGENT_NAME, "a\0b", "agent", "a\ufffdb"),
        (c.GEN_AI_AGENT_NAME, 7, "agent", "7"),
        (c.GEN_AI_AGENT_NAME, ["a"], "agent", '["a"]'),
    ],
)
def test_odd_values_are_bounded(
    otlp: Any, send: Any, export: Rows, attribute: str, value: Any, column: str, stored: Any
) -> None:
    given = {**FULL, attribute: value}
    span = otlp.span(attributes=given)
    assert send(json.loads(json.dumps(otlp.traces(span)))).status_code == 200
    assert export("calls")[0][column] == stored


def test_huge_attributes_are_cut_and_named(otlp: Any, send: Any, rows: Rows) -> None:
    big = {**FULL, "long": "x" * 100_000, "many": list(range(1000)), "deep": nested(40)}
    send(otlp.traces(otlp.span(attributes=big)))
    kept = rows("tool_calls")[0]["attributes"]
    assert len(kept["long"]) == 4096
    assert len(kept["many"]) == 128
    assert kept["fuseboard.received.marks"] == ["cut: long", "cut: many", "cut: deep"]


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1)} if depth else {}


def test_a_flood_of_attributes_is_bounded(otlp: Any, send: Any, rows: Rows) -> None:
    flood = {**FULL, **{f"k{n}": "x" * 2000 for n in range(300)}}
    send(otlp.traces(otlp.span(attributes=flood)))
    kept = rows("tool_calls")[0]["attributes"]
    assert len(json.dumps(kept)) < 70_000
    assert "attributes dropped" in kept["fuseboard.received.marks"]


def test_context_spans_are_lean(otlp: Any, send: Any, rows: Rows) -> None:
    chat = {
        c.GEN_AI_OPERATION_NAME: "chat", "gen_ai.request.model": "m-1",
        "gen_ai.usage.input_tokens": 1200, "gen_ai.input.messages": "secret words",
        "gen_ai.output.messages": "secret words", "gen_ai.system_instructions": "secret words",
        "gen_ai.prompt.0.content": "secret words", "llm.input_messages.0.content": "secret words",
        "traceloop.entity.input": "secret words", "input.value": "secret words",
    }  # fmt: skip
    event = {"name": "gen_ai.user.message", "attributes": otlp.attributes({"c": "secret words"})}
    span = otlp.span(name="chat m-1", attributes=chat, kind=3, events=[event])
    send(otlp.traces(span, scope="someone"))
    (row,) = rows("spans")
    assert (row["name"], row["kind"], row["status"]) == ("chat m-1", "client", "unset")
    assert row["service"] == "trips"
    assert row["attributes"]["gen_ai.usage.input_tokens"] == 1200
    assert "secret words" not in repr(row)
    assert rows("tool_calls") == []
