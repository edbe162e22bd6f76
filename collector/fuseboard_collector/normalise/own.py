"""Our own shim's spans. They are complete in themselves and say everything outright."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fuseboard import conventions as c
from fuseboard_collector.normalise.incoming import (
    ERROR_STATUS,
    Attributes,
    IncomingSpan,
    Source,
    Value,
)
from fuseboard_collector.normalise.times import period
from fuseboard_collector.normalise.values import count, document_of, flag, number, seconds, text
from fuseboard_collector.store.rows import ARROW_SCHEMAS, Attempt, ToolCall

_Read = Callable[[Value], Any]


def _status(value: Value) -> int | None:
    return count(value, 999)


def _message(value: Value) -> str | None:
    return text(value, c.MAX_MESSAGE_LENGTH)


CALL_COLUMNS: dict[str, tuple[str, _Read]] = {
    c.GEN_AI_TOOL_NAME: ("tool", text),
    c.ATTEMPT_SECONDS: ("attempt_seconds", seconds),
    c.GEN_AI_AGENT_NAME: ("agent", text),
    c.GEN_AI_CONVERSATION_ID: ("session", text),
    c.OUTCOME: ("outcome", text),
    c.ERROR_CLASSIFIED_AS: ("error_class", text),
    c.ERROR_TYPE: ("error_type", text),
    c.ERROR_CAUSE_TYPE: ("cause_type", text),
    c.ERROR_CLASSIFIER_ID: ("classifier_id", text),
    c.ERROR_RETRY_STRATEGY: ("retry_strategy", text),
    c.HTTP_RESPONSE_STATUS_CODE: ("http_status", _status),
    c.ERROR_MESSAGE: ("error_message", _message),
    c.ERROR_RETRYABLE: ("retryable", flag),
    c.ERROR_ORIGIN: ("origin", text),
    c.BACKOFF_SECONDS: ("backoff_seconds", seconds),
    c.LAYER: ("layer", text),
    c.BREAKER_STATE: ("breaker_state", text),
    c.RESULT_SOURCE: ("result_source", text),
    c.RESULT_AGE_SECONDS: ("result_age_seconds", seconds),
    c.RESULT_CONFIDENCE: ("confidence", text),
    c.FALLBACK_TOOL: ("fallback_tool", text),
    c.PARTIAL_FAILURES: ("partial_failures", count),
    c.COST: ("cost", number),
    c.ARGS_HASH: ("args_hash", text),
    c.SERVER_ADDRESS: ("upstream", text),
    c.GEN_AI_TOOL_CALL_ID: ("call_id", text),
    c.CLOUD_REGION: ("region", text),
    c.ATTEMPTS: ("attempts", count),
}
_FIELDS = ARROW_SCHEMAS[ToolCall.TABLE].names
_place = _FIELDS.index
_CELLS = {name: (_place(column), read) for name, (column, read) in CALL_COLUMNS.items()}
_TOOL, _OUTCOME, _REGION, _ATTEMPTS = map(_place, ("tool", "outcome", "region", "attempts"))
_START, _END, _DURATION = map(_place, ("start", "end", "duration_seconds"))
_TRACE_ID, _SPAN_ID, _PARENT_SPAN_ID = map(_place, ("trace_id", "span_id", "parent_span_id"))
_RECEIVED_AT, _ATTRIBUTES = map(_place, ("received_at", "attributes"))
_IMPLIED = frozenset(
    {
        c.GEN_AI_OPERATION_NAME, c.CALL_SPAN_NAME, c.CALL_START_UNIX_NANO,
        c.CALL_DURATION_SECONDS,
    }
)  # fmt: skip


def is_call(span: IncomingSpan) -> bool:
    """Return whether the shim wrote this span for a whole call."""
    attributes = span.attributes
    return (
        c.OUTCOME in attributes
        and attributes.get(c.GEN_AI_OPERATION_NAME) == c.EXECUTE_TOOL
        and isinstance(attributes.get(c.GEN_AI_TOOL_NAME), str)
    )


def is_attempt(span: IncomingSpan) -> bool:
    """Return whether the shim wrote this span for one attempt."""
    return c.ATTEMPT_NUMBER in span.attributes and span.name.startswith(c.TOOL_ATTEMPT)


def is_duplicate(span: IncomingSpan) -> bool:
    """Return whether the shim marked a span of others whose call it has a span of its own for."""
    return span.attributes.get(c.DUPLICATE) is True


def blank(source: Source) -> list[Any]:
    """Return the cells that all calls of a sender have alike; the others are empty.

    Args:
        source: Who sends them.
    """
    cells: list[Any] = [None] * len(_FIELDS)
    cells[_place("environment")] = source.text(c.DEPLOYMENT_ENVIRONMENT)
    cells[_place("service")] = source.text(c.SERVICE_NAME)
    cells[_place("instance")] = source.text(c.SERVICE_INSTANCE_ID)
    cells[_place("framework")] = source.scope or c.SCOPE_NAME
    cells[_place("instrumentation")] = c.SCOPE_NAME
    cells[_place("weight")] = 1.0
    return cells


def call_cells(span: IncomingSpan, source: Source, like: Sequence[Any], received: int) -> list[Any]:
    """Return a call's span as the cells of its row, in the order of ``ToolCall``'s fields.

    Args:
        span: A span for which :func:`is_call` holds.
        source: Who sent it.
        like: What :func:`blank` returned for the source.
        received: When, microseconds since the epoch.
    """
    when = period(span.start_ns, span.end_ns, received)
    cells = list(like)
    others: list[str] = []
    for name, value in span.attributes.items():
        if (column := _CELLS.get(name)) is not None:
            cells[column[0]] = column[1](value)
        elif name not in _IMPLIED:
            others.append(name)
    cells[_TOOL] = cells[_TOOL] or c.OTHER_LABEL
    cells[_OUTCOME] = cells[_OUTCOME] or "error"
    cells[_REGION] = cells[_REGION] or source.text(c.CLOUD_REGION)
    cells[_ATTEMPTS] = cells[_ATTEMPTS] or 0
    cells[_START], cells[_END], cells[_DURATION] = when.start, when.end, when.duration_seconds
    cells[_TRACE_ID], cells[_SPAN_ID] = span.trace_id, span.span_id
    cells[_PARENT_SPAN_ID], cells[_RECEIVED_AT] = span.parent_span_id, received
    cells[_ATTRIBUTES] = document_of(span.attributes, others, when.marks)
    return cells


def call(span: IncomingSpan, source: Source, received: int) -> ToolCall:
    """Return the row of a call's span; see :func:`call_cells`."""
    return ToolCall(*call_cells(span, source, blank(source), received))


