"""Opens a store by where it is."""

from __future__ import annotations

from pathlib import Path

from fuseboard.clock import Clock
from fuseboard_collector.store.clickhouse.address import Address, is_address, parse
from fuseboard_collector.store.memory import words
from fuseboard_collector.store.store import open_store
from fuseboard_collector.store.surface import AnyStore


def open_any(
    place: Path | str | Address,
    *,
    retention_days: float | None = 30,
    max_bytes: int | None = None,
    memory_bytes: int | None = None,
    clock: Clock | None = None,
) -> AnyStore:
    """Open a data file or a ClickHouse database.

    Args:
        place: A path, or an address such as ``clickhouse://user:password@host:8123/fuseboard``.
        retention_days: Age at which rows are deleted; None keeps them for good.
        max_bytes: Size of a data file at which the oldest rows are deleted; None for any. A
            database has limits of its own.
        memory_bytes: What the engine of a data file may use; None for a quarter of the machine's.
        clock: Source of time; the machine's by default.

    Raises:
        ModuleNotFoundError: If it is a database and the extra ``clickhouse`` is not installed.
        StoreError: If it can't be opened; see :func:`open_store` and ``open_clickhouse``.
    """
    if isinstance(place, str) and is_address(place):
        place = parse(place)
    if isinstance(place, Address):
        from fuseboard_collector.store.clickhouse.store import open_clickhouse

        return open_clickhouse(place, retention_days=retention_days, clock=clock)
    return open_store(
        Path(place),
        retention_days=retention_days,
        max_bytes=max_bytes,
        memory_limit=None if memory_bytes is None else words(memory_bytes),
        clock=clock,
    )
