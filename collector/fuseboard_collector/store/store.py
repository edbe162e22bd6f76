"""The embedded store: one DuckDB file, one writer, any number of readers."""

from __future__ import annotations

import atexit
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from fuseboard.clock import Clock, SystemClock
from fuseboard_collector.errors import StoreBusyError, StoreError, StoreInUseError
from fuseboard_collector.reading import Batches
from fuseboard_collector.stats import Stats
from fuseboard_collector.store.answering import Answering, first_line, reading_query
from fuseboard_collector.store.assembling import Assembling
from fuseboard_collector.store.database import Database, Limits, translated
from fuseboard_collector.store.named_queries import NamedQuery, load
from fuseboard_collector.store.repeats import WINDOW_SECONDS, RepeatFilter
from fuseboard_collector.store.retention import Retention
from fuseboard_collector.store.rollups.keeper import Keeper, waiting_hours
from fuseboard_collector.store.rows import ROW_TYPES, Batch, natural_key, to_arrow
from fuseboard_collector.store.staging import GRACE_SECONDS, Staging
from fuseboard_collector.store.writer import Append, Command, Connection, Part, Session, Writer

DATA_FILE = "fuseboard.duckdb"
FREE_SPACE_FLOOR = 256 * 1024 * 1024
"""Bytes; four checkpoints. A disk that fills up inside a checkpoint breaks the instance."""

_TABLES = frozenset({*(row.TABLE for row in ROW_TYPES), "alert_events", "alert_memory"})
_COMMAND_TIMEOUT = 60.0
_CLOSING_SECONDS = 5.0
_FREE_SPACE_CHECK_SECONDS = 1.0


