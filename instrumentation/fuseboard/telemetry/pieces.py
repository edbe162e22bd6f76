"""Light spans and plain calls → OTLP bytes.

A plain call that succeeded differs from the one before in its ids, its times, and perhaps in the
hash of its arguments. All else is encoded once for each tool, region and session.
"""

from __future__ import annotations

from typing import Final

from fuseboard import conventions as c
from fuseboard.telemetry.attributes import FAILED, Attributes, Value
from fuseboard.telemetry.plain_calls import PlainCall
from fuseboard.telemetry.redaction import redact
from fuseboard.telemetry.tool_span import NANOSECONDS, ToolSpan, ToolSpanSource
from fuseboard.telemetry.wire import HAS_IS_REMOTE, IS_REMOTE, SpanPieces

_MAX_COMMON: Final = 4096
"""Most sets of common attributes that are remembered; sessions alone would grow for ever."""
_VARIES: Final = frozenset({c.ARGS_HASH, c.GEN_AI_TOOL_CALL_ID, c.ATTEMPT_SECONDS})
"""What differs from one plain call to the next."""


class ToolSpanPieces:
    """Encodes light spans and plain calls."""

    def __init__(self) -> None:
        self._pieces = SpanPieces()
        self._common: dict[tuple[object, ...], tuple[str, bytes]] = {}

    def of(self, span: ToolSpan) -> bytes:
        """Return a finished span as OTLP bytes."""
        call, attempt = span.call, span.attempt
        if attempt is None:
            start_ns = call.started_unix_ns
            fault, has_failed = call.fault, call.outcome in FAILED
        else:
            start_ns = attempt.started_unix_ns
            fault, has_failed = attempt.fault, attempt.fault is not None
        error = None
        if has_failed:
            error = redact(fault.message) if fault is not None else ""
        state = span.trace_state
        return self._pieces.span(
            trace_id=span.trace_id,
            span_id=span.span_id,
            parent_id=span.parent_id,
            trace_state=state.to_header() if state is not None else "",
            name=span.source.name_of(span),
            start_ns=start_ns,
            end_ns=span.end_ns or start_ns,
            attributes=span.source.attributes_of(span),
            error=error,
            flags=HAS_IS_REMOTE | (IS_REMOTE if span.parent_is_remote else 0),
        )

    def of_plain(self, plain: PlainCall, source: ToolSpanSource) -> list[bytes]:
        """Return the spans of a plain call as OTLP bytes: two where it failed, else one."""
        name, region, upstream, start_ns, seconds, trace_id, span_id, parent_id, is_remote = plain[
            :9
        ]
        _, failure, call_id, agent, session, state, args_hash, args, names, values = plain[9:]
        if failure is not None or call_id is not None:
            return [self.of(span) for span in source.restore(plain)]
        key = (name, region, upstream, agent, session, state)
        span_name, common = self._common.get(key) or self._encode_common(key, plain, source)
        varying: dict[str, Value] = {c.ATTEMPT_SECONDS: seconds}
        if names is not None and (hash_of := source.tools.known[name].hash_of) is not None:
            args_hash = hash_of(args, dict(zip(names, values, strict=True)))
        if args_hash is not None:
            varying[c.ARGS_HASH] = args_hash
        return [
            self._pieces.span(
                trace_id=trace_id,
                span_id=span_id,
                parent_id=parent_id,
                trace_state="",
                name=span_name,
                start_ns=start_ns,
                end_ns=start_ns + int(seconds * NANOSECONDS),
                attributes=varying,
                error=None,
                flags=HAS_IS_REMOTE | (IS_REMOTE if is_remote else 0),
                encoded=common,
            )
        ]

    def _encode_common(
        self, key: tuple[object, ...], plain: PlainCall, source: ToolSpanSource
    ) -> tuple[str, bytes]:
        (span,) = source.restore(plain)
        attributes: Attributes = {
            name: value for name, value in source.attributes_of(span).items() if name not in _VARIES
        }
        if len(self._common) >= _MAX_COMMON:
            self._common.clear()
        common = source.name_of(span), self._pieces.attributes(attributes)
        self._common[key] = common
        return common
