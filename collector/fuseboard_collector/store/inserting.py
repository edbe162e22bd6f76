"""Rows into their table: the one way in, for what arrives and for what is assembled."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from fuseboard_collector.store.named_queries import load, parsed

_MARKING = "INSERT INTO dirty_spans"


def insert_rows(
    connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table, *, marked: bool = False
) -> None:
    """Run ``writes/insert_<table>.sql`` in the transaction that is open.

    Args:
        connection: The writer's.
        table: Its name.
        rows: As :func:`~fuseboard_collector.store.rows.to_arrow` makes them.
        marked: Whether their hours are known to be marked dirty already.
    """
    connection.register("incoming", rows)
    try:
        for statement in load(f"insert_{table}", "writes").statements:
            if not (marked and statement.sql.lstrip().startswith(_MARKING)):
                connection.execute(parsed(statement.sql))
    finally:
        connection.unregister("incoming")
