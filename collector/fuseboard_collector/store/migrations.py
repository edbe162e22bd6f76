"""The ordered schema files, and which of them a data file still needs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from fuseboard_collector.errors import StoreError, StoreVersionError
from fuseboard_collector.store.dialects import DUCKDB
from fuseboard_collector.store.named_queries import source

if TYPE_CHECKING:
    import duckdb

SCHEMA_FILES = (
    "001_tables",
    "002_foreign_calls",
    "003_rollups",
    "004_staging",
    "005_derived_attempts",
    "006_short_columns",
    "007_breaker_rollups",
    "008_argument_keys",
    "009_named_regions",
    "010_mutes",
)
"""In the order in which they are applied; the schema version is how many have been."""

SCHEMA_VERSION = len(SCHEMA_FILES)


def schema(name: str) -> str:
    """Return the statements of a schema file."""
    return DUCKDB.render(source(name, "schema", "writes"))


def written_by() -> str:
    """Return the version of fuseboard that runs."""
    try:
        return version("fuseboard")
    except PackageNotFoundError:
        return "unknown"


def recorded_version(connection: duckdb.DuckDBPyConnection, path: str) -> int:
    """Return the schema version that a data file carries; 0 for a new one.

    Raises:
        StoreError: If the file is a DuckDB database of something else.
    """
    tables = {
        name
        for (name,) in connection.execute(
            "SELECT table_name FROM information_schema.tables"
        ).fetchall()
    }
    if not tables:
        return 0
    if not {"meta", "tool_calls"} <= tables:
        raise StoreError(
            f"{path} is a DuckDB database, but not one of fuseboard's. It was left untouched. "
            "Choose another data folder with --data."
        )
    rows = connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchall()
    return int(rows[0][0]) if rows else 0


def check_version(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Refuse a file that a newer fuseboard wrote.

    Raises:
        StoreVersionError: If its schema is newer than this program knows.
    """
    found = recorded_version(connection, path)
    if found > SCHEMA_VERSION:
        rows = connection.execute("SELECT value FROM meta WHERE key = 'written_by'").fetchall()
        writer = rows[0][0] if rows else "a newer version"
        raise StoreVersionError(
            f"{path} has schema version {found}, written by fuseboard {writer}; this fuseboard "
            f"{written_by()} knows versions up to {SCHEMA_VERSION}. The file was left untouched. "
            "Upgrade fuseboard, or choose another data folder with --data."
        )


def check_current(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Refuse a file whose tables are older than the queries expect.

    Raises:
        StoreVersionError: If it needs a migration, which reading must not do.
    """
    found = recorded_version(connection, path)
    if found < SCHEMA_VERSION:
        raise StoreVersionError(
            f"{path} has schema version {found}, older than the {SCHEMA_VERSION} that this "
            "fuseboard reads. It was left untouched. Start `fuseboard serve` on its folder once "
            "to bring it up to date; make a copy before if an older fuseboard needs it still."
        )


def migrate(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Bring a data file to the present schema, then checkpoint, so that no DDL stays in the log.

    Each file is applied in a transaction of its own together with its version number.
    """
    start = recorded_version(connection, path)
    for number, name in enumerate(SCHEMA_FILES[start:], start + 1):
        connection.execute("BEGIN")
        connection.execute(schema(name))
        connection.execute("DELETE FROM meta WHERE key IN ('schema_version', 'written_by')")
        connection.execute(
            "INSERT INTO meta (key, value) "
            "VALUES ('schema_version', $version), ('written_by', $writer)",
            {"version": str(number), "writer": written_by()},
        )
        connection.execute("COMMIT")
    if start < SCHEMA_VERSION:
        connection.execute("CHECKPOINT")
