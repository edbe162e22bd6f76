"""Finished records → the bytes of an OTLP/HTTP request.

Encoding runs on the worker thread. A record that cannot be encoded costs itself only.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar, cast

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status
from opentelemetry.util.types import Attributes

from fuseboard.telemetry.logs import FinishedLog, encode_logs
from fuseboard.telemetry.pieces import ToolSpanPieces
from fuseboard.telemetry.plain_calls import PlainCall, spans_in
from fuseboard.telemetry.redaction import valid
from fuseboard.telemetry.tool_span import ToolSpan, ToolSpanSource
from fuseboard.telemetry.wire import resource_spans

_INT64: Final = 1 << 63
# Level 1 gives 50 bytes a span for 0.9 µs, level 9 45 bytes for 3.1 µs.
_GZIP_LEVEL: Final = 1
_GZIP_WINDOW: Final = 31

# Resources and scopes of one process; a provider made per request must not grow the memory.
_MAX_SHARED: Final = 64

Record = TypeVar("Record")
Shared = TypeVar("Shared")


FinishedSpan = ReadableSpan | ToolSpan | PlainCall


class Encoded(NamedTuple):
    """A request.

    Attributes:
        body: Its gzipped body.
        records: How many spans or log events it holds; a failed plain call makes two spans.
        lost: How many queued records could not be encoded.
    """

    body: bytes
    records: int
    lost: int


class _Group(Protocol):
    resource: ResourceMessage


class Encoder:
    """Encodes batches and completes their resource with what identifies this process.

    Attributes:
        identity: Resource attributes of this process. They are the last word, so that spans
            (of whichever provider), log events and heartbeats name the process alike.
        source: Where plain calls come from, once there is a fast path.
    """

    def __init__(self, identity: Mapping[str, str]) -> None:
        self.identity = dict(identity)
        self.source: ToolSpanSource | None = None
        # Few and long-lived, hence cleaned once; the originals are kept so that ids stay theirs.
        self._clean: dict[int, tuple[object, object]] = {}
        self._pieces = ToolSpanPieces()
        self._head: tuple[object, Resource, bytes, bytes] | None = None

    def spans(self, spans: Sequence[FinishedSpan]) -> Encoded:
        """Encode spans."""
        body, encoded, lost = b"", 0, 0
        others = [self._clean_span(span) for span in spans if isinstance(span, ReadableSpan)]
        if others:
            body, lost = self._encode(others, self._span_request)
            encoded = len(others) - lost
        light = [span for span in spans if not isinstance(span, ReadableSpan)]
        if light:
            own, own_encoded, own_lost = self._light_request(light)
            body, encoded, lost = body + own, encoded + own_encoded, lost + own_lost
        return Encoded(compress(body), encoded, lost)

    def logs(self, logs: Sequence[FinishedLog]) -> Encoded:
        """Encode log events."""
        body, lost = self._encode(logs, self._log_request)
        return Encoded(compress(body), len(logs) - lost, lost)

    def _light_request(self, records: Sequence[ToolSpan | PlainCall]) -> tuple[bytes, int, int]:
        encoded: list[bytes] = []
        made_by, lost = None, 0
        for record in records:
            try:
                if isinstance(record, tuple):
                    source = cast("ToolSpanSource", self.source)
                    encoded += self._pieces.of_plain(record, source)
                else:
                    source = record.source
                    encoded.append(self._pieces.of(record))
                made_by = made_by or source.made_by()
            except Exception:
                lost += spans_in(record)
        if made_by is None:
            return b"", 0, lost
        return resource_spans(*self._head_of(*made_by), encoded), len(encoded), lost

    def _head_of(self, resource: Resource, scope: InstrumentationScope) -> tuple[bytes, bytes]:
        """Return the encoded resource and scope that all light spans share."""
        key = (id(resource), tuple(self.identity.items()))
        if self._head is None or self._head[0] != key:
            request = encode_spans([_bare_span(clean_resource(resource), scope)])
            self._identify(request.resource_spans)
            (group,) = request.resource_spans
            (of_scope,) = group.scope_spans
            del of_scope.spans[:]
            encoded_scope = of_scope.SerializeToString()
            del group.scope_spans[:]
            # The resource is kept with the key: while it lives, its id stays its own.
            self._head = (key, resource, group.SerializeToString(), encoded_scope)
        return self._head[2], self._head[3]

    def _span_request(self, spans: Sequence[ReadableSpan]) -> bytes:
        request = encode_spans(spans)
        self._identify(request.resource_spans)
        return bytes(request.SerializeToString())

    def _log_request(self, logs: Sequence[FinishedLog]) -> bytes:
        request = encode_logs(logs)
        self._identify(request.resource_logs)
        return bytes(request.SerializeToString())

    def _clean_span(self, span: ReadableSpan) -> ReadableSpan:
        resource = self._once(span.resource, clean_resource)
        scope = self._once(span.instrumentation_scope, _clean_scope)
        if resource is span.resource and scope is span.instrumentation_scope and _is_fine(span):
            return span
        return _cleaned_span(span, resource, scope)

    def _once(self, shared: Shared, clean: Callable[[Shared], Shared]) -> Shared:
        known = self._clean.get(id(shared))
        if known is None:
            if len(self._clean) >= _MAX_SHARED:
                self._clean.clear()
            known = self._clean[id(shared)] = (shared, clean(shared))
        return cast("Shared", known[1])

    def _encode(
        self, records: Sequence[Record], request: Callable[[Sequence[Record]], bytes]
    ) -> tuple[bytes, int]:
        try:
            return request(records), 0
        except Exception:
            # Messages of one kind concatenate to one message that holds all their parts.
            parts = [part for record in records if (part := _alone(record, request))]
            return b"".join(parts), len(records) - len(parts)

    def _identify(self, groups: Iterable[_Group]) -> None:
        for group in groups:
            others = [
                attribute
                for attribute in group.resource.attributes
                if attribute.key not in self.identity
            ]
            del group.resource.attributes[:]
            group.resource.attributes.extend(others)
            group.resource.attributes.extend(
                KeyValue(key=key, value=AnyValue(string_value=value))
                for key, value in self.identity.items()
            )


def _alone(record: Record, request: Callable[[Sequence[Record]], bytes]) -> bytes:
    try:
        return request([record])
    except Exception:
        return b""


def _bare_span(resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    """Return a span of which only the resource and the scope matter."""
    return ReadableSpan(
        "", context=SpanContext(1, 1, False), resource=resource, instrumentation_scope=scope
    )


def compress(body: bytes) -> bytes:
    """Return a request's body as it is sent: gzipped, quickly rather than small."""
    squeeze = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return squeeze.compress(body) + squeeze.flush()


