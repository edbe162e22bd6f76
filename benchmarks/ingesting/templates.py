"""Requests made once, with the places of what must be new in every copy.

Building a request takes longer than a receiver takes to store it. A copy of a ready-made one is a
few array operations away: every place where an id or a time stands is known.
"""

from __future__ import annotations

import pickle
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DIGIT = np.zeros(256, np.uint8)
_DIGIT[_HEX] = np.arange(16)


@dataclass(frozen=True)
class Found:
    """A span with the groups it came in."""

    group: ResourceSpans
    scope: ScopeSpans
    span: Span


@dataclass(frozen=True)
class Template:
    """A request, and the offsets of what makes it unlike its copies.

    Attributes:
        body: The request.
        traces: Offsets of 16-byte ids.
        spans: Offsets of 8-byte ids: spans, parents and links.
        owners: Offsets of the ids of the spans themselves, one for each.
        times: Offsets of fixed 64-bit times.
        texts: Offsets of 16 hex digits in attributes: hashes and sessions.
        last: The latest time of the request, nanoseconds.
    """

    body: bytes
    traces: Any
    spans: Any
    owners: Any
    times: Any
    texts: Any
    last: int

    def copy(self, now_ns: int) -> tuple[bytes, int]:
        """Return a request with new ids that ends now, and the sum of its span ids, mod 2^64."""
        body = np.frombuffer(self.body, np.uint8).copy()
        fresh = np.frombuffer(secrets.token_bytes(40), np.uint8)
        body[_windows(self.traces, 16)] ^= fresh[:16]
        body[_windows(self.spans, 8)] ^= fresh[16:24]
        if len(self.texts):
            where = _windows(self.texts, 16)
            body[where] = _HEX[_DIGIT[body[where]] ^ (fresh[24:40] & 15)]
        where = _windows(self.times, 8)
        moved = body[where].view("<u8") + np.uint64(now_ns - self.last)
        body[where] = moved.view(np.uint8).reshape(-1, 8)
        ids = body[_windows(self.owners, 8)].view(">u8").astype(np.uint64)
        return body.tobytes(), int(ids.sum(dtype=np.uint64))


def _windows(offsets: Any, length: int) -> Any:
    return offsets[:, None] + np.arange(length)


def read(path: Path) -> list[Template]:
    """Return the templates that :func:`workload.write` left in a file."""
    templates: list[Template] = pickle.loads(path.read_bytes())
    return templates


def template(spans: Sequence[Found]) -> Template:
    """Put spans into one request under ids of its own, and find those in the bytes."""
    request = ExportTraceServiceRequest()
    groups: dict[bytes, Any] = {}
    ids: dict[bytes, bytes] = {}
    last = max(found.span.end_time_unix_nano for found in spans)
    for found in spans:
        key = found.group.resource.SerializeToString() + found.scope.scope.SerializeToString()
        if key not in groups:
            added = request.resource_spans.add(resource=found.group.resource)
            groups[key] = added.scope_spans.add(scope=found.scope.scope)
        copy = groups[key].spans.add()
        copy.CopyFrom(found.span)
        _rename(copy, ids)
    return _locate(request.SerializeToString(), request, last)


def _rename(span: Any, ids: dict[bytes, bytes]) -> None:
    """Give a span a new id; a recording that is used twice in a request makes a second trace."""
    again = (span.trace_id + span.span_id) in ids
    if again:
        for key in [key for key in ids if key[:16] == span.trace_id]:
            del ids[key]
        ids[span.trace_id] = secrets.token_bytes(16)
    trace = span.trace_id
    ids.setdefault(trace, secrets.token_bytes(16))
    ids[trace + span.span_id] = span.span_id
    span.trace_id = ids[trace]
    span.span_id = ids.setdefault(trace + b"/" + span.span_id, secrets.token_bytes(8))
    if span.parent_span_id:
        span.parent_span_id = ids.setdefault(
            trace + b"/" + span.parent_span_id, secrets.token_bytes(8)
        )


def _locate(body: bytes, request: Any, last: int) -> Template:
    traces: list[int] = []
    spans: list[int] = []
    owners: list[int] = []
    times: list[int] = []
    texts: set[int] = set()
    end = 0
    for group in request.resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                begin = body.index(b"\x0a\x10" + span.trace_id + b"\x12\x08" + span.span_id, end)
                end = begin + span.ByteSize()
                traces.append(begin + 2)
                owners.append(begin + 20)
                spans.append(begin + 20)
                if span.parent_span_id:
                    spans.append(body.index(b"\x22\x08" + span.parent_span_id, begin, end) + 2)
                for mark, time in ((b"\x39", span.start_time_unix_nano),
                                   (b"\x41", span.end_time_unix_nano)):  # fmt: skip
                    times.append(body.index(mark + struct.pack("<Q", time), begin, end) + 1)
                texts |= _texts(body, span, begin, end)
    as_array = [np.array(sorted(found), np.int64) for found in (traces, spans, owners, times)]
    return Template(body, *as_array, np.array(sorted(texts), np.int64), last)


def _texts(body: bytes, span: Any, begin: int, end: int) -> set[int]:
    """Return where the arguments' hash and our sessions stand."""
    said = {pair.key: pair.value.string_value for pair in span.attributes}
    wanted = (said.get("fuseboard.args_hash", "")[3:], said.get("gen_ai.conversation.id", ""))
    return {
        body.index(text.encode(), begin, end)
        for text in wanted
        if len(text) == 16 and not set(text) - set("0123456789abcdef")
    }
