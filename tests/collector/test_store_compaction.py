from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fuseboard_collector.errors import StoreError, StoreReadOnlyError
from fuseboard_collector.store import Batch, Store, ToolCall, copying, open_store
from fuseboard_collector.store.retention import Keep
from fuseboard_collector.store.writer import Command

NOW = 1_796_000_000_000_000
EVERYTHING = {"since": None, "until": None}


def calls(count: int, tool: str = "a") -> Batch:
    """Rows that no compression shortens, so that the file has some size."""
    return Batch(
        calls=[
            ToolCall(tool, end=NOW + n, error_message=os.urandom(200).hex()) for n in range(count)
        ]
    )


def fill(store: Store, batches: int = 4) -> set[str]:
    """Store 5,000 calls a batch; return the identities of the last batch."""
    for _ in range(batches):
        batch = calls(5_000)
        store.append(batch).result(30)
    return {call.span_id for call in batch.calls}


def thin_out(store: Store) -> int:
    """Delete nine calls of ten behind retention's back; return how many are left."""

    def run(connection: Any) -> None:
        connection.execute("DELETE FROM tool_calls WHERE span_id >= '2'")

    store._command(run)
    store._command(lambda connection: connection.execute("CHECKPOINT"), in_transaction=False)
    return count(store)


def count(store: Store) -> int:
    return int(store.query("page_store").column("calls")[0].as_py())


def test_hc_43_compaction_gives_the_disk_back(store: Store) -> None:
    fill(store)
    left = thin_out(store)
    before = store.path.stat().st_size
    store.compact()
    assert store.path.stat().st_size < 0.7 * before, "what is left and the empty tables"
    assert count(store) == left
    assert store.stats.get("compactions") == 1


def test_a_compacted_store_is_written_to_and_opened_again(
    store: Store, make_store: Callable[..., Store]
) -> None:
    fill(store, 1)
    store.compact()
    after = fill(store, 1)
    store.close()
    again = make_store(retention_days=None)
    found = set(again.query("export_calls", EVERYTHING)["span_id"].to_pylist())
    assert len(found) == 10_000
    assert after <= found


def test_what_comes_during_a_compaction_is_asked_to_come_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 1)
    seen: list[object] = []
    original = copying.copy_database

    def copy(connection: Any, destination: Path) -> Any:
        with pytest.raises(StoreReadOnlyError, match=r"is being compacted.*try again"):
            store.append(calls(1))
        seen.append(store.unavailable_because())
        seen.append(count(store))
        return original(connection, destination)

    monkeypatch.setattr("fuseboard_collector.store.compaction.copy_database", copy)
    store.compact()
    assert isinstance(seen[0], StoreReadOnlyError)
    assert seen[1] == 5_000, "reading goes on"
    store.append(calls(1)).result(10)
    assert count(store) == 5_001


def test_a_request_that_waits_already_is_stored_after_the_compaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 1)
    waiting: list[Any] = []
    original = copying.copy_database

    def copy(connection: Any, destination: Path) -> Any:
        store._upkeep.compacting = None  # as for a request that was queued just before
        waiting.append(store.append(calls(3)))
        return original(connection, destination)

    monkeypatch.setattr("fuseboard_collector.store.compaction.copy_database", copy)
    store.compact()
    waiting[0].result(10)
    assert count(store) == 5_003
    store.close()
    again = open_store(store.path, retention_days=None)
    assert count(again) == 5_003
    again.close()


def test_nothing_is_done_to_the_old_file_once_the_new_one_is_in_its_place(
    store: Store, monkeypatch: pytest.MonkeyPatch, until: Callable[..., None]
) -> None:
    """Its log would be taken for the new file's, which could not be opened with it any more."""
    fill(store, 1)
    done: list[Command] = []
    maintenance = store._writer._maintenance

    def due_after_the_compaction() -> Command | None:
        if done or not store.stats.get("compactions"):
            return maintenance()
        done.append(Command(lambda connection: connection.execute("DELETE FROM tool_calls")))
        return done[0]

    monkeypatch.setattr(store._writer, "_maintenance", due_after_the_compaction)
    store.compact()
    until(lambda: done and done[0].done.done(), "maintenance")
    assert count(store) == 0


