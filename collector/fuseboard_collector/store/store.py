"""The embedded store: one DuckDB file, one writer, any number of readers."""

from __future__ import annotations

import atexit
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import duckdb
import pyarrow as pa

from fuseboard.clock import Clock, SystemClock
from fuseboard_collector.errors import StoreBusyError, StoreError, StoreInUseError
from fuseboard_collector.reading import Batches
from fuseboard_collector.stats import Stats
from fuseboard_collector.store.answering import Answering, first_line, reading_query
from fuseboard_collector.store.assembling import Assembling
from fuseboard_collector.store.checking import Damage
from fuseboard_collector.store.copying import PREFIX, check_copy, check_room, copy_database, remove
from fuseboard_collector.store.data_file import DataFile
from fuseboard_collector.store.database import Database, Limits, translated
from fuseboard_collector.store.health import Health
from fuseboard_collector.store.memory import default_limit, words
from fuseboard_collector.store.named_queries import NamedQuery, load
from fuseboard_collector.store.repeats import RepeatFilter, recent_keys
from fuseboard_collector.store.retention import Keep, Plan, Retention
from fuseboard_collector.store.rollups.keeper import Keeper, waiting_hours
from fuseboard_collector.store.rows import ROW_TYPES, Batch
from fuseboard_collector.store.space import (
    FREE_SPACE_FLOOR,
    FreeSpace,
    size_bytes,
    spill_limit,
    usage,
)
from fuseboard_collector.store.staging import GRACE_SECONDS, Staging
from fuseboard_collector.store.upkeep import Upkeep, deletion
from fuseboard_collector.store.writer import Append, Command, Connection, Session, Writer, parts_of

logger = logging.getLogger(__name__)

DATA_FILE = "fuseboard.duckdb"

_TABLES = frozenset({*(row.TABLE for row in ROW_TYPES), "alert_events", "alert_memory", "mutes"})
_COMMAND_TIMEOUT = 60.0
_CLOSING_SECONDS = 5.0
_LONG_TIMEOUT = 3600.0


