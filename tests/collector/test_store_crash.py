from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fuseboard_collector.store import Batch, Store, ToolCall, open_store
from fuseboard_collector.store.writer import Session

EVERYTHING = {"since": None, "until": None}

# Commits batch after batch and says only afterwards which; killed between the two.
WRITER = """
import sys, json
from pathlib import Path
from fuseboard_collector.store import Batch, ToolCall, BreakerTransition, Heartbeat, open_store
from fuseboard_collector.store.writer import Session

store = open_store(Path(sys.argv[1]))
ids = json.loads(sys.argv[2])
original = Session.commit

def commit(self, appends):
    original(self, appends)
    print("committed", flush=True)
    sys.stdin.read()  # the acknowledgement never gets out

batches = [
    Batch(calls=[ToolCall("search", end=1_796_000_000_000_000, trace_id=t, span_id=s)
                 for t, s in part],
          transitions=[BreakerTransition(1_796_000_000_000_000 + n, "b", "search", "closed",
                                         "open")],
          heartbeats=[Heartbeat(1_796_000_000_000_000 + n, "i-1")])
    for n, part in enumerate(ids)
]
for batch in batches[:-1]:
    store.append(batch).result(30)
    print("acknowledged", flush=True)
Session.commit = commit
store.append(batches[-1]).result(30)
print("acknowledged", flush=True)
"""


def test_killed_between_commit_and_acknowledgement_every_call_is_there_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "fuseboard.duckdb"
    ids = [[[f"{n:031x}{k}", f"{k:016x}"] for k in range(1, 8)] for n in range(1, 6)]
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), json.dumps(ids)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    lines = [process.stdout.readline().strip() for _ in ids]
    assert lines == ["acknowledged"] * 4 + ["committed"]
    process.send_signal(signal.SIGKILL)
    process.communicate()

    store = open_store(path, retention_days=None)
    found = store.query("export_calls", EVERYTHING).num_rows
    assert found == 35, "a committed batch was lost"
    resent = Batch(
        calls=[
            ToolCall("search", end=1_796_000_000_000_000, trace_id=trace, span_id=span)
            for part in ids
            for trace, span in part
        ]
    )
    store.append(resent).result(30)
    calls = store.query("export_calls", EVERYTHING)
    keys = list(zip(calls["trace_id"].to_pylist(), calls["span_id"].to_pylist(), strict=True))
    assert sorted(keys) == sorted((trace, span) for part in ids for trace, span in part)
    assert store.query("export_attempts", EVERYTHING).num_rows == 35
    assert store.query("export_transitions", EVERYTHING).num_rows == 5
    store.close()


# A file that may not grow is a full disk. The client does what clients do: it resends what
# was not acknowledged.
FULL_DISK = """
import resource, signal, sys, time
from pathlib import Path
from fuseboard_collector.errors import StoreError
from fuseboard_collector.store import Batch, ToolCall, open_store
from fuseboard_collector.store import database, store as store_module

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store_module.Limits = lambda **given: database.Limits(**given, checkpoint="1MB")
store = open_store(Path(sys.argv[1]), retention_days=None)
rows = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (2_500_000, resource.RLIM_INFINITY))
sent = refused = 0
deadline = time.monotonic() + 100
while not store.stats.get("reopened") and time.monotonic() < deadline:
    batch = Batch(calls=[ToolCall("a", end=1_796_000_000_000_000) for _ in range(rows)])
    sent += rows
    while True:
        try:
            store.append(batch).result(60)
            break
        except StoreError:
            refused += 1
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            time.sleep(0.05)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
store.append(batch).result(60)  # a repeat, whatever happened to it
stored = store.query("export_calls", {"since": None, "until": None}).num_rows
print(sent, stored, refused, store.stats.get("reopened"))
store.close()
again = open_store(Path(sys.argv[1]), retention_days=None)
print(again.query("export_calls", {"since": None, "until": None}).num_rows)
again.close()
"""


@pytest.mark.parametrize("rows", [50, 200, 1000])
def test_a_full_disk_neither_loses_nor_doubles_a_call(tmp_path: Path, rows: int) -> None:
    """The engine breaks in its checkpoint, with the commit durable or not, and is reopened."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "f.duckdb"), str(rows)],
        capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = done.stdout.splitlines()
    sent, stored, _refused, reopened = map(int, first.split())
    assert reopened >= 1
    assert stored == sent == int(second)


def test_a_durable_commit_that_broke_the_instance_is_acknowledged(
    store: Store, monkeypatch: pytest.MonkeyPatch, until: Callable[..., None]
) -> None:
    """Such a request must not be answered with an error: the client would send it again."""
    original = Session.commit
    text = (
        "FATAL Error: Transaction COMMIT succeeded and is durable, but the autocheckpoint failed."
    )

    def commit(self: Session, appends: Any) -> None:
        original(self, appends)
        monkeypatch.setattr(Session, "commit", original)
        raise duckdb.FatalException(text)

    monkeypatch.setattr(Session, "commit", commit)
    batch = Batch(calls=[ToolCall("a", end=1_796_000_000_000_000)])
    store.append(batch).result(10)
    until(lambda: store.stats.get("reopened") == 1, "reopening")
    store.append(batch).result(10)
    assert store.query("export_calls", EVERYTHING).num_rows == 1


def test_a_query_that_finds_the_instance_broken_has_it_reopened(
    store: Store, until: Callable[..., None]
) -> None:
    store.append(Batch(calls=[ToolCall("a", end=1_796_000_000_000_000)])).result(10)
    before: Any = store._database
    store._writer.reopen()
    until(lambda: store._database is not None and store._database is not before, "reopening")
    assert store.query("export_calls", EVERYTHING).num_rows == 1
    assert store.stats.get("reopened") == 1
