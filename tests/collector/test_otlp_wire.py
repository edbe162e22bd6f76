"""What is read straight from the bytes equals what the protocol's generated classes read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from fuseboard_collector.receiver import otlp_protobuf, wire
from fuseboard_collector.receiver.wire import UnusualError, WireReader

RECORDINGS = sorted((Path(__file__).parents[1] / "data" / "otlp").glob("**/*.pb"))

TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(["x" * 127, "x" * 128, "ü" * 9_000, "\0"]))
FLOATS = st.floats(width=64)
VALUES = st.recursive(
    st.one_of(
        st.builds(AnyValue),
        TEXTS.map(lambda text: AnyValue(string_value=text)),
        st.booleans().map(lambda flag: AnyValue(bool_value=flag)),
        st.integers(-(2**63), 2**63 - 1).map(lambda number: AnyValue(int_value=number)),
        st.integers(0, 300).map(lambda number: AnyValue(int_value=number)),
        FLOATS.map(lambda number: AnyValue(double_value=number)),
        st.binary(max_size=4).map(lambda raw: AnyValue(bytes_value=raw)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: AnyValue(array_value={"values": items})),
        st.lists(inner, max_size=3).map(
            lambda items: (
                AnyValue(kvlist_value={"values": [KeyValue(key="k", value=items[0])]})
                if items
                else AnyValue(kvlist_value={})
            )
        ),
    ),
    max_leaves=4,
)
PAIRS = st.lists(
    st.builds(
        KeyValue, key=st.one_of(st.sampled_from(["a", "b", "", "k" * 130]), TEXTS), value=VALUES
    ),
    max_size=5,
)
TRACE_IDS = st.one_of(
    st.binary(min_size=16, max_size=16), st.binary(max_size=17), st.just(bytes(16))
)
SPAN_IDS = st.one_of(st.binary(min_size=8, max_size=8), st.binary(max_size=9), st.just(bytes(8)))
TIMES = st.one_of(st.just(0), st.integers(0, 2**64 - 1))
COUNTS = st.integers(0, 300)
EVENTS = st.builds(
    Span.Event, time_unix_nano=TIMES, name=TEXTS, attributes=PAIRS, dropped_attributes_count=COUNTS
)
SPANS = st.builds(
    Span,
    trace_id=TRACE_IDS, span_id=SPAN_IDS, parent_span_id=SPAN_IDS, trace_state=TEXTS, name=TEXTS,
    kind=st.integers(-3, 200), flags=st.integers(0, 2**32 - 1),
    start_time_unix_nano=TIMES, end_time_unix_nano=TIMES, attributes=PAIRS,
    dropped_attributes_count=COUNTS, events=st.lists(EVENTS, max_size=2),
    dropped_events_count=COUNTS, dropped_links_count=COUNTS,
    links=st.lists(st.builds(Span.Link, trace_id=TRACE_IDS, attributes=PAIRS), max_size=1),
    status=st.fixed_dictionaries({}, optional={"code": st.integers(-1, 3), "message": TEXTS}),
)  # fmt: skip


def request(spans: list[Span], pairs: list[KeyValue] | None = None) -> ExportTraceServiceRequest:
    scope = {"scope": {"name": "s", "version": "1", "attributes": pairs}, "spans": spans}
    group = {"resource": {"attributes": pairs}, "scope_spans": [scope, scope], "schema_url": "u"}
    return ExportTraceServiceRequest(resource_spans=[group, group])


def same(reader: WireReader, body: bytes) -> bool:
    """Compare both readings as text, where NaN equals itself; False if ours declined."""
    try:
        ours = reader.traces(body)
    except UnusualError:
        return False
    assert repr(ours) == repr(otlp_protobuf.decode_by_class(body))
    return True


@pytest.fixture(scope="module")
def reader() -> WireReader:
    """One memory for all examples, as in a server."""
    return WireReader()


@given(spans=st.lists(SPANS, max_size=3), pairs=PAIRS)
@settings(max_examples=200, deadline=None)
def test_any_message_is_read_as_the_classes_read_it(
    reader: WireReader, spans: list[Span], pairs: list[KeyValue]
) -> None:
    assert same(reader, request(spans, pairs).SerializeToString())


@given(data=st.data())
@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_bytes_that_were_tampered_with_are_never_read_differently(
    reader: WireReader, data: st.DataObject
) -> None:
    body = bytearray(data.draw(st.sampled_from(BODIES)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(len(body) - 1, 0)))
        match data.draw(st.sampled_from(["set", "drop", "add", "cut", "copy"])):
            case "set":
                body[place : place + 1] = bytes([data.draw(st.integers(0, 255))])
            case "drop":
                del body[place : place + 1]
            case "add":
                body.insert(place, data.draw(st.integers(0, 255)))
            case "cut":
                del body[place + 1 :]
            case "copy":
                body += body[place : place + data.draw(st.integers(0, 200))]
    same(reader, bytes(body))


BODIES = [path.read_bytes()[:6000] for path in RECORDINGS[:8]] + [
    request([Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="n", start_time_unix_nano=1)])
    .SerializeToString()
]  # fmt: skip


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_recorded_request_is_read_without_the_classes(
    reader: WireReader, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = path.read_bytes()
    declined: list[Any] = []
    original = wire.messages.spans
    expected = otlp_protobuf.decode_by_class(body)

    def spans(given: Any, rejected: Any) -> Any:
        declined.extend(given)
        return original(given, rejected)

    monkeypatch.setattr(wire.messages, "spans", spans)
    assert reader.traces(body) == expected
    assert [span for span in declined if not span.links] == []


def test_a_span_of_unusual_form_costs_its_neighbours_nothing(reader: WireReader) -> None:
    usual = Span(trace_id=b"t" * 16, span_id=b"s" * 8, name="usual")
    linked = Span(trace_id=b"t" * 16, span_id=b"u" * 8, name="linked", links=[Span.Link()])
    body = request([usual, linked, usual]).SerializeToString()
    (_, spans), *_ = reader.traces(body).groups
    assert [span.name for span in spans] == ["usual", "linked", "usual"]


@pytest.mark.parametrize("value", [1, 1.0, True, "1", b"1"])
def test_values_that_are_equal_in_python_are_kept_apart(reader: WireReader, value: Any) -> None:
    field = {int: "int", float: "double", bool: "bool", str: "string", bytes: "bytes"}[type(value)]
    pair = KeyValue(key="k", value=AnyValue(**{f"{field}_value": value}))
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, attributes=[pair])
    for _ in range(2):
        ((_, (found, *_)), *_) = reader.traces(request([span]).SerializeToString()).groups
        assert type(found.attributes["k"]) is type(value)


def test_lists_and_maps_are_not_shared_between_spans(reader: WireReader) -> None:
    pair = KeyValue(key="k", value=AnyValue(array_value={"values": [AnyValue(int_value=1)]}))
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8, attributes=[pair])
    ((_, (first, second)), *_) = reader.traces(request([span, span]).SerializeToString()).groups
    assert first.attributes == second.attributes == {"k": [1]}
    assert first.attributes["k"] is not second.attributes["k"]


def test_a_source_that_is_large_is_read_and_not_remembered(reader: WireReader) -> None:
    """Else 256 requests with resources of megabytes would stay in memory for good."""
    remembered = dict(reader._sources)
    pairs = [KeyValue(key="large", value=AnyValue(string_value="x" * wire._MAX_SOURCE_BYTES))]
    assert same(reader, request([], pairs).SerializeToString())
    assert reader._sources == remembered


def test_threads_share_a_memory_that_is_forgotten_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "_MAX_PAIRS", 7)
    monkeypatch.setattr(wire, "_MAX_KEYS", 3)
    monkeypatch.setattr(wire, "_MAX_SOURCES", 2)
    bodies = [path.read_bytes() for path in RECORDINGS[:40]]
    expected = [otlp_protobuf.decode_by_class(body) for body in bodies]
    reader = WireReader()

    def read_all(start: int) -> bool:
        turned = [*range(start, len(bodies)), *range(start)]
        return all(reader.traces(bodies[place]) == expected[place] for place in turned)

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(read_all, range(0, len(bodies), 5)))


def test_memory_of_attributes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_MAX_PAIRS", 50)
    monkeypatch.setattr(wire, "_MAX_KEYS", 20)
    monkeypatch.setattr(wire, "_MAX_VALUES", 10)
    monkeypatch.setattr(wire, "_MAX_SOURCES", 5)
    reader = WireReader()
    for number in range(300):
        pairs = [
            KeyValue(key=f"k{number % 40}", value=AnyValue(double_value=number)),
            KeyValue(key="same", value=AnyValue(string_value=str(number))),
        ]
        body = request([Span(trace_id=b"t" * 16, span_id=b"s" * 8, attributes=pairs)], pairs)
        assert same(reader, body.SerializeToString())
        assert len(reader._pairs) <= 50
        assert len(reader._keys) <= 20
        assert len(reader._sources) <= 5
