"""Spans of real instrumentations, spoilt in any way: stored, or rejected and counted."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from assembled_exports import Stage
from google.protobuf import json_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from recorded_exports import RECEIVED, recordings

from fuseboard_collector.normalise.incoming import Traces
from fuseboard_collector.normalise.normaliser import normalise_traces
from fuseboard_collector.normalise.values import MAX_JSON
from fuseboard_collector.receiver import otlp_json, otlp_protobuf
from fuseboard_collector.store.rows import Row, micros, to_arrow

NAMES = list(recordings())
ATTRIBUTES = sorted(
    {name for r in recordings().values() for span in r.spans().values() for name in span.attributes}
    | {"error.type", "http.response.status_code", "exception.type", "exception.message"}
)
DAY = 86_400_000_000
TEXTS = st.sampled_from(
    [
        "", "\0", "\ud800", "a\udfffb", "x" * 70_000, "{" * 5000, '{"a":' * 5000, "[[[[", '"',
        '{"error": NaN}', "{'a': 1", "Traceback (most recent call last):\n" * 50, "(" * 5000,
        "ValueError(" * 500, "500 " * 2000, "-32001", "999999999999999999999", "é" * 9000,
        '{"isError": true, "content": [null, {"text": 5}]}', "execute_tool ", "mcp__", "mcp____x",
        "The above exception was the direct cause of the following exception:\n" * 40,
    ]
) | st.text(max_size=40)  # fmt: skip
NUMBERS = st.sampled_from(
    [0, 1, -1, 2**31, 2**63 - 1, -(2**63), 404, 10**9, 0.5, -0.0, 1e308, math.nan, math.inf]
)
VALUES = st.recursive(
    TEXTS | NUMBERS | st.booleans() | st.none() | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.sampled_from(["error", "kwargs", "output", ""]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
TIMES = st.sampled_from(
    [0, 1, 10**9, 946_684_799 * 10**9, RECEIVED * 1000 + 10**15, 2**63 - 1, 2**63, 2**64 - 1]
) | st.integers(RECEIVED * 1000 - 10**13, RECEIVED * 1000 + 10**13)
Edit = tuple[int, str, Any]
Decoder = Callable[[list[dict[str, Any]]], Traces]
EDITS: st.SearchStrategy[Edit] = st.one_of(
    st.tuples(st.integers(0, 99), st.sampled_from(ATTRIBUTES), VALUES),
    st.tuples(st.integers(0, 99), st.sampled_from(["@name", "@traceState", "@message"]), TEXTS),
    st.tuples(st.integers(0, 99), st.sampled_from(["@start", "@end"]), TIMES),
    st.tuples(st.integers(0, 99), st.sampled_from(["@parent", "@id"]), st.integers(-3, 99)),
    st.tuples(st.integers(0, 99), st.sampled_from(["@kind", "@code"]), st.integers(-3, 2**31 - 1)),
    st.tuples(st.integers(0, 99), st.sampled_from(["@event", "@resource", "@scope"]), VALUES),
)


def spoil(otlp: Any, name: str, edits: list[Edit]) -> list[dict[str, Any]]:
    """Return a recording as OTLP/JSON groups of one span each, spoilt."""
    sent = [
        (source, span) for source, spans in recordings()[name].traces().groups for span in spans
    ]
    spans = [
        {
            "traceId": span.trace_id,
            "spanId": span.span_id,
            "parentSpanId": span.parent_span_id or "",
            "name": span.name,
            "kind": span.kind,
            "startTimeUnixNano": str(span.start_ns),
            "endTimeUnixNano": str(span.end_ns),
            "status": {"code": span.status_code, "message": span.status_message},
            "attributes": otlp.attributes(span.attributes),
            "events": [
                {"name": e.name, "attributes": otlp.attributes(e.attributes)} for e in span.events
            ],
        }
        for _, span in sent
    ]
    groups = [otlp.traces(spans[i], scope=sent[i][0].scope) for i in range(len(spans))]
    for index, what, value in edits:
        edit(otlp, (spans, groups), index % len(spans), what, value)
    return groups


def edit(
    otlp: Any, sent: tuple[list[dict[str, Any]], list[dict[str, Any]]],
    index: int, what: str, value: Any,
) -> None:  # fmt: skip
    spans, groups = sent
    span = spans[index]
    plain = {
        "@name": "name", "@traceState": "traceState", "@kind": "kind",
        "@start": "startTimeUnixNano", "@end": "endTimeUnixNano",
    }  # fmt: skip
    if what in plain:
        span[plain[what]] = value
    elif what in ("@message", "@code"):
        span["status"] = {**span["status"], what[1:]: value}
    elif what in ("@parent", "@id"):
        ids = [*(other["spanId"] for other in spans), "0" * 16, "zz", ""]
        span["parentSpanId" if what == "@parent" else "spanId"] = ids[value % len(ids)]
    elif what == "@event":
        attributes = {"exception.type": value, "exception.message": value,
                      "exception.stacktrace": value}  # fmt: skip
        span["events"].append({"name": "exception", "attributes": otlp.attributes(attributes)})
    elif what == "@resource":
        resource = {"service.name": value, "cloud.region": value}
        groups[index]["resourceSpans"][0]["resource"] = otlp.resource(resource)
    elif what == "@scope":
        groups[index]["resourceSpans"][0]["scopeSpans"][0]["scope"] = {"name": str(value)}
    else:
        kept = [item for item in span["attributes"] if item["key"] != what]
        span["attributes"] = [*kept, *otlp.attributes({what: value})]


def by_json(groups: list[dict[str, Any]]) -> Traces:
    document = {"resourceSpans": [group["resourceSpans"][0] for group in groups]}
    return otlp_json.decode_traces(json.dumps(document).encode())


def by_protobuf(groups: list[dict[str, Any]]) -> Traces:
    document = {"resourceSpans": [group["resourceSpans"][0] for group in groups]}
    message = json_format.ParseDict(_for_protobuf(document), ExportTraceServiceRequest())
    return otlp_protobuf.decode_traces(message.SerializeToString())


def _for_protobuf(value: Any) -> Any:
    """Return what protobuf can say of it: ids as bytes, texts without lone surrogates."""
    if isinstance(value, list):
        return [_for_protobuf(item) for item in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    if not isinstance(value, dict):
        return value
    spoken = {key: _for_protobuf(item) for key, item in value.items()}
    for name in spoken.keys() & {"traceId", "spanId", "parentSpanId"}:
        is_hex = len(spoken[name]) % 2 == 0 and spoken[name] != "zz"
        raw = bytes.fromhex(spoken[name]) if is_hex else b"zz"
        spoken[name] = base64.b64encode(raw).decode()
    for name in spoken.keys() & {"intValue", "startTimeUnixNano", "endTimeUnixNano"}:
        spoken[name] = str(min(int(spoken[name]), 2**63 - 1))
    return spoken


def check_all(traces: Traces, sent: int) -> None:
    """Normalise and assemble, and look at every row."""
    batch = normalise_traces(traces, RECEIVED)
    rejected = sum(traces.rejected.values())
    assert len(batch) + rejected == sent
    stage = Stage()
    stage.take((source, span) for source, spans in traces.groups for span in spans)
    assembled = stage.result()
    for row in (*(row for rows in batch.lists() for row in rows), *batch.all_calls(), *assembled):
        check_row(row)  # type: ignore[arg-type]
    by_type: dict[type, list[Any]] = {}
    for row in (*assembled, *batch.sightings, *batch.spans):
        by_type.setdefault(type(row), []).append(row)
    for rows in by_type.values():
        assert to_arrow(rows).num_rows == len(rows)


def check_row(row: Row) -> None:
    for column in fields(row):
        value = getattr(row, column.name)
        if isinstance(value, str):
            limit = MAX_JSON if column.name == "attributes" else 512
            assert len(value) <= limit, column.name
            assert "\0" not in value, column.name
            value.encode()
        elif isinstance(value, float):
            assert math.isfinite(value), column.name
        elif column.name in ("http_status", "attempt_number", "number", "attempts"):
            assert value is None or 0 <= value < 2**31
    check_times(row)


def check_times(row: Any) -> None:
    start = micros(row.start)
    assert 946_684_800_000_000 <= start <= RECEIVED + DAY
    assert 0 <= row.duration_seconds < 1e10
    assert start + row.duration_seconds * 1e6 <= RECEIVED + DAY + 1


DECODERS = st.sampled_from([by_json, by_protobuf])
CASES = given(
    decode=DECODERS, name=st.sampled_from(NAMES), edits=st.lists(EDITS, min_size=1, max_size=8)
)
FUZZ = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@FUZZ
@CASES
def test_spoilt_spans_are_stored_or_counted(
    otlp: Any, decode: Decoder, name: str, edits: list[Edit]
) -> None:
    groups = spoil(otlp, name, edits)
    check_all(decode(groups), len(groups))


@pytest.mark.long
@pytest.mark.timeout(900)
@settings(FUZZ, max_examples=2000)
@CASES
def test_spoilt_spans_are_stored_or_counted_for_long(
    otlp: Any, decode: Decoder, name: str, edits: list[Edit]
) -> None:
    groups = spoil(otlp, name, edits)
    check_all(decode(groups), len(groups))


@pytest.mark.parametrize(
    "place", ["gen_ai.tool.name", "custom", "gen_ai.tool.call.arguments", "message", "stack"]
)
def test_10_megabytes_in_any_place_are_cut(
    otlp: Any, send: Any, rows: Any, until: Any, place: str
) -> None:
    huge = "x" * 10_000_000
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    exception = {"exception.type": "Exception", "exception.message": "no"}
    if place == "stack":
        exception["exception.stacktrace"] = huge
    elif place != "message":
        attributes[place] = json.dumps({"q": huge}) if place.endswith("arguments") else huge
    event = {"name": "exception", "attributes": otlp.attributes(exception)}
    status = {"code": 2, "message": huge if place == "message" else ""}
    span = otlp.span(attributes=attributes, status=status, events=[event])
    assert send(otlp.traces(span, scope="gen_ai"), protobuf=True).status_code == 200
    until(lambda: rows("tool_calls"), "the assembly of the call")
    (call,) = rows("tool_calls")
    assert call["tool"] == ("x" * 256 if place == "gen_ai.tool.name" else "search")
    assert call["error_message"] == ("x" * 511 + "…" if place == "message" else "no")
    assert call["args_hash"] is None
    expected = {"custom": "x" * 4096, "fuseboard.received.marks": ["cut: custom"]}
    assert call["attributes"] == (expected if place == "custom" else None)


def test_a_trace_of_one_id_twice_and_of_no_parents_has_one_call_each(
    otlp: Any, send: Any, rows: Any, until: Any
) -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    first = otlp.span(attributes=attributes, parentSpanId="aaaaaaaaaaaaaaaa")
    second = {**first, "spanId": "bbbbbbbbbbbbbbbb", "parentSpanId": "bbbbbbbbbbbbbbbb"}
    answer = send(otlp.traces(first, first, {**first, "name": "other"}, second, scope="gen_ai"))
    assert answer.status_code == 200
    until(lambda: len(rows("tool_calls")) == 2, "the assembly of two calls")
    assert {row["span_id"] for row in rows("tool_calls")} == {first["spanId"], second["spanId"]}
