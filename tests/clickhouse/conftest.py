"""A real ClickHouse engine in this process; each test has a database of its own in it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("chdb")
pytest.importorskip("clickhouse_connect")

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "alerts"))

from engines import Database

from fuseboard_collector.store.clickhouse.address import Address
from fuseboard_collector.store.clickhouse.setup import initialise
from fuseboard_collector.store.clickhouse.store import (
    ClickHouseStore,
)

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def engine_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("clickhouse"))


@pytest.fixture(scope="session")
def engine(engine_path: str) -> Iterator[Callable[[], Client]]:
    """Return what connects to the engine; there can be one per process."""
    import clickhouse_connect

    def connect() -> Client:
        return clickhouse_connect.get_client(interface="chdb", path=engine_path)

    first = connect()
    yield connect
    first.close()


@pytest.fixture
def empty(engine: Callable[[], Client]) -> Database:
    """Return a database that does not exist yet."""
    name = f"test_{next(_numbers)}"
    return Database(Address("engine", 1, name), engine)


@pytest.fixture
def database(empty: Database) -> Database:
    client = empty.connect()
    initialise(client, str(empty.address), empty.address.database)
    client.close()
    return empty


@pytest.fixture
def store(database: Database) -> Iterator[ClickHouseStore]:
    store = database.open()
    yield store
    store.close()
