"""The one thread that writes: requests queue up, one transaction takes them all."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import pyarrow as pa

from fuseboard_collector.errors import StoreAwayError, StoreBusyError, StoreError
from fuseboard_collector.stats import Stats
from fuseboard_collector.store.inserting import insert_rows
from fuseboard_collector.store.late_repeats import stored_already
from fuseboard_collector.store.lateness import count_late
from fuseboard_collector.store.marking import Marked
from fuseboard_collector.store.repeats import RepeatFilter
from fuseboard_collector.store.rows import (
    ARROW_SCHEMAS,
    Batch,
    ToolCall,
    cells_to_arrow,
    to_arrow,
)

if TYPE_CHECKING:
    from fuseboard_collector.store.assembling import Assembling

logger = logging.getLogger(__name__)

Connection = duckdb.DuckDBPyConnection
GROUP_ROWS = 65_536
QUEUE_ROWS = 200_000
_IDLE_SECONDS = 1.0
_DURABLE = "COMMIT succeeded"


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table, ready to insert.

    Attributes:
        keys: One key per row; equal keys are repeats.
    """

    table: str
    rows: pa.Table
    keys: Sequence[bytes]


_TRACE_ID = ARROW_SCHEMAS[ToolCall.TABLE].names.index("trace_id")
_SPAN_ID = ARROW_SCHEMAS[ToolCall.TABLE].names.index("span_id")


def parts_of(batch: Batch) -> list[Part]:
    """Return the rows of a batch by table, ready to insert."""
    parts = [
        Part(rows[0].TABLE, to_arrow(rows), [row.key() for row in rows]) for rows in batch.lists()
    ]
    if cells := batch.call_cells:
        keys = [bytes.fromhex(row[_TRACE_ID] + row[_SPAN_ID]) for row in cells]
        parts.append(Part(ToolCall.TABLE, cells_to_arrow(ToolCall.TABLE, cells), keys))
    return parts


def _promise() -> Future[None]:
    """Return a future that a waiter who goes away can't cancel."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future


@dataclass(slots=True)
class Append:
    """The rows of one request; ``done`` resolves after their commit."""

    parts: list[Part]
    done: Future[None] = field(default_factory=_promise)

    def __len__(self) -> int:
        return sum(part.rows.num_rows for part in self.parts)


@dataclass(slots=True)
class Command:
    """Something else to do, in a transaction of its own unless it makes its own ones."""

    run: Callable[[Any], None]
    in_transaction: bool = True
    done: Future[None] = field(default_factory=_promise)


class WriteSession(Protocol):
    """A store as the writer sees it; replaced by opening it again after a fatal error."""

    def commit(self, appends: Sequence[Append]) -> None:
        """Make what is new of several requests durable."""

    def transact(self, work: Callable[[Any], None]) -> None:
        """Run ``work`` on the session's connection, as one transaction where there are any."""

    def work(self, work: Callable[[Any], None]) -> None:
        """Run ``work`` on the session's connection, outside of any transaction."""


