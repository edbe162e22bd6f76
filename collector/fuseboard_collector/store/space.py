"""Room on the disk: how much there is, how much the store takes, and when to stop storing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from fuseboard_collector.errors import StoreBusyError

MIB = 1024 * 1024
FREE_SPACE_FLOOR = 256 * MIB
"""Bytes; four checkpoints. A disk that fills up inside a checkpoint breaks the instance."""

MAX_SPILL = 4 * 1024 * MIB
MIN_SPILL = 64 * MIB
_CHECK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a store takes of its disk, in bytes.

    Attributes:
        file: The data file.
        log: Its write-ahead log.
        free_blocks: The part of the file that holds nothing: deleted rows leave it behind, the
            next ones are put there.
    """

    file: int
    log: int
    free_blocks: int

    @property
    def total(self) -> int:
        """What the store takes of the disk."""
        return self.file + self.log

    @property
    def used(self) -> int:
        """What it would take without its free blocks."""
        return self.total - self.free_blocks

    @property
    def free_ratio(self) -> float:
        """The share of the data file that is free, from 0 to 1."""
        return self.free_blocks / self.file if self.file else 0.0


def usage(path: Path, connection: duckdb.DuckDBPyConnection) -> Usage:
    """Measure an open data file.

    Args:
        path: The data file.
        connection: A connection to it, or a cursor.
    """
    block_size, free = connection.execute(
        "SELECT block_size, free_blocks FROM pragma_database_size() "
        "WHERE database_name = current_database()"
    ).fetchall()[0]
    return Usage(_size(path), _size(log_path(path)), block_size * free)


def size_bytes(path: Path) -> int:
    """Return the size of a data file and its write-ahead log; 0 if there is none."""
    return _size(path) + _size(log_path(path))


def log_path(path: Path) -> Path:
    """Return where the engine keeps the write-ahead log of a data file."""
    return path.with_name(path.name + ".wal")


def free_bytes(folder: Path) -> int:
    """Return what is free on the disk of a folder."""
    return shutil.disk_usage(folder).free


def spill_limit(folder: Path, floor: int) -> int:
    """Return how many bytes large sorts may write to disk: half of what storing can spare.

    Without a limit one runaway query fills the disk, and with it ends all storing.
    """
    try:
        spare = (free_bytes(folder) - floor) // 2
    except OSError:
        return MIN_SPILL
    return max(MIN_SPILL, min(MAX_SPILL, spare))


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder outlive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class FreeSpace:
    """Refuses what would fill the disk, looking at most once a second."""

    def __init__(self, folder: Path, floor: int, monotonic: Callable[[], float]) -> None:
        """Prepare; nothing is looked at yet.

        Args:
            folder: Where the data file is.
            floor: Bytes of free disk below which nothing is stored.
            monotonic: Returns seconds that never run backwards.
        """
        self.floor = floor
        self._folder = folder
        self._monotonic = monotonic
        self._looked_at = float("-inf")
        self._free = 0

    def check(self) -> None:
        """Return if there is room.

        Raises:
            StoreBusyError: If there is not, or the disk can't be reached.
        """
        now = self._monotonic()
        if now - self._looked_at >= _CHECK_SECONDS:
            try:
                self._free = free_bytes(self._folder)
            except OSError as error:
                raise StoreBusyError(f"{self._folder} can't be reached: {error}") from error
            self._looked_at = now
        if self._free < self.floor:
            raise StoreBusyError(
                f"{self._folder} has {self._free // MIB} MiB left; nothing is stored below "
                f"{self.floor // MIB} MiB. Free some space, or keep less with --retention or "
                "--max-size."
            )
