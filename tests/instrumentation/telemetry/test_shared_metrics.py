"""HC-07: several workers share their counts, and a dead one's stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

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
