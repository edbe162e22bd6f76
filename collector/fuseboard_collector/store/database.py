"""The DuckDB file: opened by one process, read through a cursor per query."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from fuseboard_collector.errors import (
    StoreDamagedError,
    StoreError,
    StoreInUseError,
    StoreVersionError,
)
from fuseboard_collector.store.migrations import check_current, check_version, migrate
from fuseboard_collector.store.space import log_path

_CLOSING_SECONDS = 10.0
_HOLDER = re.compile(r"\(PID (\d+)\)")
_DAMAGE = re.compile(
    r"not a valid DuckDB|Corrupt|checksum|Could not read enough bytes|Failure while replaying WAL"
    r"|Failed to load metadata|malformed|INTERNAL",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the engine may use.

    Attributes:
        memory: Memory limit, as DuckDB writes sizes.
        spill: Most that a query may write to the spill folder.
        checkpoint: Size of the write-ahead log that triggers a checkpoint; 64 MB keeps the
            slowest commits at 31 ms (p99) where the default of 16 MB has 171 ms.
    """

    memory: str = "1GB"
    spill: str = "4GB"
    checkpoint: str = "64MB"


class Database:
    """An open data file. Hands out cursors; never the connection itself."""

    def __init__(self, path: Path, limits: Limits, *, read_only_spill: Path | None = None) -> None:
        """Open the file, create it if it is missing, and bring its schema up to date.

        Args:
            path: The data file.
            limits: What the engine may use.
            read_only_spill: Open an existing file without touching it or its folder, and let
                large sorts spill into this folder instead.

        Raises:
            StoreInUseError: If another process, or this one, holds it.
            StoreVersionError: If a newer fuseboard or DuckDB wrote it.
            StoreDamagedError: If it can't be read.
        """
        self.path = path
        self._idle = threading.Condition()
        self._cursors: set[duckdb.DuckDBPyConnection] = set()
        self._closing = False
        _claim(path)
        try:
            self._connection = (
                _open(path, limits)
                if read_only_spill is None
                else _open_read_only(path, limits, read_only_spill)
            )
        except BaseException:
            _release(path)
            raise

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a cursor for one query; a shared one would silently mix up results."""
        with self._idle:
            if self._closing:
                raise StoreError("the store is closed")
            cursor = self._connection.cursor()
            self._cursors.add(cursor)
        try:
            yield cursor
        finally:
            cursor.close()
            with self._idle:
                self._cursors.discard(cursor)
                self._idle.notify_all()

    def writing_connection(self) -> duckdb.DuckDBPyConnection:
        """Return the connection that the writer thread alone may use."""
        return self._connection

    def close(self, timeout: float | None = None, patience: float = 0.0) -> None:
        """Interrupt running queries and close the file.

        The engine keeps a broken instance alive as long as one cursor of it lives, hence the
        wait.

        Args:
            timeout: Seconds in which interrupted queries should end.
            patience: Seconds that they may take to come to their own end before.
        """
        with self._idle:
            self._idle.wait_for(lambda: not self._cursors, patience)
        deadline = time.monotonic() + (_CLOSING_SECONDS if timeout is None else timeout)
        with self._idle:
            self._closing = True
            while self._cursors and time.monotonic() < deadline:
                for cursor in self._cursors:
                    cursor.interrupt()
                self._idle.wait(0.05)
        try:
            self._connection.close()
        finally:
            _release(self.path)


_open_paths: set[Path] = set()
_open_lock = threading.Lock()


def _claim(path: Path) -> None:
    """Refuse a second store on one file in this process: DuckDB would share the instance."""
    with _open_lock:
        if path in _open_paths:
            raise StoreInUseError(_in_use(path, os.getpid()), os.getpid())
        _open_paths.add(path)


def _release(path: Path) -> None:
    with _open_lock:
        _open_paths.discard(path)


def _open(path: Path, limits: Limits) -> duckdb.DuckDBPyConnection:
    if path.exists():
        _look(path)
    with translated(path):
        connection = duckdb.connect(str(path), config=_settings(limits, path.with_name("spill")))
        try:
            # Copies for backup and compaction are made there; nothing else is reached.
            folder = str(path.parent).replace("'", "''")
            connection.execute(f"SET allowed_directories = ['{folder}/']")
            _lock_down(connection)
            migrate(connection, str(path))
        except BaseException:
            connection.close()
            raise
    return connection


def _open_read_only(path: Path, limits: Limits, spill: Path) -> duckdb.DuckDBPyConnection:
    _look_at_log(path)
    with translated(path):
        connection = duckdb.connect(str(path), read_only=True, config=_settings(limits, spill))
        try:
            _lock_down(connection)
            check_version(connection, str(path))
            check_current(connection, str(path))
        except BaseException:
            connection.close()
            raise
    return connection


_LOG_BEGINS = b"\x64\x00\x62"
"""What the engine's log begins with. One that begins otherwise it takes for an empty one."""


