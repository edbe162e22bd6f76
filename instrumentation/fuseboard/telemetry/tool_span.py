"""Spans of tool calls that cost little until somebody looks at them.

The SDK's span takes 9 µs to make and to end. On the fast path a call's span is two ids and the
call's own record, from which the encoder writes the span when it is exported. The fast path is
open while all spans would be recorded and nobody but fuseboard's own export sees them: the
provider is ours, its sampler keeps everything, its limits are the defaults, and no other
processor is registered.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider, _Span
from opentelemetry.sdk.trace import Tracer as SdkTracer
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, DEFAULT_ON
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    INVALID_SPAN,
    Span,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from fuseboard.randomness import RANDOM
from fuseboard.record import AttemptRecord, CallRecord
from fuseboard.telemetry.attributes import (
    Attributes,
    ToolParts,
    attempt_attributes,
    end_attributes,
)
from fuseboard.telemetry.plain_calls import PlainCall, PlainTools, flatten, unflatten

if TYPE_CHECKING:
    from opentelemetry.util import types

NANOSECONDS: Final = 1_000_000_000
_ROOT: Final = int(TraceFlags.SAMPLED | TraceFlags.RANDOM_TRACE_ID)
_SAMPLED: Final = int(TraceFlags.SAMPLED)
_RANDOM: Final = int(TraceFlags.RANDOM_TRACE_ID)
# The key under which OpenTelemetry keeps the current span; its own name for it is private.
(_CURRENT_SPAN,) = set_span_in_context(INVALID_SPAN, Context())
_NOWHERE: Final = Context()


def _find_context_variable() -> ContextVar[Context] | None:
    """Return where OpenTelemetry keeps the current context, if that is a context variable."""
    token = attach(get_current())
    variable = token.var if isinstance(token, Token) else None
    detach(token)
    return variable


_FOUND: Final = _find_context_variable()
_CONTEXT: Final[ContextVar[Context]] = _FOUND or ContextVar("fuseboard_unused")
# Limits that an application asked for are the SDK's to keep.
_LIMITS: Final = (
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
)
_SDK_COUNTS_SPANS: Final = "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED"

_bits = RANDOM.getrandbits


def _nothing() -> None:
    pass


class OwnProvider(TracerProvider):
    """The provider that ``fuseboard.init`` installs; it tells when a processor is added."""

    def __init__(self, resource: Resource) -> None:
        self.limits = SpanLimits()
        self.processors = 0
        self.when_shared: Callable[[], None] = _nothing
        super().__init__(resource=resource, span_limits=self.limits, shutdown_on_exit=False)

    def add_span_processor(self, span_processor: SpanProcessor) -> None:
        """Register a processor, which from now on must see every span as the SDK makes it."""
        super().add_span_processor(span_processor)
        self.processors += 1
        if self.processors > 1:
            self.when_shared()


class ToolSpan(Span):
    """The span of a tool call or of one of its attempts: ids and times, no more.

    Code inside the tool that does more than ask for the ids (sets an attribute, adds an event)
    gets what it asks for from a span of the SDK's that takes this one's place.
    """

    # As with the record of a call: what is rare is a default of the class.
    attempt: AttemptRecord | None = None
    captured: Attributes | None = None
    attempt_spans = 0
    _ids: SpanContext | None = None

    def __init__(
        self, source: ToolSpanSource, call: CallRecord, trace_id: int, span_id: int, flags: int
    ) -> None:
        self.source = source
        self.call = call
        self.trace_id = trace_id
        self.span_id = span_id
        self.flags = flags
        self.parent_id: int | None = None
        self.parent_is_remote = False
        self.trace_state: TraceState | None = None
        self.context: Context | None = None
        self.current: Context | None = None
        self.end_ns: int | None = None
        self.full: _Span | None = None

    def get_span_context(self) -> SpanContext:
        """Return the ids."""
        ids = self._ids
        if ids is None:
            ids = self._ids = SpanContext(
                self.trace_id, self.span_id, False, TraceFlags(self.flags), self.trace_state
            )
        return ids

    @property
    def identity(self) -> SpanContext:
        """The span's ids and flags."""
        return self.get_span_context()

    def parent_context(self) -> SpanContext | None:
        """Return the ids of the parent, None for a root."""
        if self.parent_id is None:
            return None
        return SpanContext(
            self.trace_id,
            self.parent_id,
            self.parent_is_remote,
            TraceFlags(self.flags),
            self.trace_state,
        )

    def is_recording(self) -> bool:
        """Tell whether the span is open."""
        return self.end_ns is None and (self.full is None or self.full.is_recording())

    def inflated(self) -> _Span | None:
        """Return the SDK's span that takes this one's place; None after the end."""
        if self.full is None and self.end_ns is None:
            self.full = self.source.inflate(self)
        return self.full

    def end(self, end_time: int | None = None) -> None:
        """End the span early."""
        if (span := self.inflated()) is not None:
            span.end(end_time)

    def set_attributes(self, attributes: Mapping[str, types.AttributeValue]) -> None:
        """Set attributes."""
        if (span := self.inflated()) is not None:
            span.set_attributes(attributes)

    def set_attribute(self, key: str, value: types.AttributeValue) -> None:
        """Set an attribute."""
        if (span := self.inflated()) is not None:
            span.set_attribute(key, value)

    def add_event(
        self, name: str, attributes: types.Attributes = None, timestamp: int | None = None
    ) -> None:
        """Add an event."""
        if (span := self.inflated()) is not None:
            span.add_event(name, attributes, timestamp)

    def add_link(self, context: SpanContext, attributes: types.Attributes = None) -> None:
        """Add a link."""
        if (span := self.inflated()) is not None:
            span.add_link(context, attributes)

    def update_name(self, name: str) -> None:
        """Rename the span."""
        if (span := self.inflated()) is not None:
            span.update_name(name)

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:
        """Set the status."""
        if (span := self.inflated()) is not None:
            span.set_status(status, description)

    def record_exception(
        self,
        exception: BaseException,
        attributes: types.Attributes = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        """Add an exception as an event."""
        if (span := self.inflated()) is not None:
            span.record_exception(exception, attributes, timestamp, escaped)

    def __getattr__(self, name: str) -> Any:
        """Offer what else the SDK's spans have, for example ``attributes`` and ``name``."""
        span = None if name.startswith("_") else self.inflated()
        if span is None:
            raise AttributeError(name)
        return getattr(span, name)


class ToolSpanSource:
    """Makes and ends the spans of the fast path.

    Attributes:
        is_open: Whether the fast path may be taken.
        tools: The tools whose plain calls are queued as tuples.

    Args:
        provider: The provider that ``fuseboard.init`` installed.
        tracer: Its tracer for fuseboard.
        scope: What that tracer's spans are made by.
        parts: What is fixed about tools.
        offer: Takes a finished span, or a plain call; must neither wait nor raise.
    """

    def __init__(
        self,
        provider: OwnProvider,
        tracer: SdkTracer,
        scope: InstrumentationScope,
        parts: ToolParts,
        offer: Callable[[ToolSpan | PlainCall], None],
    ) -> None:
        self._provider = provider
        self._tracer = tracer
        self._scope = scope
        self._parts = parts
        self._offer = offer
        self._lock = threading.RLock()
        self.tools = PlainTools()
        self.is_open = _keeps_all(provider) and provider.processors <= 1
        provider.when_shared = self.close

    def after_fork(self) -> None:
        """Make a lock that no thread of the parent holds."""
        self._lock = threading.RLock()

    def close(self) -> None:
        """Take the fast path no more: somebody else wants to see the SDK's spans."""
        self.is_open = False

    def start(self, call: CallRecord, outside: Context) -> ToolSpan | None:
        """Open the span of a call as a child of the span that is current in a context.

        Returns:
            The span; None where the SDK has to decide, since the parent was not sampled.
        """
        parent = outside.get(_CURRENT_SPAN)
        if parent is None:
            return ToolSpan(self, call, _bits(128) or 1, _bits(64) or 1, _ROOT)
        if type(parent) is not ToolSpan:
            return self._start_under(parent, call)
        return self._child(parent, call)

    def begin(self, call: CallRecord) -> Token[Context] | None:
        """Open the span of a call and make it current.

        Returns:
            What makes current again what was; None where the SDK has to decide.
        """
        outside = _CONTEXT.get(_NOWHERE)
        span: ToolSpan | None
        if _CURRENT_SPAN in outside:
            span = self.start(call, outside)
            if span is None:
                return None
        else:
            span = ToolSpan(self, call, _bits(128) or 1, _bits(64) or 1, _ROOT)
        call.telemetry = span
        values = {**outside, _CURRENT_SPAN: span} if outside else {_CURRENT_SPAN: span}
        inside = span.context = span.current = Context(values)
        return _CONTEXT.set(inside)

    def _child(self, parent: ToolSpan, call: CallRecord) -> ToolSpan:
        span = ToolSpan(self, call, parent.trace_id, _bits(64) or 1, parent.flags)
        span.parent_id = parent.span_id
        if parent.trace_state is not None:
            span.trace_state = parent.trace_state
        return span

    def _start_under(self, parent: object, call: CallRecord) -> ToolSpan | None:
        ids = parent.get_span_context() if isinstance(parent, Span) else None
        if ids is None or not ids.is_valid:
            return ToolSpan(self, call, _bits(128) or 1, _bits(64) or 1, _ROOT)
        if not ids.trace_flags & _SAMPLED:
            return None
        flags = _SAMPLED | ids.trace_flags & _RANDOM
        span = ToolSpan(self, call, ids.trace_id, _bits(64) or 1, flags)
        span.parent_id = ids.span_id
        span.parent_is_remote = ids.is_remote
        if ids.trace_state:
            span.trace_state = ids.trace_state
        return span

    def attempt(self, of: ToolSpan, call: CallRecord, attempt: AttemptRecord) -> ToolSpan:
        """Open the span of an attempt under the span of its call."""
        span = self._child(of, call)
        span.attempt = attempt
        return span

    def end(self, span: ToolSpan, end_ns: int) -> None:
        """End a span that nobody looked at, and hand it to the export."""
        span.end_ns = end_ns
        span.context = span.current = None  # they hold the span
        self._offer(span)

    def end_plain(self, call: CallRecord, span: ToolSpan) -> bool:
        """End the spans of a plain call, if nobody needs to see them.

        Returns:
            Whether it has ended.
        """
        tool = call.tool
        if (
            span.full is not None
            or not self.is_open
            or span.trace_state is not None
            or self.tools.known.get(tool.name) is not tool
        ):
            return False
        span.end_ns = call.started_unix_ns
        span.context = span.current = None  # they hold the span
        attempt_id = None if call.fault is None else _bits(64) or 1
        self._offer(
            flatten(
                call,
                span.trace_id,
                span.span_id,
                span.parent_id,
                span.parent_is_remote,
                attempt_id,
            )
        )
        return True

    def restore(self, plain: PlainCall) -> list[ToolSpan]:
        """Return the spans of a plain call that was queued as a tuple, its attempt's first."""
        call = unflatten(plain, self.tools)
        _, _, _, _, _, trace_id, span_id, parent_id, is_remote, attempt_id, *_ = plain
        span = ToolSpan(self, call, trace_id, span_id, _ROOT)
        span.parent_id = parent_id
        span.parent_is_remote = is_remote
        span.end_ns = call.started_unix_ns + int(call.duration * NANOSECONDS)
        if attempt_id is None:
            return [span]
        tried = ToolSpan(self, call, trace_id, attempt_id, _ROOT)
        tried.parent_id = span_id
        tried.attempt = call.attempts[0]
        tried.end_ns = span.end_ns
        return [tried, span]

    def name_of(self, span: ToolSpan) -> str:
        """Return a span's name."""
        call = span.call
        return self._parts.span_name(call.tool, is_attempt=span.attempt is not None)

    def attributes_of(self, span: ToolSpan) -> Attributes:
        """Return what is known of a span so far."""
        call, attempt = span.call, span.attempt
        if attempt is not None:
            return attempt_attributes(call, attempt)
        attributes = self._parts.start(call)
        if call.outcome is not None:
            attributes.update(end_attributes(call))
        if span.captured:
            attributes.update(span.captured)
        return attributes

    def made_by(self) -> tuple[Resource, InstrumentationScope]:
        """Return the resource and the scope of the spans."""
        return self._tracer.resource, self._scope

    def inflate(self, span: ToolSpan) -> _Span:
        """Make the SDK's span with the ids and the start of this one."""
        with self._lock:
            if span.full is not None:
                return span.full
            tracer, call, attempt = self._tracer, span.call, span.attempt
            full = _Span(
                name=self.name_of(span),
                context=span.get_span_context(),
                parent=span.parent_context(),
                sampler=tracer.sampler,
                resource=tracer.resource,
                attributes=self.attributes_of(span),
                span_processor=tracer.span_processor,
                record_exception=False,
                set_status_on_exception=False,
                limits=self._provider.limits,
                instrumentation_scope=self._scope,
            )
            full.start(call.started_unix_ns if attempt is None else attempt.started_unix_ns)
            span.full = full
            return full


def _keeps_all(provider: OwnProvider) -> bool:
    """Tell whether the SDK would record every span, and as it is."""
    return (
        _FOUND is not None
        and (provider.sampler is ALWAYS_ON or provider.sampler is DEFAULT_ON)
        and type(provider.id_generator) is RandomIdGenerator
        and not any(os.environ.get(limit) for limit in _LIMITS)
        and not os.environ.get(_SDK_COUNTS_SPANS)
    )