class Store:
    """A :class:`~fuseboard_collector.reading.Reader` that can also be written to.

    Every method may be called from any thread. Made by :func:`open_store`.
    """

    def __init__(
        self,
        path: Path,
        *,
        retention_days: float | None,
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
        self._limits = limits
        self._answering = Answering(limits.memory, self._reopen_after)
        self._retention = Retention(retention_days, clock)
        self._assembling = Assembling(Staging(clock.monotonic), self.stats, clock)
        self._floor = free_space_floor
        self._space_checked_at = float("-inf")
        self._free_space = 0
        self._database: Database | None = None
        session: Session | None = None
        unavailable: StoreError | None = None
        try:
            session = self._open_session()
        except StoreInUseError as error:
            if not wait:
                raise
            unavailable = error
        self._writer = Writer(
            self._reopen_session, session, self._close_database, self._maintenance
        )
        self._writer.unavailable = unavailable
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
            StoreBusyError: If the queue is full, the disk nearly so, or the file not open.
        """
        self._check_space()
        if batch.sightings:
            self._assembling.staging.check_room()
        parts = [
            Part(rows[0].TABLE, to_arrow(rows), [row.key() for row in rows])
            for rows in batch.lists()
        ]
        item = Append(parts)
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

    def apply_retention(self) -> None:
        """Delete expired rows now; the writer does so once an hour by itself."""
        cutoff = self._retention.cutoff()
        if cutoff is not None:
            self._command(_deletion(cutoff))

    def settle(self) -> None:
        """Assemble foreign spans that are stored already, without the grace time, and wait.

        Calls of traces that are still going on are put right later, when their other spans come.

        Raises:
            StoreError: If the store can't do so now; the spans are kept.
        """
        self._settle(self._clock.monotonic(), _COMMAND_TIMEOUT)

    def _settle(self, quiet_since: float, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            step = self._assembling.step(quiet_since)
            command = step.command()
            self._writer.submit(command)
            # A step that failed has set aside what it could not store; its reason is logged.
            command.done.exception(seconds)
            if not step.due:
                break

    def _command(self, run: Callable[[Connection], None]) -> None:
        command = Command(run)
        self._writer.submit(command)
        try:
            command.done.result(_COMMAND_TIMEOUT)
        except TimeoutError:
            raise StoreBusyError(
                f"the store did not come to it within {_COMMAND_TIMEOUT:g} s; it may still"
            ) from None

    # --- state ---------------------------------------------------------------------------
    def size_bytes(self) -> int:
        """Return the size of the data file and its write-ahead log in bytes."""
        candidates = (self.path, self.path.with_name(self.path.name + ".wal"))
        return sum(path.stat().st_size for path in candidates if path.exists())

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
        is_open = self.unavailable_because() is None
        oldest = self.oldest_row() if is_open else None
        return {
            "counters": self.stats.snapshot(),
            "queue_rows": self.queue_rows(),
            "staged": self._assembling.describe(),
            "hours_to_roll_up": self.hours_to_roll_up() if is_open else None,
            "size_bytes": self.size_bytes(),
            "oldest_row": None if oldest is None else oldest.isoformat() + "Z",
        }

    def unavailable_because(self) -> StoreError | None:
        """Return why the store can't take or give data at present; None if it can."""
        if self._writer.unavailable is not None:
            return self._writer.unavailable
        try:
            self._check_space()
        except StoreBusyError as error:
            return error
        return None

    def close(self) -> None:
        """Store what is queued and close the file; later calls raise StoreError.

        Traces that had their grace time are assembled; the others wait on disk for the next start.
        """
        self._keeper.stop()
        with suppress(StoreError, TimeoutError):
            self._settle(self._clock.monotonic() - GRACE_SECONDS, _CLOSING_SECONDS)
        self._writer.stop()
        atexit.unregister(self.close)

    # --- the file ------------------------------------------------------------------------
    def _reopen_session(self) -> Session:
        session = self._open_session()
        self.stats.add("reopened")
        return session

    def _open_session(self) -> Session:
        database = Database(self.path, self._limits)
        try:
            repeats = RepeatFilter(self._clock.monotonic)
            with translated(self.path), database.cursor() as cursor:
                repeats.remember(_recent_keys(cursor))
                self._assembling.reload(cursor)
            session = Session(database.writing_connection(), repeats, self.stats, self._assembling)
        except BaseException:
            database.close()
            raise
        self._database = database
        return session

    def _close_database(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _open_database(self) -> Database:
        database = self._database
        if database is None:
            raise self._writer.unavailable or StoreError("the store is closed")
        return database

    def _maintenance(self) -> Command | None:
        cutoff = self._retention.due()
        return self._assembling.due() if cutoff is None else Command(_deletion(cutoff))

    def _check_space(self) -> None:
        now = self._clock.monotonic()
        if now - self._space_checked_at >= _FREE_SPACE_CHECK_SECONDS:
            try:
                self._free_space = shutil.disk_usage(self.path.parent).free
            except OSError as error:
                raise StoreBusyError(f"{self.path.parent} can't be reached: {error}") from error
            self._space_checked_at = now
        if self._free_space < self._floor:
            raise StoreBusyError(
                f"{self.path.parent} has {self._free_space >> 20} MiB left; nothing is stored "
                f"below {self._floor >> 20} MiB. Free some space, or keep fewer days with "
                "--retention."
            )


def open_store(
    path: Path,
    *,
    retention_days: float | None = 30,
    memory_limit: str = "1GB",
    clock: Clock | None = None,
    wait: bool = False,
    free_space_floor: int = FREE_SPACE_FLOOR,
) -> Store:
    """Open a data file for this process alone; create it if it is missing.

    Args:
        path: The data file, normally ``<data folder>/fuseboard.duckdb``.
        retention_days: Age at which rows are deleted; None keeps them for good.
        memory_limit: What the engine may use, as DuckDB writes sizes.
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
        retention_days=retention_days,
        limits=Limits(memory=memory_limit),
        clock=clock or SystemClock(),
        wait=wait,
        free_space_floor=free_space_floor,
    )


def _recent_keys(cursor: Connection) -> list[bytes]:
    """Return the keys of what a client may resend after a restart."""
    window = {"window": WINDOW_SECONDS}

    def rows(name: str) -> list[tuple[object, ...]]:
        return cursor.execute(load(name, "writes").statements[0].sql, window).fetchall()

    keys = [bytes.fromhex(str(ids)) for (ids,) in rows("recent_keys")]
    keys += [natural_key("breaker_transitions", *row) for row in rows("recent_transitions")]
    keys += [natural_key("heartbeats", *row) for row in rows("recent_heartbeats")]
    return keys


def _deletion(cutoff: datetime) -> Callable[[Connection], None]:
    query = load("delete_expired", "writes")
    return lambda connection: _run(connection, query, {"before": cutoff})


def _run(connection: Connection, query: NamedQuery, bound: Mapping[str, object]) -> None:
    for statement in query.statements:
        named = {name: bound[name] for name in statement.parameters}
        connection.execute(statement.sql, named or None).fetchall()
