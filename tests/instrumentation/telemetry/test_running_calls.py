"""HC-30 and HC-03: what is seen of a call while it runs, and how each end of a stream counts."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fake_collector import as_dict, wait_until
from prometheus_client import CollectorRegistry

import fuseboard
from fuseboard import conventions as c
from fuseboard import setup
from fuseboard.runtime import RUNTIME


class MovableClock:
    """The system's clock, ahead by so many seconds as the test says."""

    def __init__(self) -> None:
        self._real = RUNTIME.clock
        self.ahead = 0.0

    def time_ns(self) -> int:
        return self._real.time_ns() + int(self.ahead * 1e9)

    def monotonic(self) -> float:
        return self._real.monotonic() + self.ahead

    def sleep(self, seconds: float) -> None:
        self._real.sleep(seconds)

    async def async_sleep(self, seconds: float) -> None:
        await self._real.async_sleep(seconds)


def gauge(registry: CollectorRegistry, name: str, tool: str) -> float:
    found = registry.get_sample_value(name, {"tool": tool, "region": "unknown"})
    assert found is not None
    return found


@pytest.mark.parametrize("path", ["fast", "sdk", "unsampled"])
def test_hc_30_a_hung_call_is_seen_and_counts_once_when_it_ends(
    start: Any,
    collector: Any,
    registry: CollectorRegistry,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
) -> None:
    if path == "sdk":
        monkeypatch.setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "100")
    if path == "unsampled":
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    clock = MovableClock()
    monkeypatch.setattr(RUNTIME, "clock", clock)
    start(heartbeat_seconds=0.05)
    hangs, let_go = threading.Event(), threading.Event()

    @fuseboard.tool
    def crawl(url: str) -> str:
        hangs.set()
        assert let_go.wait(60)
        return url

    thread = threading.Thread(target=crawl, args=("x",))
    thread.start()
    try:
        assert hangs.wait(20)
        ages = []
        for _ in range(2):
            clock.ahead += 7.0
            assert gauge(registry, "fuseboard_tool_calls_in_flight", "crawl") == 1
            ages.append(gauge(registry, "fuseboard_tool_oldest_call_age_seconds", "crawl"))
        assert 7 <= ages[0] < ages[1] - 6
        wait_until(lambda: running_calls(collector))
    finally:
        let_go.set()
        thread.join()
    (listed,) = running_calls(collector)[-1]
    assert listed["tool"] == "crawl"
    assert listed["args_hash"].startswith("v1:")
    assert gauge(registry, "fuseboard_tool_calls_in_flight", "crawl") == 0
    assert gauge(registry, "fuseboard_tool_oldest_call_age_seconds", "crawl") == 0
    assert setup.flush(20.0)
    if path == "unsampled":
        assert len(collector.logs(c.EVENT_TOOL_CALL)) == 1
    else:
        (span,) = collector.spans()
        assert listed["span_id"] == span.span_id.hex()  # so that the final span takes its place
    ended = [
        sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "fuseboard_tool_calls_total"
    ]
    assert sum(ended) == 1


def running_calls(collector: Any) -> list[list[dict[str, Any]]]:
    """Return what each heartbeat that lists any lists of running calls."""
    beats = [as_dict(record.attributes) for record in collector.logs(c.EVENT_HEARTBEAT)]
    listed = [
        json.loads(beat[c.HEARTBEAT_CALLS_IN_FLIGHT])
        for beat in beats
        if c.HEARTBEAT_CALLS_IN_FLIGHT in beat
    ]
    return [calls for calls in listed if calls]


@pytest.mark.parametrize(
    ("ending", "outcome", "error_class", "error_type", "items"),
    [
        ("raises", "error", "L3_transient", "ConnectionResetError", 2),
        ("is cancelled", "cancelled", "none", None, 2),
        ("is left", "abandoned", "none", None, 2),
        ("is exhausted", "ok", "none", None, 3),
    ],
)
def test_hc_03_each_ending_of_a_stream_is_one_count_in_one_series(
    start: Any,
    collector: Any,
    registry: CollectorRegistry,
    ending: str,
    outcome: str,
    error_class: str,
    error_type: str | None,
    items: int,
) -> None:
    start()
    error = ConnectionResetError("half-way")

    @fuseboard.tool
    async def stream() -> AsyncIterator[int]:
        yield 1
        yield 2
        if ending == "raises":
            raise error
        if ending == "is cancelled":
            await asyncio.sleep(600)
        yield 3

    async def consume() -> None:
        source: Any = stream()
        async for item in source:
            if ending == "is left" and item == 2:
                await source.aclose()
                return
            if ending == "is cancelled" and item == 2:
                task = asyncio.current_task()
                assert task is not None
                asyncio.get_running_loop().call_soon(task.cancel)

    raised = {"raises": ConnectionResetError, "is cancelled": asyncio.CancelledError}.get(ending)
    if raised is None:
        asyncio.run(consume())
    else:
        with pytest.raises(raised) as caught:
            asyncio.run(consume())
        assert ending == "is cancelled" or caught.value is error
    counted = {
        (sample.labels["outcome"], sample.labels["error_class"]): sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "fuseboard_tool_calls_total" and sample.value
    }
    assert counted == {(outcome, error_class): 1}
    assert setup.flush(20.0)
    (span,) = [span for span in collector.spans() if span.name == "execute_tool stream"]
    attributes = as_dict(span.attributes)
    assert attributes[c.OUTCOME] == outcome
    assert attributes[c.STREAM_ITEMS] == items
    assert attributes.get(c.ERROR_TYPE) == error_type
    assert (span.status.code == 2) == (outcome == "error")
