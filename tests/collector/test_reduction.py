"""Requests without what a store has already, in both encodings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fuseboard import conventions as c
from fuseboard_collector.receiver import otlp_json, otlp_protobuf
from fuseboard_collector.receiver.body import Encoding
from fuseboard_collector.receiver.intake import Signal
from fuseboard_collector.receiver.reduction import Key, reduced

ONE, TWO = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
SPANS = ("b7ad6b7169203331", "b7ad6b7169203332")


class Stored:
    """Knows some spans, and what it was asked."""

    def __init__(self, *keys: Key) -> None:
        self._keys = keys
        self.asked: list[list[str]] = []

    def __call__(self, traces: Sequence[str]) -> list[Key]:
        self.asked.append(list(traces))
        return [key for key in self._keys if key[0] in traces]


@pytest.fixture(params=Encoding, ids=lambda encoding: encoding.name)
def encoding(request: pytest.FixtureRequest) -> Encoding:
    found: Encoding = request.param
    return found


@pytest.fixture
def encoded(encoding: Encoding, otlp: Any) -> Callable[[Any], bytes]:
    made: Callable[[Any], bytes] = otlp.json if encoding is Encoding.JSON else otlp.protobuf
    return made


def spans_of(encoding: Encoding, body: bytes) -> list[Key]:
    codec = otlp_json if encoding is Encoding.JSON else otlp_protobuf
    groups = codec.decode_traces(body).groups
    return [(span.trace_id, span.span_id) for _, spans in groups for span in spans]


def test_known_spans_are_left_out_and_the_rest_is_as_it_was(
    encoding: Encoding, encoded: Callable[[Any], bytes], otlp: Any
) -> None:
    spans = [otlp.span(trace=trace, span=span) for trace in (ONE, TWO) for span in SPANS]
    body = encoded(otlp.traces(*spans))
    stored = Stored((ONE, SPANS[0]), (TWO, SPANS[1]))
    found = reduced(Signal.TRACES, encoding, body, stored)
    assert (found.records, found.repeated) == (4, 2)
    assert stored.asked == [[ONE, TWO]], "once, about every trace"
    assert spans_of(encoding, found.body) == [(ONE, SPANS[1]), (TWO, SPANS[0])]
    codec = otlp_json if encoding is Encoding.JSON else otlp_protobuf
    kept = codec.decode_traces(found.body).groups[0]
    whole = codec.decode_traces(body).groups[0]
    assert kept[0] == whole[0], "resource and scope stay"
    assert kept[1] == [whole[1][1], whole[1][2]]


def test_nothing_known_leaves_the_bytes_alone(
    encoding: Encoding, encoded: Callable[[Any], bytes], otlp: Any
) -> None:
    body = encoded(otlp.traces(otlp.span()))
    assert reduced(Signal.TRACES, encoding, body, Stored()).body is body


def test_calls_that_came_as_events_are_known_by_their_span(
    encoding: Encoding, encoded: Callable[[Any], bytes], otlp: Any
) -> None:
    ids = {"traceId": ONE, "spanId": SPANS[0]}
    body = encoded(otlp.logs(c.EVENT_TOOL_CALL, {}, **ids))
    found = reduced(Signal.LOGS, encoding, body, Stored((ONE, SPANS[0])))
    assert (found.records, found.repeated) == (1, 1)


def test_records_without_ids_are_nobodys_repeats(
    encoding: Encoding, encoded: Callable[[Any], bytes], otlp: Any
) -> None:
    body = encoded(otlp.logs(c.EVENT_HEARTBEAT, {}))
    stored = Stored(("", ""))
    found = reduced(Signal.LOGS, encoding, body, stored)
    assert (found.records, found.repeated, stored.asked) == (1, 0, [])


@pytest.mark.parametrize(
    "body", [b"\xff", b"{", b"[]", b'{"resourceSpans": 7}', b'{"resourceSpans": [3]}', b""]
)
def test_what_can_not_be_read_is_left_to_the_receiver(encoding: Encoding, body: bytes) -> None:
    found = reduced(Signal.TRACES, encoding, body, Stored())
    assert (found.body, found.records) == (body, 0)


def test_ids_in_capitals_are_the_same(otlp: Any) -> None:
    body = otlp.json(otlp.traces(otlp.span(trace=ONE.upper(), span=SPANS[0].upper())))
    assert reduced(Signal.TRACES, Encoding.JSON, body, Stored((ONE, SPANS[0]))).repeated == 1