class Session:
    """The open file as the writer sees it."""

    def __init__(
        self,
        connection: Connection,
        repeats: RepeatFilter,
        stats: Stats,
        assembling: Assembling,
    ) -> None:
        self._connection = connection
        self._repeats = repeats
        self._stats = stats
        self._assembling = assembling
        self._marked = Marked()

    def commit(self, appends: Sequence[Append]) -> None:
        """Insert what is new of several requests in one transaction."""
        pending: set[bytes] = set()
        tables, keys = self._without_stored(*self._without_repeats(appends, pending))
        news = self._assembling.news(keys, tables)

        def insert(connection: Connection) -> None:
            for table, rows in tables.items():
                marked = self._marked.covers(table, rows)
                insert_rows(connection, table, pa.concat_tables(rows), marked=marked)
            self._assembling.mark(connection, news)

        if tables:
            self._transact(insert)
            self._marked.note(tables)
        self._repeats.remember(pending)
        self._assembling.note(news)
        for table, rows in tables.items():
            self._stats.add("stored_rows", sum(item.num_rows for item in rows), table)
            count_late(self._stats, table, rows)

    def transact(self, work: Callable[[Connection], None]) -> None:
        """Run ``work`` in a transaction; on an error nothing of it remains."""
        self._marked.forget()
        self._transact(work)

    def _transact(self, work: Callable[[Connection], None]) -> None:
        connection = self._connection
        connection.execute("BEGIN")
        try:
            work(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            if not isinstance(error, duckdb.FatalException):
                connection.execute("ROLLBACK")
            raise
        self._stats.add("commits")

    def work(self, work: Callable[[Connection], None]) -> None:
        """Run ``work`` outside of any transaction."""
        self._marked.forget()
        work(self._connection)

    def _without_repeats(
        self, appends: Sequence[Append], pending: set[bytes]
    ) -> tuple[dict[str, list[pa.Table]], dict[str, list[bytes]]]:
        """Return the new rows and their keys by table."""
        tables: dict[str, list[pa.Table]] = {}
        keys: dict[str, list[bytes]] = {}
        for append in appends:
            for part in append.parts:
                mask = self._repeats.fresh(part.keys, pending)
                kept = sum(mask)
                self._stats.add("repeats", len(mask) - kept, part.table)
                if kept:
                    rows = part.rows if kept == len(mask) else part.rows.filter(pa.array(mask))
                    tables.setdefault(part.table, []).append(rows)
                    keys.setdefault(part.table, []).extend(compress(part.keys, mask))
        return tables, keys

    def _without_stored(
        self, tables: dict[str, list[pa.Table]], keys: dict[str, list[bytes]]
    ) -> tuple[dict[str, list[pa.Table]], dict[str, list[bytes]]]:
        """Leave out rows that are in the file since longer ago than memory reaches back."""
        stored = stored_already(self._connection, tables, self._repeats.reach)
        if not stored:
            return tables, keys
        for table in list(tables):
            mask = [key not in stored for key in keys[table]]
            rows = pa.concat_tables(tables.pop(table))
            fresh = list(compress(keys.pop(table), mask))
            self._stats.add("repeats", len(mask) - len(fresh), table)
            if fresh:
                tables[table], keys[table] = [rows.filter(pa.array(mask))], fresh
        return tables, keys


class Writer:
    """Drains a bounded queue into group commits on a thread of its own."""

    def __init__(
        self,
        open_session: Callable[[], WriteSession],
        session: WriteSession | None,
        close_session: Callable[[], None],
        maintenance: Callable[[], Command | None],
        queue_rows: int = QUEUE_ROWS,
        retry_seconds: float = 1.0,
    ) -> None:
        """Prepare; :meth:`start` starts the thread.

        Args:
            open_session: Opens the file; called again each ``retry_seconds`` while it fails.
            session: The first session, or None to open it on the thread.
            close_session: Closes the file.
            maintenance: Asked after each commit and once a second for maintenance that is due.
            queue_rows: Rows that may wait; more are refused with StoreBusyError.
            retry_seconds: Pause between attempts to open the file.
        """
        self._open_session = open_session
        self._close_session = close_session
        self._session = session
        self._maintenance = maintenance
        self._queue_rows = queue_rows
        self._retry_seconds = retry_seconds
        self._items: deque[Append | Command] = deque()
        self._waiting_rows = 0
        self._changed = threading.Condition()
        self._stopping = False
        self._broken = False
        self.unavailable: StoreError | None = None
        """Why the file is not open, while it isn't."""
        self.notice: Callable[[Exception], object] = lambda _: None
        """Told of every error of the engine: it may mean that the file is damaged."""
        self._thread = threading.Thread(target=self._run, name="fuseboard-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def waiting_rows(self) -> int:
        """Return how many rows wait for their commit."""
        return self._waiting_rows

    def submit(self, item: Append | Command) -> None:
        """Queue an item.

        Raises:
            StoreBusyError: If the queue is full, or the file is not open at present.
        """
        rows = len(item) if isinstance(item, Append) else 0
        with self._changed:
            if self._stopping:
                raise StoreError("the store is closed")
            if self.unavailable is not None:
                raise StoreBusyError(f"the store is not available: {self.unavailable}")
            if rows and self._waiting_rows and self._waiting_rows + rows > self._queue_rows:
                raise StoreBusyError(f"{self._waiting_rows} rows wait to be stored already")
            self._items.append(item)
            self._waiting_rows += rows
            self._changed.notify()

    def reopen(self) -> None:
        """Have the file closed and opened again: a query found it broken."""
        with self._changed:
            self._broken = True
            self._changed.notify()

    def stop(self) -> None:
        """Write what is queued, then end the thread and close the file."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        busy = False
        while True:
            if self._session is None or self._broken:
                self._open_again()
            group = self._next_group(0.0 if busy else _IDLE_SECONDS)
            if group:
                self._process(group)
            elif self._stopping:
                break
            # After a compaction the session is still that of a file without a name: its log
            # would lie beside the new file and keep that from being opened.
            is_sound = self._session is not None and not self._broken
            busy = is_sound and self._maintain()
        self._refuse_queued(StoreError("the store is closed"))
        self._close_session()

    def _maintain(self) -> bool:
        """Do a piece of maintenance that is due; return whether there was one."""
        try:
            command = self._maintenance()
        except Exception:
            # This thread's end would be the end of all storing.
            logger.exception("maintenance of the store failed")
            return False
        if command is not None:
            self._process([command])
        return command is not None

    def _open_again(self) -> None:
        self._session, self._broken = None, False
        try:
            self._close_session()
        except Exception:
            logger.exception("the broken store could not be closed")
        while not self._stopping:
            try:
                self._session = self._open_session()
            except Exception as error:
                refusal = error if isinstance(error, StoreError) else StoreError(str(error))
                if self.unavailable is None:
                    logger.warning("%s", refusal)
                self.unavailable = refusal
                self._refuse_queued(refusal)
                with self._changed:
                    self._changed.wait_for(lambda: self._stopping, self._retry_seconds)
            else:
                self.unavailable = None
                return

    def _refuse_queued(self, error: StoreError) -> None:
        with self._changed:
            items, self._waiting_rows = list(self._items), 0
            self._items.clear()
        for item in items:
            item.done.set_exception(StoreBusyError(f"the store is not available: {error}"))

    def _next_group(self, wait_seconds: float) -> list[Append | Command]:
        """Wait for work; return a run of requests to commit together, or one command."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._items or self._stopping or self._broken, wait_seconds
            )
            group: list[Append | Command] = []
            rows = 0
            if self._broken or self._session is None:
                return group
            while self._items and rows < GROUP_ROWS:
                if group and isinstance(self._items[0], Command):
                    break
                item = self._items.popleft()
                group.append(item)
                if isinstance(item, Command):
                    break
                rows += len(item)
            self._waiting_rows -= rows
            return group

    def _process(self, group: list[Append | Command]) -> None:
        try:
            self._carry_out(group)
        except (duckdb.FatalException, StoreAwayError) as error:
            self._broken = True
            self.notice(error)
            self._settle_fatal(group, error)
        except Exception as error:
            self.notice(error)
            appends = [item for item in group if isinstance(item, Append)]
            if len(appends) > 1:
                # One request's rows must not fail the others': each gets its own transaction.
                for append in appends:
                    self._process([append])
            else:
                self._fail(group, error)
        else:
            for item in group:
                item.done.set_result(None)

    def _carry_out(self, group: list[Append | Command]) -> None:
        assert self._session is not None, "work is taken only while the file is open"  # noqa: S101
        if isinstance(group[0], Command):
            command = group[0]
            (self._session.transact if command.in_transaction else self._session.work)(command.run)
        else:
            self._session.commit([item for item in group if isinstance(item, Append)])

    def _settle_fatal(self, group: list[Append | Command], error: Exception) -> None:
        """Answer for a broken instance: with the commit durable, a resend would double it."""
        logger.error("the store is reopened after: %s", str(error).splitlines()[0])
        if _DURABLE in str(error) and "invalidated" not in str(error):
            for item in group:
                item.done.set_result(None)
        else:
            self._fail(group, error)

    def _fail(self, group: list[Append | Command], error: Exception) -> None:
        wrapped = error if isinstance(error, StoreError) else StoreError(_first_line(error))
        wrapped.__cause__ = error if wrapped is not error else error.__cause__
        for item in group:
            item.done.set_exception(wrapped)


def _first_line(error: Exception) -> str:
    return f"the rows could not be stored: {(str(error).splitlines() or [repr(error)])[0]}"
