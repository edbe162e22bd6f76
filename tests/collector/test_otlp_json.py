from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.testclient import TestClient

from fuseboard_collector.receiver import otlp_json, otlp_protobuf

Rows = Callable[[str], list[dict[str, Any]]]
TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"


def decoded_span(otlp: Any, **fields: Any) -> Any:
    traces = otlp_json.decode_traces(otlp.json(otlp.traces(otlp.span(**fields))))
    assert not traces.rejected
    return traces.groups[0][1][0]


def decoded_value(otlp: Any, value: Any) -> Any:
    span = otlp.span()
    span["attributes"] = [{"key": "k", "value": value}]
    traces = otlp_json.decode_traces(json.dumps(otlp.traces(span)).encode())
    return traces.groups[0][1][0].attributes["k"]


@pytest.mark.parametrize("spelling", [str.lower, str.upper, str.title])
def test_hc_33_ids_are_hex_in_any_case_and_equal_to_protobuf(
    client: TestClient, otlp: Any, rows: Rows, send: Any, spelling: Callable[[str], str]
) -> None:
    document = otlp.traces(
        otlp.span(
            trace=spelling(TRACE), span=spelling(SPAN), attributes={},
            parentSpanId=spelling(PARENT),
        )
    )  # fmt: skip
    assert send(document).status_code == 200
    (row,) = rows("spans")
    assert (row["trace_id"], row["span_id"], row["parent_span_id"]) == (TRACE, SPAN, PARENT)
    assert send(document, protobuf=True).status_code == 200
    assert len(rows("spans")) == 1, "as protobuf it is the same span"


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(base64.b64encode(bytes.fromhex(TRACE)).decode(), id="base64"),
        "0" * 32,
        TRACE[:-1],
        TRACE + "0",
        TRACE[:-1] + "g",
        TRACE[:-1] + "\n",
        "",
        None,
        7,
    ],
)
def test_hc_33_a_wrong_id_is_rejected_and_not_stored_mangled(
    otlp: Any, rows: Rows, send: Any, bad: Any
) -> None:
    answer = send(otlp.traces(otlp.span(trace=bad), otlp.span(span=SPAN)))
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "1"
    assert [row["trace_id"] for row in rows("tool_calls")] == [TRACE]


@pytest.mark.parametrize("bad", ["0" * 16, SPAN[:-1], "t60ra3FpIDMx", None])
def test_hc_33_a_wrong_span_id_is_rejected(otlp: Any, send: Any, rows: Rows, bad: Any) -> None:
    assert send(otlp.traces(otlp.span(span=bad))).json()["partialSuccess"]["rejectedSpans"] == "1"
    assert rows("tool_calls") == []


@pytest.mark.parametrize("bad", ["zz", "0" * 16, "00f067aa0ba902b7aa"])
def test_a_wrong_parent_id_costs_the_parent_only(otlp: Any, bad: str) -> None:
    assert decoded_span(otlp, parentSpanId=bad).parent_span_id is None


@pytest.mark.parametrize("spelled", [str, int, float])
def test_hc_34_times_are_strings_or_numbers(otlp: Any, spelled: Callable[[int], Any]) -> None:
    exact = 1_796_000_000_123_456_768  # a float can hold it
    assert decoded_span(otlp, startTimeUnixNano=spelled(exact)).start_ns == exact


def test_hc_34_nanoseconds_and_integers_survive_unchanged(
    otlp: Any, send: Any, store: Any, rows: Rows
) -> None:
    """The store keeps microseconds, cut in whole numbers, and durations from nanoseconds."""
    span = otlp.span(attributes={"n": 9223372036854775807, "m": -9223372036854775808})
    assert decoded_span(otlp).start_ns == 1_796_000_000_123_456_789
    send(otlp.traces(span))
    with store._open_database().cursor() as cursor:
        query = 'SELECT epoch_us("start"), attributes.n::BIGINT, attributes.m::BIGINT FROM spans'
        assert cursor.execute(query).fetchall() == [
            (1_796_000_000_123_456, 9223372036854775807, -9223372036854775808)
        ]
    assert rows("spans")[0]["duration_seconds"] == 0.250000001


@pytest.mark.parametrize(
    ("spelled", "kind"),
    [
        (2, "server"), ("2", "server"), ("SPAN_KIND_SERVER", "server"),
        (3, "client"), ("SPAN_KIND_CLIENT", "client"),
        (99, None), ("SPAN_KIND_NEW", None), (None, None), (0, None), (True, None), ([], None),
    ],
)  # fmt: skip
def test_hc_34_kinds_are_numbers_or_names(
    otlp: Any, send: Any, rows: Rows, spelled: Any, kind: str | None
) -> None:
    send(otlp.traces(otlp.span(attributes={}, kind=spelled)))
    assert rows("spans")[0]["kind"] == kind


