"""The spans of one trace → its calls: relatives merged, attempts joined, context inherited.

The answer depends on the spans alone, never on how they were split over requests or in which
order they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fuseboard_collector.normalise.composing import (
    attempt_rows,
    call_row,
    context_row,
    context_rows,
)
from fuseboard_collector.normalise.executions import execution_of
from fuseboard_collector.normalise.lineage import Lineage
from fuseboard_collector.normalise.related import Relative
from fuseboard_collector.normalise.retries import Retries
from fuseboard_collector.normalise.twins import join_twins
from fuseboard_collector.store.rows import Attempt, Sighting, Span, ToolCall

__all__ = ["Assembled", "Relative", "Trace", "assemble"]


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
    found = Assembled()
    lineage = Lineage(trace.sightings, trace.relatives)
    executions = []
    for group in join_twins(lineage.groups):
        if group.own is None:
            executions.append(execution_of(group))
        else:
            found.spans += [context_row(seen) for seen in group.seen]
    for call in Retries(lineage, trace.relatives).calls_of(executions):
        tries = [item for execution in call for item in execution.tries or (execution,)]
        found.calls.append(call_row(call, tries))
        found.attempts += attempt_rows(call, tries)
        found.spans += context_rows(call, tries)
    return found
