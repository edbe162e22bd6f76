"""A database of a test in the engine of its process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuseboard_collector.store.clickhouse.address import Address
from fuseboard_collector.store.clickhouse.store import ClickHouseStore, open_clickhouse

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client


@dataclass(frozen=True)
class Database:
    """An empty database with fuseboard's tables.

    Attributes:
        connect: Opens a connection to the engine.
    """

    address: Address
    connect: Callable[[], Client]

    def open(self, **options: Any) -> ClickHouseStore:
        """Open a store on it, as one of any number of servers would."""
        return open_clickhouse(
            self.address, connect=self.connect, **{"retention_days": None, **options}
        )

    def ask(self, sql: str, **parameters: object) -> list[tuple[object, ...]]:
        """Run a statement of the test's own."""
        client = self.connect()
        try:
            client.database = self.address.database
            return [tuple(row) for row in client.query(sql, parameters).result_rows]
        finally:
            client.close()

    def command(self, sql: str) -> None:
        client = self.connect()
        try:
            client.database = self.address.database
            client.command(sql)
        finally:
            client.close()
