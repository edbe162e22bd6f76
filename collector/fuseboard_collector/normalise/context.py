"""Spans that are no tool calls: agents, model calls, HTTP requests. Kept lean, for context."""

from __future__ import annotations

from fuseboard_collector.normalise.contents import plain_name
from fuseboard_collector.normalise.hints import INVOKE_AGENT, count_in, name_in, operation_in
from fuseboard_collector.normalise.incoming import SPAN_KINDS, STATUS_CODES, IncomingSpan
from fuseboard_collector.normalise.layouts import Layout
from fuseboard_collector.normalise.origin import Origin
from fuseboard_collector.normalise.times import period
from fuseboard_collector.normalise.values import document_of, name_of
from fuseboard_collector.store.rows import Span


def span_row(span: IncomingSpan, origin: Origin, layout: Layout, received: int) -> Span:
    """Return the lean row of any span: no message contents, no events.

    Args:
        span: The span.
        origin: Who sent it.
        layout: What its attributes are.
        received: When, microseconds since the epoch.
    """
    attributes, hints = span.attributes, layout.hints
    when = period(span.start_ns, span.end_ns, received)
    kind = span.kind if 0 <= span.kind < len(SPAN_KINDS) else 0
    status = span.status_code if 0 <= span.status_code < len(STATUS_CODES) else 0
    name = name_of(plain_name(span.name, attributes)) or "unnamed"
    operation = operation_in(attributes, hints.operation)
    agent = name_in(attributes, hints.agent)
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
        session=name_in(attributes, hints.session),
        agent=agent or (_agent_in(name) if operation == INVOKE_AGENT else None),
        operation=operation,
        http_status=count_in(attributes, hints.http_status, 999),
        input_tokens=count_in(attributes, hints.input_tokens),
        output_tokens=count_in(attributes, hints.output_tokens),
        attributes=document_of(attributes, layout.kept_of(attributes), when.marks),
        received_at=received,
    )


def _agent_in(name: str) -> str | None:
    """Return the agent that the name of its span tells, unless it tells of something else."""
    if name in _GENERAL or name.endswith(_NO_AGENTS) or "{" in name:
        return None
    name = name.removeprefix(INVOKE_AGENT).strip()
    return next((name.removesuffix(end) for end in _AGENT_ENDS if name.endswith(end)), name) or None


_GENERAL = frozenset({"agent run", "ai.generateText", "ai.streamText"})
_AGENT_ENDS = (".agent", ".run")
_NO_AGENTS = (".workflow", ".task", ".execute")