def test_without_room_for_the_copy_the_file_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 1)
    monkeypatch.setattr(store._upkeep, "_floor", 1 << 60)
    before = store.path.stat().st_ino
    with pytest.raises(StoreError, match=r"no room for the compacted file: it takes.*Free some"):
        store.compact()
    assert store.path.stat().st_ino == before
    store.append(calls(1)).result(10)


@pytest.mark.parametrize("what", ["an error of the disk", "rows that are missing"])
def test_a_compaction_that_fails_leaves_everything_as_it_was(
    store: Store, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    fill(store, 1)
    original = copying.row_counts

    def counts(connection: Any, database: str) -> dict[str, int]:
        if not database.startswith("copy_"):
            return original(connection, database)
        if what == "an error of the disk":
            raise OSError(5, "Input/output error")
        return {**original(connection, database), "tool_calls": 4_999}

    monkeypatch.setattr(copying, "row_counts", counts)
    with pytest.raises(StoreError, match=r"tool_calls|Input/output"):
        store.compact()
    assert not list(store.path.parent.glob("*.compact*"))
    store.append(calls(1)).result(10)
    assert count(store) == 5_001


def test_a_query_that_holds_the_old_file_keeps_nothing_from_being_stored(
    store: Store, monkeypatch: pytest.MonkeyPatch, until: Callable[..., None]
) -> None:
    """The engine would find the old file's instance again under the name of the new one."""
    monkeypatch.setattr("fuseboard_collector.store.data_file.REOPENING_SECONDS", 0.0)
    monkeypatch.setattr("fuseboard_collector.store.database._CLOSING_SECONDS", 0.1)
    fill(store, 1)
    held = store._open_database()._connection.cursor()
    held.execute("BEGIN")
    held.execute("SELECT count(*) FROM tool_calls").fetchall()
    store.compact()
    until(lambda: store.unavailable_because() is None, "the opening of the new file")
    store.append(calls(1)).result(10)
    held.close()
    store.close()
    again = open_store(store.path, retention_days=None)
    assert count(again) == 5_001
    again.close()


def test_a_file_that_is_not_the_copy_is_not_written_to(
    store: Store, until: Callable[..., None]
) -> None:
    store._upkeep.copy_id = "another"
    store._writer.reopen()
    until(lambda: "has been replaced" in str(store.unavailable_because()), "the refusal")
    with pytest.raises(StoreError, match="has been replaced"):
        store.append(calls(1))
    store._upkeep.copy_id = None
    until(lambda: store.unavailable_because() is None, "the opening")


# Compacts after a sign; the place where it dies is a function that never returns.
DYING = """
import os, sys
from pathlib import Path
from fuseboard_collector.store import Batch, ToolCall, open_store
from fuseboard_collector.store import compaction, copying, database

path, place = Path(sys.argv[1]), sys.argv[2]
store = open_store(path, retention_days=None)

def die(*_args, **_options):
    os.kill(os.getpid(), 9)

for module, name in ((compaction, "copy_database"), (copying, "_compare"), (copying, "row_counts"),
                     (compaction, "sync_folder"), (copying.os, "fsync"), (Path, "replace"),
                     (database.Database, "close")):
    if name == place:
        setattr(module, name, die)
batch = Batch(calls=[ToolCall("b", end=1_796_000_000_000_000) for _ in range(500)])
store.append(batch).result(30)
print("acknowledged", flush=True)
store.compact()
import time
time.sleep(60)
"""


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("row_counts", marks=pytest.mark.long),
        "_compare",
        pytest.param("fsync", marks=pytest.mark.long),
        "replace",
        "sync_folder",
        pytest.param("close", marks=pytest.mark.long),
    ],
)
def test_hc_43_killed_during_the_swap_the_store_opens_with_every_acknowledged_call(
    tmp_path: Path, place: str
) -> None:
    path = tmp_path / "fuseboard.duckdb"
    store = open_store(path, retention_days=None)
    fill(store, 1)
    store.close()
    process = subprocess.run(
        [sys.executable, "-c", DYING, str(path), place],
        stdout=subprocess.PIPE, timeout=60, check=False,
    )  # fmt: skip
    assert process.returncode == -signal.SIGKILL
    assert process.stdout == b"acknowledged\n"
    again = open_store(path, retention_days=None)
    assert count(again) == 5_500
    assert not list(tmp_path.glob("*.compact*"))
    again.append(calls(1)).result(10)
    again.close()
    assert json.loads((tmp_path / "fuseboard.duckdb.health").read_text())["open"] is False


