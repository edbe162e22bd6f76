"""What becomes of the store when its disk fails it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest
from starlette.testclient import TestClient

from fuseboard_collector.errors import StoreDamagedError, StoreError, StoreReadOnlyError
from fuseboard_collector.store import (
    Attempt,
    Batch,
    BreakerTransition,
    Store,
    ToolCall,
    open_at_rest,
    open_store,
    repair,
)
from fuseboard_collector.store.database import Limits
from fuseboard_collector.store.health import Health
from fuseboard_collector.store.space import log_path

NOW = 1_796_000_000_000_000
EVERYTHING = {"since": None, "until": None}
HEADERS = 3 * 4096
BLOCK = 262_144


def calls(count: int) -> Batch:
    return Batch(
        calls=[ToolCall("a", end=NOW + n, error_message=os.urandom(40).hex()) for n in range(count)]
    )


def count(store: Store) -> int:
    return int(store.query("page_store")["calls"][0].as_py())


# --- the write-ahead log ------------------------------------------------------------------
CRASHED = """
import os, sys
from pathlib import Path
from fuseboard_collector.store import Batch, ToolCall, open_store

store = open_store(Path(sys.argv[1]), retention_days=None)
for _ in range(10):
    batch = Batch(calls=[ToolCall("a", end=1_796_000_000_000_000) for _ in range(100)])
    store.append(batch).result(30)
os._exit(0)
"""


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files that a killed process left: ten transactions of 100 calls are in the log."""
    folder = tmp_path_factory.mktemp("crashed")
    subprocess.run([sys.executable, "-c", CRASHED, str(folder / "f.duckdb")], check=True)
    return {item.name: item.read_bytes() for item in folder.iterdir()}


@pytest.fixture
def left(crashed: dict[str, bytes], tmp_path: Path) -> Path:
    for name, content in crashed.items():
        (tmp_path / name).write_bytes(content)
    assert len(crashed["f.duckdb.wal"]) > 100_000
    return tmp_path / "f.duckdb"


@pytest.mark.parametrize(
    ("cut", "least", "most"), [(10, 900, 900), (0.5, 100, 800)], ids=["10 bytes", "half"]
)
def test_a_torn_log_keeps_every_complete_transaction(
    left: Path, cut: float, least: int, most: int
) -> None:
    log = log_path(left)
    size = log.stat().st_size
    os.truncate(log, size - (cut if cut > 1 else int(size * cut)))
    store = open_store(left, retention_days=None)
    assert least <= count(store) <= most
    assert count(store) % 100 == 0, "a transaction is there or not"
    store.append(calls(1)).result(10)
    store.close()


@pytest.mark.parametrize("place", [0, 300, 0.3], ids=["its beginning", "its start", "its middle"])
def test_a_flipped_byte_in_the_log_is_refused_and_the_log_can_be_set_aside(
    left: Path, place: float
) -> None:
    log = log_path(left)
    content = bytearray(log.read_bytes())
    content[int(place if place >= 1 else place * len(content))] ^= 0xFF
    log.write_bytes(content)
    before = left.read_bytes()
    for opening in (open_store, open_at_rest):
        with pytest.raises(StoreDamagedError, match=r"f\.duckdb\.wal is damaged.*--move-wal-aside"):
            opening(left)
    assert (left.read_bytes(), log.read_bytes()) == (before, bytes(content)), "nothing is touched"

    saved = repair.move_log_aside(left)
    assert saved.aside.read_bytes() == bytes(content)
    store = open_store(left, retention_days=None)
    assert count(store) == 0, "as of the last checkpoint"
    store.append(calls(1)).result(10)
    store.close()


def test_a_log_that_is_gone_leaves_the_last_checkpoint(left: Path) -> None:
    log_path(left).unlink()
    with pytest.raises(StoreError, match="nothing to set aside"):
        repair.move_log_aside(left)
    store = open_store(left, retention_days=None)
    assert count(store) == 0
    store.close()


def test_nothing_is_set_aside_under_a_running_server(store: Store) -> None:
    with pytest.raises(StoreError, match="held by"):
        subprocess_repair(store.path)


