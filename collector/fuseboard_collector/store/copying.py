"""A consistent copy of an open data file into a new one, while it is written to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import duckdb

from fuseboard_collector.errors import StoreError
from fuseboard_collector.store.space import free_bytes, log_path

PREFIX = ".backup-"
"""Of what a running server puts together beside its data file, to send it."""

COPY_ID = "copy_id"
"""The key in ``meta`` that tells a copy from what it was made of."""


def copy_database(
    connection: duckdb.DuckDBPyConnection, destination: Path
) -> tuple[str, dict[str, int]]:
    """Copy what is committed at this moment; the copy is on the disk when this returns.

    Args:
        connection: The open file; a cursor does.
        destination: A file that does not exist, in a folder that the engine may write to. Nothing
            is left of it on an error.

    Returns:
        What ``meta`` of the copy has under :data:`COPY_ID`, and its rows by table.

    Raises:
        StoreError: If the copy does not have the rows of the original.
        duckdb.Error: If the engine can't read or write.
    """
    copy_id = uuid4().hex
    try:
        (source,) = connection.execute("SELECT current_database()").fetchall()[0]
        rows = _copy(connection, destination, copy_id, source)
        with destination.open("rb") as file:
            os.fsync(file.fileno())
    except BaseException:
        remove(destination)
        raise
    return copy_id, rows


def copy_attached(connection: duckdb.DuckDBPyConnection, source: Path, destination: Path) -> None:
    """Copy a file that no process has open, through a connection to nothing.

    Raises:
        StoreError: If the copy does not have the rows of the original.
        duckdb.Error: If the engine can't read or write.
    """
    try:
        with attached(connection, source, read_only=True) as name:
            _copy(connection, destination, uuid4().hex, name)
    except BaseException:
        remove(destination)
        raise


@contextmanager
def attached(
    connection: duckdb.DuckDBPyConnection, path: Path, *, read_only: bool = False
) -> Iterator[str]:
    """Attach a data file while the block runs; yield its name in SQL.

    Detaching writes what is in its log into the file.
    """
    alias = f"copy_{uuid4().hex}"
    mode = " (READ_ONLY)" if read_only else ""
    connection.execute(f"ATTACH {_literal(str(path))} AS {alias}{mode}")
    try:
        yield alias
    finally:
        connection.execute(f"DETACH {alias}")


def _copy(
    connection: duckdb.DuckDBPyConnection, destination: Path, copy_id: str, source: str
) -> dict[str, int]:
    with attached(connection, destination) as alias:
        connection.execute("BEGIN")
        try:
            counts = row_counts(connection, source)
            connection.execute(f"COPY FROM DATABASE {_name(source)} TO {alias}")
            connection.execute(f"DELETE FROM {alias}.meta WHERE key = $key", {"key": COPY_ID})  # noqa: S608
            connection.execute(
                f"INSERT INTO {alias}.meta (key, value) VALUES ($key, $id)",  # noqa: S608
                {"key": COPY_ID, "id": copy_id},
            )
            connection.execute("COMMIT")
        except BaseException:
            with suppress(duckdb.Error):
                connection.execute("ROLLBACK")
            raise
        _compare(counts, row_counts(connection, alias), destination)
    return counts


def check_copy(connection: duckdb.DuckDBPyConnection, expected: str | None) -> None:
    """Refuse a file that is not the copy that took its place.

    An instance that a query still holds would be found again under the file's name, and what is
    written to it be lost.

    Args:
        connection: The file.
        expected: The copy's id; None for any file.

    Raises:
        StoreError: If it is another file.
    """
    if expected is None:
        return
    found = connection.execute("SELECT value FROM meta WHERE key = $key", {"key": COPY_ID})
    if found.fetchall() != [(expected,)]:
        raise StoreError("a query still reads the file that has been replaced; one moment")


def row_counts(connection: duckdb.DuckDBPyConnection, database: str) -> dict[str, int]:
    """Return the number of rows of each table of an attached database but ``meta``."""
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = $name ORDER BY table_name",
        {"name": database},
    ).fetchall()
    counts = {}
    for (table,) in tables:
        if table != "meta":
            sql = f"SELECT COUNT(*) FROM {_name(database)}.{_name(table)}"  # noqa: S608
            counts[table] = connection.execute(sql).fetchall()[0][0]
    return counts


def check_room(folder: Path, needed: int, floor: int, what: str) -> None:
    """Refuse to make a copy for which there is no room.

    Args:
        folder: Where the copy would be.
        needed: Its size in bytes.
        floor: Bytes that must be left.
        what: What it would be, for the message.

    Raises:
        StoreError: If there is not enough room.
    """
    free = free_bytes(folder)
    if free - needed < floor:
        raise StoreError(
            f"no room for {what}: it takes {_mib(needed)} MiB in {folder}, and {_mib(floor)} MiB "
            f"must stay free; there are {_mib(free)} MiB. Free some space first."
        )


def remove(path: Path) -> None:
    """Remove a data file and its write-ahead log, if they are there."""
    path.unlink(missing_ok=True)
    log_path(path).unlink(missing_ok=True)


def _compare(there: dict[str, int], here: dict[str, int], destination: Path) -> None:
    if there != here:
        wrong = sorted(table for table in there if there[table] != here.get(table))
        raise StoreError(f"the copy {destination} lacks rows of {', '.join(wrong)}; it was removed")


def _mib(amount: int) -> int:
    return -(-amount // (1024 * 1024))


def _name(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
