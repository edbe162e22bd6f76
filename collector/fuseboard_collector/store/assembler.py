"""Foreign spans on disk → stored calls: reads what is known of traces and replaces what it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TypeVar

import duckdb
import pyarrow as pa

from fuseboard import conventions as c
from fuseboard_collector.normalise import assembly
from fuseboard_collector.store.inserting import insert_rows
from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.relatives import relatives_of
from fuseboard_collector.store.replacing import Replacement, Stored
from fuseboard_collector.store.rows import (
    ARROW_SCHEMAS,
    Attempt,
    Sighting,
    Span,
    ToolCall,
    micros,
    to_arrow,
)
from fuseboard_collector.store.staging import HORIZON_SECONDS, Due

Connection = duckdb.DuckDBPyConnection
StoredRow = TypeVar("StoredRow", Sighting, Span, ToolCall, Attempt)

MAX_RELATIVES = 100_000
"""Rows of one table that are read beside the foreign spans of tools of one batch."""
_CLOCKS_APART = 60_000_000
# Microseconds: clocks of two machines, by which a relative may seem to arrive before it began.
_OLDEST = int(4 * HORIZON_SECONDS * 1e6)
# A start that lies further back than this before its arrival is no clue to when relatives came.


@dataclass(slots=True)
class Report:
    """What an assembly did.

    Attributes:
        arrivals: Per trace, when the first and the last of its foreign spans arrived.
        calls: Calls inserted.
        again: Traces that had been assembled to something before.
        late: New spans of traces that had calls whose spans had been deleted already.
    """

    arrivals: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    calls: int = 0
    again: int = 0
    late: int = 0


def assemble_traces(connection: Connection, due: Sequence[Due]) -> Report:
    """Assemble traces within the transaction that is open.

    Args:
        connection: The writer's.
        due: The traces; at least one.

    Returns:
        What was done, to be believed after the commit.
    """
    report = Report(arrivals={item.trace: (item.since, item.since) for item in due})
    connection.register("due", _due_table(due))
    try:
        sightings = _sightings(connection, due)
        replacement = Replacement()
        if sightings:
            since = _relatives_since(sightings)
            stored = _stored(connection, since)
            for trace_id, found in groupby(sightings, attrgetter("trace_id")):
                _assemble(trace_id, list(found), stored[trace_id], replacement, report)
            _carry_out(connection, replacement, since)
        _run(connection, "staged_unmark")
    finally:
        connection.unregister("due")
    report.calls = len(replacement.calls)
    return report


def _assemble(
    trace_id: str,
    sightings: Sequence[Sighting],
    stored: Stored,
    replacement: Replacement,
    report: Report,
) -> None:
    arrivals = [micros(item.received_at or 0) for item in sightings]
    report.arrivals[bytes.fromhex(trace_id)] = (min(arrivals), max(arrivals))
    before, others = stored.split({item.span_id for item in sightings})
    relatives = relatives_of(others.calls, others.attempts, others.spans)
    after = assembly.assemble(assembly.Trace(trace_id, sightings, relatives))
    replacement.replace(before, Stored(after.calls, after.attempts, after.spans))
    report.again += bool(before)
    if any(item.instrumentation not in (None, c.SCOPE_NAME) for item in others.calls):
        report.late += len({item.span_id for item in sightings} - before.span_ids())


# --- reading and writing ---------------------------------------------------------------------
def _due_table(due: Sequence[Due]) -> pa.Table:
    return pa.table(
        {
            "trace_id": pa.array([item.trace.hex() for item in due], pa.string()),
            "since": pa.array([item.since for item in due], pa.timestamp("us")),
        }
    )


def _sightings(connection: Connection, due: Sequence[Due]) -> list[Sighting]:
    """Return the foreign spans of tools, each once, those of one trace together."""
    since = min(item.since for item in due)
    found = _rows(connection, "staged_sightings", Sighting, {"since": naive_time(since)})
    first: dict[tuple[str, str], Sighting] = {}
    for row in found:
        first.setdefault((row.trace_id, row.span_id), row)
    return sorted(first.values(), key=attrgetter("trace_id"))


def _relatives_since(sightings: Sequence[Sighting]) -> datetime:
    """Return a time before which no relative can have arrived: none ended before they began."""
    arrival = min(micros(item.received_at or 0) for item in sightings)
    began = min(micros(item.start) for item in sightings)
    return naive_time(max(min(arrival, began) - _CLOCKS_APART, arrival - _OLDEST))


def _stored(connection: Connection, since: datetime) -> Mapping[str, Stored]:
    bound = {"since": since, "most": MAX_RELATIVES}
    traces: dict[str, Stored] = defaultdict(Stored)
    for call in _rows(connection, "staged_calls", ToolCall, bound):
        traces[call.trace_id].calls.append(call)
    if traces:
        for attempt in _rows(connection, "staged_attempts", Attempt, bound):
            traces[attempt.trace_id].attempts.append(attempt)
    for span in _rows(connection, "staged_spans", Span, bound):
        traces[span.trace_id].spans.append(span)
    return traces


def _rows(
    connection: Connection, name: str, row_type: type[StoredRow], bound: Mapping[str, object]
) -> list[StoredRow]:
    """Return the rows of a query; its columns may come in any order."""
    result = connection.execute(load(name, "writes").statements[0].sql, bound)
    columns = [item[0] for item in result.description or ()]
    in_order = itemgetter(*map(columns.index, ARROW_SCHEMAS[row_type.TABLE].names))
    return [row_type(*in_order(row)) for row in result.fetchall()]


def _carry_out(connection: Connection, replacement: Replacement, since: datetime) -> None:
    if replacement.gone:
        traces, spans = zip(*replacement.gone, strict=True)
        connection.register("gone", pa.table({"trace_id": traces, "span_id": spans}))
        try:
            _run(connection, "staged_replace", {"since": since})
        finally:
            connection.unregister("gone")
    for rows in (replacement.calls, replacement.attempts, replacement.spans):
        if rows:
            insert_rows(connection, rows[0].TABLE, to_arrow(rows))


def _run(connection: Connection, name: str, bound: Mapping[str, object] | None = None) -> None:
    for statement in load(name, "writes").statements:
        connection.execute(statement.sql, bound).fetchall()


def naive_time(instant: int) -> datetime:
    """Return microseconds since the epoch as the engine's timestamps are bound."""
    return datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(microseconds=instant)
