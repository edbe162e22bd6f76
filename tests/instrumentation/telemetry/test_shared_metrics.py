"""HC-07: several workers share their counts, and a dead one's stay."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fuseboard.telemetry.shared_gauges import is_alive

WORKER = """
import os, sys
from prometheus_client import CollectorRegistry
import fuseboard
fuseboard.init("workers", region="eu", registry=CollectorRegistry(), endpoint=sys.argv[1])

@fuseboard.tool
def search(fails):
    if fails:
        raise ConnectionResetError

for number in range(3):
    try:
        search(number == 2)
    except ConnectionResetError:
        pass
print(fuseboard.metrics_text()[0].decode(), flush=True)
sys.stdin.read()
"""


def total(text: str, name: str, **labels: str) -> float:
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def worker(folder: Path, endpoint: str) -> Any:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, endpoint],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)},
    )  # fmt: skip


def text_of(process: Any) -> str:
    lines: list[str] = []
    while not (lines and lines[-1] == "\n"):
        line = process.stdout.readline()
        assert line, "the worker ended early"
        lines.append(line)
    return "".join(lines)


@pytest.mark.timeout(120)
def test_hc_07_counts_of_all_workers_add_up_and_outlive_them(
    tmp_path: Path, collector: Any
) -> None:
    first = worker(tmp_path, collector.url)
    text_of(first)
    first.send_signal(signal.SIGKILL)
    first.wait(20)
    second = worker(tmp_path, collector.url)
    text_of(second)
    third = worker(tmp_path, collector.url)
    text = text_of(third)
    for process in (second, third):
        process.communicate("", timeout=30)
    first.stdout.close()
    first.stdin.close()
    at = {"tool": "search", "region": "eu"}
    assert total(text, "fuseboard_tool_calls_total", outcome="ok", **at) == 6
    assert (
        total(text, "fuseboard_tool_calls_total", outcome="error", error_class="L3_transient", **at)
        == 3
    )
    assert total(text, "fuseboard_tool_attempts_total", result="success", **at) == 6
    assert total(text, "fuseboard_tool_attempted_calls_total", first_attempt="failure", **at) == 3
    assert total(text, "fuseboard_tool_call_duration_seconds_count", **at) == 9
    assert total(text, "fuseboard_tool_attempt_duration_seconds_count", **at) == 9
    assert "pid=" not in text
    assert total(text, "fuseboard_tool_calls_total", outcome="rejected", **at) == 0


BUSY_WORKER = """
import os, sys, threading
from prometheus_client import CollectorRegistry
import fuseboard
from fuseboard import Breaker, Policy
fuseboard.init("workers", region="eu", registry=CollectorRegistry(), endpoint=sys.argv[1])

@fuseboard.tool(policy=Policy(breaker=Breaker(minimum_throughput=2, break_duration=1000)))
def search(fails):
    if fails:
        raise ConnectionResetError

@fuseboard.tool
def slow():
    print("running", flush=True)
    threading.Event().wait()

def calls(fails):
    for _ in range(3):
        try:
            search(fails)
        except (ConnectionResetError, fuseboard.CircuitOpenError):
            pass

def show():
    print(fuseboard.metrics_text()[0].decode(), flush=True)

for line in sys.stdin:
    exec(line)
