"""Spans of tool calls → OTLP protobuf, written by hand.

The SDK's encoder builds a protobuf object for every attribute, which is half of what a traced
call costs. Tool calls repeat themselves: most of their attributes were encoded before, and a
table of finished pieces turns encoding into joining bytes. The decoded messages are equal to
the SDK's. Layout: opentelemetry/proto/trace/v1/trace.proto, common/v1/common.proto.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final, TypeVar

Value = str | int | float | bool
Key = TypeVar("Key")

# Field number << 3 | wire type, as it stands before each field.
_TRACE_ID: Final = b"\x0a\x10"
_SPAN_ID: Final = b"\x12\x08"
_TRACE_STATE: Final = b"\x1a"
_PARENT_ID: Final = b"\x22\x08"
_NAME: Final = b"\x2a"
_KIND_INTERNAL: Final = b"\x30\x01"
_ATTRIBUTE: Final = b"\x4a"
_STATUS: Final = b"\x7a"
_STATUS_UNSET: Final = b"\x7a\x00"
_STATUS_MESSAGE: Final = b"\x12"
_STATUS_CODE_ERROR: Final = b"\x18\x02"
_KEY: Final = b"\x0a"
_VALUE: Final = b"\x12"
_STRING: Final = b"\x0a"
_BOOL: Final = b"\x10"
_INT: Final = b"\x18"
_DOUBLE: Final = b"\x21"
_SPANS_OF_SCOPE: Final = b"\x12"
_SCOPE_SPANS: Final = b"\x12"
_RESOURCE_SPANS: Final = b"\x0a"

_TIMES: Final = Struct("<BQBQ").pack
_START_TIME: Final = 0x39
_END_TIME: Final = 0x41
_FLAGS: Final = Struct("<BBI").pack
_FLAGS_FIELD: Final = (0x85, 0x01)
_FLOAT: Final = Struct("<d").pack

HAS_IS_REMOTE: Final = 0x100
IS_REMOTE: Final = 0x200

_MAX_PIECES: Final = 8192
"""Most encoded attributes that are remembered; arguments' hashes alone would grow for ever."""
_MAX_REMEMBERED_BYTES: Final = 1024
"""Longest piece that is remembered: recorded arguments and results hardly ever come again."""


def varint(number: int) -> bytes:
    """Encode a number of at most 64 bits; negative ones in two's complement."""
    if 0 <= number < 0x80:
        return bytes((number,))
    number &= 0xFFFF_FFFF_FFFF_FFFF
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def sized(tag: bytes, content: bytes) -> bytes:
    """Return a length-delimited field."""
    return b"".join((tag, varint(len(content)), content))


def resource_spans(resource: bytes, scope: bytes, spans: Iterable[bytes]) -> bytes:
    """Return one ``resource_spans`` field of an export request.

    Args:
        resource: Encoded fields of a ``ResourceSpans`` without its scope spans.
        scope: Encoded fields of a ``ScopeSpans`` without its spans.
        spans: Encoded spans.
    """
    body = b"".join([scope, *(sized(_SPANS_OF_SCOPE, span) for span in spans)])
    return sized(_RESOURCE_SPANS, resource + sized(_SCOPE_SPANS, body))


