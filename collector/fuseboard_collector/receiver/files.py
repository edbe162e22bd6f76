"""Files of telemetry as collectors and exporters write them → bodies of export requests.

A file is OTLP/JSON (one document, an array of them, or one per line), or OTLP/protobuf (one
request, or many, each after its size: four bytes, big-endian, as the OpenTelemetry Collector's file
exporter writes them, or a varint). Either may be packed with gzip or zstd.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from fuseboard_collector.errors import CollectorError
from fuseboard_collector.receiver.body import Encoding
from fuseboard_collector.receiver.intake import MAX_UNPACKED, Signal
from fuseboard_collector.receiver.utf8 import repaired

GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_WINDOW: Final[Mapping[int, int]] = {zstd.DecompressionParameter.window_log_max: 27}
"""128 MiB: the most that the zstd program packs with unless it is told otherwise."""
_CHUNK: Final = 1024 * 1024
_SIZE: Final = 4  # bytes before each message of a size-prefixed stream
_VARINT: Final = 10
_BETWEEN: Final = re.compile(r"[\s,]*")
"""What may stand between two documents."""
_FIELDS: Final = {
    "resourceSpans": Signal.TRACES,
    "resourceLogs": Signal.LOGS,
    "resourceMetrics": Signal.METRICS,
}
_MESSAGES: Final[dict[Signal, type[Message]]] = {
    Signal.TRACES: ExportTraceServiceRequest,
    Signal.LOGS: ExportLogsServiceRequest,
    Signal.METRICS: ExportMetricsServiceRequest,
}


_LISTS: Final = {
    Signal.TRACES: ("resource_spans", "scope_spans", "spans"),
    Signal.LOGS: ("resource_logs", "scope_logs", "log_records"),
    Signal.METRICS: ("resource_metrics", "scope_metrics", "metrics"),
}
_TRACE_ID: Final = 16
_MARKS: Final[dict[Signal, Callable[[Any], bool]]] = {
    Signal.TRACES: lambda span: len(span.trace_id) == _TRACE_ID,
    Signal.LOGS: lambda log: bool(log.time_unix_nano or log.observed_time_unix_nano),
    Signal.METRICS: lambda metric: metric.WhichOneof("data") is not None,
}
"""What a record of a signal has, and one of another hardly ever."""


class FileError(CollectorError):
    """A file, or the rest of it, is no telemetry; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Found:
    """One request of a file.

    Attributes:
        place: Where in the file, for messages: ``line 7``, ``message 3``, or empty.
        position: Bytes of the file, as it lies on disk, that were read so far.
    """

    signal: Signal
    encoding: Encoding
    body: bytes
    place: str
    position: int


def requests(path: Path) -> Iterator[Found | FileError]:
    """Yield the requests of a file one by one, in little memory whatever its size.

    What is wrong with one line of JSON concerns that line alone and is yielded in its place.

    Args:
        path: The file.

    Raises:
        FileError: If it, or the rest of it, can't be read as telemetry.
        OSError: If it can't be opened.
    """
    with _opened(path) as (stream, position):
        reader = io.BufferedReader(stream, _CHUNK)
        try:
            start = reader.peek(_CHUNK)[:_CHUNK]
            if not start.strip():
                return
            yield from _parts(reader, start, position)
        except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
            raise FileError(f"it is damaged or cut off: {str(error)[:200]}") from error


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Callable[[], int]]]:
    """Open a file, unpacked, and a function that tells how far it was read on disk."""
    with ExitStack() as stack:
        raw: Any = stack.enter_context(path.open("rb"))
        magic = raw.read(4)
        raw.seek(0)
        unpacked: Any = raw
        if magic.startswith(GZIP_MAGIC):
            unpacked = stack.enter_context(gzip.GzipFile(fileobj=raw, mode="rb"))
        elif magic == ZSTD_MAGIC:
            # Arrow's stream keeps its memory for ever where the input is damaged.
            unpacked = stack.enter_context(zstd.ZstdFile(raw, mode="r", options=_WINDOW))
        yield _Raw(unpacked), raw.tell


class _Raw(io.RawIOBase):
    """Anything with ``read`` as the raw stream of a buffered reader."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _parts(
    reader: io.BufferedReader, start: bytes, position: Callable[[], int]
) -> Iterator[Found | FileError]:
    first = start.lstrip()[:1]
    if first in (b"{", b"["):
        yield from _json(reader, first == b"[", position)
        return
    size = int.from_bytes(start[:_SIZE], "big")
    if len(start) > _SIZE and size and _is_request(start[_SIZE : _SIZE + size], size):
        yield from _sized(reader, _fixed_size, position)
        return
    length, width = _varint(start)
    if width and length and _is_request(start[width : width + length], length):
        yield from _sized(reader, _varint_size, position)
        return
    body = _all_of(reader, Encoding.PROTOBUF)
    yield Found(_kind_of(body), Encoding.PROTOBUF, body, "", position())


# --- JSON ----------------------------------------------------------------------------------
def _json(
    reader: io.BufferedReader, is_array: bool, position: Callable[[], int]
) -> Iterator[Found | FileError]:
    """Yield documents that are one per line; else those of the file as a whole."""
    limit = MAX_UNPACKED[Encoding.JSON]
    first = _line(reader, limit)
    whole = _document(first)
    if whole is None or is_array:
        rest = first + _all_of(reader, Encoding.JSON, limit - len(first))
        yield from _documents(rest, position)
        return
    number = 1
    while first:
        if first.strip():
            yield _read(first, f"line {number}", position)
        first = _line(reader, limit)
        number += 1


def _line(reader: io.BufferedReader, limit: int) -> bytes:
    line = reader.readline(limit + 1)
    if len(line) > limit:
        raise FileError(f"a JSON document of it is larger than {limit >> 20} MiB")
    return line


def _document(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _documents(text: bytes, position: Callable[[], int]) -> Iterator[Found | FileError]:
    """Yield the documents of a text: one object, an array, or several, one after the other."""
    decoder = json.JSONDecoder()
    whole = text.decode("utf-8", "replace")
    number = 0
    place = _past_blanks(whole, 0)
    while place < len(whole):
        try:
            found, place = decoder.raw_decode(whole, place)
        except (ValueError, RecursionError) as error:
            raise FileError(f"it is no JSON: {str(error)[:200]}") from None
        for document in found if isinstance(found, list) else [found]:
            number += 1
            yield _read(compact(document), f"document {number}", position)
        place = _past_blanks(whole, place)


def compact(document: Any) -> bytes:
    """Return a document as JSON that is hardly ever larger than what it was read from."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _past_blanks(text: str, place: int) -> int:
    blanks = _BETWEEN.match(text, place)
    return blanks.end() if blanks else place


