"""Stored rows → what assembly wants to know of the spans beside the foreign ones of tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fuseboard import conventions as c
from fuseboard_collector.normalise import assembly
from fuseboard_collector.store.rows import Attempt, Span, ToolCall, micros


def relatives_of(
    calls: Iterable[ToolCall], attempts: Iterable[Attempt], spans: Iterable[Span]
) -> Sequence[assembly.Relative]:
    """Return the relatives of a trace.

    Args:
        calls: Calls that stand: ours, and those whose foreign spans have been deleted.
        attempts: Ours; what an attempt did is below it.
        spans: Context.
    """
    return [*map(_of_call, calls), *map(_of_attempt, attempts), *map(_of_span, spans)]


def is_own(call: ToolCall) -> bool:
    """Return whether the shim recorded a call; rows older than the column say nothing."""
    return call.instrumentation in (None, c.SCOPE_NAME)


def _of_call(call: ToolCall) -> assembly.Relative:
    return assembly.Relative(
        call.span_id, call.parent_span_id, micros(call.start or 0), micros(call.end or 0),
        own_tool=call.tool, session=call.session, agent=call.agent, http_status=call.http_status,
    )  # fmt: skip


def _of_attempt(attempt: Attempt) -> assembly.Relative:
    start = micros(attempt.start)
    return assembly.Relative(
        attempt.span_id, attempt.call_span_id, start,
        start + round(attempt.duration_seconds * 1e6), http_status=attempt.http_status,
    )  # fmt: skip


def _of_span(span: Span) -> assembly.Relative:
    start = micros(span.start)
    return assembly.Relative(
        span.span_id, span.parent_span_id, start, start + round(span.duration_seconds * 1e6),
        session=span.session, agent=span.agent, http_status=span.http_status,
        operation=span.operation,
    )  # fmt: skip
