"""Spans that are no tool calls: agents, model calls, HTTP requests. Kept lean, for context."""

from __future__ import annotations

from fuseboard import conventions as c
from fuseboard_collector.normalise.contents import contents_in
from fuseboard_collector.normalise.incoming import (
    SPAN_KINDS,
    STATUS_CODES,
    IncomingSpan,
    Source,
)
from fuseboard_collector.normalise.times import period
from fuseboard_collector.normalise.values import MAX_NAME, clean, remaining
from fuseboard_collector.store.rows import Span


def span_row(span: IncomingSpan, source: Source, received: int) -> Span:
    """Return the lean row of any span: no message contents, no events.

    Args:
        span: The span.
        source: Who sent it.
        received: When, microseconds since the epoch.
    """
    when = period(span.start_ns, span.end_ns, received)
    kind = span.kind if 0 <= span.kind < len(SPAN_KINDS) else 0
    status = span.status_code if 0 <= span.status_code < len(STATUS_CODES) else 0
    return Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        name=clean(span.name)[:MAX_NAME] or "unnamed",
        start=when.start,
        duration_seconds=when.duration_seconds,
        parent_span_id=span.parent_span_id,
        kind=SPAN_KINDS[kind] if kind else None,
        service=source.text(c.SERVICE_NAME),
        status=STATUS_CODES[status],
        instrumentation=source.scope[:MAX_NAME] or None,
        attributes=remaining(span.attributes, contents_in(span.attributes), when.marks),
        received_at=received,
    )
