from __future__ import annotations

import os
import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fuseboard_collector.errors import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreInUseError,
    StoreVersionError,
)
from fuseboard_collector.store import Batch, Store, ToolCall, open_store
from fuseboard_collector.store.migrations import SCHEMA_FILES, SCHEMA_VERSION

EVERYTHING = {"since": None, "until": None}
Hold = Callable[[Path], subprocess.Popen[str]]


@pytest.fixture
def closed_store(tmp_path: Path) -> Path:
    """A good data file with one call, not open."""
    path = tmp_path / "fuseboard.duckdb"
    store = open_store(path)
    store.append(Batch(calls=[ToolCall("search", end=1_796_000_000_000_000)])).result(10)
    store.close()
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}


def refused(path: Path, error: type[StoreError], match: str) -> StoreError:
    """Open a file that must be refused, and check that nothing was touched."""
    before = files(path.parent)
    with pytest.raises(error, match=match) as caught:
        open_store(path)
    assert files(path.parent) == before
    assert "\n" not in str(caught.value)
    return caught.value


def checksum(data: bytes) -> int:
    """DuckDB's checksum of a header."""
    result = 5381
    for (word,) in struct.iter_unpack("<Q", data):
        result ^= (word * 0xBF58476D1CE4E5B9) & 0xFFFF_FFFF_FFFF_FFFF
    return result


def test_hc_40_a_file_that_another_process_holds_names_that_process(
    closed_store: Path, hold: Hold
) -> None:
    holder = hold(closed_store)
    error = refused(closed_store, StoreInUseError, f"held by process {holder.pid}.*--data")
    assert isinstance(error, StoreInUseError)
    assert error.pid == holder.pid


def test_a_second_store_in_one_process_is_refused_too(store: Store) -> None:
    with pytest.raises(StoreInUseError) as caught:
        open_store(store.path)
    assert caught.value.pid == os.getpid()
    store.append(Batch(calls=[ToolCall("a", end=1)])).result(10)


def test_hc_40_a_store_may_wait_for_its_file(
    closed_store: Path, hold: Hold, until: Callable[..., None]
) -> None:
    holder = hold(closed_store)
    store = open_store(closed_store, wait=True)
    call = ToolCall("late", end=1_796_000_000_000_000)
    with pytest.raises(StoreBusyError, match=f"held by process {holder.pid}"):
        store.append(Batch(calls=[call]))
    with pytest.raises(StoreInUseError, match=f"held by process {holder.pid}"):
        store.query("export_calls", EVERYTHING)
    assert store.unavailable_because() is not None
    holder.communicate()
    until(lambda: store.unavailable_because() is None, "opening the file")
    store.append(Batch(calls=[call])).result(10)
    found = store.query("export_calls", EVERYTHING).column("tool").to_pylist()
    assert sorted(found) == ["late", "search"]
    store.close()


def test_a_waiting_store_can_be_closed(closed_store: Path, hold: Hold) -> None:
    hold(closed_store)
    open_store(closed_store, wait=True).close()


def test_a_newer_schema_is_refused(closed_store: Path) -> None:
    connection = duckdb.connect(str(closed_store))
    connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    connection.execute("UPDATE meta SET value = '7.1.0' WHERE key = 'written_by'")
    connection.close()
    refused(closed_store, StoreVersionError, "schema version 99, written by fuseboard 7.1.0")


def test_a_newer_duckdb_file_is_refused(closed_store: Path) -> None:
    content = bytearray(closed_store.read_bytes())
    header = bytearray(content[:4096])
    assert struct.unpack_from("<Q", header)[0] == checksum(bytes(header[8:]))
    struct.pack_into("<Q", header, 12, 2000)
    struct.pack_into("<Q", header, 0, checksum(bytes(header[8:])))
    closed_store.write_bytes(bytes(header) + bytes(content[4096:]))
    refused(closed_store, StoreVersionError, "newer DuckDB than the.*Upgrade duckdb")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda good: b"hello world" * 1000, id="another-file"),
        pytest.param(lambda good: b"", id="empty"),
        pytest.param(lambda good: good[:100], id="cut-in-the-header"),
        pytest.param(lambda good: good[: len(good) // 2], id="cut-in-half"),
        pytest.param(lambda good: b"\0" * len(good), id="zeros"),
        pytest.param(lambda good: good[:20] + b"\xff" + good[21:], id="flipped-byte"),
    ],
)
def test_a_damaged_file_is_refused(closed_store: Path, damage: Callable[[bytes], bytes]) -> None:
    closed_store.write_bytes(damage(closed_store.read_bytes()))
    refused(closed_store, StoreDamagedError, "can't be read.*Restore it from a backup")


def test_somebody_elses_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fuseboard.duckdb"
    connection = duckdb.connect(str(path))
    connection.execute("CREATE TABLE customers (name VARCHAR)")
    connection.close()
    refused(path, StoreError, "not one of fuseboard's.*--data")


def test_a_refused_file_can_be_opened_once_it_is_put_right(closed_store: Path) -> None:
    good = closed_store.read_bytes()
    closed_store.write_bytes(b"bad")
    with pytest.raises(StoreDamagedError):
        open_store(closed_store)
    closed_store.write_bytes(good)
    store = open_store(closed_store)
    assert store.query("export_calls", EVERYTHING).num_rows == 1
    store.close()


def test_the_schema_version_is_the_number_of_schema_files(
    store: Store, rows: Callable[[str], list[dict[str, Any]]]
) -> None:
    meta = {row["key"]: row["value"] for row in rows("meta")}
    assert meta["schema_version"] == str(SCHEMA_VERSION) == str(len(SCHEMA_FILES))
    assert meta["written_by"]


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a" / "b" / "fuseboard.duckdb")
    assert store.size_bytes() > 0
    store.close()


def test_a_file_from_before_a_migration_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuseboard_collector.store import migrations

    path = tmp_path / "fuseboard.duckdb"
    open_store(path).close()
    monkeypatch.setattr(migrations, "SCHEMA_FILES", (*SCHEMA_FILES, "999_test"))
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    added = {"999_test": "ALTER TABLE meta ADD COLUMN note VARCHAR;"}
    monkeypatch.setattr(migrations, "schema", added.__getitem__)
    store = open_store(path)
    with store._open_database().cursor() as cursor:
        found = dict(cursor.execute("SELECT key, value FROM meta").fetchall())
        assert found["schema_version"] == str(SCHEMA_VERSION + 1)
        assert cursor.execute("SELECT note FROM meta").fetchall()
    store.close()


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system can't stop a process")
def test_hc_40_a_holder_that_is_stopped_still_holds_the_file(
    closed_store: Path, hold: Hold
) -> None:
    """As under a debugger, or in a container that is paused: its locks stay."""
    holder = hold(closed_store)
    holder.send_signal(signal.SIGSTOP)
    try:
        refused(closed_store, StoreInUseError, f"held by process {holder.pid}.*--data")
    finally:
        holder.send_signal(signal.SIGCONT)
    holder.communicate()
    open_store(closed_store).close()
