"""Calls and attempts as OpenTelemetry spans: on the fast path, or by way of the SDK."""

from __future__ import annotations

import contextvars
from dataclasses import dataclass
from typing import Final, cast

from opentelemetry.context import Context, attach, detach, get_current
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

from fuseboard.record import AttemptRecord, CallRecord, Fault, ToolInfo
from fuseboard.telemetry.attributes import (
    FAILED,
    ToolParts,
    attempt_attributes,
    end_attributes,
)
from fuseboard.telemetry.redaction import redact
from fuseboard.telemetry.tool_span import NANOSECONDS, ToolSpan, ToolSpanSource

_IDS: Final = RandomIdGenerator()


@dataclass(slots=True)
class OpenCall:
    """What the telemetry keeps of a running call that the SDK traces.

    Attributes:
        span: The call's span.
        context: A context in which that span is current.
        current: The context that the tool's own code runs in: the call's, or a later attempt's.
        attempt_spans: How many attempts have a span so far.
    """

    span: Span
    context: Context | None
    current: Context | None
    attempt_spans: int = 0

    @property
    def identity(self) -> SpanContext:
        """The span's ids and flags."""
        return self.span.get_span_context()


class SpanWriter:
    """Opens and closes the spans of calls.

    Attributes:
        parts: What is fixed about tools.
        source: The fast path, if there is one.

    Args:
        tracer: Makes the spans that the fast path cannot make.
        parts: What is fixed about tools.
        source: The fast path, if there is one.
    """

    def __init__(
        self, tracer: Tracer, parts: ToolParts, source: ToolSpanSource | None = None
    ) -> None:
        self._tracer = tracer
        self.parts = parts
        self.source = source

    def start(self, call: CallRecord) -> OpenCall | ToolSpan:
        """Open the span of a call as a child of the current span."""
        source = self.source
        if source is not None and source.is_open:
            span = source.start(call, get_current())
            if span is not None:
                return span
        return self._start_sdk(call)

    def tool_registered(self, tool: ToolInfo) -> None:
        """Let the plain calls of a tool take the shortest way."""
        if self.source is not None:
            self.source.tools.add(tool)

    def begin(self, call: CallRecord) -> object:
        """Let the SDK open the span of a call and make it current; return what ``leave`` needs."""
        open_call = call.telemetry = self._start_sdk(call)
        return enter(open_call)

    def _start_sdk(self, call: CallRecord) -> OpenCall:
        span = self._tracer.start_span(
            self.parts.span_name(call.tool),
            attributes=self.parts.start(call),
            start_time=call.started_unix_ns,
            record_exception=False,
            set_status_on_exception=False,
        )
        if not span.get_span_context().is_valid:
            span = _identified_span()
        context = set_span_in_context(span)
        return OpenCall(span, context, context)

    def end(self, call: CallRecord, open_call: OpenCall | ToolSpan) -> None:
        """Close the span of a call."""
        if call.outcome in FAILED and open_call.attempt_spans == 0 and call.attempts:
            self._write_attempt(call, open_call, call.attempts[0])
        end_ns = call.started_unix_ns + int(call.duration * NANOSECONDS)
        span: Span | None
        if type(open_call) is OpenCall:
            span = open_call.span
        else:
            span = _end_light(cast("ToolSpan", open_call), end_ns)
        if span is None:
            return
        if span.is_recording():
            span.set_attributes(end_attributes(call))
            if call.outcome in FAILED:
                span.set_status(_error_status(call.fault))
        span.end(end_ns)

    def start_attempt(
        self, call: CallRecord, open_call: OpenCall | ToolSpan, attempt: AttemptRecord
    ) -> None:
        """Open the span of a second or later attempt; the first one's is written afterwards."""
        if attempt.number < 2:
            return
        if open_call.attempt_spans == 0 and len(call.attempts) > 1:
            self._write_attempt(call, open_call, call.attempts[0])
        span = self._attempt_span(call, open_call, attempt)
        attempt.telemetry = span
        open_call.current = set_span_in_context(span)

    def end_attempt(
        self, call: CallRecord, open_call: OpenCall | ToolSpan, attempt: AttemptRecord
    ) -> None:
        """Close the span of an attempt."""
        span = attempt.telemetry
        open_call.current = open_call.context
        if isinstance(span, Span):
            attempt.telemetry = None
            self._finish_attempt(call, span, attempt)
        elif attempt.fault is not None:
            self._write_attempt(call, open_call, attempt)

    def _write_attempt(
        self, call: CallRecord, open_call: OpenCall | ToolSpan, attempt: AttemptRecord
    ) -> None:
        self._finish_attempt(call, self._attempt_span(call, open_call, attempt), attempt)

    def _attempt_span(
        self, call: CallRecord, open_call: OpenCall | ToolSpan, attempt: AttemptRecord
    ) -> Span:
        open_call.attempt_spans += 1
        if type(open_call) is ToolSpan and open_call.source.is_open:
            return open_call.source.attempt(open_call, call, attempt)
        return self._tracer.start_span(
            self.parts.span_name(call.tool, is_attempt=True),
            context=context_of(open_call),
            attributes=attempt_attributes(call, attempt),
            start_time=attempt.started_unix_ns,
            record_exception=False,
            set_status_on_exception=False,
        )

    def _finish_attempt(self, call: CallRecord, span: Span, attempt: AttemptRecord) -> None:
        end_ns = attempt.started_unix_ns + int(attempt.duration * NANOSECONDS)
        if type(span) is ToolSpan:
            full = _end_light(span, end_ns)
            if full is None:
                return
            span = full
        span.set_attributes(attempt_attributes(call, attempt))
        if attempt.fault is not None:
            span.set_status(_error_status(attempt.fault))
        span.end(end_ns)


def _end_light(span: ToolSpan, end_ns: int) -> Span | None:
    """End a light span; return the SDK's span that has to be ended in its place, if any."""
    source = span.source
    if span.full is None and source.is_open:
        source.end(span, end_ns)
        return None
    # Somebody looked at it, or a processor came that wants to see the SDK's spans.
    return span.inflated()


def _error_status(fault: Fault | None) -> Status:
    return Status(StatusCode.ERROR, redact(fault.message) if fault else None)


def _identified_span() -> Span:
    """Stand in for the span of a provider that traces nothing, so that the call has an id."""
    ids = SpanContext(
        _IDS.generate_trace_id(), _IDS.generate_span_id(), False, TraceFlags(TraceFlags.DEFAULT)
    )
    return NonRecordingSpan(ids)


def context_of(open_call: OpenCall | ToolSpan) -> Context:
    """Return a context in which the call's span is current."""
    context = open_call.context
    if context is None:
        # A light span has none until somebody asks; it keeps it for the next time.
        context = set_span_in_context(cast("ToolSpan", open_call))
        open_call.context = open_call.current = context
    return context


def enter(open_call: OpenCall | ToolSpan) -> object:
    """Make the span that the tool's code runs under current; return what :func:`leave` needs."""
    return attach(open_call.current or context_of(open_call))


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
