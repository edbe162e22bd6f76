"""One bad record never costs its neighbours."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, Status, StatusCode, TraceFlags

from fuseboard.telemetry.encoding import Encoder

BAD = "half an emoji \ud83e!"
GOOD = "half an emoji \ufffd!"


def span(name: str = "fine", **fields: Any) -> ReadableSpan:
    context = SpanContext(1, 2, False, TraceFlags(1))
    fields = {
        "context": context,
        "resource": Resource({"service.name": "app", "service.instance.id": "theirs"}),
        "instrumentation_scope": InstrumentationScope("fuseboard"),
        "start_time": 1,
        "end_time": 2,
        **fields,
    }
    return ReadableSpan(name, **fields)


def decoded(body: bytes) -> list[Any]:
    return list(ExportTraceServiceRequest.FromString(zlib.decompress(body, 31)).resource_spans)


def spans_of(body: bytes) -> list[Any]:
    return [s for group in decoded(body) for scope in group.scope_spans for s in scope.spans]


POSITIONS = {
    "span name": span(BAD),
    "status": span(status=Status(StatusCode.ERROR, BAD)),
    "attribute key": span(attributes={BAD: 1}),
    "attribute value": span(attributes={"k": BAD}),
    "item of a list": span(attributes={"k": ("a", BAD)}),
    "value in a map": span(attributes={"k": {"inner": BAD}}),
    "event name": span(events=[Event(BAD, {}, 5)]),
    "event attribute": span(events=[Event("e", {"k": BAD}, 5)]),
    "link attribute": span(links=[Link(SpanContext(3, 4, False), {"k": BAD})]),
    "resource": span(resource=Resource({"k": BAD})),
    "scope": span(instrumentation_scope=InstrumentationScope(BAD)),
}


@pytest.mark.parametrize("position", POSITIONS)
def test_hc_11_a_lone_surrogate_costs_nothing(position: str) -> None:
    body, _, lost = Encoder({}).spans([span(), POSITIONS[position], span("last")])
    assert lost == 0
    assert len(spans_of(body)) == 3
    assert GOOD.encode() in zlib.decompress(body, 31)


def test_numbers_beyond_64_bits_arrive_as_text() -> None:
    body, _, lost = Encoder({}).spans([span(attributes={"big": 2**70, "fits": 2**63 - 1})])
    (message,) = spans_of(body)
    values = {a.key: a.value for a in message.attributes}
    assert lost == 0
    assert values["big"].string_value == str(2**70)
    assert values["fits"].int_value == 2**63 - 1


def test_a_span_that_cannot_be_encoded_at_all_is_counted_and_left_out() -> None:
    broken = span("broken", start_time=-5)
    body, _, lost = Encoder({}).spans([span("one"), broken, span("two")])
    assert lost == 1
    assert [s.name for s in spans_of(body)] == ["one", "two"]


def test_the_identity_of_the_process_is_the_last_word() -> None:
    body, *_ = Encoder({"service.instance.id": "ours", "cloud.region": "eu"}).spans([span()])
    (group,) = decoded(body)
    attributes = [(a.key, a.value.string_value) for a in group.resource.attributes]
    assert sorted(attributes) == [
        ("cloud.region", "eu"),
        ("service.instance.id", "ours"),
        ("service.name", "app"),
    ]


def test_hc_11_bytes_in_the_environment_that_are_no_text_cost_nothing(
    run_script: Any, collector: Any
) -> None:
    done = run_script(
        f"""
import handmade_calls as handmade
from fuseboard import setup
setup.init(endpoint={collector.url!r})
handmade.succeed()
assert setup.flush(20)
""",
        OTEL_RESOURCE_ATTRIBUTES="team=half \udcff",
        FUSEBOARD_SERVICE="half \udcff",
    )
    assert (done.returncode, done.stderr) == (0, "")
    for group in (*collector.resource_spans(), *collector.resource_logs()):
        resource = {a.key: a.value.string_value for a in group.resource.attributes}
        assert (resource["team"], resource["service.name"]) == ("half \ufffd", "half \ufffd")
