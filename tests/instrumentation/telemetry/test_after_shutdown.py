"""What is counted of calls that run when the telemetry is shut down, and of calls after that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import fuseboard
from fuseboard import Policy, Retry, setup

BOTH_PATHS = pytest.mark.parametrize("path", ["fast", "sdk", "unsampled"])


def choose_path(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if path == "sdk":
        monkeypatch.setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "100")
    if path == "unsampled":
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    found = registry.get_sample_value(name, {"tool": "lookup", "region": "unknown", **labels})
    assert found is not None, name
    return found


def dropped(registry: CollectorRegistry, signal: str) -> float:
    labels = {"signal": signal, "reason": "shutdown"}
    return registry.get_sample_value("fuseboard_telemetry_dropped_total", labels) or 0.0


@BOTH_PATHS
def test_a_call_that_runs_at_the_shutdown_is_counted_and_its_record_lost_by_count(
    start: Any, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    choose_path(path, monkeypatch)
    start()

    @fuseboard.tool
    def lookup() -> str:
        assert setup.shutdown(20.0)
        assert value(registry, "fuseboard_tool_calls_in_flight") == 1
        return "found"

    assert lookup() == "found"
    assert value(registry, "fuseboard_tool_calls_in_flight") == 0
    labels = {"outcome": "ok", "error_class": "none"}
    assert value(registry, "fuseboard_tool_calls_total", **labels) == 1
    assert dropped(registry, "logs" if path == "unsampled" else "spans") == 1


@BOTH_PATHS
def test_a_call_that_is_retried_over_the_shutdown_counts_each_attempt(
    start: Any, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    choose_path(path, monkeypatch)
    start()
    runs = []

    @fuseboard.tool(policy=Policy(retry=Retry(attempts=3, wait_initial=0)))
    async def lookup() -> str:
        runs.append(1)
        if len(runs) == 1:
            setup.shutdown(20.0)
        if len(runs) < 3:
            raise ConnectionRefusedError
        return "found"

    assert asyncio.run(lookup()) == "found"
    labels = {"outcome": "ok", "error_class": "none"}
    assert value(registry, "fuseboard_tool_calls_total", **labels) == 1
    failed = {"result": "failure", "error_class": "L3_transient"}
    assert value(registry, "fuseboard_tool_attempts_total", **failed) == 2
    if path != "unsampled":
        assert dropped(registry, "spans") == 4  # the call and its three attempts


@BOTH_PATHS
def test_calls_that_begin_after_the_shutdown_are_not_recorded_at_all(
    start: Any,
    registry: CollectorRegistry,
    collector: Any,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    choose_path(path, monkeypatch)
    start()

    @fuseboard.tool
    def lookup(fails: bool) -> str:
        if fails:
            raise ConnectionRefusedError
        return "found"

    assert setup.shutdown(20.0)
    assert lookup(fails=False) == "found"
    with pytest.raises(ConnectionRefusedError):
        lookup(fails=True)
    with fuseboard.call("lookup") as call:
        call.set_result("found")
    text = setup.metrics_text()[0].decode()
    assert 'fuseboard_tool_calls_total{error_class="none",outcome="ok",region="unknown"' in text
    calls = [line for line in text.splitlines() if line.startswith("fuseboard_tool_calls_total")]
    assert {line.rsplit(" ", 1)[1] for line in calls} == {"0.0"}
    assert dropped(registry, "spans") == dropped(registry, "logs") == 0
    assert collector.spans() == []