def attempt(span: IncomingSpan, source: Source, received: int) -> Attempt:
    """Return the row of an attempt's span.

    Args:
        span: A span for which :func:`is_attempt` holds.
        source: Who sent it.
        received: When, microseconds since the epoch.
    """
    attributes = span.attributes
    when = period(span.start_ns, span.end_ns, received)
    failed = span.status_code == ERROR_STATUS or c.ERROR_TYPE in attributes
    return Attempt(
        trace_id=span.trace_id,
        call_span_id=span.parent_span_id or "",
        number=count(attributes[c.ATTEMPT_NUMBER]) or 1,
        start=when.start,
        duration_seconds=when.duration_seconds,
        tool=text(attributes.get(c.GEN_AI_TOOL_NAME)) or c.OTHER_LABEL,
        result=(c.AttemptResult.FAILURE if failed else c.AttemptResult.SUCCESS).value,
        span_id=span.span_id,
        delay_seconds=seconds(attributes.get(c.ATTEMPT_DELAY_SECONDS)) or 0.0,
        region=region(attributes, source),
        service=source.text(c.SERVICE_NAME),
        environment=source.text(c.DEPLOYMENT_ENVIRONMENT),
        agent=text(attributes.get(c.GEN_AI_AGENT_NAME)),
        error_class=text(attributes.get(c.ERROR_CLASSIFIED_AS)),
        error_type=text(attributes.get(c.ERROR_TYPE)),
        http_status=_status(attributes.get(c.HTTP_RESPONSE_STATUS_CODE)),
        cost=number(attributes.get(c.COST)),
        received_at=received,
    )


def region(attributes: Attributes, source: Source) -> str | None:
    """Return a record's region: its own beats the process's."""
    return text(attributes.get(c.CLOUD_REGION)) or source.text(c.CLOUD_REGION)