class SpanPieces:
    """Encodes spans and remembers the pieces that repeat."""

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str], bytes] = {}
        self._flags: dict[tuple[str, bool], bytes] = {}
        self._integers: dict[tuple[str, int], bytes] = {}
        self._floats: dict[str, bytes] = {}
        self._names: dict[str, bytes] = {}

    def span(
        self,
        *,
        trace_id: int,
        span_id: int,
        parent_id: int | None,
        trace_state: str,
        name: str,
        start_ns: int,
        end_ns: int,
        attributes: Mapping[str, Value],
        error: str | None,
        flags: int,
        encoded: bytes = b"",
    ) -> bytes:
        """Encode one span of kind INTERNAL, without events and links.

        Args:
            trace_id: 128 bits.
            span_id: 64 bits.
            parent_id: 64 bits; None for a root.
            trace_state: The W3C header's value; may be empty.
            name: The span's name; valid UTF-8, as all strings here.
            start_ns: Nanoseconds since the epoch.
            end_ns: Nanoseconds since the epoch.
            attributes: Texts, 64-bit integers, floats and booleans.
            error: The status' description where the status is ERROR; None where it is UNSET.
            flags: ``HAS_IS_REMOTE`` and perhaps ``IS_REMOTE``.
            encoded: Further attributes, as :meth:`attributes` made them.
        """
        parts = [_TRACE_ID, trace_id.to_bytes(16, "big"), _SPAN_ID, span_id.to_bytes(8, "big")]
        if trace_state:
            parts.append(sized(_TRACE_STATE, trace_state.encode()))
        if parent_id is not None:
            parts += (_PARENT_ID, parent_id.to_bytes(8, "big"))
        parts.append(self._names.get(name) or self._name(name))
        parts.append(_TIMES(_START_TIME, start_ns, _END_TIME, end_ns))
        parts.append(encoded)
        self._add_attributes(parts, attributes)
        parts.append(_STATUS_UNSET if error is None else _error(error))
        parts.append(_FLAGS(*_FLAGS_FIELD, flags))
        return b"".join(parts)

    def attributes(self, attributes: Mapping[str, Value]) -> bytes:
        """Encode attributes of a span."""
        parts: list[bytes] = []
        self._add_attributes(parts, attributes)
        return b"".join(parts)

    def _add_attributes(self, parts: list[bytes], attributes: Mapping[str, Value]) -> None:
        texts, floats, integers = self._texts, self._floats, self._integers
        for key, value in attributes.items():
            # Exact types: True and 1 and 1.0 are equal as keys of a table.
            kind = type(value)
            if kind is str:
                piece = texts.get((key, value))  # type: ignore[arg-type]
                parts.append(piece if piece is not None else self._text(key, str(value)))
            elif kind is float:
                parts.append(floats.get(key) or self._float(key))
                parts.append(_FLOAT(value))
            elif kind is int:
                piece = integers.get((key, value))  # type: ignore[arg-type]
                parts.append(piece if piece is not None else self._integer(key, int(value)))
            else:
                parts.append(self._rare(key, value))

    def _rare(self, key: str, value: Value) -> bytes:
        """Encode a truth value, or a member of an enumeration, for example an ``HTTPStatus``."""
        if isinstance(value, str):
            return self._text(key, str(value))
        if isinstance(value, float):
            return self._float(key) + _FLOAT(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._integer(key, int(value))
        return self._flag(key, bool(value))

    def _name(self, name: str) -> bytes:
        piece = sized(_NAME, name.encode()) + _KIND_INTERNAL
        return _remember(self._names, name, piece)

    def _text(self, key: str, text: str) -> bytes:
        piece = _attribute(key, sized(_STRING, text.encode()))
        return _remember(self._texts, (key, text), piece)

    def _integer(self, key: str, number: int) -> bytes:
        piece = _attribute(key, _INT + varint(number))
        return _remember(self._integers, (key, number), piece)

    def _flag(self, key: str, flag: bool) -> bytes:
        piece = self._flags.get((key, flag))
        if piece is None:
            piece = _attribute(key, _BOOL + varint(flag))
            _remember(self._flags, (key, flag), piece)
        return piece

    def _float(self, key: str) -> bytes:
        """Return everything of a float attribute but its eight bytes."""
        piece = _attribute(key, _DOUBLE + bytes(8))[:-8]
        return _remember(self._floats, key, piece)


def _remember(table: dict[Key, bytes], key: Key, piece: bytes) -> bytes:
    if len(piece) > _MAX_REMEMBERED_BYTES:
        return piece
    if len(table) >= _MAX_PIECES:
        table.clear()
    table[key] = piece
    return piece


def _attribute(key: str, value: bytes) -> bytes:
    return sized(_ATTRIBUTE, sized(_KEY, key.encode()) + sized(_VALUE, value))


def _error(description: str) -> bytes:
    message = sized(_STATUS_MESSAGE, description.encode()) if description else b""
    return sized(_STATUS, message + _STATUS_CODE_ERROR)
