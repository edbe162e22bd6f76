"""Streams that the garbage collector closes, in whatever code it happens to run."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import fuseboard
from fuseboard.calls.collecting import COLLECTOR

SCRIPT = """
import gc, sys, threading, time
from prometheus_client import CollectorRegistry, generate_latest
import fuseboard
from fuseboard.runtime import RUNTIME
registry = CollectorRegistry()
fuseboard.init("readers", endpoint="http://127.0.0.1:9", shutdown_timeout=0.2, registry=registry)
sys.setswitchinterval(1e-5)
gc.set_threshold(50)

@fuseboard.tool
def numbers():
    yield 1
    yield 2

class Reader:
    def __init__(self):
        self.me, self.items = self, numbers()
        next(self.items)

def read():
    for _ in range(1500):
        Reader()

threads = [threading.Thread(target=read) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
deadline = time.monotonic() + 60
while RUNTIME.telemetry.metrics.in_flight.calls and time.monotonic() < deadline:
    gc.collect()  # does nothing while another thread is collecting
    time.sleep(0.01)
print(generate_latest(registry).decode())
"""


def test_streams_that_are_collected_while_others_begin_do_not_crash_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [
        line
        for line in done.stdout.splitlines()
        if line.startswith("fuseboard_tool_calls_total") and 'outcome="abandoned"' in line
    ]
    assert line.endswith(" 12000.0")


class Reader:
    def __init__(self, items: Iterator[int]) -> None:
        self.me, self.items = self, items
        next(items)


def test_a_stream_that_is_collected_is_abandoned_and_its_tool_closed(telemetry: Any) -> None:
    closed: list[bool] = []

    @fuseboard.tool
    def numbers() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(COLLECTOR.runs_here())

    Reader(numbers())
    gc.collect()

    assert closed == [sys.version_info < (3, 12)]
    assert telemetry.last.outcome is fuseboard.Outcome.ABANDONED
    assert not COLLECTOR.runs_here()


def test_a_stream_that_is_collected_may_fail_as_it_closes(telemetry: Any, monkeypatch: Any) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    @fuseboard.tool
    def numbers() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise ConnectionResetError("too late")

    Reader(numbers())
    gc.collect()

    assert [type(found.exc_value) for found in unraisable] == [ConnectionResetError]
    assert telemetry.last.outcome is fuseboard.Outcome.ERROR
