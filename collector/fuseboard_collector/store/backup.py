"""Backups: copies of a data file that are complete, whether a server runs on it or not."""

from __future__ import annotations

from pathlib import Path

import duckdb

from fuseboard_collector.errors import StoreDamagedError
from fuseboard_collector.store.checking import scan
from fuseboard_collector.store.copying import copy_attached, row_counts
from fuseboard_collector.store.database import translated
from fuseboard_collector.store.migrations import check_version


def copy_at_rest(path: Path, destination: Path) -> None:
    """Copy a data file that no process holds; it is not changed, not even brought up to date.

    Args:
        path: The data file.
        destination: A file that does not exist.

    Raises:
        StoreError: If it can't be read or copied; then there is no destination.
    """
    with translated(path), duckdb.connect(":memory:") as connection:
        # The engine's lock on a file that is only attached names no process: ask for it first.
        duckdb.connect(str(path), read_only=True).close()
        copy_attached(connection, path, destination)


def verify(path: Path) -> dict[str, int]:
    """Open a copy, read all of it, and return its rows by table.

    Raises:
        StoreDamagedError: If part of it can't be read.
        StoreError: If it can't be opened.
    """
    with translated(path), duckdb.connect(str(path), read_only=True) as connection:
        check_version(connection, str(path))
        for damage in scan(connection):
            raise StoreDamagedError(
                f"{path} can't be read back: {damage.table}.{damage.column}: {damage.why}"
            )
        (name,) = connection.execute("SELECT current_database()").fetchall()[0]
        return row_counts(connection, name)
