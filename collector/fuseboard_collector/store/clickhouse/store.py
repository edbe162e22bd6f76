"""The store in a ClickHouse database, which any number of servers may share."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from fuseboard.clock import Clock, SystemClock
from fuseboard_collector.errors import StoreAwayError, StoreBusyError, StoreError
from fuseboard_collector.reading import Batches
from fuseboard_collector.stats import Stats
from fuseboard_collector.store.clickhouse import answering
from fuseboard_collector.store.clickhouse.address import Address
from fuseboard_collector.store.clickhouse.assembling import SharedAssembling
from fuseboard_collector.store.clickhouse.connection import Connect, connecting, translated
from fuseboard_collector.store.clickhouse.session import ClickHouseSession, insert
from fuseboard_collector.store.clickhouse.setup import check_current, statements
from fuseboard_collector.store.clickhouse.values import encoded
from fuseboard_collector.store.dialects import CLICKHOUSE
from fuseboard_collector.store.named_queries import load, source, text
from fuseboard_collector.store.repeats import RepeatFilter
from fuseboard_collector.store.retention import Keep, Retention
from fuseboard_collector.store.rows import ROW_TYPES, Batch
from fuseboard_collector.store.staging import GRACE_SECONDS, Staging
from fuseboard_collector.store.writer import Append, Command, Writer, parts_of

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

ARRIVAL: Final = {**dict.fromkeys((row.TABLE for row in ROW_TYPES), "received_at"),
                  "alert_events": "time"}  # fmt: skip
"""Tables from which retention deletes, and their column with the time of arrival."""

_TABLES = frozenset({*ARRIVAL, "alert_memory", "mutes"})
_COMMAND_TIMEOUT = 60.0
_CLOSING_SECONDS = 5.0


class ClickHouseStore:
    """An :class:`~fuseboard_collector.store.surface.AnyStore` on a ClickHouse server.

    Rows are durable when the server has taken them, as far as its own settings go (replicas,
    fsync). While it does not answer, writes raise StoreBusyError and queries StoreAwayError,
    and it is tried again each second. Made by :func:`open_clickhouse`.
    """

    def __init__(
        self, address: Address, connect: Connect, retention_days: float | None, clock: Clock
    ) -> None:
        self.address = address
        self.store_id = str(address)
        self.spool_folder: str | None = None
        self.stats = Stats()
        self._connect = connect
        self._clock = clock
        self._retention = Retention(Keep(retention_days), clock)
        self._assembling = SharedAssembling(Staging(clock.monotonic), self.stats, clock)
        self._reading: Client | None = None
        self._opening = threading.Lock()
        self._closed = False
        session, unavailable = None, None
        try:
            session = self._open_session()
        except StoreAwayError as error:
            unavailable = error
        self._writer = Writer(self._reopen_session, session, self._let_go, self._maintenance)
        self._writer.unavailable = unavailable
        self._writer.start()
        atexit.register(self.close)

    # --- reading -------------------------------------------------------------------------
    def query(self, name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        """Run ``queries/<name>.sql``; see :class:`~fuseboard_collector.reading.Reader`.

        Raises:
            UnknownQueryError: If there is no such query, or it writes.
            QueryParameterError: If parameters are missing, unknown or of the wrong type.
            StoreAwayError: If the server does not answer.
            StoreError: If it can't answer this.
        """
        self.stats.add("queries")
        return answering.table(self._client(), self.store_id, name, parameters)

    @contextmanager
    def stream(
        self, name: str, parameters: Mapping[str, object] | None = None
    ) -> Iterator[Batches]:
        """Run a query and read it bit by bit; see ``reading.StreamingReader``."""
        self.stats.add("queries")
        with answering.batches(self._client(), self.store_id, name, parameters) as answer:
            yield answer

    # --- writing -------------------------------------------------------------------------
    def append(self, batch: Batch) -> Future[None]:
        """Queue rows; see :class:`~fuseboard_collector.store.surface.AnyStore`."""
        if batch.sightings:
            self._assembling.staging.check_room()
        item = Append(parts_of(batch))
        self._writer.submit(item)
        return item.done

    def execute(self, name: str, parameters: Mapping[str, object] | None = None) -> None:
        """Run the writing statements of ``queries/<name>.sql`` one after the other, and wait."""
        values = encoded(name, source(name), load(name).bind(parameters))

        def run(client: Client) -> None:
            for statement in statements(text(name, dialect=CLICKHOUSE)):
                client.command(statement, values)

        self._command(run)

    def insert(self, table: str, rows: pa.Table) -> None:
        """Insert rows, matched to columns by name, and wait."""
        if table not in _TABLES:
            raise StoreError(f"there is no table {table!r}; there are {sorted(_TABLES)}")
        self._command(lambda client: insert(client, self.store_id, table, rows))

    def apply_retention(self) -> None:
        """Delete expired rows now; the writer does so once an hour by itself."""
        cutoff = self._retention.cutoff()
        if cutoff is not None:
            self._command(_deletion(cutoff))

    def settle(self) -> None:
        """Assemble foreign spans that are stored already, without the grace time, and wait."""
        self._assembling.settle(self._writer, self._clock.monotonic(), _COMMAND_TIMEOUT)

    def _command(self, run: Callable[[Any], None]) -> None:
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
        """Return how much room fuseboard's tables take on the server's disks."""
        size = self._scalar(
            "SELECT sum(bytes_on_disk) FROM system.parts "
            "WHERE active AND database = currentDatabase()"
        )
        return size if isinstance(size, int) else 0

    def queue_rows(self) -> int:
        """Return how many rows wait to be stored."""
        return self._writer.waiting_rows()

    def oldest_row(self) -> datetime | None:
        """Return when the oldest stored call arrived, naive UTC; None if there is none."""
        found = self._scalar("SELECT minOrNull(received_at) FROM tool_calls")
        return found.replace(tzinfo=None) if isinstance(found, datetime) else None

    def describe(self) -> dict[str, object]:
        """Return the counters and sizes that an operator wants to see, ready for JSON."""
        is_here = self.unavailable_because() is None
        oldest = self.oldest_row() if is_here else None
        return {
            "counters": self.stats.snapshot(),
            "queue_rows": self.queue_rows(),
            "staged": self._assembling.describe(),
            "size_bytes": self.size_bytes() if is_here else None,
            "oldest_row": None if oldest is None else oldest.isoformat() + "Z",
        }

    def unavailable_because(self) -> StoreError | None:
        """Return why the store can't take or give data at present; None if it can."""
        return self._writer.unavailable

    def close(self) -> None:
        """Store what is queued and let go; later calls raise StoreError.

        Traces that had their grace time are assembled; the next server takes up the others.
        """
        with suppress(StoreError, TimeoutError):
            self._assembling.settle(
                self._writer, self._clock.monotonic() - GRACE_SECONDS, _CLOSING_SECONDS
            )
        self._writer.stop()
        self._closed = True
        atexit.unregister(self.close)

    # --- connections ---------------------------------------------------------------------
    def _open_session(self) -> ClickHouseSession:
        client = self._opened()
        repeats = RepeatFilter(self._clock.monotonic)
        with translated(self.store_id):
            self._assembling.reload(client)
        return ClickHouseSession(
            client, self.store_id, repeats, self.stats, self._clock, self._assembling
        )

    def _reopen_session(self) -> ClickHouseSession:
        session = self._open_session()
        self.stats.add("reopened")
        return session

    def _opened(self) -> Client:
        client = self._connect()
        client.database = self.address.database
        check_current(client, self.store_id)
        return client

    def _client(self) -> Client:
        """Return the connection for queries; its pool serves any number of threads."""
        if self._closed:
            raise StoreError("the store is closed")
        with self._opening:
            if self._reading is None:
                self._reading = self._opened()
            return self._reading

    def _scalar(self, sql: str) -> object:
        with translated(self.store_id):
            rows = self._client().query(sql).result_rows
        return rows[0][0] if rows else None

    def _let_go(self) -> None:
        with self._opening:
            reading, self._reading = self._reading, None
        if reading is not None:
            reading.close()

    def _maintenance(self) -> Command | None:
        cutoff = self._retention.cutoff() if self._retention.due() else None
        return self._assembling.due() if cutoff is None else Command(_deletion(cutoff))


