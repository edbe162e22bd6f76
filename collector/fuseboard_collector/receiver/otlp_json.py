"""OTLP/JSON → the same incoming records.

The generic protobuf-JSON parser won't do: it reads hex ids as base64 without complaint, refuses
unknown fields, and takes ten times as long.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from fuseboard_collector.normalise.incoming import (
    SPAN_KINDS,
    STATUS_CODES,
    Attributes,
    Event,
    IncomingLog,
    IncomingSpan,
    Logs,
    Source,
    Traces,
    Value,
)
from fuseboard_collector.receiver.errors import MalformedError, TooLargeError
from fuseboard_collector.receiver.limits import MAX_JSON_CONTAINERS, Allowance
from fuseboard_collector.receiver.messages import EVENT_NAME

_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}\Z", re.IGNORECASE)
_SPAN_ID = re.compile(r"(?!0{16})[0-9a-f]{16}\Z", re.IGNORECASE)
_INTEGER = re.compile(r"-?\d{1,20}\Z", re.ASCII)
_MAX_DEPTH = 32
_MAX_UINT64 = 2**64 - 1

Object = dict[str, Any]


class _BadNumberError(Exception):
    """A 64-bit field holds no number."""


def decode_traces(body: bytes) -> Traces:
    """Decode a trace request; spans with bad ids or times are counted, not decoded.

    Raises:
        MalformedError: If the body is no JSON, or not of the request's shape.
        TooLargeError: If it has too many records.
    """
    traces = Traces()
    allowance = Allowance()
    for group in _objects(_load(body), "resourceSpans"):
        allowance.spend()
        for scope in _objects(group, "scopeSpans"):
            found = _objects(scope, "spans")
            allowance.spend(len(found))
            traces.groups.append((_source(group, scope), _spans(found, traces.rejected)))
    return traces


def decode_logs(body: bytes) -> Logs:
    """Decode a log request.

    Raises:
        MalformedError: If the body is no JSON, or not of the request's shape.
        TooLargeError: If it has too many records.
    """
    logs = Logs()
    allowance = Allowance()
    for group in _objects(_load(body), "resourceLogs"):
        allowance.spend()
        for scope in _objects(group, "scopeLogs"):
            found = _objects(scope, "logRecords")
            allowance.spend(len(found))
            logs.groups.append((_source(group, scope), [_log(record) for record in found]))
    return logs


def count_metrics(body: bytes) -> int:
    """Return how many metrics a metric request carries.

    Raises:
        MalformedError: If the body is no JSON, or not of the request's shape.
    """
    return sum(
        len(_objects(scope, "metrics"))
        for group in _objects(_load(body), "resourceMetrics")
        for scope in _objects(group, "scopeMetrics")
    )


def _load(body: bytes) -> Object:
    if not body.strip():
        return {}
    if body.count(b"{") + body.count(b"[") > MAX_JSON_CONTAINERS:
        raise TooLargeError(
            f"the body has more than {MAX_JSON_CONTAINERS} objects and lists: send smaller batches"
        )
    try:
        document = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"the body is no JSON: {str(error)[:200]}") from None
    if not isinstance(document, dict):
        raise MalformedError(f"the body is a JSON {type(document).__name__}, not an object")
    return document


def _objects(parent: Object, name: str) -> Sequence[Object]:
    found = parent.get(name) or []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise MalformedError(f"{name!r} is not a list of objects")
    return found


def _object(parent: Object, name: str) -> Object:
    found = parent.get(name) or {}
    if not isinstance(found, dict):
        raise MalformedError(f"{name!r} is not an object")
    return found


def _source(group: Object, scope: Object) -> Source:
    named = _object(scope, "scope")
    resource = _attributes(_object(group, "resource"))
    return Source(resource, _text(named.get("name")), _text(named.get("version")))


def _spans(spans: Sequence[Object], rejected: Counter[str]) -> list[IncomingSpan]:
    decoded = []
    for span in spans:
        if not _TRACE_ID.match(_text(span.get("traceId"))):
            rejected["bad trace_id"] += 1
        elif not _SPAN_ID.match(_text(span.get("spanId"))):
            rejected["bad span_id"] += 1
        else:
            try:
                decoded.append(_span(span))
            except _BadNumberError:
                rejected["bad time"] += 1
    return decoded


def _span(span: Object) -> IncomingSpan:
    parent = _text(span.get("parentSpanId")).lower()
    status = _object(span, "status")
    return IncomingSpan(
        _text(span["traceId"]).lower(),
        _text(span["spanId"]).lower(),
        _text(span.get("name")),
        parent if _SPAN_ID.match(parent) else None,
        _text(span.get("traceState")),
        _enumerated(span.get("kind"), "SPAN_KIND_", SPAN_KINDS),
        _nanoseconds(span.get("startTimeUnixNano")),
        _nanoseconds(span.get("endTimeUnixNano")),
        _attributes(span),
        _enumerated(status.get("code"), "STATUS_CODE_", STATUS_CODES),
        _text(status.get("message")),
        [Event(_text(e.get("name")), _attributes(e)) for e in _objects(span, "events")],
    )


def _log(record: Object) -> IncomingLog:
    attributes = _attributes(record)
    trace_id = _text(record.get("traceId")).lower()
    span_id = _text(record.get("spanId")).lower()
    has_trace = _TRACE_ID.match(trace_id) is not None
    try:
        time_ns = _nanoseconds(record.get("timeUnixNano")) or _nanoseconds(
            record.get("observedTimeUnixNano")
        )
    except _BadNumberError:
        time_ns = 0
    return IncomingLog(
        _text(record.get("eventName")) or str(attributes.get(EVENT_NAME) or ""),
        time_ns,
        attributes,
        trace_id if has_trace else "",
        span_id if has_trace and _SPAN_ID.match(span_id) else "",
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        return ""
    # A lone surrogate is legal in JSON and nowhere else.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _integer(value: object) -> int:
    """Return a 64-bit field: a number, or digits in a string."""
    if isinstance(value, bool):
        raise _BadNumberError
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _INTEGER.match(value):
        return int(value)
    raise _BadNumberError


def _nanoseconds(value: object) -> int:
    number = 0 if value in (None, "") else _integer(value)
    if not 0 <= number <= _MAX_UINT64:
        raise _BadNumberError
    return number


def _enumerated(value: object, prefix: str, names: Sequence[str]) -> int:
    """Return an enum's number, from a number or a name; 0 for what is not known."""
    if isinstance(value, str) and value.startswith(prefix):
        name = value.removeprefix(prefix).lower()
        return names.index(name) if name in names else 0
    try:
        number = _integer(value)
    except _BadNumberError:
        return 0
    return number if 0 <= number < len(names) else 0