"""


class Worker:
    """A process that does what it is told."""

    def __init__(self, folder: Path, endpoint: str, source: str = BUSY_WORKER) -> None:
        self.process: Any = subprocess.Popen(
            [sys.executable, "-c", source, endpoint],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)},
        )  # fmt: skip

    def do(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def metrics(self) -> str:
        self.do("show()")
        return text_of(self.process)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.stdin.close()
        self.process.stdout.close()

    def end(self) -> None:
        self.process.communicate("", timeout=30)


@pytest.mark.timeout(120)
def test_hc_07_gauges_are_those_of_living_workers(tmp_path: Path, collector: Any) -> None:
    workers = [Worker(tmp_path, collector.url) for _ in range(3)]
    doomed, failing, fine = workers
    for one in workers:
        one.do(f"calls({one is failing})")
    doomed.do("calls(True)")
    doomed.do("slow()")
    assert doomed.process.stdout.readline() == "running\n"
    failing.metrics()  # it has made its calls
    text = fine.metrics()
    here = {"region": "eu"}
    assert total(text, "fuseboard_tool_calls_in_flight", tool="slow", **here) == 1
    assert total(text, "fuseboard_tool_calls_in_flight", tool="search", **here) == 0
    assert total(text, "fuseboard_breaker_state", state="open") == 1, "one series, the worst"
    assert total(text, "fuseboard_breaker_transitions_total", to_state="open") == 2
    doomed.kill()  # and nobody waits for it: it stays a zombie
    failing.do("from fuseboard.policy.registry import BREAKERS")
    failing.do("BREAKERS.find('search/eu').reset()")
    failing.metrics()
    text = fine.metrics()
    assert total(text, "fuseboard_tool_calls_in_flight") == 0
    assert total(text, "fuseboard_breaker_state", state="open") == 0
    assert total(text, "fuseboard_breaker_state", state="closed") == 1
    assert total(text, "fuseboard_breaker_transitions_total", to_state="open") == 2
    assert total(text, "fuseboard_tool_calls_total", tool="search") == 12
    assert total(text, "fuseboard_build_info") == 1
    assert total(text, "fuseboard_abandoned_threads") == 0
    assert "pid=" not in text
    failing.end()
    fine.end()
    doomed.process.wait(20)
    assert list(tmp_path.glob("gauge_live*")) == [], "each took its own with it, or another did"


@pytest.mark.timeout(120)
def test_hc_07_three_workers_of_which_one_is_killed(tmp_path: Path, collector: Any) -> None:
    workers = [Worker(tmp_path, collector.url) for _ in range(3)]
    for one in workers:
        one.do("calls(False)")
        one.metrics()
    workers[0].kill()
    text = workers[2].metrics()
    assert total(text, "fuseboard_tool_calls_total") == 9
    assert total(text, "fuseboard_tool_calls_in_flight") == 0
    states = [
        sample.labels["state"]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "fuseboard_breaker_state"
    ]
    assert sorted(states) == ["closed", "half_open", "isolated", "open"]
    assert total(text, "fuseboard_breaker_state") == 1
    for one in workers[1:]:
        one.end()
    workers[0].process.wait(20)


@pytest.mark.timeout(120)
def test_hc_07_forked_workers_count_for_themselves(tmp_path: Path, collector: Any) -> None:
    source = BUSY_WORKER.replace(
        "for line in sys.stdin:",
        """
calls(False)
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        calls(False)
        fuseboard.workers.forget_this_worker()
        os._exit(0)
    children.append(child)
[os.waitpid(child, 0) for child in children]
for line in sys.stdin:""",
    )
    parent = Worker(tmp_path, collector.url, source)
    text = parent.metrics()
    assert total(text, "fuseboard_tool_calls_total") == 12
    assert total(text, "fuseboard_tool_calls_in_flight") == 0
    assert total(text, "fuseboard_breaker_state", state="closed") == 1
    parent.end()


@pytest.mark.timeout(170)
def test_hc_07_workers_forked_under_load_neither_hang_nor_count_twice(
    tmp_path: Path, collector: Any
) -> None:
    source = BUSY_WORKER.replace(
        "for line in sys.stdin:",
        """
import signal, time
from prometheus_client import Counter
busy, made = threading.Event(), Counter("made", "Counted by the application.")
loaded = [0, 0]
def load(number):
    while not busy.is_set():
        search(False)
        made.inc()
        loaded[number] += 1
        time.sleep(0.001)
threads = [threading.Thread(target=load, args=(number,)) for number in range(2)]
[thread.start() for thread in threads]
bad = 0
for number in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(40)
        search(False)
        fuseboard.workers.forget_this_worker()
        os._exit(0)
    bad += os.waitpid(child, 0)[1] != 0
