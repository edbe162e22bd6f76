"""The spans of one trace → its calls: relatives merged, attempts joined, context inherited.

The answer depends on the spans alone, never on how they were split over requests or in which
order they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fuseboard import conventions as c
from fuseboard_collector.store.rows import Attempt, Sighting, Span, ToolCall, micros


@dataclass(frozen=True, slots=True)
class Relative:
    """A span of a trace that is no sighting: context, or a call of our own.

    Attributes:
        start: Microseconds since the epoch.
        end: Microseconds since the epoch.
        own_tool: The tool, if the span is a call that the shim recorded.
    """

    span_id: str
    parent_span_id: str | None
    start: int
    end: int
    own_tool: str | None = None
    session: str | None = None
    agent: str | None = None
    http_status: int | None = None


@dataclass(slots=True)
class Trace:
    """All that is known of a trace; both lists in any order."""

    trace_id: str
    sightings: Sequence[Sighting]
    relatives: Sequence[Relative] = ()


@dataclass(slots=True)
class Assembled:
    """What a trace comes to; it replaces whatever the trace came to before.

    Attributes:
        attempts: Those that failed, and all of calls that needed several; the store derives the
            row of an only attempt that succeeded.
        spans: Sightings that tell of a call that another span stands for, as context.
    """

    calls: list[ToolCall] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)


def assemble(trace: Trace) -> Assembled:
    """Return the calls of a trace.

    Args:
        trace: What is known of it now.
    """
    return Assembled(calls=[_call(sighting) for sighting in trace.sightings])


def _call(sighting: Sighting) -> ToolCall:
    return ToolCall(
        tool=sighting.tool,
        server=sighting.server,
        start=sighting.start,
        end=micros(sighting.start) + round(sighting.duration_seconds * 1e6),
        duration_seconds=sighting.duration_seconds,
        attempt_seconds=sighting.duration_seconds,
        outcome=(c.Outcome.ERROR if sighting.failed else c.Outcome.OK).value,
        trace_id=sighting.trace_id,
        span_id=sighting.span_id,
        parent_span_id=sighting.parent_span_id,
        received_at=sighting.received_at,
        region=sighting.region,
        environment=sighting.environment,
        service=sighting.service,
        instance=sighting.instance,
        agent=sighting.agent,
        session=sighting.session,
        framework=sighting.framework,
        instrumentation=sighting.instrumentation,
        error_class=sighting.error_class,
        error_type=sighting.error_type,
        classifier_id=sighting.classifier_id,
        retryable=sighting.retryable,
        origin=sighting.origin,
        http_status=sighting.http_status,
        error_message=sighting.error_message,
        call_id=sighting.call_id,
        args_hash=sighting.args_hash,
        weight=sighting.weight,
        attributes=sighting.attributes,
    )