def subprocess_repair(path: Path) -> None:
    """Repair from another process, as a user would."""
    code = (
        "import sys; from pathlib import Path; from fuseboard_collector.store import repair\n"
        "try: repair.move_log_aside(Path(sys.argv[1]))\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    raise StoreError(done.stdout)


# --- damaged blocks -----------------------------------------------------------------------
@pytest.fixture
def damage(tmp_path: Path) -> Callable[[str], Path]:
    """Make a file of 3,000 calls with a flipped byte in one column of them."""

    def make(column: str) -> Path:
        path = tmp_path / "fuseboard.duckdb"
        store = open_store(path, retention_days=None)
        batch = calls(3_000)
        batch.attempts = [
            Attempt(call.trace_id, call.span_id, 1, NOW, 0.1, "a", "failure")
            for call in batch.calls[:100]
        ]
        batch.transitions = [BreakerTransition(NOW, "a", "a", "closed", "open")]
        store.append(batch).result(30)
        store.close()
        flip(path, "tool_calls", column)
        return path

    return make


def flip(path: Path, table: str, column: str) -> None:
    with duckdb.connect(str(path)) as connection:
        found = connection.execute(
            f"SELECT block_id FROM pragma_storage_info('{table}') "
            "WHERE column_name = $column AND block_id >= 0 LIMIT 1",
            {"column": column},
        ).fetchall()
    content = bytearray(path.read_bytes())
    content[HEADERS + found[0][0] * BLOCK + 1000] ^= 0xFF
    path.write_bytes(content)


def test_a_damaged_block_is_found_when_it_is_read_and_nothing_is_stored_from_then_on(
    damage: Callable[[str], Path], make_store: Callable[..., Store], serve: Any
) -> None:
    path = damage("error_message")
    store = open_store(path, retention_days=None)
    assert count(store) == 3_000
    assert store.unavailable_because() is None
    with pytest.raises(StoreError, match="Corrupt database file"):
        store.query("export_calls", EVERYTHING)
    reason = store.unavailable_because()
    assert isinstance(reason, StoreReadOnlyError)
    for words in (str(path), "only read", "fuseboard store check", "backup", "--salvage"):
        assert words in str(reason)
    assert count(store) == 3_000, "what does not touch it is answered"
    with pytest.raises(StoreReadOnlyError):
        store.append(calls(1))
    with pytest.raises(StoreReadOnlyError):
        store.execute("alert_memory_save", {"saved_at": None, "document": "{}"})
    store.close()


def test_senders_to_a_damaged_store_are_told_to_come_back(
    damage: Callable[[str], Path],
) -> None:
    from starlette.applications import Starlette

    from fuseboard_collector import api, receiver

    store = open_store(damage("error_message"), retention_days=None)
    store.check()
    with TestClient(Starlette(routes=[*receiver.routes(store), *api.routes(store)])) as client:
        span = {
            "traceId": "ab" * 16, "spanId": "cd" * 8, "name": "execute_tool a",
            "startTimeUnixNano": "1", "endTimeUnixNano": "2",
        }  # fmt: skip
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
        answer = client.post("/v1/traces", json=body)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert "is damaged" in answer.json()["message"]
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert "is damaged" in ready.json()["reason"]
        assert "is damaged" in client.get("/api/v1/stats").json()["unavailable_because"]
    store.close()


@pytest.mark.parametrize("column", ["trace_id", "received_at"])
def test_a_file_whose_newest_rows_are_damaged_is_opened_for_reading(
    damage: Callable[[str], Path], column: str
) -> None:
    """At start the store looks up which rows a client may send again."""
    store = open_store(damage(column), retention_days=None)
    assert isinstance(store.unavailable_because(), StoreReadOnlyError)
    assert store.query("export_transitions", EVERYTHING).num_rows == 1
    store.close()


def test_the_next_start_knows_of_the_damage_until_a_scan_finds_none(
    damage: Callable[[str], Path], until: Callable[..., None]
) -> None:
    path = damage("error_message")
    store = open_store(path, retention_days=None)
    (found,) = store.check()
    assert (found.table, found.column) == ("tool_calls", "error_message")
    store.close()
    again = open_store(path, retention_days=None)
    assert isinstance(again.unavailable_because(), StoreReadOnlyError)
    again.close()
    content = bytearray(path.read_bytes())
    with duckdb.connect(str(path), read_only=True) as connection:
        (block,) = connection.execute(
            "SELECT block_id FROM pragma_storage_info('tool_calls') "
            "WHERE column_name = 'error_message' AND block_id >= 0 LIMIT 1"
        ).fetchall()[0]
    content[HEADERS + block * BLOCK + 1000] ^= 0xFF
    path.write_bytes(content)
    restored = open_store(path, retention_days=None)
    until(lambda: restored.unavailable_because() is None, "the scan")
    restored.append(calls(1)).result(10)
    restored.close()


def test_after_the_machine_went_down_everything_is_read_once(
    damage: Callable[[str], Path], until: Callable[..., None]
) -> None:
    path = damage("error_message")
    note = path.with_name(path.name + ".health")
    note.write_text(json.dumps({"open": True, "boot_id": "another", "damage": None}))
    store = open_store(path, retention_days=None)
    until(lambda: isinstance(store.unavailable_because(), StoreReadOnlyError), "the scan")
    store.close()


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ({"open": True, "boot_id": "before", "damage": None}, True),
        ({"open": True, "boot_id": "now", "damage": None}, False),
        ({"open": False, "boot_id": "before", "damage": None}, False),
        ("nonsense", False),
        (None, False),
    ],
    ids=["crashed with the machine", "killed", "closed", "unreadable", "none"],
)
def test_which_starts_need_a_scan(tmp_path: Path, note: object, expected: bool) -> None:
    boot = tmp_path / "boot_id"
    boot.write_text("now\n")
    path = tmp_path / "f.duckdb"
    if note is not None:
        text = note if isinstance(note, str) else json.dumps(note)
        path.with_name("f.duckdb.health").write_text(text)
    assert Health(path, boot).opened() is expected