busy.set()
[thread.join() for thread in threads]
print(bad, sum(loaded), flush=True)
for line in sys.stdin:""",
    )
    parent = Worker(tmp_path, collector.url, source)
    bad, loaded = map(int, parent.process.stdout.readline().split())
    text = parent.metrics()
    assert bad == 0
    assert total(text, "fuseboard_tool_calls_total") == loaded + 10
    assert total(text, "fuseboard_tool_calls_in_flight") == 0
    parent.end()


def test_hc_07_a_busy_port_is_another_workers(tmp_path: Path, collector: Any) -> None:
    source = BUSY_WORKER.replace("endpoint=sys.argv[1]", "endpoint=sys.argv[1], metrics_port={}")
    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))
        port = once.getsockname()[1]
    workers = [Worker(tmp_path, collector.url, source.replace("{}", str(port))) for _ in range(2)]
    for one in workers:
        one.do("calls(False)")
        one.metrics()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    assert total(text, "fuseboard_tool_calls_total") == 6
    for one in workers:
        one.end()


def test_hc_07_a_forked_worker_that_is_not_seen_says_so(run_script: Any, collector: Any) -> None:
    done = run_script(f"""
import os, sys
import fuseboard
fuseboard.init(endpoint={collector.url!r}, metrics_port=0)
@fuseboard.tool
def search():
    pass
search()
sys.stdout.flush()
for _ in range(2):
    if (child := os.fork()) == 0:
        search()
        search()
        fuseboard.flush(10)
        os._exit(0)
    os.waitpid(child, 0)
""")
    assert done.stderr.count("was forked from one that serves /metrics") == 2, done.stderr


def test_what_is_alive() -> None:
    assert is_alive(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 20
    while is_alive(child.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_alive(child.pid), "though nobody has waited for it"
    child.wait(20)
    assert not is_alive(child.pid)


@pytest.mark.parametrize("moment", ["write_value", "read_value"])
def test_a_call_that_comes_in_the_middle_of_counting_does_not_hang(
    tmp_path: Path, collector: Any, moment: str
) -> None:
    """As a signal's handler makes it, or a stream that the garbage collector ends."""
    source = f"""
import signal, sys
from prometheus_client import CollectorRegistry, mmap_dict
import fuseboard
signal.alarm(60)
fuseboard.init("workers", region="eu", registry=CollectorRegistry(), endpoint=sys.argv[1])

@fuseboard.tool
def search(): ...

inner, is_due = mmap_dict.MmapedDict.{moment}, [True]
def interrupted(*args):
    if is_due:
        is_due.clear()
        search()
    return inner(*args)
mmap_dict.MmapedDict.{moment} = interrupted
fuseboard.tool(name="other")(len)("")
assert not is_due
print(fuseboard.metrics_text()[0].decode(), flush=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", source, collector.url],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert total(done.stdout, "fuseboard_tool_calls_total") == 2
    assert total(done.stdout, "fuseboard_tool_calls_in_flight") == 0


def test_hc_07_a_call_that_outlives_its_init_does_not_run_for_ever(
    tmp_path: Path, collector: Any
) -> None:
    source = BUSY_WORKER.replace(
        "for line in sys.stdin:",
        """
begun, may_end = threading.Event(), threading.Event()
@fuseboard.tool
def long():
    begun.set()
    may_end.wait()

thread = threading.Thread(target=long)
thread.start()
begun.wait()
fuseboard.shutdown(0)
fuseboard.init("anew", region="eu", registry=CollectorRegistry(), endpoint=sys.argv[1])
may_end.set()
thread.join()
for line in sys.stdin:""",
    )
    worker = Worker(tmp_path, collector.url, source)
    text = worker.metrics()
    assert total(text, "fuseboard_tool_calls_total", tool="long") == 1
    assert total(text, "fuseboard_tool_calls_in_flight") == 0
    worker.end()
