"""The hand-written encoder: its messages equal those of OpenTelemetry's own."""

from __future__ import annotations

import string
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags, TraceState

from fuseboard.conventions import Outcome
from fuseboard.telemetry.wire import (
    HAS_IS_REMOTE,
    IS_REMOTE,
    SpanPieces,
    resource_spans,
    varint,
)

RESOURCE = Resource({"service.name": "agent"})
SCOPE = InstrumentationScope("fuseboard", "1.2.3")


def by_the_sdk(span: dict[str, Any]) -> SpanMessage:
    parent = None
    if span["parent_id"] is not None:
        is_remote = bool(span["flags"] & IS_REMOTE)
        parent = SpanContext(span["trace_id"], span["parent_id"], is_remote)
    error = span["error"]
    state = TraceState.from_header([span["trace_state"]]) if span["trace_state"] else None
    made = ReadableSpan(
        name=span["name"],
        context=SpanContext(
            span["trace_id"], span["span_id"], False, TraceFlags(1), trace_state=state
        ),
        parent=parent,
        resource=RESOURCE,
        attributes=span["attributes"],
        start_time=span["start_ns"],
        end_time=span["end_ns"],
        status=Status() if error is None else Status(StatusCode.ERROR, error),
        instrumentation_scope=SCOPE,
    )
    return encode_spans([made]).resource_spans[0].scope_spans[0].spans[0]


def a_span(**changes: Any) -> dict[str, Any]:
    return {
        "trace_id": 2**127 + 5,
        "span_id": 2**63 + 1,
        "parent_id": None,
        "trace_state": "",
        "name": "execute_tool search",
        "start_ns": 1_800_000_000_000_000_000,
        "end_ns": 1_800_000_000_000_000_005,
        "attributes": {},
        "error": None,
        "flags": HAS_IS_REMOTE,
        **changes,
    }


ids = st.integers(1, 2**64 - 1)
keys = st.text(string.ascii_lowercase + "._é", min_size=1, max_size=20)
values = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=300),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
)
spans = st.builds(
    a_span,
    trace_id=st.integers(1, 2**128 - 1),
    span_id=ids,
    parent_id=st.none() | ids,
    trace_state=st.sampled_from(["", "vendor=1,other=x"]),
    name=st.text(st.characters(codec="utf-8"), max_size=200),
    start_ns=st.integers(0, 2**63),
    end_ns=st.integers(0, 2**63),
    attributes=st.dictionaries(keys, values, max_size=20),
    error=st.none() | st.text(st.characters(codec="utf-8"), max_size=600),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(spans, max_size=4))
def test_every_span_decodes_to_what_the_sdk_would_have_sent(several: list[dict[str, Any]]) -> None:
    pieces = SpanPieces()
    for span in several:
        # Twice: from scratch, and from remembered pieces.
        for _ in range(2):
            assert SpanMessage.FromString(pieces.span(**span)) == by_the_sdk(span)


def test_equal_values_of_other_types_stay_apart() -> None:
    pieces = SpanPieces()
    for value in (1, True, 1.0, "1", 0, False, 0.0, -0.0):
        span = a_span(attributes={"key": value})
        found = SpanMessage.FromString(pieces.span(**span))
        assert found == by_the_sdk(span)
        assert found.attributes[0].value.WhichOneof("value") == {
            int: "int_value", bool: "bool_value", float: "double_value", str: "string_value",
        }[type(value)]  # fmt: skip


def test_a_remote_parent_is_marked() -> None:
    span = a_span(parent_id=7, flags=HAS_IS_REMOTE | IS_REMOTE)
    assert SpanMessage.FromString(SpanPieces().span(**span)) == by_the_sdk(span)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)])
def test_numbers_of_any_size_are_read_back(number: int) -> None:
    span = a_span(attributes={"number": number})
    message = SpanMessage.FromString(SpanPieces().span(**span))
    assert message.attributes[0].value.int_value == number
    assert len(varint(number)) <= 10


def test_the_memory_of_pieces_is_bounded() -> None:
    pieces = SpanPieces()
    for number in range(20_000):
        attributes: dict[str, Any] = {"fuseboard.args_hash": f"v1:{number:016x}", "n": number}
        pieces.span(**a_span(attributes=attributes))
    tables = [table for table in vars(pieces).values() if isinstance(table, dict)]
    assert len(tables) == 5
    assert max(map(len, tables)) <= 8192


def test_a_whole_request_is_read_back() -> None:
    pieces = SpanPieces()
    made = [a_span(span_id=number, name="n" * number) for number in (1, 100, 200)]
    request = encode_spans([ReadableSpan("", SpanContext(1, 1, False), resource=RESOURCE,
                                         instrumentation_scope=SCOPE)])  # fmt: skip
    group = request.resource_spans[0]
    scope = group.scope_spans[0]
    del scope.spans[:]
    encoded_scope = scope.SerializeToString()
    del group.scope_spans[:]
    body = resource_spans(
        group.SerializeToString(), encoded_scope, [pieces.span(**span) for span in made]
    )
    (found,) = ExportTraceServiceRequest.FromString(body).resource_spans
    assert found.resource.attributes[0].value.string_value == "agent"
    assert found.scope_spans[0].scope.name == "fuseboard"
    assert list(found.scope_spans[0].spans) == [by_the_sdk(span) for span in made]


@pytest.mark.parametrize("value", [HTTPStatus.NOT_FOUND, Outcome.ERROR])
def test_members_of_enumerations_are_sent_as_the_numbers_and_texts_that_they_are(
    value: Any,
) -> None:
    pieces = SpanPieces()
    pieces.span(**a_span(attributes={"key": True}))
    span = a_span(attributes={"key": value})
    for _ in range(2):
        found = SpanMessage.FromString(pieces.span(**span)).attributes[0].value
        assert (found.int_value or found.string_value) == value


def test_long_texts_are_not_remembered() -> None:
    pieces = SpanPieces()
    for number in range(3000):
        pieces.span(**a_span(attributes={"result": f"{number}".ljust(8000)}, error=None))
    held = sum(len(text) for (_, text) in pieces._texts)
    assert held < 1_000_000
