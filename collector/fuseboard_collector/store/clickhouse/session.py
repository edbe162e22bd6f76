"""Inserts into ClickHouse: few and large, each safe to repeat."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from time import sleep
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fuseboard.clock import Clock
from fuseboard_collector.stats import Stats
from fuseboard_collector.store.assembling import Assembling
from fuseboard_collector.store.clickhouse.connection import translated
from fuseboard_collector.store.lateness import count_late
from fuseboard_collector.store.repeats import RepeatFilter
from fuseboard_collector.store.writer import Append

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

INSERT_GAP_SECONDS: Final = 0.2
"""Least time between inserts: each makes a part of a table, and parts have to be merged."""

VERSIONED: Final = frozenset({"tool_calls", "attempts", "spans", "sightings"})
"""Tables whose rows carry ``version`` and ``is_deleted``."""

_LAST: Final = "tool_calls"


class ClickHouseSession:
    """A connection as the writer's thread uses it.

    There is no transaction over several tables. Calls go last, so that a request that broke off
    is not seen; it is refused then, and when it is sent again what did get in is replaced.
    """

    def __init__(
        self,
        client: Client,
        place: str,
        repeats: RepeatFilter,
        stats: Stats,
        clock: Clock,
        assembling: Assembling,
    ) -> None:
        self._client = client
        self._place = place
        self._repeats = repeats
        self._stats = stats
        self._clock = clock
        self._assembling = assembling
        self._next_insert = clock.monotonic()

    def commit(self, appends: Sequence[Append]) -> None:
        """Insert what is new of several requests, one block per table."""
        pending: set[bytes] = set()
        fresh: dict[str, tuple[list[pa.Table], list[bytes]]] = {}
        for part in (part for append in appends for part in append.parts):
            mask = self._repeats.fresh(part.keys, pending)
            kept = sum(mask)
            self._stats.add("repeats", len(mask) - kept, part.table)
            if kept:
                rows, keys = fresh.setdefault(part.table, ([], []))
                rows.append(part.rows.filter(pa.array(mask)))
                keys += [key for key, new in zip(part.keys, mask, strict=True) if new]
        news = self._assembling.news(
            {table: keys for table, (_, keys) in fresh.items()},
            {table: rows for table, (rows, _) in fresh.items()},
        )
        self._wait_for_turn()
        for table in sorted(fresh, key=lambda name: (name == _LAST, name)):
            rows, keys = fresh[table]
            insert(self._client, self._place, table, versioned(table, pa.concat_tables(rows)), keys)
        self._repeats.remember(pending)
        self._assembling.note(news)
        for table, (rows, keys) in fresh.items():
            self._stats.add("stored_rows", len(keys), table)
            count_late(self._stats, table, rows)
        self._stats.add("commits")

    def work(self, work: Callable[[Any], None]) -> None:
        """Run ``work``; there are no transactions here."""
        self.transact(work)

    def transact(self, work: Callable[[Any], None]) -> None:
        """Run ``work`` on the connection."""
        with translated(self._place):
            work(self._client)

    def _wait_for_turn(self) -> None:
        pause = self._next_insert - self._clock.monotonic()
        if pause > 0:
            sleep(min(pause, INSERT_GAP_SECONDS))
        self._next_insert = self._clock.monotonic() + INSERT_GAP_SECONDS


def versioned(table: str, rows: pa.Table) -> pa.Table:
    """Return rows with their version, by which the engine tells the newer of two: the arrival."""
    if table not in VERSIONED or "version" in rows.schema.names:
        return rows
    arrival = rows.column("received_at").cast(pa.int64())
    version = pc.multiply(pc.max_element_wise(arrival, 0), 2).cast(pa.uint64())
    deleted = pa.array([0] * rows.num_rows, type=pa.uint8())
    return rows.append_column("version", version).append_column("is_deleted", deleted)


def insert(
    client: Client, place: str, table: str, rows: pa.Table, keys: Sequence[bytes] = ()
) -> None:
    """Insert rows as one block.

    Args:
        client: A connection.
        place: The server, for messages.
        table: Where to.
        rows: Columns are matched by name.
        keys: Identities of the rows. An insert whose answer got lost may be sent again with
            the same ones at once, and stores nothing then.
    """
    settings: dict[str, object] = {"async_insert": 0, "max_insert_block_size": 1_048_576}
    if keys:
        digest = hashlib.blake2b(digest_size=16)
        for key in sorted(keys):
            digest.update(len(key).to_bytes(4, "big") + key)
        settings["insert_deduplication_token"] = digest.hexdigest()
    with translated(place, f"rows for {table}"):
        client.insert_arrow(table, rows, settings=settings)