@pytest.mark.parametrize(
    ("spelled", "status"),
    [(2, "error"), ("STATUS_CODE_ERROR", "error"), (1, "ok"), ("STATUS_CODE_OK", "ok"),
     (None, "unset"), (7, "unset"), ("STATUS_CODE_ODD", "unset")],
)  # fmt: skip
def test_hc_34_status_codes_are_numbers_or_names(
    otlp: Any, send: Any, rows: Rows, spelled: Any, status: str
) -> None:
    send(otlp.traces(otlp.span(attributes={}, status={"code": spelled})))
    assert rows("spans")[0]["status"] == status


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"stringValue": "x"}, "x"),
        ({"boolValue": False}, False),
        ({"intValue": "-7"}, -7),
        ({"intValue": 7}, 7),
        ({"doubleValue": 1.5}, 1.5),
        ({"doubleValue": 2}, 2.0),
        ({"doubleValue": "Infinity"}, float("inf")),
        ({"doubleValue": "-Infinity"}, float("-inf")),
        ({"bytesValue": "AAEC"}, b"\x00\x01\x02"),
        ({"arrayValue": {"values": [{"intValue": 1}, {"arrayValue": {}}, {}]}}, [1, [], None]),
        ({"arrayValue": {}}, []),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}]}}, {"a": True}),
        ({"kvlistValue": {}}, {}),
        ({}, None),
        (None, None),
        ({"newValue": 1}, None),
        ({"newValue": 1, "stringValue": "x"}, "x"),
        ({"intValue": "many"}, "many"),
        ({"boolValue": "yes"}, "yes"),
        ({"bytesValue": "?"}, "?"),
    ],
)
def test_hc_34_every_kind_of_value(otlp: Any, value: Any, expected: Any) -> None:
    assert decoded_value(otlp, value) == expected


def test_hc_34_nan_is_a_value(otlp: Any) -> None:
    found = decoded_value(otlp, {"doubleValue": "NaN"})
    assert found != found


def test_hc_34_unknown_fields_are_ignored_everywhere(otlp: Any, send: Any, rows: Rows) -> None:
    document = otlp.traces(otlp.span(future={"a": [1]}))
    document["future"] = 1
    document["resourceSpans"][0]["future"] = [{}]
    document["resourceSpans"][0]["scopeSpans"][0]["scope"]["future"] = "x"
    assert send(document).status_code == 200
    assert len(rows("tool_calls")) == 1


@pytest.mark.parametrize("bad", ["soon", -1, 2**64, 1.5, True, [], "1e3"])
def test_a_time_that_is_no_number_rejects_the_span(otlp: Any, bad: Any) -> None:
    traces = otlp_json.decode_traces(otlp.json(otlp.traces(otlp.span(startTimeUnixNano=bad))))
    assert traces.rejected == {"bad time": 1}


def test_text_that_is_no_unicode_is_mended(otlp: Any, send: Any, rows: Rows) -> None:
    document = otlp.traces(otlp.span(name="caf\udce9\x00", attributes={"a\ud800": "b\udfff\0"}))
    assert send(document).status_code == 200
    raw = json.dumps(otlp.traces(otlp.span(span=PARENT, attributes={}, name="XX"))).encode()
    answer = otlp_json.decode_traces(raw.replace(b"XX", b"\xff\xfe"))
    assert answer.groups[0][1][0].name == "\ufffd\ufffd"
    (row,) = rows("spans")
    assert row["name"] == "caf?\ufffd"
    assert row["attributes"] == {"a?": "b?\ufffd"}


def test_one_text_that_is_no_utf_8_does_not_cost_the_protobuf_batch(otlp: Any) -> None:
    good = otlp.protobuf(otlp.traces(otlp.span(), otlp.span(span=PARENT, name="XXXX")))
    traces = otlp_protobuf.decode_traces(good.replace(b"XXXX", b"\xff\xfe\xfdA"))
    spans = traces.groups[0][1]
    assert [span.span_id for span in spans] == [SPAN, PARENT]
    assert spans[1].name == "\ufffd\ufffd\ufffdA"
    assert spans[0] == otlp_protobuf.decode_traces(good).groups[0][1][0]


def test_both_encodings_decode_to_the_same_records(otlp: Any) -> None:
    values = {
        "s": "ü", "b": True, "i": -5, "f": 0.25, "y": b"\x00\xff", "l": [1, "a", None, [True]],
        "d": {"x": {"y": [1.5]}}, "n": None,
    }  # fmt: skip
    event = {"name": "exception", "timeUnixNano": "1", "attributes": otlp.attributes(values)}
    span = otlp.span(
        attributes=values, parentSpanId=PARENT, traceState="ot=th:8", kind=3,
        status={"code": 2, "message": "no"}, events=[event],
    )  # fmt: skip
    document = otlp.traces(span)
    assert otlp_json.decode_traces(otlp.json(document)) == otlp_protobuf.decode_traces(
        otlp.protobuf(document)
    )
    logs = otlp.logs("fuseboard.breaker.transition", values, traceId=TRACE, spanId=SPAN)
    assert otlp_json.decode_logs(otlp.json(logs)) == otlp_protobuf.decode_logs(otlp.protobuf(logs))


def test_an_unknown_protobuf_field_is_ignored(otlp: Any) -> None:
    body = otlp.protobuf(otlp.traces(otlp.span())) + b"\xf8\x07\x01"
    assert len(otlp_protobuf.decode_traces(body).groups[0][1]) == 1
    assert ExportTraceServiceRequest.FromString(body)
