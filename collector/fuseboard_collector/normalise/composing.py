"""A call's executions → its row, those of its attempts, and those of spans that tell no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from fuseboard import conventions as c
from fuseboard_collector.normalise.executions import Execution
from fuseboard_collector.normalise.judging import ending_of
from fuseboard_collector.normalise.lineage import Seen
from fuseboard_collector.store.rows import (
    UNNAMED_SCOPE,
    Attempt,
    Sighting,
    Span,
    ToolCall,
    micros,
)

_ERROR = c.Outcome.ERROR.value
_OK = c.Outcome.OK.value
_FAILURE = c.AttemptResult.FAILURE.value
_SUCCESS = c.AttemptResult.SUCCESS.value


def call_row(call: Sequence[Execution], tries: Sequence[Execution]) -> ToolCall:
    """Return a call's row. Its id is that of its first span, its fault that of its last attempt.

    Args:
        call: Its executions in order of time.
        tries: Its attempts, some of which may be inside of an execution.
    """
    first, last = call[0], call[-1]
    span, failure = first.outermost, last.failure
    duration = span.duration_seconds if last is first else (last.end - first.start) / 1e6
    row = ToolCall(
        tool=first.tool,
        server=first.first("server"),
        start=first.start,
        end=last.end,
        duration_seconds=duration,
        attempt_seconds=duration,
        outcome=_OK if failure is None else ending_of(failure.error_type).value,
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        received_at=span.received_at,
        region=first.first("region"),
        environment=first.first("environment"),
        service=span.service,
        instance=span.instance,
        agent=first.agent,
        session=first.session,
        framework=span.framework,
        instrumentation=_instrumentation(span),
        call_id=first.first("call_id"),
        args_hash=first.args_hash,
        weight=span.weight,
        attributes=span.attributes,
    )
    if failure is not None and row.outcome == _ERROR:
        row.error_class = failure.error_class
        row.error_type = failure.error_type
        row.classifier_id = failure.classifier_id
        row.retryable = failure.retryable
        row.origin = failure.origin
        row.http_status = failure.http_status
        row.error_message = failure.message
    if len(tries) > 1 or span.attempt_number is not None:
        _add_attempts(row, call, tries)
    return row


def _instrumentation(span: Sighting) -> str:
    """Return who told of a call: never nobody, nor us, whatever the sender's scope is called."""
    told = span.instrumentation
    return UNNAMED_SCOPE if told is None or told == c.SCOPE_NAME else told


def _add_attempts(row: ToolCall, call: Sequence[Execution], tries: Sequence[Execution]) -> None:
    # The numbers that spans give tell of attempts whose spans are missing, too.
    row.attempts = max(len(tries), call[-1].outermost.attempt_number or 0)
    row.attempt_seconds = sum(item.outermost.duration_seconds for item in tries)
    row.backoff_seconds = sum(_delays(tries))
    row.received_at = max(micros(item.outermost.received_at or 0) for item in call)


def attempt_rows(call: Sequence[Execution], tries: Sequence[Execution]) -> Iterator[Attempt]:
    """Return the rows of the attempts of a call that failed or needed several.

    Args:
        call: Its executions in order of time.
        tries: Its attempts.
    """
    if len(tries) == 1 and tries[0].failure is None:
        return
    call_span = call[0].outermost
    for number, (item, delay) in enumerate(zip(tries, _delays(tries), strict=True), 1):
        span, failure = item.outermost, item.failure
        row = Attempt(
            trace_id=span.trace_id,
            call_span_id=call_span.span_id,
            number=span.attempt_number or number,
            start=item.start,
            duration_seconds=span.duration_seconds,
            tool=item.tool,
            result=_SUCCESS if failure is None else _FAILURE,
            span_id=span.span_id,
            delay_seconds=delay,
            region=item.first("region") or call_span.region,
            service=call_span.service,
            environment=call[0].first("environment"),
            agent=call[0].agent,
            weight=call_span.weight,
            received_at=span.received_at,
        )
        if failure is not None and ending_of(failure.error_type) is c.Outcome.ERROR:
            row.error_class = failure.error_class
            row.error_type = failure.error_type
            row.http_status = failure.http_status
        yield row


def _delays(tries: Sequence[Execution]) -> Iterator[float]:
    """Yield how long was waited before each attempt, in seconds."""
    yield 0.0
    for earlier, later in pairwise(tries):
        yield max(later.start - earlier.end, 0) / 1e6


def context_row(seen: Seen) -> Span:
    """Return a sighting that tells no more than another span does, as context.

    Args:
        seen: The sighting.
    """
    span = seen.sighting
    return Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        name=span.name,
        start=seen.start,
        duration_seconds=span.duration_seconds,
        parent_span_id=span.parent_span_id,
        kind=span.kind,
        service=span.service,
        status="error" if span.failed else "unset",
        instrumentation=span.instrumentation,
        session=span.session,
        agent=span.agent,
        operation=c.EXECUTE_TOOL,
        http_status=span.http_status,
        attributes=span.attributes,
        received_at=span.received_at,
    )


def context_rows(call: Sequence[Execution], tries: Sequence[Execution]) -> Iterator[Span]:
    """Return the sightings of a call for which there is no other row.

    Args:
        call: Its executions.
        tries: Its attempts.
    """
    told = sum(len(execution.spans) for execution in call)
    if told == 1:
        return
    rows = {execution.outermost.span_id for execution in (*call, *tries)}
    for execution in call:
        yield from (
            context_row(seen) for seen in execution.spans if seen.sighting.span_id not in rows
        )
