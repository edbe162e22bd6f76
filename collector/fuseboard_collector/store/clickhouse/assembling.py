"""Foreign spans in ClickHouse → calls, by any number of servers that know nothing of each other.

Whoever stored a span of a trace assembles the trace after the grace time, from everything that
the database has of it, whichever server took it. What it comes to carries a version that grows
with what was known: the latest arrival and the number of spans. So of two servers the one that
knew more wins, whenever it writes; with equal knowledge both write the same. Rows that the trace
came to before and no longer does are stored once more, as deleted. A server that finds spans of
a trace that it did not take itself looks again later: the other may have written meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from fuseboard.clock import Clock
from fuseboard_collector.normalise import assembly
from fuseboard_collector.stats import Stats
from fuseboard_collector.store.assembler import MAX_RELATIVES, Report, naive_time
from fuseboard_collector.store.assembling import Assembling
from fuseboard_collector.store.clickhouse.connection import SETTINGS
from fuseboard_collector.store.clickhouse.session import insert
from fuseboard_collector.store.clickhouse.values import encoded
from fuseboard_collector.store.dialects import CLICKHOUSE
from fuseboard_collector.store.named_queries import source
from fuseboard_collector.store.relatives import is_own, relatives_of
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
from fuseboard_collector.store.staging import HORIZON_SECONDS, Due, News, Staging

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

_Row = TypeVar("_Row", Sighting, ToolCall, Attempt, Span)

_ABANDONED_SECONDS: Final = 60.0
"""How long a trace waits before a server takes it up that took none of its spans."""


class SharedAssembling(Assembling):
    """Assembly in a database that other servers write to as well."""

    def __init__(self, staging: Staging, stats: Stats, clock: Clock) -> None:
        super().__init__(staging, stats, clock)
        self._again: list[bytes] = []

    def reload(self, client: Any) -> None:
        """Take up what waits in the database, whoever took it."""
        found = self._traces(client)
        self.staging.reload(
            [(trace, first) for trace, first, _, _, waits in found if waits],
            [(trace, first, last, amount) for trace, first, last, amount, _ in found],
        )

    def mark(self, connection: Any, news: News) -> None:
        """Do nothing: what waits can be told from what is stored."""

    def assemble(self, connection: Any, due: Sequence[Due]) -> Report:
        """Assemble traces and replace what they came to before."""
        client: Client = connection
        report = Report(arrivals={item.trace: (item.since, item.since) for item in due})
        sightings = _by_trace(_rows(client, Sighting, due, self._horizon()))
        stored = _stored(client, due, self._horizon())
        made = Made()
        for trace_id, seen in sightings.items():
            changed = made.replace(trace_id, seen, stored[trace_id], report)
            if changed and len(seen) > self.staging.sightings_of(bytes.fromhex(trace_id)):
                self._again.append(bytes.fromhex(trace_id))
        made.store(client)
        report.calls = len(made.replacement.calls)
        return report

    def stored(self, report: Report) -> None:
        """Count what an assembly did; traces that others know of too are looked at again."""
        super().stored(report)
        again, self._again = self._again, []
        if again:
            now = self._clock.time_ns() // 1000
            self.staging.note(News(dict.fromkeys(again, 0), [], now))

    def _expire(self, connection: Any) -> None:
        """Take up what a server left that is gone; old spans expire by the table's own rule."""
        now = self._clock.time_ns() // 1000
        left = [
            trace
            for trace, _, last, _, waits in self._traces(connection)
            if waits and last < now - _ABANDONED_SECONDS * 1e6
        ]
        self.staging.note(News(dict.fromkeys(left, 0), [], now))
        self.staging.forget_before(now - int(HORIZON_SECONDS * 1e6))

    def _horizon(self) -> int:
        return self._clock.time_ns() // 1000 - int(HORIZON_SECONDS * 1e6)

    def _traces(self, client: Client) -> list[tuple[bytes, int, int, int, bool]]:
        text = source("staged_traces", "clickhouse/sql")
        bound = {"since": naive_time(self._horizon()), "most": self.staging.max_known}
        values = encoded("staged_traces", text, bound)
        found = client.query(CLICKHOUSE.render(text), values, dict(SETTINGS)).result_rows
        return [
            (bytes.fromhex(trace), int(first), int(last), int(amount), bool(waits))
            for trace, first, last, amount, waits in found
        ]


