"""A file at rest is read without being touched: no migration, no deletion, no checkpoint."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fuseboard_collector.errors import (
    QueryParameterError,
    StoreDamagedError,
    StoreError,
    StoreInUseError,
    StoreVersionError,
    UnknownQueryError,
)
from fuseboard_collector.store import Batch, ToolCall, migrations, open_at_rest, open_store

EVERYTHING = {"since": None, "until": None}
LONG_AGO = 1_000_000_000_000_000
"""Microseconds; 2001, older than any retention."""

KILLED = """
import os, signal, sys
from pathlib import Path
from fuseboard_collector.store import Batch, ToolCall, open_store
store = open_store(Path(sys.argv[1]))
for number in range(5):
    call = ToolCall(f"tool-{number}", end=1_796_000_000_000_000 + number)
    store.append(Batch(calls=[call])).result(20)
os.kill(os.getpid(), signal.SIGKILL)
"""

Traces = dict[str, tuple[bytes, int, int]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A data file at rest with an old call."""
    path = tmp_path / "data" / "fuseboard.duckdb"
    store = open_store(path, retention_days=None)
    calls = [ToolCall("search", end=LONG_AGO), ToolCall("maps", end=LONG_AGO + 1)]
    for call in calls:
        call.received_at = LONG_AGO
    store.append(Batch(calls=calls)).result(20)
    store.close()
    return path


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A data file whose server was killed: five calls are in the write-ahead log alone."""
    path = tmp_path / "data" / "fuseboard.duckdb"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60, check=False)
    assert path.with_name("fuseboard.duckdb.wal").stat().st_size > 0
    return path


def traces(folder: Path) -> Traces:
    """Return everything about a folder's files that an export must leave as it is."""
    found = {"": (b"", folder.stat().st_mtime_ns, folder.stat().st_ctime_ns)}
    for item in folder.iterdir():
        status = item.stat()
        found[item.name] = (item.read_bytes(), status.st_mtime_ns, status.st_ctime_ns)
    return found


def tools(path: Path) -> list[str]:
    store = open_at_rest(path)
    try:
        found: list[str] = store.query("export_calls", EVERYTHING).column("tool").to_pylist()
        with store.stream("export_calls", EVERYTHING) as answer:
            streamed = [tool for piece in answer.pieces for tool in piece["tool"].to_pylist()]
        assert streamed == found
        return found
    finally:
        store.close()


def test_reading_touches_neither_file_nor_folder(path: Path) -> None:
    before = traces(path.parent)
    assert tools(path) == ["search", "maps"]
    assert traces(path.parent) == before


def test_what_a_killed_server_left_in_its_log_is_read_and_stays_there(killed: Path) -> None:
    path = killed
    before = traces(path.parent)
    wanted = [f"tool-{number}" for number in range(5)]
    assert tools(path) == wanted
    assert traces(path.parent) == before
    store = open_store(path, retention_days=None)
    assert store.query("export_calls", EVERYTHING).column("tool").to_pylist() == wanted
    store.close()


def test_an_older_file_is_named_and_not_migrated(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", migrations.SCHEMA_VERSION + 1)
    before = traces(path.parent)
    with pytest.raises(StoreVersionError, match=r"older than.*`fuseboard serve`"):
        open_at_rest(path)
    assert traces(path.parent) == before


def test_a_newer_file_is_named(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'").fetchall()
    with pytest.raises(StoreVersionError, match="schema version 99"):
        open_at_rest(path)


def test_a_damaged_log_is_said_and_left(killed: Path) -> None:
    path = killed
    log = path.with_name("fuseboard.duckdb.wal")
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 0xFF
    log.write_bytes(content)
    before = traces(path.parent)
    with pytest.raises(StoreDamagedError, match="left untouched"):
        open_at_rest(path)
    assert traces(path.parent) == before


def test_hc_40_a_file_that_a_process_writes_to_names_it(
    path: Path, hold: Callable[[Path], subprocess.Popen[str]]
) -> None:
    holder = hold(path)
    with pytest.raises(StoreInUseError, match=f"process {holder.pid}"):
        open_at_rest(path)
    holder.communicate()
    assert tools(path) == ["search", "maps"]


def test_two_may_read_at_once(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from fuseboard_collector.store import open_at_rest;"
        "store = open_at_rest(Path(sys.argv[1]));"
        "print(store.query('export_calls', {'since': None, 'until': None}).num_rows);"
        "store.close()"
    )
    store = open_at_rest(path)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    store.close()
    assert done.stdout == "2\n"


def test_a_missing_file_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="can't be opened"):
        open_at_rest(tmp_path / "none" / "fuseboard.duckdb")
    assert list(tmp_path.iterdir()) == []


def test_nothing_can_be_written(path: Path, own_queries: Callable[[str, str], None]) -> None:
    own_queries("evil", "DELETE FROM tool_calls")
    own_queries("nosy", "SELECT * FROM read_text('/etc/passwd')")
    store = open_at_rest(path)
    with pytest.raises(UnknownQueryError, match="writes"):
        store.query("evil")
    with pytest.raises(StoreError, match="disabled by configuration"):
        store.query("nosy")
    with pytest.raises(QueryParameterError, match="needs"):
        store.query("export_calls")
    with store._database.cursor() as cursor, pytest.raises(duckdb.Error, match="read-only"):
        cursor.execute("DELETE FROM tool_calls")
    store.close()


def test_a_large_sort_spills_elsewhere_and_cleans_up(
    path: Path, tmp_path: Path, own_queries: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    spill = tmp_path / "tmp"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    own_queries("wide", "SELECT md5(i::VARCHAR) AS h FROM range(3000000) t(i) ORDER BY h OFFSET 10")
    before = traces(path.parent)
    store = open_at_rest(path, memory_limit="100MB")
    seen: set[str] = set()
    rows = 0
    with store.stream("wide") as answer:
        for piece in answer.pieces:
            rows += piece.num_rows
            seen |= {item.suffix for item in spill.rglob("*")}
    store.close()
    assert rows == 2_999_990
    assert ".tmp" in seen, "it did spill"
    assert list(spill.iterdir()) == []
    assert traces(path.parent) == before


def test_a_closed_one_says_so(path: Path) -> None:
    store: Any = open_at_rest(path)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.query("export_calls", EVERYTHING)
