"""One process owns the data file: server and a third process get in each other's way politely."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from tests.processes import FUSEBOARD

from fuseboard_server.exits import Exit

pytestmark = pytest.mark.e2e

INTRUDER = """
import json, sys, time
import duckdb
outcomes = []
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    for read_only in (False, True):
        try:
            duckdb.connect(sys.argv[1], read_only=read_only).close()
            outcomes.append("opened")
        except duckdb.IOException as error:
            outcomes.append(str(error))
    time.sleep(0.05)
# Each once: a pipe that nobody reads yet holds 64 KB only.
print(json.dumps({"tries": len(outcomes), "outcomes": sorted(set(outcomes))}))
"""
HOLDER = """
import sys
import duckdb
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
connection.close()
"""


def test_hc_40_a_third_process_is_kept_out_and_disturbs_nothing(
    make_server: Callable[..., Any], run_agent: Callable[..., Any]
) -> None:
    server = make_server().start()
    path = server.data / "fuseboard.duckdb"
    intruder = subprocess.Popen(
        [sys.executable, "-c", INTRUDER, str(path), "8"], stdout=subprocess.PIPE, text=True
    )
    agent = run_agent("steady_agent.py", "200", "40", server.otlp_url)
    pages = 0
    while intruder.poll() is None:
        for url in (f"{server.ui_url}/", f"{server.otlp_url}/readyz"):
            with urllib.request.urlopen(url, timeout=20) as answer:
                assert answer.status == 200
        server.export("calls")
        pages += 1
    found = json.loads(intruder.communicate(timeout=30)[0])
    out, err = agent.communicate(timeout=90)
    assert agent.returncode == 0, out + err
    assert pages >= 2
    assert found["tries"] > 10
    assert all(f"PID {server.process.pid}" in said for said in found["outcomes"]), found
    server.assert_each_call_once(200)
    assert server.stop() == 0
    log = server.log.read_text()
    assert "Traceback" not in log
    assert "lock" not in log


def test_hc_40_a_file_that_is_held_is_said_and_the_calls_arrive_after_it_is_let_go(
    make_server: Callable[..., Any], run_agent: Callable[..., Any]
) -> None:
    server = make_server().start()
    assert server.stop() == 0
    path = server.data / "fuseboard.duckdb"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    agent = run_agent("steady_agent.py", "80", "40", server.otlp_url)
    assert agent.stdout.readline() == "begun\n"
    for command in (
        [
            "serve",
            "--ui-port",
            str(server.ui_port),
            "--otlp-http-port",
            str(server.otlp_port),
            "--otlp-grpc-port",
            "0",
        ],
        ["export", "calls"],
    ):
        done = subprocess.run(
            [str(FUSEBOARD), *command, "--data", str(server.data)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == Exit.DATA_IN_USE
        assert f"process {holder.pid}" in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert agent.stdout.readline() == "called\n"
    assert agent.poll() is None, "it keeps what it could not deliver"
    holder.communicate()
    server.start()
    out, err = agent.communicate(timeout=150)
    assert agent.returncode == 0, out + err
    server.assert_each_call_once(80)
