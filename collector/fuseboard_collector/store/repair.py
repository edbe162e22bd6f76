"""What a damaged data file still has, saved on an explicit command only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from fuseboard_collector.errors import StoreError
from fuseboard_collector.store.copying import attached, check_room, remove
from fuseboard_collector.store.database import Limits, is_held, translated
from fuseboard_collector.store.health import forget, is_damage
from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.space import FREE_SPACE_FLOOR, log_path, size_bytes, sync_folder
from fuseboard_collector.store.store import open_store

GROUP_ROWS = 122_880
"""Rows that the engine keeps together; what is damaged is lost by the group."""

KEPT = (
    "tool_calls",
    "attempt_rows",
    "breaker_transitions",
    "heartbeats",
    "spans",
    "sightings",
    "staged_traces",
    "alert_events",
    "alert_memory",
    "mutes",
)
"""Tables that are copied; rollups are made anew from them."""

_FORMER = {"attempt_rows": ("attempts", "span_id IS NOT NULL")}
"""What older schemas have instead of a table, and which of its rows belong into the table."""


@dataclass(slots=True)
class Saved:
    """What a repair came to.

    Attributes:
        aside: Where the damaged file, or the log, was put.
        kept: Rows by table that were saved.
        lost: Rows by table that could not be read.
    """

    aside: Path
    kept: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)


def move_log_aside(path: Path) -> Saved:
    """Rename the write-ahead log of a file that no process holds, so that the file opens again.

    What only the log held is lost: the rows since the last checkpoint.

    Raises:
        StoreInUseError: If a process holds the file.
        StoreError: If there is no log.
    """
    _require_free(path)
    log = log_path(path)
    if not log.exists():
        raise StoreError(f"there is no {log}: nothing to set aside")
    aside = _aside(log)
    log.rename(aside)
    sync_folder(path.parent)
    return Saved(aside)


def salvage(path: Path, progress: Callable[[str], None] = lambda _: None) -> Saved:
    """Put what can be read of a damaged file in its place, and the file aside.

    Args:
        path: The data file; no process may hold it.
        progress: Told each table before it is copied.

    Raises:
        StoreError: If the file can't even be opened, or there is no room; then it is as it was.
    """
    _require_free(path)
    check_room(path.parent, size_bytes(path), FREE_SPACE_FLOOR, "the saved file")
    new = path.with_name(path.name + ".salvaged")
    remove(new)
    try:
        open_store(new, retention_days=None).close()
        saved = _copy(path, new, progress)
    except BaseException:
        remove(new)
        forget(new)
        raise
    forget(new)
    saved.aside = _aside(path)
    path.rename(saved.aside)
    if log_path(path).exists():
        log_path(path).rename(log_path(saved.aside))
    new.rename(path)
    forget(path)
    sync_folder(path.parent)
    return saved


def _copy(path: Path, new: Path, progress: Callable[[str], None]) -> Saved:
    saved = Saved(path)
    limits = {"memory_limit": Limits().memory, "preserve_insertion_order": "true"}
    with translated(path), duckdb.connect(str(new), config=limits) as connection:  # type: ignore[arg-type]
        with attached(connection, path, read_only=True) as source:
            for table in KEPT:
                progress(table)
                saved.kept[table], saved.lost[table] = _copy_table(connection, source, table)
        for statement in load("mark_everything", "writes").statements:
            connection.execute(statement.sql).fetchall()
        connection.execute("CHECKPOINT")
    return saved


def _copy_table(connection: duckdb.DuckDBPyConnection, source: str, table: str) -> tuple[int, int]:
    """Copy a table group by group; return how many rows were kept and how many lost."""
    name, condition = table, "TRUE"
    found = _columns_in_both(connection, source, name, table)
    if not found and table in _FORMER:
        name, condition = _FORMER[table]
        found = _columns_in_both(connection, source, name, table)
    if not found:
        return 0, 0
    columns = ", ".join(found)
    origin = f'{source}."{name}"'
    kept = lost = 0
    last = connection.execute(f"SELECT max(rowid) FROM {origin}").fetchall()[0][0]  # noqa: S608
    for first in range(0, -1 if last is None else last + 1, GROUP_ROWS):
        group = f"FROM {origin} WHERE rowid >= {first} AND rowid < {first + GROUP_ROWS}"
        wanted = f"{group} AND {condition}"
        try:
            kept += connection.execute(
                f'INSERT INTO "{table}" ({columns}) SELECT {columns} {wanted}'
            ).fetchall()[0][0]
        except duckdb.Error as error:
            if not is_damage(error):
                raise
            lost += connection.execute(f"SELECT count(*) {group}").fetchall()[0][0]
    return kept, lost


def _columns_in_both(
    connection: duckdb.DuckDBPyConnection, source: str, name: str, table: str
) -> list[str] | None:
    """Return the quoted columns that a table of the damaged file shares with one of the new."""
    found: list[str] | None = connection.execute(
        "SELECT list('\"' || column_name || '\"' ORDER BY column_index) FROM duckdb_columns() "
        "WHERE database_name = $source AND table_name = $name "
        "AND column_name IN (SELECT column_name FROM duckdb_columns() "
        "WHERE database_name = current_database() AND table_name = $table)",
        {"source": source, "name": name, "table": table},
    ).fetchall()[0][0]
    return found


def _require_free(path: Path) -> None:
    if not path.exists():
        raise StoreError(f"there is no {path}")
    held = is_held(path)
    if held is not None:
        raise held


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}")