POUR = """
INSERT INTO tool_calls BY NAME
SELECT md5(i::VARCHAR) AS trace_id, left(md5(i::VARCHAR), 16) AS span_id,
       t AS "start", t AS "end", t AS received_at, 0.1 AS duration_seconds,
       'tool ' || i % 50 AS tool, 'ok' AS outcome, 1 AS attempts, 1 AS weight,
       md5((i * 7)::VARCHAR) || md5((i * 3)::VARCHAR) AS error_message
FROM (SELECT i, make_timestamp(1796000000000000 + i * 1000) AS t FROM range($first, $last) r(i))
"""


def pour(store: Store, cycle: int, rows: int = 150_000) -> None:
    """Store so many calls, each a millisecond after the one before, over all cycles."""
    bounds = {"first": cycle * rows, "last": (cycle + 1) * rows}
    store._command(lambda connection: connection.execute(POUR, bounds))


@pytest.mark.long
@pytest.mark.parametrize("by", ["size", "age"])
def test_hc_43_ten_cycles_at_a_constant_rate_take_no_more_room_than_three(
    make_store: Callable[..., Store], clock: Any, by: str
) -> None:
    limit = 32 << 20
    limits = {"max_bytes": limit} if by == "size" else {}
    store = make_store(retention_days=150 / 86_400 if by == "age" else None, clock=clock, **limits)
    sizes = []
    for cycle in range(10):
        pour(store, cycle)
        clock.now = datetime.fromtimestamp(1_796_000_000 + (cycle + 1) * 150, UTC)
        plan = store.apply_retention()
        assert plan.why == (by if plan.rows else "")
        sizes.append(store.size_bytes())
    assert sizes[9] <= 1.3 * sizes[2]
    assert by == "age" or max(sizes) <= 1.5 * limit, "a cycle is half of the limit"
    (newest,) = store.query("page_store")["last_end"].to_pylist()
    last = datetime.fromtimestamp(1_796_000_000 + 10 * 150 - 0.001, UTC)
    assert newest == last.replace(tzinfo=None)
    assert 150_000 <= count(store) <= 600_000


@pytest.mark.long
def test_a_smaller_limit_shrinks_the_file_by_itself(
    make_store: Callable[..., Store], until: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuseboard_collector.store.retention.FIRST_AFTER_SECONDS", 0.0)
    monkeypatch.setattr("fuseboard_collector.store.retention.SIZE_INTERVAL_SECONDS", 0.1)
    large = make_store(retention_days=None)
    for cycle in range(4):
        pour(large, cycle)
    large.close()
    limit = large.path.stat().st_size // 2
    store = make_store(retention_days=None, max_bytes=limit)
    until(lambda: store.stats.get("compactions"), "the compaction", 60)
    until(lambda: store.size_bytes() <= limit, "the smaller file")
    assert 0 < count(store) < 600_000


def test_a_look_at_what_would_go_deletes_nothing(store: Store) -> None:
    pour(store, 0)
    plan = store.expired(Keep(days=None, max_bytes=4 << 20))
    assert plan.why == "size"
    assert 50_000 < plan.rows < 150_000
    assert count(store) == 150_000
