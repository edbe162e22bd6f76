"""OTLP/protobuf trace requests → incoming spans, read straight from the bytes.

Making protobuf objects of attributes that are the same in span after span is most of what a
request costs. Here the bytes of an attribute are looked up as a whole among those decoded before,
which leaves a third of the time. Only what exporters really write is understood; anything else is
left to the generated classes, span by span where possible. What is accepted here they accept too,
with the same result. Layout: opentelemetry/proto/trace/v1/trace.proto, common/v1/common.proto.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from fuseboard_collector.normalise.incoming import (
    Attributes,
    Event,
    IncomingSpan,
    Source,
    Traces,
    Value,
)
from fuseboard_collector.receiver import messages
from fuseboard_collector.receiver.limits import Allowance, too_many

_BOTH_TIMES = struct.Struct("<xQxQ").unpack_from
_TIME = struct.Struct("<xQ").unpack_from
_DOUBLE = struct.Struct("<d").unpack_from

# Field number << 3 | wire type, as it stands before each field.
_FIELD_1, _FIELD_2, _FIELD_3 = 0x0A, 0x12, 0x1A
_TRACE_STATE, _PARENT, _NAME, _KIND, _START, _END = 0x1A, 0x22, 0x2A, 0x30, 0x39, 0x41
_ATTRIBUTE, _EVENT, _STATUS = 0x4A, 0x5A, 0x7A
_FLAGS = 0x85
_NUMBERS = frozenset({_START, _END, 0x50, 0x60, 0x70, _FLAGS})
"""Tags of fields without bytes; the three between are counts of what was dropped."""
_STRING, _BOOL, _INT, _FLOAT = 0x0A, 0x10, 0x18, 0x21
_EVENT_TIME, _EVENT_DROPPED, _STATUS_CODE = 0x09, 0x20, 0x18

_MAX_SOURCES = 256
_MAX_SOURCE_BYTES = 8 * 1024
_MAX_KEYS = 4_096
_MAX_PAIRS = 65_536
_MAX_VALUES = 1_024
"""Most values of one key that are remembered: of a key with more, none comes again soon."""
_MAX_REMEMBERED_BYTES = 128

Pair = tuple[str, Value]


class _Key:
    """Name of an attribute, and how many of its values are remembered."""

    __slots__ = ("name", "values")

    def __init__(self, name: str) -> None:
        self.name = name
        self.values = 0


class UnusualError(Exception):
    """The bytes are not what exporters write: the generated classes have the last word."""


class WireReader:
    """Reads trace requests and remembers attributes; any thread may use it."""

    def __init__(self) -> None:
        self._sources: dict[tuple[bytes, bytes], Source] = {}
        self._keys: dict[bytes, _Key] = {}
        self._pairs: dict[bytes, Pair] = {}

    def traces(self, body: bytes) -> Traces:
        """Decode an ``ExportTraceServiceRequest``; spans with bad ids are counted, not decoded.

        Raises:
            UnusualError: If it is no such message, or one of unusual form.
            TooLargeError: If it has too many records.
        """
        traces = Traces()
        allowance = Allowance()
        try:
            for tag, begin, end in _fields(body, 0, len(body)):
                _expect(tag == _FIELD_1)
                self._group(body, begin, end, traces, allowance)
        except (IndexError, struct.error, UnicodeDecodeError, DecodeError) as error:
            raise UnusualError(str(error)) from error
        return traces

    def _group(
        self, body: bytes, begin: int, end: int, traces: Traces, allowance: Allowance
    ) -> None:
        """Read a ``ResourceSpans``."""
        allowance.spend()
        resource: bytes | None = None
        started = False
        for tag, first, last in _fields(body, begin, end):
            if tag == _FIELD_1:
                _expect(resource is None and not started)
                resource = body[first:last]
            elif tag == _FIELD_2:
                started = True
                self._scope((body, first, last), resource or b"", traces, allowance)
            else:
                _expect(tag == _FIELD_3)
                body[first:last].decode()

    def _scope(
        self, where: tuple[bytes, int, int], resource: bytes, traces: Traces, allowance: Allowance
    ) -> None:
        """Read a ``ScopeSpans``."""
        body, begin, end = where
        scope: bytes | None = None
        spans: list[IncomingSpan] = []
        left = allowance.left - 1
        for tag, first, last in _fields(body, begin, end):
            if tag == _FIELD_2:
                left -= 1
                if left < 0:
                    raise too_many()
                self._add_span((body, first, last), spans, traces.rejected, allowance)
            elif tag == _FIELD_1:
                _expect(scope is None)
                scope = body[first:last]
            else:
                _expect(tag == _FIELD_3)
                body[first:last].decode()
        if left < 0:
            raise too_many()
        allowance.left = left
        traces.groups.append((self._source(resource, scope or b""), spans))

    def _source(self, resource: bytes, scope: bytes) -> Source:
        found = self._sources.get((resource, scope))
        if found is None:
            found = messages.source(
                Resource.FromString(resource), InstrumentationScope.FromString(scope)
            )
            if len(resource) + len(scope) > _MAX_SOURCE_BYTES:
                return found
            if len(self._sources) >= _MAX_SOURCES:
                self._sources = {}
            self._sources[resource, scope] = found
        return found

    def _add_span(
        self,
        where: tuple[bytes, int, int],
        spans: list[IncomingSpan],
        rejected: Counter[str],
        allowance: Allowance,
    ) -> None:
        body, begin, end = where
        try:
            trace_id, span_id, span = self._span(body, begin, end, allowance)
        except (UnusualError, IndexError, struct.error, UnicodeDecodeError):
            message = Span.FromString(body[begin:end])
            allowance.spend_events(len(message.events))
            spans += messages.spans([message], rejected)
            return
        reason = messages.fault_of_ids(trace_id, span_id)
        if reason:
            rejected[reason] += 1
        else:
            spans.append(span)

    def _span(  # noqa: C901 - a branch per field; a table of functions would cost twice the time
        self, body: bytes, position: int, end: int, allowance: Allowance
    ) -> tuple[bytes, bytes, IncomingSpan]:
        """Read a ``Span``; of a field that comes twice the last counts, as in protobuf."""
        trace_id = span_id = parent = b""
        name = trace_state = message = ""
        kind = start = finish = code = 0
        attributes: Attributes = {}
        events: list[Event] = []
        known = self._pairs.get
        while position < end:
            tag, size, first = body[position], body[position + 1], position + 2
            if tag == _ATTRIBUTE:
                if size >= 0x80:
                    size, first = _size(body, position + 1)
                position = first + size
                raw = body[first:position]
                pair = known(raw) or self._pair(raw)
                attributes[pair[0]] = pair[1]
                continue
            if tag == _KIND and size < 0x80:
                kind, position = size, first
                continue
            if tag == _START and position + 18 <= end and body[position + 9] == _END:
                start, finish = _BOTH_TIMES(body, position)
                position += 18
                continue
            if tag in _NUMBERS:
                position, value = _number(body, position)
                if tag == _START:
                    start = value
                elif tag == _END:
                    finish = value
                continue
            if size >= 0x80:
                size, first = _size(body, position + 1)
            position = first + size
            raw = body[first:position]
            if tag == _FIELD_1:
                trace_id = raw
            elif tag == _FIELD_2:
                span_id = raw
            elif tag == _NAME:
                name = raw.decode()
            elif tag == _PARENT:
                parent = raw
            elif tag == _STATUS:
                if raw:
                    _expect(not code and not message)
                    code, message = _status(raw)
            elif tag == _EVENT:
                allowance.spend_events()
                events.append(self._event(raw))
            else:
                _expect(tag == _TRACE_STATE)
                trace_state = raw.decode()
        _expect(position == end)
        return (
            trace_id,
            span_id,
            IncomingSpan(
                trace_id.hex(), span_id.hex(), name,
                messages.parent_of(parent) if parent else None, trace_state, kind,
                start, finish, attributes, code, message, events,
            ),
        )  # fmt: skip

    def _event(self, raw: bytes) -> Event:
        """Read an ``Event``."""
        name = ""
        attributes: Attributes = {}
        position, end = 0, len(raw)
        while position < end:
            tag = raw[position]
            if tag == _EVENT_TIME:
                position += 9
                continue
            if tag == _EVENT_DROPPED:
                _expect(raw[position + 1] < 0x80)
                position += 2
                continue
            size, first = _size(raw, position + 1)
            position = first + size
            if tag == _FIELD_2:
                name = raw[first:position].decode()
            else:
                _expect(tag == _FIELD_3)
                pair = self._pair(raw[first:position])
                attributes[pair[0]] = pair[1]
        _expect(position == end)
        return Event(name, attributes)

    def _pair(self, raw: bytes) -> Pair:
        """Read a ``KeyValue`` that is not remembered, and remember it if it may come again."""
        key_end = raw[1] + 2
        key = self._keys.get(raw[:key_end]) or self._key(raw[:key_end])
        value = _plain(raw, key_end)
        if value is None:
            return _pair_by_class(raw)
        pair = key.name, value
        if key.values < _MAX_VALUES and len(raw) <= _MAX_REMEMBERED_BYTES:
            if len(self._pairs) >= _MAX_PAIRS:
                self._keys, self._pairs = {}, {}
            key.values += 1
            self._pairs[raw] = pair
        return pair

    def _key(self, raw: bytes) -> _Key:
        _expect(raw[0] == _FIELD_1 and raw[1] < 0x80 and len(raw) == raw[1] + 2)
        key = _Key(raw[2:].decode())
        if len(self._keys) >= _MAX_KEYS:
            self._keys, self._pairs = {}, {}
        self._keys[raw] = key
        return key


def _fields(body: bytes, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield tag, first and last + 1 of fields that have bytes; no other may occur."""
    while position < end:
        tag = body[position]
        size, first = _size(body, position + 1)
        position = first + size
        _expect(position <= end)
        yield tag, first, position


