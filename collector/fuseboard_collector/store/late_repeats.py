"""Repeats that memory has forgotten: rows that come late are looked for in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from fuseboard_collector.store.lateness import overdue
from fuseboard_collector.store.named_queries import load

_TABLES: Final = ("tool_calls", "attempts", "spans", "sightings")
_COLUMNS: Final = ("trace_id", "span_id", "start")
_SHARE: Final = 0.9
"""Of the time that memory reaches back; a clock that is ahead makes a row seem less late."""


def stored_already(
    connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Sequence[pa.Table]], reach: float
) -> set[bytes]:
    """Return the keys of rows that are stored.

    A row that was stored before memory reaches back has ended before then as well; so those that
    come soon after their end, nearly all, cost nothing.

    Args:
        connection: The writer's, outside of a transaction.
        tables: New rows as far as memory knows, by table.
        reach: Seconds that memory reaches back.
    """
    late = _late(tables, reach * _SHARE)
    if late is None:
        return set()
    bounds = pc.min_max(late["start"]).as_py()
    connection.register("late", late)
    try:
        found = connection.execute(
            load("stored_already", "writes").statements[0].sql,
            {"first": bounds["min"], "last": bounds["max"]},
        ).fetchall()
    finally:
        connection.unregister("late")
    return {bytes.fromhex(ids) for (ids,) in found}


def _late(tables: Mapping[str, Sequence[pa.Table]], seconds: float) -> pa.Table | None:
    late = []
    for table in _TABLES:
        for rows in tables.get(table, ()):
            mask = pc.greater(overdue(table, rows), int(seconds * 1e6))
            if pc.any(mask).as_py():
                late.append(rows.select(_COLUMNS).filter(mask))
    return pa.concat_tables(late) if late else None
