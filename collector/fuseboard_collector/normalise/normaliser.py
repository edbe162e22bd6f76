"""Incoming telemetry → rows: our own dialect first, then everybody else's."""

from __future__ import annotations

from collections import Counter

from fuseboard_collector.normalise import own
from fuseboard_collector.normalise.arguments import with_arguments
from fuseboard_collector.normalise.context import span_row
from fuseboard_collector.normalise.dialects.recognising import recognise
from fuseboard_collector.normalise.events import IncompleteEventError, add_event
from fuseboard_collector.normalise.incoming import IncomingSpan, Logs, Traces
from fuseboard_collector.normalise.layouts import layout_of
from fuseboard_collector.normalise.origin import Origin, origin_of
from fuseboard_collector.normalise.sightings import sighting
from fuseboard_collector.store.rows import Batch


def normalise_traces(traces: Traces, received: int, *, keep_arguments: bool = False) -> Batch:
    """Return the rows of a trace request: every span is a call, an attempt, or context.

    Args:
        traces: The decoded request.
        received: When it arrived, microseconds since the epoch.
        keep_arguments: Whether the arguments of foreign calls are stored, redacted and bounded.
    """
    batch = Batch()
    for source, spans in traces.groups:
        origin, like = origin_of(source), own.blank(source)
        for span in spans:
            if own.is_call(span):
                batch.call_cells.append(own.call_cells(span, source, like, received))
            elif own.is_attempt(span) and span.parent_span_id is not None:
                batch.attempts.append(own.attempt(span, source, received))
            else:
                _add_foreign(span, origin, received, batch, keep_arguments)
    return batch


def _add_foreign(
    span: IncomingSpan, origin: Origin, received: int, batch: Batch, keep_arguments: bool
) -> None:
    layout = layout_of(span.attributes)
    dialect = recognise(span, layout.marks, origin.dialect)
    seen = None
    if dialect is not None and not own.is_duplicate(span):
        seen = sighting(span, origin, layout, dialect, received)
    if seen is not None and dialect is not None:
        if keep_arguments:
            seen.attributes = with_arguments(seen.attributes, span, dialect)
        batch.sightings.append(seen)
    else:
        batch.spans.append(span_row(span, origin, layout, received))


def normalise_logs(logs: Logs, received: int) -> tuple[Batch, int, Counter[str]]:
    """Return the rows of a log request.

    Args:
        logs: The decoded request.
        received: When it arrived, microseconds since the epoch.

    Returns:
        The rows; how many records are none of ours and were left out; and how many are ours
        but can't be stored, by reason.
    """
    batch = Batch()
    ignored = 0
    rejected: Counter[str] = Counter()
    for source, records in logs.groups:
        for record in records:
            try:
                ignored += not add_event(record, source, received, batch)
            except IncompleteEventError as error:
                rejected[str(error)] += 1
    return batch, ignored, rejected
