"""A full scan: reads every block of every column, so that the engine checks its checksums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import duckdb

from fuseboard_collector.store.answering import first_line


@dataclass(frozen=True, slots=True)
class Damage:
    """A column that can't be read as a whole.

    Attributes:
        why: What the engine said.
    """

    table: str
    column: str
    why: str


def columns(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return every table and column of the connection's database; views have nothing to read."""
    return connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() "
        "SEMI JOIN duckdb_tables() USING (table_oid) "
        "WHERE database_name = current_database() AND NOT internal "
        "ORDER BY table_name, column_index"
    ).fetchall()


def scan(
    connection: duckdb.DuckDBPyConnection,
    progress: Callable[[str, float], None] | None = None,
) -> Iterator[Damage]:
    """Read everything; yield what can't be read.

    Args:
        connection: A cursor of the file.
        progress: Told the table and the share that is done, from 0 to 1, before each column.
    """
    every = columns(connection)
    for index, (table, column) in enumerate(every):
        if progress is not None:
            progress(table, index / len(every))
        damage = _read(connection, table, column)
        if damage is not None:
            yield damage


def _read(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> Damage | None:
    quoted = '"' + column.replace('"', '""') + '"'
    try:
        connection.execute(f'SELECT bit_xor(hash({quoted})) FROM "{table}"').fetchall()  # noqa: S608
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        return Damage(table, column, first_line(error))
    return None
