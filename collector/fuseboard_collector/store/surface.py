"""What every store offers to the receiver, the read API, the evaluator and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Protocol

import pyarrow as pa

from fuseboard_collector.errors import StoreError
from fuseboard_collector.reading import StreamingReader
from fuseboard_collector.stats import Stats
from fuseboard_collector.store.rows import Batch


class AnyStore(StreamingReader, Protocol):
    """A store of one engine or the other. Every method may be called from any thread.

    Attributes:
        stats: Counters of what the collector did.
        spool_folder: Where large answers may be put together; None: the system's own place.
    """

    stats: Stats
    spool_folder: str | None

    def append(self, batch: Batch) -> Future[None]:
        """Queue rows; the future resolves when they are durable, or fails with a StoreError.

        Raises:
            StoreBusyError: If rows can't be taken at present; the sender should try again.
        """

    def execute(self, name: str, parameters: Mapping[str, object] | None = None) -> None:
        """Run the writing statements of ``queries/<name>.sql``, and wait.

        Raises:
            StoreError: If they fail.
        """

    def insert(self, table: str, rows: pa.Table) -> None:
        """Insert rows, matched to columns by name, and wait until they are durable.

        Raises:
            StoreError: If they can't be stored.
        """

    def apply_retention(self) -> object:
        """Delete expired rows now."""

    def describe(self) -> dict[str, object]:
        """Return the counters and sizes that an operator wants to see, ready for JSON."""

    def unavailable_because(self) -> StoreError | None:
        """Return why the store can't take or give data at present; None if it can."""

    def size_bytes(self) -> int:
        """Return how much room the data take on disk."""

    def queue_rows(self) -> int:
        """Return how many rows wait to be stored."""

    def close(self) -> None:
        """Store what is queued and let go; later calls raise StoreError."""