class Made:
    """What traces come to, and what has to be written for it."""

    def __init__(self) -> None:
        self.replacement = Replacement()
        self._versions: dict[str, int] = {}
        self._before: list[ToolCall | Attempt | Span] = []

    def replace(
        self, trace_id: str, seen: Sequence[Sighting], stored: Stored, report: Report
    ) -> bool:
        """Add a trace; return whether anything has to be written."""
        # Ids are the sender's choice: none may stand in for a call of our own.
        own = {call.span_id for call in stored.calls if is_own(call)}
        seen = [item for item in seen if item.span_id not in own]
        if not seen:
            return False
        before, others = _split(stored, {item.span_id for item in seen})
        relatives = relatives_of(others.calls, others.attempts, others.spans)
        after = assembly.assemble(assembly.Trace(trace_id, seen, relatives))
        had = _size(self.replacement)
        self.replacement.replace(before, Stored(after.calls, after.attempts, after.spans))
        self._before += [*before.calls, *before.attempts, *before.spans]
        arrivals = [micros(item.received_at or 0) for item in seen]
        beside: list[ToolCall | Attempt | Span] = [*others.calls, *others.attempts, *others.spans]
        latest = max(*arrivals, *(micros(row.received_at or 0) for row in beside), 0)
        self._versions[trace_id] = 2 * (latest + len(seen) + len(beside))
        report.arrivals[bytes.fromhex(trace_id)] = (min(arrivals), max(arrivals))
        report.again += bool(before)
        return _size(self.replacement) > had

    def store(self, client: Client) -> None:
        """Write what changed, calls last; what is gone under a version just below the new."""
        gone = set(self.replacement.gone)
        deleted = [row for row in self._before if (row.trace_id, _made_of(row)) in gone]
        new: Sequence[ToolCall | Attempt | Span] = [
            *self.replacement.spans, *self.replacement.attempts, *self.replacement.calls,
        ]  # fmt: skip
        for kind in (Span, Attempt, ToolCall):
            rows = [(row, 1) for row in deleted if isinstance(row, kind)]
            rows += [(row, 0) for row in new if isinstance(row, kind)]
            if rows:
                insert(client, "", kind.TABLE, self._versioned(rows))

    def _versioned(self, rows: Sequence[tuple[ToolCall | Attempt | Span, int]]) -> pa.Table:
        versions = [self._versions[row.trace_id] - deleted for row, deleted in rows]
        return (
            to_arrow([row for row, _ in rows])
            .append_column("version", pa.array(versions, pa.uint64()))
            .append_column("is_deleted", pa.array([deleted for _, deleted in rows], pa.uint8()))
        )


def _split(stored: Stored, seen: set[str]) -> tuple[Stored, Stored]:
    """Return what was made of foreign spans of tools, and everything else."""
    made, others = Stored(), Stored()
    for call in stored.calls:
        (made if call.span_id in seen else others).calls.append(call)
    for attempt in stored.attempts:
        (made if attempt.call_span_id in seen else others).attempts.append(attempt)
    for span in stored.spans:
        (made if span.span_id in seen else others).spans.append(span)
    return made, others


def _size(replacement: Replacement) -> int:
    return sum(
        len(rows)
        for rows in (
            replacement.gone, replacement.calls, replacement.attempts, replacement.spans,
        )
    )  # fmt: skip


def _made_of(row: ToolCall | Attempt | Span) -> str:
    """Return the foreign span that a row stands for."""
    return row.call_span_id if isinstance(row, Attempt) else row.span_id


def _by_trace(sightings: Sequence[Sighting]) -> Mapping[str, list[Sighting]]:
    traces: dict[str, list[Sighting]] = defaultdict(list)
    for item in sorted(sightings, key=lambda item: micros(item.received_at or 0)):
        traces[item.trace_id].append(item)
    return traces


def _stored(client: Client, due: Sequence[Due], since: int) -> Mapping[str, Stored]:
    traces: dict[str, Stored] = defaultdict(Stored)
    for call in _rows(client, ToolCall, due, since):
        traces[call.trace_id].calls.append(call)
    for attempt in _rows(client, Attempt, due, since, "span_id IS NOT NULL"):
        traces[attempt.trace_id].attempts.append(attempt)
    for span in _rows(client, Span, due, since):
        traces[span.trace_id].spans.append(span)
    return traces


def _rows(
    client: Client, kind: type[_Row], due: Sequence[Due], since: int, where: str = "true"
) -> list[_Row]:
    """Return the rows of a table that are of traces which are due."""
    columns = ", ".join(
        f'toUnixTimestamp64Micro("{field.name}")' if pa.types.is_timestamp(field.type)
        else f'"{field.name}"'
        for field in ARROW_SCHEMAS[kind.TABLE]
    )  # fmt: skip
    found = client.query(
        f"SELECT {columns} FROM {kind.TABLE} "  # noqa: S608
        "WHERE trace_id IN {traces:Array(String)} "
        f"AND received_at >= fromUnixTimestamp64Micro({{since:Int64}}) AND {where} "
        "ORDER BY received_at DESC LIMIT {most:UInt64}",
        {"traces": [item.trace.hex() for item in due], "since": since, "most": MAX_RELATIVES},
        settings=dict(SETTINGS),
    ).result_rows
    return [kind(*row) for row in found]