def open_clickhouse(
    address: Address,
    *,
    retention_days: float | None = 30,
    clock: Clock | None = None,
    connect: Connect | None = None,
) -> ClickHouseStore:
    """Open a store in a ClickHouse database that has fuseboard's tables.

    A server that does not answer yet is waited for: until then writes raise StoreBusyError and
    queries StoreAwayError.

    Args:
        address: The database.
        retention_days: Age at which rows are deleted; None keeps them for good. The shortest of
            all servers on a database counts.
        clock: Source of time; the machine's by default.
        connect: What opens connections; over HTTP by default.

    Raises:
        ModuleNotFoundError: If the extra ``clickhouse`` is not installed.
        StoreError: If the tables are missing, or the user may not use them.
        StoreVersionError: If a newer fuseboard made the tables.
    """
    return ClickHouseStore(
        address, connect or connecting(address), retention_days, clock or SystemClock()
    )


def _deletion(cutoff: datetime) -> Callable[[Client], None]:
    """Return what deletes the rows that arrived before a time: whole days first, at no cost."""
    day = cutoff.strftime("%Y%m%d")
    older = cutoff - timedelta(days=1)

    def run(client: Client) -> None:
        for table, column in ARRIVAL.items():
            for partition in _partitions(client, table):
                if partition <= older.strftime("%Y%m%d"):
                    client.command(f"ALTER TABLE {table} DROP PARTITION ID '{partition}'")
            client.command(
                f"DELETE FROM {table} IN PARTITION ID '{day}' "  # noqa: S608
                f"WHERE {column} < {{before:DateTime64(6, 'UTC')}}",
                {"before": cutoff.isoformat(sep=" ")},
            )
        _delete_mutes(client, cutoff)

    return run


def _delete_mutes(client: Client, cutoff: datetime) -> None:
    """Delete the mutes that were over before a time, each whole.

    Without its newest row a mute would go on as it was before somebody ended it.
    """
    over = client.query(
        "SELECT id FROM mutes GROUP BY id "
        "HAVING max(greatest(ends, set_at)) < {before:DateTime64(6, 'UTC')} LIMIT 100",
        {"before": cutoff.isoformat(sep=" ")},
    ).result_rows
    # The rest waits for the next hour: parameters travel in an address, which may not be long.
    if over:
        ids = [str(mute_id) for (mute_id,) in over]
        client.command("DELETE FROM mutes WHERE id IN {ids:Array(String)}", {"ids": ids})


def _partitions(client: Client, table: str) -> list[str]:
    found = client.query(
        "SELECT DISTINCT partition_id FROM system.parts "
        "WHERE active AND database = currentDatabase() AND table = {name:String}",
        {"name": table},
    )
    return sorted(str(partition) for (partition,) in found.result_rows)