class Store:
    """A :class:`~fuseboard_collector.reading.Reader` that can also be written to.

    Every method may be called from any thread. Made by :func:`open_store`.
    """

    def __init__(
        self,
        path: Path,
        *,
        keep: Keep,
        limits: Limits,
        clock: Clock,
        wait: bool,
        free_space_floor: int,
    ) -> None:
        self.path = path
        self.store_id = str(path)
        self.spool_folder: str | None = str(path.parent)
        self.stats = Stats()
        self._clock = clock
        self._health = Health(path)
        self._answering = Answering(limits.memory, self._reopen_after, self._health.notice)
        self._space = FreeSpace(path.parent, free_space_floor, clock.monotonic)
        self._retention = Retention(keep, clock)
        self._upkeep = Upkeep(
            path, self._retention, free_space_floor, self.stats, clock.monotonic, self._swapped
        )
        self._assembling = Assembling(Staging(clock.monotonic), self.stats, clock)
        self._file = DataFile(path, limits, self._health, lambda: self._writer.unavailable)
        session: Session | None = None
        unavailable: StoreError | None = None
        try:
            session = self._file.open(self._begin)
        except StoreInUseError as error:
            if not wait:
                raise
            unavailable = error
        self._writer = Writer(self._reopen, session, self._file.close, self._maintenance)
        self._writer.unavailable = unavailable
        self._writer.notice = self._health.notice
        self._writer.start()
        self._keeper = Keeper(lambda: self._open_database().cursor(), self._command, clock)
        self._keeper.start()
        # A daemon thread that the interpreter cuts off inside the engine aborts the process.
        atexit.register(self.close)

    # --- reading -------------------------------------------------------------------------
    def query(self, name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        """Run ``queries/<name>.sql``; see :class:`~fuseboard_collector.reading.Reader`.

        Raises:
            UnknownQueryError: If there is no such query, or it writes.
            QueryParameterError: If parameters are missing, unknown or of the wrong type.
            StoreError: If the store can't answer, for example for want of memory.
        """
        query = reading_query(name)
        bound = query.bind(parameters)
        with self._open_database().cursor() as cursor:
            self.stats.add("queries")
            return self._answering.table(cursor, query, bound)

    @contextmanager
    def stream(
        self, name: str, parameters: Mapping[str, object] | None = None
    ) -> Iterator[Batches]:
        """Run a query and read it bit by bit; see ``reading.StreamingReader``.

        Be quick: until the block is left, deleted rows stay in the file.
        """
        query = reading_query(name)
        bound = query.bind(parameters)
        with self._open_database().cursor() as cursor:
            self.stats.add("queries")
            yield self._answering.batches(cursor, query, bound)

    def _reopen_after(self, error: duckdb.FatalException) -> StoreError:
        self._writer.reopen()
        return StoreError(f"the store is being reopened; ask again: {first_line(error)}")

    # --- writing -------------------------------------------------------------------------
    def append(self, batch: Batch) -> Future[None]:
        """Queue rows; they are stored in one transaction, repeats left out.

        Returns:
            A future that resolves after the commit, or fails with a StoreError; then nothing
            of the batch was stored. It can't be cancelled.

        Raises:
            StoreBusyError: If the queue is full, the disk nearly so, or the file not open, being
                compacted or damaged.
        """
        self._check_writable()
        if batch.sightings:
            self._assembling.staging.check_room()
        item = Append(parts_of(batch))
        self._writer.submit(item)
        return item.done

    def execute(self, name: str, parameters: Mapping[str, object] | None = None) -> None:
        """Run the writing statements of ``queries/<name>.sql`` in one transaction, and wait.

        Raises:
            StoreError: If they fail; then nothing of them remains.
        """
        query = load(name)
        bound = query.bind(parameters)
        self._command(lambda connection: _run(connection, query, bound))

    def insert(self, table: str, rows: pa.Table) -> None:
        """Insert rows, matched to columns by name, and wait for the commit.

        For tables without repeats; calls and spans go through :meth:`append`.
        """
        if table not in _TABLES:
            raise StoreError(f"there is no table {table!r}; there are {sorted(_TABLES)}")

        def run(connection: Connection) -> None:
            connection.register("incoming", rows)
            try:
                connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")  # noqa: S608
            finally:
                connection.unregister("incoming")

        self._command(run)

    def expired(self, keep: Keep | None = None) -> Plan:
        """Return what :meth:`apply_retention` would delete now."""
        with self._open_database().cursor() as cursor:
            return self._upkeep.plan(cursor, keep)

    def settle(self) -> None:
        """Assemble foreign spans that are stored already, without the grace time, and wait.

        Calls of traces that are still going on are put right later, when their other spans come.

        Raises:
            StoreError: If the store can't do so now; the spans are kept.
        """
        self._assembling.settle(self._writer, self._clock.monotonic(), _COMMAND_TIMEOUT)

    def apply_retention(self, keep: Keep | None = None) -> Plan:
        """Delete expired rows now; the writer does so once an hour by itself.

        Args:
            keep: What to keep, this once; as the store was opened with by default.

        Returns:
            What was deleted.
        """
        plan = self.expired(keep)
        for before in plan.steps:
            self._command(deletion(before))
        if plan.steps:
            self._command(_checkpoint, in_transaction=False)
        self.stats.add("expired_rows", plan.rows, plan.why)
        return plan

    @property
    def keep(self) -> Keep:
        """What retention keeps."""
        return self._retention.keep

    def check(self) -> list[Damage]:
        """Read everything; return what can't be read. From then on nothing is written to it."""
        return self._file.check()

    def snapshot(self) -> tuple[BinaryIO, dict[str, int]]:
        """Return a copy of the file as of now, and its rows by table; writing goes on.

        Returns:
            An open file without a name: it is gone when it is closed, or this process ends.

        Raises:
            StoreError: If there is no room for the copy, or something can't be read.
        """
        copy = self.path.with_name(f"{PREFIX}{uuid4().hex}.duckdb")
        with self._open_database().cursor() as cursor, translated(self.path):
            room = usage(self.path, cursor).used
            check_room(self.path.parent, room, self._space.floor, "the backup")
            try:
                rows = copy_database(cursor, copy)[1]
                return copy.open("rb"), rows
            finally:
                remove(copy)

    def compact(self) -> None:
        """Give free blocks of the file back to the disk; meanwhile nothing is stored.

        Raises:
            StoreError: If there is no room for the copy that this takes.
        """
        self._command(self._upkeep.compact, in_transaction=False, timeout=_LONG_TIMEOUT)

    def _command(
        self,
        run: Callable[[Connection], None],
        *,
        in_transaction: bool = True,
        timeout: float | None = None,
    ) -> None:
        self._check_sound()
        timeout = timeout or _COMMAND_TIMEOUT
        command = Command(run, in_transaction)
        self._writer.submit(command)
        try:
            command.done.result(timeout)
        except TimeoutError:
            raise StoreBusyError(
                f"the store did not come to it within {timeout:g} s; it may still"
            ) from None

    # --- state ---------------------------------------------------------------------------
    def size_bytes(self) -> int:
        """Return the size of the data file and its write-ahead log in bytes."""
        return size_bytes(self.path)

    def queue_rows(self) -> int:
        """Return how many rows wait for their commit."""
        return self._writer.waiting_rows()

    def oldest_row(self) -> datetime | None:
        """Return when the oldest stored call arrived, naive UTC; None if there is none."""
        with self._open_database().cursor() as cursor:
            table = self._answering.table(cursor, load("oldest_row", "writes"), {})
        oldest: datetime | None = table.column("oldest")[0].as_py()
        return oldest

    def hours_to_roll_up(self) -> int:
        """Return of how many hours the raw rows have to be read, the present one included."""
        with self._open_database().cursor() as cursor:
            return waiting_hours(cursor)

    def roll_up(self) -> int:
        """Roll up every closed hour now; the keeper does so by itself within seconds.

        Returns:
            How many spans were rolled up.
        """
        return self._keeper.catch_up()

    def describe(self) -> dict[str, object]:
        """Return the counters and sizes that an operator wants to see, ready for JSON."""
        reason = self.unavailable_because()
        is_open = reason is None
        oldest = self.oldest_row() if is_open else None
        return {
            "counters": self.stats.snapshot(),
            "queue_rows": self.queue_rows(),
            "staged": self._assembling.describe(),
            "hours_to_roll_up": self.hours_to_roll_up() if is_open else None,
            "size_bytes": self.size_bytes(),
            "free_block_bytes": self._free_block_bytes(),
            "unavailable_because": None if reason is None else str(reason),
            "oldest_row": None if oldest is None else oldest.isoformat() + "Z",
        }

    def unavailable_because(self) -> StoreError | None:
        """Return why the store can't take or give data at present; None if it can."""
        if self._writer.unavailable is not None:
            return self._writer.unavailable
        try:
            self._check_writable()
        except StoreBusyError as error:
            return error
        return None

    def _check_writable(self) -> None:
        self._check_sound()
        self._space.check()

    def _check_sound(self) -> None:
        """Refuse to write to a file that is damaged or about to be replaced."""
        self._health.check()
        if self._upkeep.compacting is not None:
            raise self._upkeep.compacting

    def _free_block_bytes(self) -> int | None:
        try:
            with self._open_database().cursor() as cursor:
                return usage(self.path, cursor).free_blocks
        except (StoreError, duckdb.Error):
            return None

    def close(self) -> None:
        """Store what is queued and close the file; later calls raise StoreError.

        Traces that had their grace time are assembled; the others wait on disk for the next start.
        """
        self._keeper.stop()
        with suppress(StoreError, TimeoutError):
            self._assembling.settle(
                self._writer, self._clock.monotonic() - GRACE_SECONDS, _CLOSING_SECONDS
            )
        self._file.end()
        self._writer.stop()
        atexit.unregister(self.close)

    # --- the file ------------------------------------------------------------------------
    @property
    def _database(self) -> Database | None:
        return self._file.database

    def _open_database(self) -> Database:
        return self._file.current()

    def _reopen(self) -> Session:
        session = self._file.open(self._begin)
        self.stats.add("reopened")
        return session

    def _swapped(self) -> None:
        """Have the file opened that a compaction put in place."""
        self._file.be_patient()
        self._writer.reopen()

    def _begin(self, database: Database) -> Session:
        """Take up what the last process knew."""
        repeats = RepeatFilter(self._clock.monotonic)
        with translated(self.path), database.cursor() as cursor:
            check_copy(cursor, self._upkeep.copy_id)
            self._remember(cursor, repeats)
        return Session(database.writing_connection(), repeats, self.stats, self._assembling)

    def _remember(self, cursor: Connection, repeats: RepeatFilter) -> None:
        """Go on without memory where it can't be read: a damaged file gets no rows."""
        try:
            repeats.remember(recent_keys(cursor))
            self._assembling.reload(cursor)
        except duckdb.Error as error:
            if self._health.notice(error) is None:
                raise

    def _maintenance(self) -> Command | None:
        if self._health.fault is not None:
            return None
        return self._upkeep.next() or self._assembling.due()


def open_store(
    path: Path,
    *,
    retention_days: float | None = 30,
    max_bytes: int | None = None,
    memory_limit: str | None = None,
    clock: Clock | None = None,
    wait: bool = False,
    free_space_floor: int = FREE_SPACE_FLOOR,
) -> Store:
    """Open a data file for this process alone; create it if it is missing.

    Args:
        path: The data file, normally ``<data folder>/fuseboard.duckdb``.
        retention_days: Age at which rows are deleted; None keeps them for good.
        max_bytes: Size of the file at which the oldest rows are deleted; None for any.
        memory_limit: What the engine may use, as DuckDB writes sizes; None for a quarter of the
            machine's memory.
        clock: Source of time; the machine's by default.
        wait: Whether to start although another process holds the file: until it lets go,
            writes raise StoreBusyError and queries StoreInUseError.
        free_space_floor: Bytes of free disk below which nothing is accepted.

    Raises:
        StoreInUseError: If another process holds the file; carries its ``pid``.
        StoreVersionError: If a newer fuseboard or DuckDB wrote it.
        StoreDamagedError: If it can't be read. In all three cases it is left untouched.
    """
    path = Path(path).resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    return Store(
        path,
        keep=Keep(retention_days, max_bytes),
        limits=Limits(
            memory=memory_limit or default_limit(),
            spill=words(spill_limit(path.parent, free_space_floor)),
        ),
        clock=clock or SystemClock(),
        wait=wait,
        free_space_floor=free_space_floor,
    )


def _checkpoint(connection: Connection) -> None:
    """Free the blocks of deleted rows."""
    connection.execute("CHECKPOINT")


def _run(connection: Connection, query: NamedQuery, bound: Mapping[str, object]) -> None:
    for statement in query.statements:
        named = {name: bound[name] for name in statement.parameters}
        connection.execute(statement.sql, named or None).fetchall()
