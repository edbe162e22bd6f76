"""The bridge from OpenTelemetry's SDK to the export pipeline."""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from fuseboard.conventions import SCOPE_NAME
from fuseboard.telemetry.duplicates import mark_started


class PipelineProcessor(SpanProcessor):
    """Hands finished, sampled spans to the pipeline.

    Args:
        offer: Takes a finished span; must neither wait nor raise.
        own_spans_only: Whether spans of other instrumentation are left alone, as they must
            be on a provider that belongs to the application.
    """

    def __init__(self, offer: Callable[[ReadableSpan], None], *, own_spans_only: bool) -> None:
        self._offer = offer
        self._own_spans_only = own_spans_only
        self._is_off = False

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        """Mark a span of other instrumentation that tells of a call of ours."""
        mark_started(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Queue the span if it is sampled and ours to send."""
        context = span.get_span_context()
        if self._is_off or context is None or not context.trace_flags.sampled:
            return
        if self._own_spans_only:
            scope = span.instrumentation_scope
            if scope is None or scope.name != SCOPE_NAME:
                return
        self._offer(span)

    def end(self) -> None:
        """Let spans of other instrumentation pass: the pipeline has ended and only counts."""
        self._own_spans_only = True

    def switch_off(self) -> None:
        """Let all further spans pass; a provider cannot forget a processor."""
        self._is_off = True

    def shutdown(self) -> None:
        """Do nothing: the pipeline ends with ``fuseboard.shutdown``, not with a provider."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        """Do nothing: ``fuseboard.flush`` flushes."""
        return True
