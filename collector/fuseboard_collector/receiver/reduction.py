"""Leaves out of an export request what a store has already: an import may be repeated years later.

Works on the request itself, so that what remains can be stored here or sent elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from fuseboard_collector.receiver.body import Encoding
from fuseboard_collector.receiver.files import compact
from fuseboard_collector.receiver.intake import Signal

Key = tuple[str, str]
"""Trace and span id, hex in lower case."""
Known = Callable[[Sequence[str]], Iterable[Key]]
"""Tells which spans of some traces are stored."""

_JSON: Final = {
    Signal.TRACES: ("resourceSpans", "scopeSpans", "spans"),
    Signal.LOGS: ("resourceLogs", "scopeLogs", "logRecords"),
}
_PROTOBUF: Final[dict[Signal, tuple[type[Message], str, str, str]]] = {
    Signal.TRACES: (ExportTraceServiceRequest, "resource_spans", "scope_spans", "spans"),
    Signal.LOGS: (ExportLogsServiceRequest, "resource_logs", "scope_logs", "log_records"),
}


@dataclass(frozen=True, slots=True)
class Reduced:
    """A request without what is known.

    Attributes:
        records: Spans or log records that it had.
        repeated: Those that were left out.
    """

    body: bytes
    records: int
    repeated: int


def reduced(signal: Signal, encoding: Encoding, body: bytes, known: Known) -> Reduced:
    """Return a request without the records that are stored already.

    Args:
        signal: What it carries; metrics are not stored, and left as they are.
        encoding: How.
        body: The request. One that can't be decoded is left as it is, for the receiver to judge.
        known: Asked once, about all traces of the request.
    """
    if signal is Signal.METRICS:
        return Reduced(body, 0, 0)
    if encoding is Encoding.JSON:
        return _of_json(signal, body, known)
    return _of_protobuf(signal, body, known)


def _of_json(signal: Signal, body: bytes, known: Known) -> Reduced:
    try:
        document = json.loads(body)
        lists = list(_json_lists(document, *_JSON[signal]))
        keys = [[_json_key(record) for record in records] for records in lists]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return Reduced(body, 0, 0)
    kept = _kept(keys, known)
    for records, keep in zip(lists, kept, strict=True):
        records[:] = [record for record, is_new in zip(records, keep, strict=True) if is_new]
    count, repeated = _counts(kept)
    return Reduced(compact(document) if repeated else body, count, repeated)


def _json_lists(document: Any, groups: str, scopes: str, records: str) -> Iterable[list[Any]]:
    for group in document.get(groups) or ():
        for scope in group.get(scopes) or ():
            yield scope.get(records) or []


def _json_key(record: Any) -> Key:
    return str(record.get("traceId", "")).lower(), str(record.get("spanId", "")).lower()


def _of_protobuf(signal: Signal, body: bytes, known: Known) -> Reduced:
    message_type, groups, scopes, records = _PROTOBUF[signal]
    message: Any = message_type()
    try:
        message.ParseFromString(body)
    except DecodeError:
        return Reduced(body, 0, 0)
    lists = [
        getattr(scope, records) for group in getattr(message, groups)
        for scope in getattr(group, scopes)
    ]  # fmt: skip
    keys = [[(one.trace_id.hex(), one.span_id.hex()) for one in found] for found in lists]
    kept = _kept(keys, known)
    count, repeated = _counts(kept)
    if not repeated:
        return Reduced(body, count, 0)
    for found, keep in zip(lists, kept, strict=True):
        new = [one for one, is_new in zip(found, keep, strict=True) if is_new]
        del found[:]
        found.extend(new)
    return Reduced(message.SerializeToString(), count, repeated)


def _kept(keys: Sequence[Sequence[Key]], known: Known) -> list[list[bool]]:
    """Return of each record whether it is new. One without both ids is nobody's repeat."""
    traces = sorted({trace for found in keys for trace, span in found if trace and span})
    stored = set(known(traces)) if traces else set()
    return [[key not in stored for key in found] for found in keys]


def _counts(kept: Sequence[Sequence[bool]]) -> tuple[int, int]:
    count = sum(map(len, kept))
    return count, count - sum(map(sum, kept))
