"""Foreign spans on disk → stored calls: reads what is known of traces and replaces what it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from fuseboard_collector.normalise import assembly
from fuseboard_collector.normalise.related import Relative
from fuseboard_collector.store.inserting import insert_rows
from fuseboard_collector.store.named_queries import load
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
_RELATIVE_COLUMNS = ("trace_id", "is_foreign_call", *(item.name for item in fields(Relative)))
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
    replacement = Replacement()
    with _registered(connection, "due", _due_table(due)):
        sightings = _sightings(connection, due)
        if sightings:
            since = _relatives_since(sightings)
            beside = _beside(connection, since)
            # Ids are the sender's choice: none may stand in for a call of our own.
            sightings = [row for row in sightings if row.span_id not in beside[row.trace_id].own]
            before = _before(connection, _met_before(due, sightings), since)
            for trace_id, found in groupby(sightings, attrgetter("trace_id")):
                known = Known(list(found), beside[trace_id], before[trace_id])
                _assemble(trace_id, known, replacement, report)
            _carry_out(connection, replacement, since)
        _run(connection, "staged_unmark")
    report.calls = len(replacement.calls)
    return report


@dataclass(slots=True)
class Beside:
    """What stands beside the foreign spans of tools of a trace.

    Attributes:
        calls: Ids of calls of others among them; their foreign spans have been deleted unless
            they are here as well.
        own: Ids of our own calls among them.
    """

    relatives: list[Relative] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Known:
    """All that is on disk of a trace."""

    sightings: Sequence[Sighting]
    beside: Beside
    before: Stored


def _assemble(trace_id: str, known: Known, replacement: Replacement, report: Report) -> None:
    seen = {item.span_id for item in known.sightings}
    arrivals = [micros(item.received_at or 0) for item in known.sightings]
    report.arrivals[bytes.fromhex(trace_id)] = (min(arrivals), max(arrivals))
    relatives = [item for item in known.beside.relatives if item.span_id not in seen]
    after = assembly.assemble(assembly.Trace(trace_id, known.sightings, relatives))
    replacement.replace(known.before, Stored(after.calls, after.attempts, after.spans))
    report.again += bool(known.before)
    if known.beside.calls - seen:
        report.late += len(seen - known.before.span_ids())


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


def _beside(connection: Connection, since: datetime) -> Mapping[str, Beside]:
    bound = {"since": since, "most": MAX_RELATIVES}
    result = connection.execute(_sql("staged_relatives"), bound)
    in_order = _picked(result, _RELATIVE_COLUMNS)
    traces: dict[str, Beside] = defaultdict(Beside)
    for row in result.fetchall():
        trace_id, is_foreign_call, *facts = in_order(row)
        relative = Relative(*facts)
        traces[trace_id].relatives.append(relative)
        if is_foreign_call:
            traces[trace_id].calls.add(relative.span_id)
        elif relative.own_tool is not None:
            traces[trace_id].own.add(relative.span_id)
    return traces


def _met_before(due: Sequence[Due], sightings: Sequence[Sighting]) -> pa.Table | None:
    """Return the ids of foreign spans that may have been assembled before; None if none may.

    One whose first copy has been deleted since began before anything that is kept arrived.
    """
    old = {item.trace.hex() for item in due if not item.is_new}
    kept = int(HORIZON_SECONDS * 1e6)
    found = [
        item for item in sightings
        if item.trace_id in old or micros(item.received_at or 0) - micros(item.start) > kept
    ]  # fmt: skip
    if not found:
        return None
    return pa.table(
        {"trace_id": [row.trace_id for row in found], "span_id": [row.span_id for row in found]}
    )


def _before(connection: Connection, seen: pa.Table | None, since: datetime) -> Mapping[str, Stored]:
    traces: dict[str, Stored] = defaultdict(Stored)
    if seen is None:
        return traces
    bound = {"since": since}
    with _registered(connection, "seen", seen):
        for call in _rows(connection, "staged_calls", ToolCall, bound):
            traces[call.trace_id].calls.append(call)
        for attempt in _rows(connection, "staged_attempts", Attempt, bound):
            traces[attempt.trace_id].attempts.append(attempt)
        for span in _rows(connection, "staged_spans", Span, bound):
            traces[span.trace_id].spans.append(span)
    return traces


def _rows(
    connection: Connection, name: str, row_type: type[StoredRow], bound: Mapping[str, object]
) -> list[StoredRow]:
    """Return the rows of a query; its columns may come in any order."""
    result = connection.execute(_sql(name), bound)
    in_order = _picked(result, ARROW_SCHEMAS[row_type.TABLE].names)
    return [row_type(*in_order(row)) for row in result.fetchall()]


def _picked(
    result: Connection, names: Sequence[str]
) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    columns = [item[0] for item in result.description or ()]
    return itemgetter(*map(columns.index, names))


def _carry_out(connection: Connection, replacement: Replacement, since: datetime) -> None:
    if replacement.gone:
        traces, spans = zip(*replacement.gone, strict=True)
        with _registered(connection, "gone", pa.table({"trace_id": traces, "span_id": spans})):
            _run(connection, "staged_replace", {"since": since})
    for rows in (replacement.calls, replacement.attempts, replacement.spans):
        if rows:
            insert_rows(connection, rows[0].TABLE, to_arrow(rows))


@contextmanager
def _registered(connection: Connection, name: str, table: pa.Table) -> Iterator[None]:
    connection.register(name, table)
    try:
        yield
    finally:
        connection.unregister(name)


def _sql(name: str) -> str:
    return load(name, "writes").statements[0].sql


def _run(connection: Connection, name: str, bound: Mapping[str, object] | None = None) -> None:
    for statement in load(name, "writes").statements:
        connection.execute(statement.sql, bound).fetchall()


def naive_time(instant: int) -> datetime:
    """Return microseconds since the epoch as the engine's timestamps are bound."""
    return datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(microseconds=instant)
