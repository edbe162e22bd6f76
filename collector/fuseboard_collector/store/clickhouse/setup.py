"""Creates fuseboard's own tables in a ClickHouse database, and says which version they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fuseboard_collector.errors import StoreError, StoreVersionError
from fuseboard_collector.store.clickhouse.connection import translated
from fuseboard_collector.store.dialects import CLICKHOUSE
from fuseboard_collector.store.migrations import written_by
from fuseboard_collector.store.named_queries import source

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

SCHEMA_FILES: Final = (
    "001_tables",
    "002_derived_attempts",
    "003_attempts_end_with_calls",
    "004_mutes",
)
"""In the order in which they are applied; the schema version is how many have been."""

SCHEMA_VERSION: Final = len(SCHEMA_FILES)
OLDEST_SERVER: Final = (26, 3)


def initialise(client: Client, place: str, database: str) -> list[str]:
    """Create the database and the tables that are missing.

    Args:
        client: A connection that need not know the database yet.
        place: The server, for messages.
        database: Where to create them; letters, digits and underscores only.

    Returns:
        What was done, one sentence each.

    Raises:
        StoreError: If the server is too old or the user may not do it.
        StoreVersionError: If a newer fuseboard made the tables.
    """
    _check_server(client, place)
    done = []
    with translated(place):
        if not client.command(f"EXISTS DATABASE {database}"):
            client.command(f"CREATE DATABASE IF NOT EXISTS {database}")
            done.append(f"created the database {database}")
        client.database = database
        start = recorded_version(client, place) if _has_meta(client) else 0
        before = _tables(client)
        for number, name in enumerate(SCHEMA_FILES[start:], start + 1):
            schema = CLICKHOUSE.render(source(name, "clickhouse/schema", "writes"))
            for statement in statements(schema):
                client.command(statement)
            _record(client, number)
        done += [f"created the table {name}" for name in sorted(_tables(client) - before)]
    if start < SCHEMA_VERSION:
        done.append(f"the schema has version {SCHEMA_VERSION} now")
    return done


def check_current(client: Client, place: str) -> None:
    """Refuse a database whose tables are not those that this program knows.

    Raises:
        StoreError: If there are none, or older ones.
        StoreVersionError: If a newer fuseboard made them.
    """
    _check_server(client, place)
    with translated(place):
        found = recorded_version(client, place) if _has_meta(client) else 0
    if found < SCHEMA_VERSION:
        state = "has no tables of fuseboard's yet" if found == 0 else f"has schema version {found}"
        raise StoreError(
            f"{place} {state}; this fuseboard needs version {SCHEMA_VERSION}. "
            "Run `fuseboard store init --store URL` once."
        )


def recorded_version(client: Client, place: str) -> int:
    """Return the schema version of a database; 0 if none is noted.

    Raises:
        StoreVersionError: If this program does not know it yet.
    """
    rows = client.query(
        "SELECT key, value FROM meta FINAL WHERE key IN ('schema_version', 'written_by')"
    ).result_rows
    noted = {str(key): str(value) for key, value in rows}
    found = int(noted.get("schema_version", 0))
    if found > SCHEMA_VERSION:
        raise StoreVersionError(
            f"{place} has schema version {found}, made by fuseboard "
            f"{noted.get('written_by', '?')}; this fuseboard {written_by()} knows versions up to "
            f"{SCHEMA_VERSION}. Nothing was touched. Upgrade fuseboard, or use another database."
        )
    return found


def statements(text: str) -> list[str]:
    """Return the statements of a schema file, without comments."""
    lines = [line.partition("--")[0].rstrip() for line in text.splitlines()]
    parts = "\n".join(line for line in lines if line.strip()).split(";")
    return [part.strip() for part in parts if part.strip()]


def _check_server(client: Client, place: str) -> None:
    version = client.server_version or "0"
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if numbers < OLDEST_SERVER:
        raise StoreError(
            f"{place} is ClickHouse {version}; fuseboard needs "
            f"{'.'.join(map(str, OLDEST_SERVER))} or newer"
        )


def _has_meta(client: Client) -> bool:
    return "meta" in _tables(client)


def _tables(client: Client) -> set[str]:
    found = client.query("SELECT name FROM system.tables WHERE database = currentDatabase()")
    return {str(name) for (name,) in found.result_rows}


def _record(client: Client, version: int) -> None:
    client.insert(
        "meta",
        [["schema_version", str(version)], ["written_by", written_by()]],
        column_names=["key", "value"],
    )
