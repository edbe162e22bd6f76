"""Calls and attempts as OpenTelemetry spans, by way of the SDK."""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from typing import Final, cast

from opentelemetry.context import Context, attach, detach
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from fuseboard.conventions import EXECUTE_TOOL, TOOL_ATTEMPT
from fuseboard.record import AttemptRecord, CallRecord, Fault, ToolInfo
from fuseboard.telemetry.attributes import (
    FAILED,
    Attributes,
    attempt_attributes,
    end_attributes,
    start_attributes,
    tool_attributes,
)
from fuseboard.telemetry.redaction import name, redact

_NANOSECONDS: Final = 1_000_000_000
_MAX_REMEMBERED: Final = 1024
_IDS: Final = RandomIdGenerator()


@dataclass(slots=True)
class OpenCall:
    """What the telemetry keeps of a running call, in ``CallRecord.telemetry``.

    Attributes:
        span: The call's span.
        context: A context in which that span is current.
        current: The context that the tool's own code runs in: the call's, or a later attempt's.
        attempt_spans: How many attempts have a span so far.
    """

    span: Span
    context: Context
    current: Context
    attempt_spans: int = 0

    @property
    def identity(self) -> SpanContext:
        """The span's ids and flags."""
        return self.span.get_span_context()


class SpanWriter:
    """Opens and closes the spans of calls.

    Args:
        tracer: Makes the spans.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._fixed: dict[str, tuple[ToolInfo, str, Attributes]] = {}

    def _fixed_parts(self, tool: ToolInfo) -> tuple[str, Attributes]:
        known = self._fixed.get(tool.name)
        if known is not None and (known[0] is tool or known[0].type == tool.type):
            return known[1], known[2]
        fixed = (f"{EXECUTE_TOOL} {name(tool.name)}", tool_attributes(tool))
        # Tools made up at run time must not grow this for ever.
        if len(self._fixed) < _MAX_REMEMBERED:
            self._fixed[tool.name] = (tool, *fixed)
        return fixed

    def start(self, call: CallRecord) -> OpenCall:
        """Open the span of a call as a child of the current span."""
        span_name, fixed = self._fixed_parts(call.tool)
        span = self._tracer.start_span(
            span_name,
            attributes=start_attributes(call, fixed),
            start_time=call.started_unix_ns,
            record_exception=False,
            set_status_on_exception=False,
        )
        if not span.get_span_context().is_valid:
            span = _identified_span()
        context = set_span_in_context(span)
        return OpenCall(span, context, context)

    def end(self, call: CallRecord, open_call: OpenCall) -> None:
        """Close the span of a call."""
        if open_call.attempt_spans == 0 and call.attempts and call.outcome in FAILED:
            self._write_attempt(call, open_call, call.attempts[0])
        span = open_call.span
        if span.is_recording():
            span.set_attributes(end_attributes(call))
            if call.outcome in FAILED:
                span.set_status(_error_status(call.fault))
        span.end(_end_ns(call.started_unix_ns, call.duration))

    def start_attempt(self, call: CallRecord, open_call: OpenCall, attempt: AttemptRecord) -> None:
        """Open the span of a second or later attempt; the first one's is written afterwards."""
        if attempt.number < 2:
            return
        if open_call.attempt_spans == 0 and len(call.attempts) > 1:
            self._write_attempt(call, open_call, call.attempts[0])
        span = self._attempt_span(call, open_call, attempt)
        attempt.telemetry = span
        open_call.current = set_span_in_context(span)

    def end_attempt(self, call: CallRecord, open_call: OpenCall, attempt: AttemptRecord) -> None:
        """Close the span of an attempt."""
        span = attempt.telemetry
        open_call.current = open_call.context
        if isinstance(span, Span):
            attempt.telemetry = None
            span.set_attributes(attempt_attributes(call, attempt))
            _finish_attempt(span, attempt)
        elif attempt.fault is not None:
            self._write_attempt(call, open_call, attempt)

    def _write_attempt(self, call: CallRecord, open_call: OpenCall, attempt: AttemptRecord) -> None:
        _finish_attempt(self._attempt_span(call, open_call, attempt), attempt)

    def _attempt_span(self, call: CallRecord, open_call: OpenCall, attempt: AttemptRecord) -> Span:
        open_call.attempt_spans += 1
        return self._tracer.start_span(
            f"{TOOL_ATTEMPT} {name(call.tool.name)}",
            context=open_call.context,
            attributes=attempt_attributes(call, attempt),
            start_time=attempt.started_unix_ns,
            record_exception=False,
            set_status_on_exception=False,
        )


def _finish_attempt(span: Span, attempt: AttemptRecord) -> None:
    if attempt.fault is not None:
        span.set_status(_error_status(attempt.fault))
    span.end(_end_ns(attempt.started_unix_ns, attempt.duration))


def _error_status(fault: Fault | None) -> Status:
    return Status(StatusCode.ERROR, redact(fault.message) if fault else None)


def _end_ns(started_unix_ns: int, duration: float) -> int:
    return started_unix_ns + round(duration * _NANOSECONDS)


def _identified_span() -> Span:
    """Stand in for the span of a provider that traces nothing, so that the call has an id."""
    ids = SpanContext(
        _IDS.generate_trace_id(), _IDS.generate_span_id(), False, TraceFlags(TraceFlags.DEFAULT)
    )
    return NonRecordingSpan(ids)


def enter(context: Context) -> object:
    """Make a context current; return what :func:`leave` needs."""
    return attach(context)


def leave(token: object) -> None:
    """Restore what was current before :func:`enter`.

    A generator may be closed from another context than it ran in; then there is nothing to
    restore here, and OpenTelemetry's own ``detach`` would log an error about it.
    """
    if isinstance(token, contextvars.Token):
        try:
            token.var.reset(token)
        except (ValueError, RuntimeError):
            return
    elif token is not None:  # an application may plug in a context of its own
        detach(cast("contextvars.Token[Context]", token))