def _is_fine(span: ReadableSpan) -> bool:
    """Tell whether OTLP can carry a span's texts and numbers as they are."""
    return (
        _is_clean(span.name)
        and _is_clean(span.status.description)
        and _are_clean(span.attributes)
        and all(_is_clean(e.name) and _are_clean(e.attributes) for e in span.events)
        and all(_are_clean(link.attributes) for link in span.links)
    )


def _cleaned_span(
    span: ReadableSpan, resource: Resource, scope: InstrumentationScope | None
) -> ReadableSpan:
    status = span.status
    return ReadableSpan(
        name=valid(span.name),
        context=span.get_span_context(),
        parent=span.parent,
        resource=resource,
        attributes=_cleaned(span.attributes),
        events=[Event(valid(e.name), _cleaned(e.attributes), e.timestamp) for e in span.events],
        links=[type(link)(link.context, _cleaned(link.attributes)) for link in span.links],
        kind=span.kind,
        status=Status(status.status_code, status.description and valid(status.description)),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=scope,
    )


def clean_resource(resource: Resource) -> Resource:
    """Return a resource that OTLP can carry: bytes of the environment need not be UTF-8."""
    if _are_clean(resource.attributes):
        return resource
    return Resource(_cleaned(resource.attributes) or {}, resource.schema_url)


def _clean_scope(scope: InstrumentationScope | None) -> InstrumentationScope | None:
    if scope is None or (_is_clean(scope.name) and _is_clean(scope.version)):
        return scope
    version = scope.version and valid(scope.version)
    return InstrumentationScope(valid(scope.name), version, scope.schema_url)


def _are_clean(attributes: Attributes) -> bool:
    if not attributes:
        return True
    return all(_is_clean(key) and _is_clean(value) for key, value in attributes.items())


def _is_clean(value: object) -> bool:
    if type(value) is str:
        return value.isascii() or valid(value) == value
    if type(value) is int:
        return -_INT64 <= value < _INT64
    if isinstance(value, Mapping):
        return all(_is_clean(key) and _is_clean(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_clean, value))
    return True


def _cleaned(attributes: Attributes) -> Attributes:
    return cast("Attributes", _clean_value(dict(attributes or {})))


def _clean_value(value: object) -> object:
    if isinstance(value, str):
        return valid(value)
    if type(value) is int and not -_INT64 <= value < _INT64:
        return str(value) if value.bit_length() <= 4096 else f"integer of {value.bit_length()} bits"
    if isinstance(value, Mapping):
        return {_clean_value(key): _clean_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_clean_value(item) for item in value)
    return value
