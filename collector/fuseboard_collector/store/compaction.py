"""Gives the disk back what deleted rows left free in the file: a copy takes the file's place.

At every instant the data file's name leads to a complete file without a log that belongs to
another: the old one is checkpointed first, the new one is on the disk before it is renamed, and
the old one stays locked until then. Whoever opens the name meanwhile gets the new file.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from fuseboard_collector.errors import StoreError
from fuseboard_collector.store.copying import PREFIX, check_room, copy_database, remove
from fuseboard_collector.store.space import MIB, Usage, log_path, sync_folder, usage

WORTH_BYTES = 256 * MIB
WORTH_RATIO = 0.5
SUFFIX = ".compact"


def is_worthwhile(used: Usage, max_bytes: int | None) -> bool:
    """Tell whether so much of the file is free that a copy pays.

    In the long run nothing is copied: retention frees about what new rows need.

    Args:
        used: What the store takes.
        max_bytes: What it may take; None for any.
    """
    if max_bytes is not None and used.total > max_bytes and used.used < max_bytes:
        return used.free_blocks > 0.1 * used.file
    return used.free_blocks >= WORTH_BYTES and used.free_ratio > WORTH_RATIO


def compact(connection: duckdb.DuckDBPyConnection, path: Path, floor: int) -> str:
    """Put a copy without free blocks in the place of the data file.

    The connection is still that of the old file, which has no name any more: nothing may be
    written, and it must be closed and the file opened again.

    Args:
        connection: The file; nothing else may write to it meanwhile.
        path: Its path.
        floor: Bytes of free disk that must be left at any time.

    Returns:
        The copy's id, to know it by.

    Raises:
        StoreError: If there is no room, or something was written meanwhile; then the file is
            as it was.
    """
    check_room(path.parent, usage(path, connection).used, floor, "the compacted file")
    connection.execute("CHECKPOINT")
    new = path.with_name(path.name + SUFFIX)
    remove(new)
    copy_id, _ = copy_database(connection, new)
    log = log_path(path)
    if log.exists() and log.stat().st_size:
        remove(new)
        raise StoreError(f"{path} was written to while it was being compacted; it is as it was")
    log.unlink(missing_ok=True)
    new.replace(path)
    sync_folder(path.parent)
    return copy_id


def remove_leftovers(path: Path) -> None:
    """Remove what a compaction or backup left that was cut off; only the file's owner may."""
    remove(path.with_name(path.name + SUFFIX))
    for copy in path.parent.glob(f"{PREFIX}*"):
        remove(copy)
