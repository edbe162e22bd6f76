"""FastMCP writes spans itself: each side of a call counts once, and both are one trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from tests.adapters.counting import counted, received
from tests.instrumentation.telemetry.fake_collector import FakeCollector

from fuseboard.adapters import instrument_fastmcp, uninstrument_fastmcp


@pytest.fixture(autouse=True)
def _started(start: Callable[..., None]) -> Iterator[None]:
    start()
    instrument_fastmcp()
    yield
    uninstrument_fastmcp()


@pytest.mark.parametrize("fails", [False, True])
async def test_each_side_counts_once_in_one_trace(collector: FakeCollector, fails: bool) -> None:
    server: FastMCP[None] = FastMCP("meteo")

    @server.tool
    def weather(city: str) -> str:
        """Tell the weather."""
        if fails:
            raise ConnectionError("no route")
        return f"sunny in {city}"

    async with Client(server) as client:
        try:
            await client.call_tool("weather", {"city": "Oslo"})
        except ToolError:
            assert fails
    spans = received(collector)
    assert counted(spans) == [("execute_tool weather", True)] * 2
    own = [span for span in spans if span.name == "execute_tool weather"]
    assert len({span.trace_id for span in own}) == 1