def _look_at_log(path: Path) -> None:
    log = log_path(path)
    if not log.exists():
        return
    with log.open("rb") as file:
        beginning = file.read(len(_LOG_BEGINS))
    if beginning and beginning != _LOG_BEGINS:
        raise StoreDamagedError(_log_is_damaged(path, "it does not begin as a log does"))


def _log_is_damaged(path: Path, why: str) -> str:
    return (
        f"{log_path(path)} is damaged: {why}. It holds the newest rows, those not in {path.name} "
        "yet; both were left untouched. Restore both from a backup, or set the log aside, and "
        "lose what only it holds, with `fuseboard store repair --move-wal-aside`."
    )


def _look(path: Path) -> None:
    """Check an existing file read-only, so that one that is refused is not even touched."""
    _look_at_log(path)
    with translated(path):
        connection = duckdb.connect(str(path), read_only=True)
        try:
            check_version(connection, str(path))
        finally:
            connection.close()


def _settings(limits: Limits, spill: Path) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "memory_limit": limits.memory,
        "checkpoint_threshold": limits.checkpoint,
        "temp_directory": str(spill),
        "max_temp_directory_size": limits.spill,
        "preserve_insertion_order": "true",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",
    }


# After the spill folder is set: without access to the file system it can't be any more.
_LATE_SETTINGS = (
    "SET enable_progress_bar = false",
    "SET TimeZone = 'UTC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def _lock_down(connection: duckdb.DuckDBPyConnection) -> None:
    for setting in _LATE_SETTINGS:
        connection.execute(setting)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the engine's refusals to open a file into our own errors, each with a way out."""
    try:
        yield
    except duckdb.Error as error:
        text = str(error)
        if "Could not set lock" in text or "Conflicting lock" in text:
            found = _HOLDER.search(text)
            pid = int(found.group(1)) if found else None
            raise StoreInUseError(_in_use(path, pid), pid) from error
        if "newer version of DuckDB" in text or "version number" in text:
            raise StoreVersionError(
                f"{path} was written by a newer DuckDB than the {duckdb.__version__} installed "
                "here. It was left untouched. Upgrade duckdb (pip install -U 'fuseboard"
                "[dashboard]'), or choose another data folder with --data."
            ) from error
        if "WAL" in text and _DAMAGE.search(text):
            raise StoreDamagedError(_log_is_damaged(path, text.splitlines()[0])) from error
        if _DAMAGE.search(text):
            raise StoreDamagedError(
                f"{path} can't be read: {text.splitlines()[0]}. It was left untouched. Restore "
                "it from a backup, or choose another data folder with --data."
            ) from error
        raise StoreError(f"{path} can't be opened: {text.splitlines()[0]}") from error


def is_held(path: Path) -> StoreInUseError | None:
    """Return who holds a data file, also where it can't be opened for other reasons."""
    try:
        with translated(path):
            duckdb.connect(str(path), read_only=True).close()
    except StoreInUseError as error:
        return error
    except StoreError:
        return None
    return None


def _in_use(path: Path, pid: int | None) -> str:
    holder = f"process {pid}" if pid else "another process"
    return (
        f"{path} is held by {holder}: one process at a time can own a data file. Use the "
        "fuseboard that is running, stop that process, or choose another data folder with --data."
    )
