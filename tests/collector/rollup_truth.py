"""What rollups should hold, computed anew from the raw rows."""

from __future__ import annotations

from datetime import datetime, timedelta

import duckdb

from fuseboard_collector.store import named_queries
from fuseboard_collector.store.rollups.tables import TABLES

EVERYTHING = {"since": datetime(1980, 1, 1), "until": datetime(2200, 1, 1)}


def wrong_rollups(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return what the rollups of clean spans say that the raw rows do not, and the other way round.

    Args:
        connection: To the data file; nothing is changed.
    """
    dirty: dict[int, set[datetime]] = {hours: set() for hours in TABLES}
    for span, hours in connection.execute("SELECT span, hours FROM dirty_spans").fetchall():
        dirty[hours].add(span)
    wrong = []
    for hours, tables in TABLES.items():
        for table in tables:
            sql = named_queries.load(table, "rollups/sql").statements[0].sql
            relation = connection.execute(sql, EVERYTHING)
            columns = [item[0] for item in relation.description or ()]
            truth = _clean(relation.fetchall(), dirty[hours], hours)
            listed = ", ".join(f'"{column}"' for column in columns)
            rows = connection.execute(f"SELECT {listed} FROM {table}").fetchall()
            stored = _clean(rows, dirty[hours], hours)
            if _rounded(stored) != _rounded(truth):
                wrong.append(f"{table}: {len(stored)} rows, should be {len(truth)}")
    return wrong


def _clean(
    rows: list[tuple[object, ...]], dirty: set[datetime], hours: int
) -> list[tuple[object, ...]]:
    width = timedelta(hours=hours)
    epoch = datetime(1970, 1, 1)
    return [
        row
        for row in rows
        if isinstance(row[0], datetime) and row[0] - (row[0] - epoch) % width not in dirty
    ]


def _rounded(rows: list[tuple[object, ...]]) -> list[str]:
    """Return rows in order, without the last digits, which depend on the order of summing."""
    return sorted(
        repr(tuple(float(f"{item:.9g}") if isinstance(item, float) else item for item in row))
        for row in rows
    )
