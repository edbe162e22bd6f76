"""A foreign span that tells of a call of a tool → what it says of it."""

from __future__ import annotations

from fuseboard import conventions as c
from fuseboard_collector.normalise.arguments import hash_of, likeness_of
from fuseboard_collector.normalise.dialects.dialect import Dialect, value_at
from fuseboard_collector.normalise.faults import ForeignFault, fault_of
from fuseboard_collector.normalise.frameworks import framework_behind
from fuseboard_collector.normalise.hints import name_in
from fuseboard_collector.normalise.incoming import SPAN_KINDS, IncomingSpan
from fuseboard_collector.normalise.layouts import Layout
from fuseboard_collector.normalise.naming import call_id_of, tool_and_server
from fuseboard_collector.normalise.origin import LANGFUSE_ENVIRONMENT, Origin
from fuseboard_collector.normalise.sampling import weight
from fuseboard_collector.normalise.times import period
from fuseboard_collector.normalise.values import count, document_of, name_of, text
from fuseboard_collector.store.rows import Sighting

GUESSED_STATUS = "http_status read from a message"


def sighting(
    span: IncomingSpan, origin: Origin, layout: Layout, dialect: Dialect, received: int
) -> Sighting | None:
    """Return what a span says of a call, with our class for its fault.

    Args:
        span: A span that tells of a call.
        origin: Who sent it.
        layout: What its attributes are.
        dialect: Whose words it uses.
        received: When, microseconds since the epoch.

    Returns:
        None if the tool is none: a part of the framework that is called like one.
    """
    tool, server = tool_and_server(span, dialect)
    if tool in dialect.no_tools:
        return None
    attributes = span.attributes
    when = period(span.start_ns, span.end_ns, received)
    fault = fault_of(span, dialect, tool or "")
    marks = when.marks
    if fault is not None and fault.status_is_guess:
        marks = (*marks, GUESSED_STATUS)
    row = Sighting(
        tool=tool or c.OTHER_LABEL,
        server=server,
        name=name_of(span.name) or "unnamed",
        kind=SPAN_KINDS[span.kind] if 0 < span.kind < len(SPAN_KINDS) else None,
        start=when.start,
        duration_seconds=when.duration_seconds,
        dialect=dialect.name,
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        received_at=received,
        region=text(attributes.get(c.CLOUD_REGION)) or origin.region,
        environment=origin.environment or text(attributes.get(LANGFUSE_ENVIRONMENT)),
        service=origin.service,
        instance=origin.instance,
        agent=name_in(attributes, layout.hints.agent),
        session=name_in(attributes, layout.hints.session),
        framework=framework_behind(origin.framework, attributes),
        instrumentation=origin.instrumentation,
        call_id=call_id_of(attributes, dialect),
        args_hash=hash_of(span, dialect) or likeness_of(span, dialect),
        attempt_number=count(value_at(attributes, dialect.attempt)) or None,
        weight=weight(span.trace_state),
        attributes=document_of(attributes, layout.kept_of_call(attributes), marks),
    )
    if fault is not None:
        _add_fault(row, fault)
    return row


def _add_fault(row: Sighting, fault: ForeignFault) -> None:
    row.failed = True
    row.error_class = fault.verdict.error_class.value
    row.classifier_id = fault.verdict.classifier_id
    row.retryable = fault.verdict.retryable
    row.origin = fault.verdict.origin.value
    row.error_type = fault.error_type
    row.error_message = fault.message
    row.http_status = fault.http_status
    row.evidence = fault.evidence