def test_what_can_be_read_of_a_damaged_file_is_salvaged(
    damage: Callable[[str], Path],
) -> None:
    path = damage("error_message")
    store = open_store(path, retention_days=None)
    store.check()
    store.close()
    damaged = path.read_bytes()
    saved = repair.salvage(path)
    assert saved.lost["tool_calls"] == 3_000, "rows are lost by the group of 122,880"
    assert saved.kept["attempt_rows"] == 100
    assert saved.aside.read_bytes() == damaged
    again = open_store(path, retention_days=None)
    assert again.unavailable_because() is None
    assert again.check() == []
    again.append(calls(5)).result(10)
    assert count(again) == 5
    again.close()


@pytest.mark.long
def test_salvaging_a_sound_file_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "fuseboard.duckdb"
    store = open_store(path, retention_days=None)
    for _ in range(3):
        store.append(calls(50_000)).result(30)
    before = store.query("export_calls", EVERYTHING)
    store.close()
    saved = repair.salvage(path)
    assert not any(saved.lost.values())
    again = open_store(path, retention_days=None)
    assert again.query("export_calls", EVERYTHING).equals(before)
    assert again.hours_to_roll_up() > 0, "rollups are made anew"
    again.close()


@pytest.mark.long
def test_only_damaged_groups_of_rows_are_lost(tmp_path: Path) -> None:
    path = tmp_path / "fuseboard.duckdb"
    store = open_store(path, retention_days=None)
    for _ in range(3):
        store.append(calls(50_000)).result(30)
    store.close()
    flip(path, "tool_calls", "error_message")
    saved = repair.salvage(path)
    assert saved.lost["tool_calls"] == 122_880
    assert saved.kept["tool_calls"] == 150_000 - 122_880


# --- a full disk --------------------------------------------------------------------------
@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)],
        capture_output=True, text=True, check=False,
    ) if sys.platform == "linux" else None  # fmt: skip
    if mounted is None or mounted.returncode:
        pytest.skip("a small disk can't be mounted here: that takes Linux and root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.long
def test_a_full_disk_loses_nothing_and_is_recovered_from_without_a_restart(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, until: Callable[..., None]
) -> None:
    monkeypatch.setattr("fuseboard_collector.store.space.MIN_SPILL", 1 << 20)
    small = partial(Limits, checkpoint="1MB")
    monkeypatch.setattr("fuseboard_collector.store.store.Limits", small)
    store = open_store(small_disk / "f.duckdb", retention_days=None, free_space_floor=0)
    acknowledged: set[str] = set()
    refused = []
    for _ in range(1_000):
        batch = calls(200)
        try:
            store.append(batch).result(30)
        except StoreError as error:
            refused.append((batch, error))
            if len(refused) == 3:
                break
            time.sleep(0.1)
        else:
            acknowledged |= {call.span_id for call in batch.calls}
    assert len(refused) == 3, "the disk was to fill up"
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    until(lambda: store.unavailable_because() is None and readable(store), "recovery")
    for batch, _ in refused:
        until(lambda batch=batch: stored(store, batch), "a client's next try")
        acknowledged |= {call.span_id for call in batch.calls}
    found = store.query("export_calls", EVERYTHING)["span_id"].to_pylist()
    assert len(found) == len(set(found)), "nothing is doubled"
    assert set(found) == acknowledged
    store.close()


def readable(store: Store) -> bool:
    try:
        return count(store) >= 0
    except StoreError:
        return False


def stored(store: Store, batch: Batch) -> bool:
    try:
        store.append(batch).result(30)
    except StoreError:
        return False
    return True


def test_below_the_floor_senders_are_refused_with_the_reason_and_taken_again_with_room(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuseboard_collector.store.space._CHECK_SECONDS", 0.0)
    store = open_store(small_disk / "f.duckdb", retention_days=None, free_space_floor=4 << 20)
    store.append(calls(10)).result(10)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (8 << 20))
    with pytest.raises(StoreError, match=r"MiB left; nothing is stored below 4 MiB.*--max-size"):
        store.append(calls(10))
    assert count(store) == 10, "reading goes on"
    ballast.unlink()
    store.append(calls(10)).result(10)
    assert count(store) == 20
    store.close()
