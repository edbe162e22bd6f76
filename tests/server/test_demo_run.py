"""The demo as a user runs it, in a hurry: every class of fault, and no process left."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from fuseboard.conventions import ErrorClass
from fuseboard_server.demo.scenario import REGIONS, TOOLS
from fuseboard_server.exits import Exit
from fuseboard_server.sockets import bind, port_of

pytestmark = pytest.mark.e2e

Cli = Callable[..., subprocess.CompletedProcess[str]]
HURRY = ("--ui-port", "0", "--otlp-http-port", "0", "--speed", "10")
STORY_SECONDS = 330 / 10


def descendants(pid: int) -> set[int]:
    """Return the processes below one, by /proc."""
    children: dict[int, set[int]] = defaultdict(set)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children[int(fields[1])].add(int(stat.parent.name))
    found: set[int] = set()
    todo = [pid]
    while todo:
        new = children[todo.pop()] - found
        found |= new
        todo += new
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def export(cli: Cli, kind: str, data: Path) -> list[dict[str, Any]]:
    done = cli("export", kind, "--data", str(data))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_story_shows_every_class_opens_and_closes_a_breaker_and_leaves_nothing(
    start: Callable[..., Any], cli: Cli, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    running = start("demo", *HURRY, "--data", str(data), TMPDIR=str(tmp_path))
    running.wait_for("The story is told", seconds=STORY_SECONDS + 90)
    family = descendants(running.pid)
    assert len(family) >= 4, "server, backend, agent and the MCP server"
    assert "http://127.0.0.1:" in running.output

    assert running.end(signal.SIGINT, seconds=40) == 0
    assert not [pid for pid in family if is_running(pid)]
    assert "no process is left" in running.output
    assert "Traceback" not in running.errors
    assert not list(tmp_path.glob("fuseboard-demo-*")), "its own folder is removed"

    calls = export(cli, "calls", data)
    assert {call["error_class"] for call in calls} == {None, *(str(c) for c in ErrorClass)}
    assert {(call["tool"], call["region"]) for call in calls} == {
        (tool, region) for tool in TOOLS for region in REGIONS
    }
    assert {call["service"] for call in calls} == {"trip-planner"}
    assert {call["outcome"] for call in calls} >= {
        "ok", "partial", "degraded", "error", "rejected",
    }  # fmt: skip
    ids = Counter((call["trace_id"], call["span_id"]) for call in calls)
    assert max(ids.values()) == 1

    weather = [
        (t["from_state"], t["to_state"])
        for t in export(cli, "transitions", data)
        if (t["tool"], t["region"]) == ("weather", "eu-west")
    ]
    assert weather[0] == ("closed", "open")
    assert weather[-1] == ("half_open", "closed")
    others = [c for c in calls if c["tool"] == "weather" and c["region"] == "us-east"]
    assert not [c for c in others if c["breaker_state"] == "open"]


def test_every_tool_is_called_twice_a_second_in_every_region(
    start: Callable[..., Any], cli: Cli, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    running = start(
        "demo", "--ui-port", "0", "--otlp-http-port", "0", "--speed", "1",
        "--for", "15s", "--data", str(data),
    )  # fmt: skip
    assert running.process is not None
    assert running.process.wait(timeout=90) == 0
    calls = export(cli, "calls", data)
    seen: dict[tuple[str, str], list[float]] = defaultdict(list)
    for call in calls:
        seen[call["tool"], call["region"]].append(datetime.fromisoformat(call["end"]).timestamp())
    assert len(seen) == len(TOOLS) * len(REGIONS)
    for key, ends in seen.items():
        first = min(ends)
        assert len([end for end in ends if 2 < end - first <= 12]) >= 20, key


def test_children_die_with_a_demo_that_is_killed(start: Callable[..., Any], tmp_path: Path) -> None:
    running = start("demo", *HURRY, "--data", str(tmp_path / "data"), TMPDIR=str(tmp_path))
    running.wait_for("All is well")
    wait(lambda: len(descendants(running.pid)) >= 4, 30, "four processes")
    family = descendants(running.pid)
    os.kill(running.pid, signal.SIGKILL)
    wait(lambda: not [pid for pid in family if is_running(pid)], 30, "the end of its children")
    (left,) = tmp_path.glob("fuseboard-demo-*")
    running = start("demo", *HURRY, TMPDIR=str(tmp_path))
    wait(lambda: not left.exists(), 30, "the next start to remove the killed one's folder")
    assert running.end(signal.SIGTERM, seconds=40) == 0
    assert not list(tmp_path.glob("fuseboard-demo-*"))


def test_sigterm_while_it_starts_leaves_nothing(start: Callable[..., Any], tmp_path: Path) -> None:
    running = start("demo", *HURRY, "--data", str(tmp_path / "data"))
    wait(lambda: bool(descendants(running.pid)), 30, "a first child")
    family = descendants(running.pid)
    assert running.end(signal.SIGTERM, seconds=40) == 0
    assert not [pid for pid in family if is_running(pid)]


def test_a_terminal_that_is_closed_ends_everything(tmp_path: Path) -> None:
    """As `make run` sees it: the demo below a shell in the terminal's foreground."""
    mine, its = pty.openpty()
    command = f"{sys.executable} -m fuseboard_server demo {' '.join(HURRY)}; true"
    shell = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=its, stdout=its, stderr=its, start_new_session=True, cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(its)
    seen = b""
    try:
        while b"All is well" not in seen:
            seen += os.read(mine, 10_000)
        family = descendants(shell.pid)
        assert len(family) >= 4
    finally:
        os.close(mine)
    shell.wait(40)
    wait(lambda: not [pid for pid in family if is_running(pid)], 40, "the end of every process")
    assert not list(tmp_path.glob("fuseboard-demo-*")), "its own folder is removed"


def test_the_end_of_one_process_ends_the_demo(start: Callable[..., Any], tmp_path: Path) -> None:
    running = start("demo", *HURRY, "--data", str(tmp_path / "data"))
    running.wait_for("All is well")
    family = descendants(running.pid)
    server = json.loads((tmp_path / "data" / "server.json").read_text())["pid"]
    os.kill(server, signal.SIGKILL)
    assert running.process is not None
    assert running.process.wait(timeout=40) != 0
    assert "the server of the demo ended" in running.errors
    assert not [pid for pid in family if is_running(pid)]


def test_ports_in_use_are_said_at_once_and_how_to_change_them_with_make(cli: Cli) -> None:
    flags = ("--ui-port", "--metrics-port")
    with bind("127.0.0.1", 0, "") as one, bind("127.0.0.1", 0, "") as other:
        one.listen()
        other.listen()
        ports = [str(port_of(one)), str(port_of(other))]
        arguments = [word for pair in zip(flags, ports, strict=True) for word in pair]
        done = cli("demo", *arguments, "--otlp-http-port", "0")
    assert done.returncode == Exit.USAGE
    for flag, port in zip(flags, ports, strict=True):
        assert f"port {port} on" in done.stderr
        assert f"{flag} PORT" in done.stderr
    assert 'make run ARGS="--ui-port 0 --metrics-port 0"' in done.stderr
    assert "--otlp-http-port" not in done.stderr
    assert done.stdout == ""


def test_a_wrong_scenario_is_said_before_anything_starts(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text("length = 5\nloop_from = 9")
    done = cli("demo", "--scenario", str(path))
    assert done.returncode == Exit.USAGE
    assert "loop_from" in done.stderr
