"""MCP's SDK writes spans itself: each side of a call counts once, and both are one trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.adapters.counting import counted, received
from tests.adapters.mcp.both_sides import IS_FIRST, FastMCP, McpError, connected, low_level
from tests.instrumentation.telemetry.fake_collector import FakeCollector

from fuseboard.adapters import instrument_mcp, uninstrument_mcp


@pytest.fixture(autouse=True)
def _started(start: Callable[..., None]) -> Iterator[None]:
    start()
    instrument_mcp()
    yield
    uninstrument_mcp()


def _server() -> Any:
    server = FastMCP("meteo")

    @server.tool()
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"sunny in {city}"

    return server


@pytest.mark.parametrize("kind", ["high", "low"])
async def test_each_side_counts_once_in_one_trace(collector: FakeCollector, kind: str) -> None:
    server = _server() if kind == "high" else low_level(lambda name, arguments: [])
    async with connected(server) as session:
        await session.call_tool("weather", {"city": "Oslo"})
    spans = received(collector)
    calls = counted(spans)
    assert [name for name, is_own in calls if is_own] == ["execute_tool weather"] * 2
    # The client's span of the SDK does not say that it is about a tool, and counts nowhere.
    assert [name for name, is_own in calls if not is_own and "send" not in name] == []
    own = [span for span in spans if span.name == "execute_tool weather"]
    assert len({span.trace_id for span in own}) == 1
    assert sum(not span.parent_span_id for span in own) == 1, "the client's is the root"


async def test_an_invented_name_counts_once_on_each_side(collector: FakeCollector) -> None:
    async with connected(_server()) as session:
        await session.list_tools()
        try:
            await session.call_tool("wether", {"city": "Oslo"})
        except McpError:
            assert not IS_FIRST
    calls = [(name, own) for name, own in counted(received(collector)) if "send" not in name]
    assert calls == [("execute_tool _other", True)] * 2