def _attributes(parent: Object, depth: int = 0) -> Attributes:
    name = "attributes" if depth == 0 else "values"
    return {
        _text(pair.get("key")): _value(pair.get("value"), depth) for pair in _objects(parent, name)
    }


def _value(value: object, depth: int) -> Value:
    """Return any kind of AnyValue; an empty or unknown one is None."""
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return None
    for kind, content in value.items():
        if kind in _SIMPLE:
            return _simple(kind, content)
        if kind == "arrayValue" and isinstance(content, dict):
            items = content.get("values") or []
            return [_value(item, depth + 1) for item in items] if isinstance(items, list) else None
        if kind == "kvlistValue" and isinstance(content, dict):
            return _attributes(content, depth + 1)
    return None


_SIMPLE = frozenset({"stringValue", "boolValue", "intValue", "doubleValue", "bytesValue"})


def _simple(kind: str, content: object) -> Value:
    """Return a scalar; content that its kind does not allow is kept as text."""
    if kind == "boolValue" and isinstance(content, bool):
        return content
    try:
        if kind == "intValue":
            return _integer(content)
        if kind == "doubleValue" and isinstance(content, int | float | str):
            return float(content)
        if kind == "bytesValue" and isinstance(content, str):
            return base64.b64decode(content, validate=True)
    except (_BadNumberError, ValueError, OverflowError, binascii.Error):
        pass
    return _text(content if isinstance(content, str) else json.dumps(content))
