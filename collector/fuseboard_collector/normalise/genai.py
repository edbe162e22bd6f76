"""OpenTelemetry GenAI ``execute_tool`` spans of anyone else → calls."""

from __future__ import annotations

from fuseboard import conventions as c
from fuseboard_collector.normalise import own
from fuseboard_collector.normalise.contents import contents_in
from fuseboard_collector.normalise.faults import ForeignFault, fault_of
from fuseboard_collector.normalise.frameworks import framework_of
from fuseboard_collector.normalise.incoming import Attributes, IncomingSpan, Source
from fuseboard_collector.normalise.sampling import weight
from fuseboard_collector.normalise.times import period
from fuseboard_collector.normalise.values import MAX_NAME, clean, remaining, text
from fuseboard_collector.store.rows import Sighting

OLD_ENVIRONMENT = "deployment.environment"
SESSION_NAMES = (c.GEN_AI_CONVERSATION_ID, "session.id")
NO_CALL_ID = "<not specified>"
# Google ADK groups the results of parallel calls in a span of this name.
SYNTHETIC_TOOLS = frozenset({"(merged tools)"})

_MCP_PREFIX = "mcp__"
_PROMOTED = frozenset(
    {
        c.GEN_AI_OPERATION_NAME, c.GEN_AI_TOOL_NAME, c.GEN_AI_TOOL_CALL_ID, c.GEN_AI_AGENT_NAME,
        c.ERROR_TYPE, c.HTTP_RESPONSE_STATUS_CODE, c.CLOUD_REGION, *SESSION_NAMES,
    }
)  # fmt: skip


def is_call(span: IncomingSpan) -> bool:
    """Return whether the span is one execution of a tool by GenAI conventions."""
    return (
        span.attributes.get(c.GEN_AI_OPERATION_NAME) == c.EXECUTE_TOOL
        and _name(span) not in SYNTHETIC_TOOLS
    )


def sighting(span: IncomingSpan, source: Source, received: int) -> Sighting:
    """Return what a foreign span says of a call, with our class for its fault.

    Args:
        span: A span for which :func:`is_call` holds.
        source: Who sent it.
        received: When, microseconds since the epoch.
    """
    attributes = span.attributes
    when = period(span.start_ns, span.end_ns, received)
    server, tool = _split_server(_name(span) or c.OTHER_LABEL)
    call_id = text(attributes.get(c.GEN_AI_TOOL_CALL_ID))
    fault = fault_of(span)
    marks = list(when.marks)
    if fault is not None and fault.status_is_guess:
        marks.append("http_status read from a message")
    row = Sighting(
        tool=tool,
        server=server,
        name=clean(span.name)[:MAX_NAME] or "unnamed",
        start=when.start,
        duration_seconds=when.duration_seconds,
        dialect="genai",
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        received_at=received,
        region=own.region(attributes, source),
        environment=source.text(c.DEPLOYMENT_ENVIRONMENT) or source.text(OLD_ENVIRONMENT),
        service=source.text(c.SERVICE_NAME),
        instance=source.text(c.SERVICE_INSTANCE_ID),
        agent=text(attributes.get(c.GEN_AI_AGENT_NAME)),
        session=_first(attributes, SESSION_NAMES),
        framework=framework_of(source.scope),
        instrumentation=source.scope[:MAX_NAME] or None,
        call_id=None if call_id == NO_CALL_ID else call_id,
        weight=weight(span.trace_state),
        attributes=remaining(attributes, _PROMOTED | contents_in(attributes), marks),
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


def _name(span: IncomingSpan) -> str | None:
    """Return the tool's name: the attribute, else what follows the operation in the name."""
    given = text(span.attributes.get(c.GEN_AI_TOOL_NAME))
    return given or text(span.name.removeprefix(c.EXECUTE_TOOL).strip())


def _split_server(name: str) -> tuple[str | None, str]:
    """Return MCP server and tool of a name like ``mcp__files__read``."""
    if name.startswith(_MCP_PREFIX):
        server, _, tool = name.removeprefix(_MCP_PREFIX).partition("__")
        if server and tool:
            return server, tool
    return None, name


def _first(attributes: Attributes, names: tuple[str, ...]) -> str | None:
    return next((found for name in names if (found := text(attributes.get(name)))), None)