def _size(body: bytes, position: int) -> tuple[int, int]:
    """Read a length; return it and where what is that long begins."""
    size = body[position]
    if size < 0x80:
        return size, position + 1
    size &= 0x7F
    for shift in (7, 14, 21, 28):
        position += 1
        byte = body[position]
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return size, position + 1
    raise UnusualError("a length of more than five bytes")


def _number(body: bytes, position: int) -> tuple[int, int]:
    """Read a field without bytes of a span; return where the next begins, and its value."""
    tag = body[position]
    if tag in (_START, _END):
        (time,) = _TIME(body, position)
        return position + 9, time
    value = body[position + 1]
    if tag == _FLAGS:
        _expect(value == 1)
        return position + 6, 0
    _expect(value < 0x80)
    return position + 2, value


def _plain(raw: bytes, position: int) -> str | int | float | bool | None:
    """Read the value of a ``KeyValue`` from its tag to the end; None for what is not plain."""
    size = raw[position + 1]
    first = position + 2
    if size >= 0x80:
        size, first = _size(raw, position + 1)
    if raw[position] != _FIELD_2 or first + size != len(raw) or size < 2:
        return None
    kind = raw[first]
    if kind == _STRING:
        size = raw[first + 1]
        first += 2
        if size >= 0x80:
            size, first = _size(raw, first - 1)
        return raw[first:].decode() if first + size == len(raw) else None
    if kind == _FLOAT and size == 9:
        number: float = _DOUBLE(raw, first + 1)[0]
        return number
    if kind == _INT and size == 2 and raw[-1] < 0x80:
        return raw[-1]
    if kind == _BOOL and size == 2 and raw[-1] < 2:
        return raw[-1] == 1
    return None


def _status(raw: bytes) -> tuple[int, str]:
    """Read a ``Status``: its code and message."""
    code, message = 0, ""
    position = 0
    while position < len(raw):
        tag = raw[position]
        if tag == _STATUS_CODE:
            code = raw[position + 1]
            _expect(code < 0x80)
            position += 2
        else:
            _expect(tag == _FIELD_2)
            size, first = _size(raw, position + 1)
            position = first + size
            message = raw[first:position].decode()
    _expect(position == len(raw))
    return code, message


def _pair_by_class(raw: bytes) -> Pair:
    pair = KeyValue.FromString(raw)
    return pair.key, messages.value_of(pair.value)


def _expect(usual: bool) -> None:
    if not usual:
        raise UnusualError