def _read(text: bytes, place: str, position: Callable[[], int]) -> Found | FileError:
    document = _document(text)
    if not isinstance(document, dict):
        return FileError(f"{place} is no JSON object")
    kinds = [signal for name, signal in _FIELDS.items() if name in document]
    if len(kinds) != 1:
        names = ", ".join(_FIELDS)
        return FileError(f"{place} is no OTLP/JSON: it needs one of {names}")
    return Found(kinds[0], Encoding.JSON, text, place, position())


# --- protobuf ------------------------------------------------------------------------------
def _sized(
    reader: io.BufferedReader,
    size_of: Callable[[io.BufferedReader], int | None],
    position: Callable[[], int],
) -> Iterator[Found | FileError]:
    limit = MAX_UNPACKED[Encoding.PROTOBUF]
    number = 0
    while (size := size_of(reader)) is not None:
        number += 1
        if size > limit:
            raise FileError(f"message {number} says it has {size} bytes; {limit} are the most")
        body = reader.read(size)
        if len(body) < size:
            raise FileError(f"message {number} is cut off: {len(body)} of {size} bytes are there")
        yield Found(_kind_of(body), Encoding.PROTOBUF, body, f"message {number}", position())


def _fixed_size(reader: io.BufferedReader) -> int | None:
    raw = reader.read(_SIZE)
    if not raw:
        return None
    if len(raw) < _SIZE:
        raise FileError("it ends in the middle of a message's size")
    return int.from_bytes(raw, "big")


def _varint_size(reader: io.BufferedReader) -> int | None:
    start = reader.peek(_VARINT)[:_VARINT]
    if not start:
        return None
    size, width = _varint(start)
    if not width:
        raise FileError("it ends in the middle of a message's size")
    reader.read(width)
    return size


def _varint(raw: bytes) -> tuple[int, int]:
    """Return a varint and how many bytes it takes; 0 bytes if it is none."""
    value = 0
    for index, byte in enumerate(raw[:_VARINT]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, index + 1
    return 0, 0


def _is_request(body: bytes, size: int) -> bool:
    """Tell whether a message of ``size`` bytes, of which at least the start is there, is one."""
    # Any request that has something begins with field 1, a group of records.
    if size > MAX_UNPACKED[Encoding.PROTOBUF] or not body.startswith(b"\n"):
        return False
    if len(body) == size:
        return _parsed(body) is not None
    inner, width = _varint(body[1:])
    return width > 0 and 1 + width + inner <= size


def _kind_of(body: bytes) -> Signal:
    """Return what a request carries; its field 1 has the same number for all three signals."""
    signal = _parsed(body)
    if signal is None:
        raise FileError("it is neither OTLP/JSON nor OTLP/protobuf")
    return signal


def _parsed(body: bytes) -> Signal | None:
    """Return the signal whose request a body looks like most."""
    doubts = {signal: _doubts(body, signal) for signal in Signal}
    if all(doubt is None for doubt in doubts.values()):
        # Malformed text spoils a whole message; the receiver mends it.
        for signal, kind in _MESSAGES.items():
            mended = repaired(body, kind)
            doubts[signal] = None if mended is None else _doubts(mended, signal)
    known = [(doubt, signal) for signal, doubt in doubts.items() if doubt is not None]
    return min(known, key=lambda pair: pair[0])[1] if known else None


def _doubts(body: bytes, signal: Signal) -> tuple[bool, int] | None:
    """Return whether no record looks like one of a signal, and how many bytes mean nothing to it.

    None: it can't be parsed as one at all. Most messages can be parsed as others' too.
    """
    message: Any = _MESSAGES[signal]()
    try:
        message.ParseFromString(body)
    except DecodeError:
        return None
    looks_like_it = any(map(_MARKS[signal], _records(message, signal)))
    before: int = message.ByteSize()
    message.DiscardUnknownFields()
    unknown: int = before - message.ByteSize()
    return not looks_like_it, unknown


def _records(message: Any, signal: Signal) -> Iterator[Any]:
    groups, scopes, records = _LISTS[signal]
    for group in getattr(message, groups):
        for scope in getattr(group, scopes):
            yield from getattr(scope, records)


def _all_of(reader: io.BufferedReader, encoding: Encoding, limit: int | None = None) -> bytes:
    most = MAX_UNPACKED[encoding] if limit is None else limit
    body = reader.read(most + 1)
    if len(body) > most:
        raise FileError(
            f"it is one request of more than {MAX_UNPACKED[encoding] >> 20} MiB; "
            "write it as one request per line, or size-prefixed"
        )
    return body
