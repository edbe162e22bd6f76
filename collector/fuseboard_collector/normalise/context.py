"""Spans that are no tool calls: agents, model calls, HTTP requests. Kept lean, for context."""

from __future__ import annotations

from fuseboard_collector.normalise.contents import contents_in, plain_name
from fuseboard_collector.normalise.hints import INVOKE_AGENT, hints_of
from fuseboard_collector.normalise.incoming import SPAN_KINDS, STATUS_CODES, IncomingSpan
from fuseboard_collector.normalise.origin import Origin
from fuseboard_collector.normalise.times import period
from fuseboard_collector.normalise.values import MAX_NAME, clean, remaining
from fuseboard_collector.store.rows import Span


def span_row(span: IncomingSpan, origin: Origin, received: int) -> Span:
    """Return the lean row of any span: no message contents, no events.

    Args:
        span: The span.
        origin: Who sent it.
        received: When, microseconds since the epoch.
    """
    when = period(span.start_ns, span.end_ns, received)
    kind = span.kind if 0 <= span.kind < len(SPAN_KINDS) else 0
    status = span.status_code if 0 <= span.status_code < len(STATUS_CODES) else 0
    hints = hints_of(span.attributes)
    name = clean(plain_name(span.name, span.attributes))[:MAX_NAME] or "unnamed"
    return Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        name=name,
        start=when.start,
        duration_seconds=when.duration_seconds,
        parent_span_id=span.parent_span_id,
        kind=SPAN_KINDS[kind] if kind else None,
        service=origin.service,
        status=STATUS_CODES[status],
        instrumentation=origin.instrumentation,
        session=hints.session,
        agent=hints.agent or (_agent_in(name) if hints.operation == INVOKE_AGENT else None),
        operation=hints.operation,
        http_status=hints.http_status,
        input_tokens=hints.input_tokens,
        output_tokens=hints.output_tokens,
        attributes=remaining(span.attributes, contents_in(span.attributes), when.marks),
        received_at=received,
    )


def _agent_in(name: str) -> str | None:
    """Return the agent that the name of its span tells, if it is no template or general word."""
    name = name.removeprefix(INVOKE_AGENT).removesuffix(".agent").strip()
    return None if not name or "{" in name or name in _GENERAL else name


_GENERAL = frozenset({"agent run", "ai.generateText", "ai.streamText"})
