"""Reading a data file that no server runs on, without touching it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from fuseboard.clock import SystemClock
from fuseboard_collector.errors import StoreError
from fuseboard_collector.reading import Batches
from fuseboard_collector.store.answering import Answering, first_line, reading_query
from fuseboard_collector.store.checking import Damage, scan
from fuseboard_collector.store.database import Database, Limits
from fuseboard_collector.store.health import remembered_damage
from fuseboard_collector.store.migrations import SCHEMA_VERSION
from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.retention import Keep, Plan, Retention
from fuseboard_collector.store.space import usage


class RestingStore:
    """A reader of a file at rest: nothing is migrated, deleted, checkpointed or created.

    What a killed server left in the write-ahead log is read as well; it stays there. While the
    file is open no server can start on it. Made by :func:`open_at_rest`.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.store_id = str(path)
        self._answering = Answering(limits.memory, _broken)
        # Large sorts spill; beside the data file they would leave a trace, or not be allowed.
        self._spill = tempfile.TemporaryDirectory(prefix="fuseboard-")
        try:
            self._database = Database(path, limits, read_only_spill=Path(self._spill.name))
        except BaseException:
            self._spill.cleanup()
            raise

    def query(self, name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        """Run ``queries/<name>.sql``; see :class:`~fuseboard_collector.reading.Reader`."""
        query = reading_query(name)
        bound = query.bind(parameters)
        with self._database.cursor() as cursor:
            return self._answering.table(cursor, query, bound)

    @contextmanager
    def stream(
        self, name: str, parameters: Mapping[str, object] | None = None
    ) -> Iterator[Batches]:
        """Run a query and read it bit by bit; see ``reading.StreamingReader``."""
        query = reading_query(name)
        bound = query.bind(parameters)
        with self._database.cursor() as cursor:
            yield self._answering.batches(cursor, query, bound)

    def expired(self, keep: Keep) -> Plan:
        """Return what retention would delete."""
        retention = Retention(keep, SystemClock())
        with self._database.cursor() as cursor:
            return retention.plan(cursor, usage(self.path, cursor))

    def check(self, progress: Callable[[str, float], None] | None = None) -> list[Damage]:
        """Read everything; return what can't be read. See ``checking.scan``."""
        with self._database.cursor() as cursor:
            return list(scan(cursor, progress))

    def describe(self) -> dict[str, object]:
        """Return sizes and versions, ready for JSON."""
        with self._database.cursor() as cursor:
            used = usage(self.path, cursor)
            oldest = cursor.execute(load("oldest_row", "writes").statements[0].sql).fetchall()
            staged = cursor.execute("SELECT count(*) FROM staged_traces").fetchall()[0][0]
        damage = remembered_damage(self.path)
        return {
            "size_bytes": used.total,
            "free_block_bytes": used.free_blocks,
            "oldest_row": None if oldest[0][0] is None else oldest[0][0].isoformat() + "Z",
            "schema_version": SCHEMA_VERSION,
            "staged_traces": staged,
            "unavailable_because": damage and f"the file is damaged: {damage}",
        }

    def close(self) -> None:
        """Close the file."""
        self._database.close()
        self._spill.cleanup()


def open_at_rest(path: Path, *, memory_limit: str = "1GB") -> RestingStore:
    """Open a data file for reading only.

    Args:
        path: The data file.
        memory_limit: What the engine may use, as DuckDB writes sizes.

    Raises:
        StoreInUseError: If a process holds it for writing.
        StoreVersionError: If a newer fuseboard or DuckDB wrote it, or an older fuseboard whose
            tables this one would have to migrate.
        StoreDamagedError: If it can't be read.
    """
    return RestingStore(Path(path).resolve(), Limits(memory=memory_limit))


def _broken(error: duckdb.FatalException) -> StoreError:
    return StoreError(f"the data file can't be read on: {first_line(error)}")
