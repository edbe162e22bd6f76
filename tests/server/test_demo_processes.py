"""A child of the demo never outlives its parent, not even one killed with SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fuseboard_server.demo.processes import start, stop
from fuseboard_server.settings import SERVER_VARIABLES

SLEEP = "import time; time.sleep(600)"
DEAF = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "open(sys.argv[1], 'w').close(); time.sleep(600)"
)
POLITE = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(600)"
PARENT = """
import signal, sys, time
from pathlib import Path
from fuseboard_server.demo.processes import start
child = start([sys.executable, "-c", *sys.argv[3:]], orphaned=signal.Signals(int(sys.argv[1])))
while not Path(sys.argv[2]).exists():
    time.sleep(0.02)
print(child.pid, flush=True)
time.sleep(600)
"""
GRANDCHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(600)
"""


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_child_is_stopped_and_its_exit_code_known() -> None:
    child = start([sys.executable, "-c", SLEEP])
    assert stop(child) == -signal.SIGTERM
    assert is_gone(child.pid)


def test_a_child_that_has_ended_is_no_problem() -> None:
    child = start([sys.executable, "-c", "raise SystemExit(7)"])
    child.wait(20)
    assert stop(child) == 7


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = start([sys.executable, "-c", DEAF, str(ready)])
    wait(ready.exists)
    assert stop(child, patience=0.2) == -signal.SIGKILL


def test_grandchildren_are_stopped_as_well(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    child = start([sys.executable, "-c", GRANDCHILD, str(note)])
    wait(lambda: note.exists() and note.read_text() != "")
    stop(child)
    wait(lambda: is_gone(int(note.read_text())))


def test_a_child_has_a_session_of_its_own_so_ctrl_c_in_the_terminal_spares_it() -> None:
    child = start([sys.executable, "-c", SLEEP])
    try:
        assert os.getsid(child.pid) == child.pid
    finally:
        stop(child)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own guarantee exists on Linux")
@pytest.mark.parametrize(
    ("orphaned", "code"), [(signal.SIGTERM, POLITE), (signal.SIGKILL, DEAF)], ids=str
)
def test_a_child_dies_with_a_parent_that_is_killed(
    tmp_path: Path, orphaned: signal.Signals, code: str
) -> None:
    ready = str(tmp_path / "ready")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(int(orphaned)), ready, code, ready],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert parent.stdout is not None
    with parent.stdout:
        child = int(parent.stdout.readline())
    assert not is_gone(child)
    parent.kill()
    parent.wait(20)
    wait(lambda: is_gone(child))


def test_what_is_meant_for_a_real_server_does_not_reach_the_demos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SERVER_VARIABLES:
        monkeypatch.setenv(name, "of the real one")
    monkeypatch.setenv("FUSEBOARD_HASH_KEY", "kept")
    show = "import os; print(sorted(n for n in os.environ if n.startswith('FUSEBOARD_')))"
    with (tmp_path / "out").open("wb") as out:
        child = start([sys.executable, "-c", show], stdout=out)
        assert child.wait(30) == 0
    assert "FUSEBOARD_HASH_KEY" in (tmp_path / "out").read_text()
    assert not [name for name in SERVER_VARIABLES if name in (tmp_path / "out").read_text()]
