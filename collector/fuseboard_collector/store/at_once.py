"""Foreign spans assembled request by request, for a store that keeps none back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from fuseboard_collector.normalise import assembly
from fuseboard_collector.store.relatives import relatives_of
from fuseboard_collector.store.rows import Attempt, Batch, Sighting, Span, ToolCall

_Row = TypeVar("_Row", Sighting, Span, ToolCall, Attempt)


def assembled_at_once(batch: Batch) -> Batch:
    """Return a batch with calls in place of its sightings.

    Only what came in the same request counts as a relative: send whole traces, as a collector
    does that groups by trace.

    Args:
        batch: It is not changed.
    """
    if not batch.sightings:
        return batch
    traces = _by_trace(batch.sightings)
    calls = batch.all_calls()
    own_calls, own_attempts = _by_trace(calls), _by_trace(batch.attempts)
    context = _by_trace(batch.spans)
    attempts, spans = list(batch.attempts), list(batch.spans)
    for trace_id, sightings in traces.items():
        relatives = relatives_of(own_calls[trace_id], own_attempts[trace_id], context[trace_id])
        found = assembly.assemble(assembly.Trace(trace_id, sightings, relatives))
        calls += found.calls
        attempts += found.attempts
        spans += found.spans
    return replace(batch, calls=calls, attempts=attempts, spans=spans, sightings=[], call_cells=[])


def _by_trace(rows: Iterable[_Row]) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        found[row.trace_id].append(row)
    return found
