"""A process killed around an assembly: what was acknowledged is assembled once, by the next."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fuseboard_collector.store import Store

EVERYTHING = {"since": None, "until": None}

# Two traces are stored, one of them assembled before with a call less; the process stops for good
# at the point that is asked for.
STAGER = """
import sys
from pathlib import Path
from fuseboard_collector.store import Batch, Span, open_store
from fuseboard_collector.store import assembler, assembling
from fuseboard_collector.store.rows import Sighting

NOW = 1_796_000_000_000_000
point = sys.argv[2]

def sighting(trace, number, parent=None):
    return Sighting(trace, f"{number:016x}", "x", NOW, 0.1, "genai", f"tool{number}",
                    parent_span_id=parent, instrumentation="foreign", received_at=NOW)

def stop(*arguments):
    print("stopped", flush=True)
    sys.stdin.read()

def after(original):
    def run(*arguments):
        original(*arguments)
        if "staged_unmark" in arguments:
            stop()
    return run

store = open_store(Path(sys.argv[1]), retention_days=None)
store.append(Batch(sightings=[sighting("aa" * 16, n, "cc" * 8) for n in (1, 2)])).result(30)
store.settle()
if point == "deleted":
    assembler.insert_rows = stop
elif point == "assembled":
    assembler._run = after(assembler._run)
elif point == "committed":
    assembling.Assembling.stored = stop
agent = Span("aa" * 16, "cc" * 8, "agent", NOW, 1.0, session="thread", received_at=NOW)
store.append(Batch(spans=[agent], sightings=[sighting("aa" * 16, 3, "cc" * 8),
                                             sighting("bb" * 16, 4)])).result(30)
print("acknowledged", flush=True)
if point == "acknowledged":
    stop()
store.settle()
"""


@pytest.mark.parametrize("point", ["acknowledged", "deleted", "assembled", "committed"])
def test_killed_around_an_assembly_each_call_is_there_once(
    tmp_path: Path, make_store: Callable[..., Store], point: str
) -> None:
    path = tmp_path / "data" / "fuseboard.duckdb"
    process = subprocess.Popen(
        [sys.executable, "-c", STAGER, str(path), point],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)] == ["acknowledged\n", "stopped\n"]
    process.kill()
    process.communicate()

    store = make_store(retention_days=None)
    waiting = store.describe()["staged"]
    assert isinstance(waiting, dict)
    assert waiting["traces"] == (0 if point == "committed" else 2)
    before = store.query("export_calls", EVERYTHING)["tool"].to_pylist()
    assert len(before) == (4 if point == "committed" else 2), "nothing is half there"
    store.settle()
    found = store.query("export_calls", EVERYTHING)
    assert sorted(found["tool"].to_pylist()) == [f"tool{n}" for n in (1, 2, 3, 4)]
    assert sorted(found["session"].to_pylist(), key=str) == [None, *["thread"] * 3]
    attempts = store.query("export_attempts", EVERYTHING)["tool"].to_pylist()
    assert sorted(attempts) == [f"tool{n}" for n in (1, 2, 3, 4)]
    store.settle()
    assert store.query("export_calls", EVERYTHING).num_rows == 4
