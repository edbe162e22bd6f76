"""The bars that the page on performance names are those that the benchmarks enforce."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "performance.md").read_text()
BENCHMARKS = ROOT / "benchmarks"


def constants(script: str) -> dict[str, Any]:
    """Return the top-level constants of a benchmark, without running it."""
    found = {}
    for node in ast.parse((BENCHMARKS / script).read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


def row(begins: str) -> list[str]:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {begins}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


CALLS = constants("call_overhead.py")


@pytest.mark.parametrize(
    ("begins", "bar"),
    [
        ("observed call, success", CALLS["BARS"]["sync ok"]),
        ("observed call, success", CALLS["BARS"]["async ok"]),
        ("observed call, failure", CALLS["BARS"]["sync fail"]),
        ("observed call, failure", CALLS["BARS"]["async fail"]),
        ("retry and breaker", CALLS["ADDED_BARS"]["sync ok, retry + breaker"]),
        ("retry and breaker", CALLS["ADDED_BARS"]["async ok, retry + breaker"]),
        ("all threads", constants("with_export.py")["BAR"]),
        ("the same, failure", constants("with_export.py")["BAR"]),
        ("an async timeout", constants("timeouts.py")["ASYNC_BAR"]),
        ("a sync hard timeout", constants("timeouts.py")["HOP_BAR"]),
        ("`import fuseboard`", constants("import_time.py")["BAR"]),
        ("p50 of a call", constants("collector_away.py")["P50_BAR"]),
    ],
)
def test_a_bar_on_the_page_is_the_benchmarks(begins: str, bar: float) -> None:
    _, named, measured, _ = row(begins)

    assert float(named) == bar
    assert all(float(figure) <= bar for figure in measured.split("/"))


INGEST = constants("ingest.py")


@pytest.mark.parametrize(
    ("begins", "bars"),
    [
        ("spans of the shim", [INGEST["BARS"]["own"]]),
        ("spans of others", [INGEST["BARS"]["foreign"], INGEST["BARS"]["foreign tools"]]),
    ],
)
def test_a_share_on_the_page_is_held_by_the_benchmark(begins: str, bars: list[float]) -> None:
    _, named, measured, _ = row(begins)

    assert [float(named)] * len(bars) == bars
    assert all(float(figure) >= float(named) for figure in measured.split("/"))


def test_the_size_of_a_span_is_held_by_the_benchmark() -> None:
    _, named, measured, _ = row("bytes on disk per span")

    assert int(named) == INGEST["DISK_BAR"]
    assert all(int(figure) <= INGEST["DISK_BAR"] for figure in measured.split("/"))


def test_the_commands_on_the_page_exist() -> None:
    named = set(re.findall(r"benchmarks/[a-z_]+\.(?:py|txt)", PAGE))

    assert len(named) >= 7
    assert all((ROOT / path).is_file() for path in named)


def test_peers_are_named_in_the_versions_that_were_measured() -> None:
    pins = dict(
        line.split("==") for line in (BENCHMARKS / "peers.txt").read_text().splitlines() if line
    )

    assert len(pins) == 6
    for name, version in pins.items():
        assert f"| {name} {version} |" in PAGE, name
