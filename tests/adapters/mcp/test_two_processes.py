"""A client and its server in a process each: one trace, a call on either side."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.adapters.mcp.both_sides import text_of
from tests.instrumentation.telemetry.fake_collector import FakeCollector, as_dict, wait_until

import fuseboard
from fuseboard.adapters import instrument_mcp, uninstrument_mcp
from fuseboard.conventions import DUPLICATE, GEN_AI_OPERATION_NAME, OUTCOME

SERVER = Path(__file__).with_name("weather_server.py")


async def test_both_sides_of_a_call_are_in_one_trace(
    start: Callable[..., None], collector: FakeCollector
) -> None:
    start()
    instrument_mcp(server=False)
    variables = {**os.environ, "FUSEBOARD_ENDPOINT": collector.url}
    command = StdioServerParameters(command=sys.executable, args=[str(SERVER)], env=variables)
    try:
        async with stdio_client(command) as streams, ClientSession(*streams) as session:
            await session.initialize()
            result = await session.call_tool("weather", {"city": "Oslo"})
            assert text_of(result) == "sunny in Oslo"
    finally:
        uninstrument_mcp()
    assert fuseboard.flush(10)
    # The server sends the rest when it ends.
    wait_until(lambda: len(_calls(collector)) >= 2)
    calls = _calls(collector)
    assert sorted(service for service, _, _ in calls) == ["meteo", "tests"]
    assert len({trace_id for _, trace_id, _ in calls}) == 1
    assert [is_own for _, _, is_own in calls] == [True, True]


def _calls(collector: FakeCollector) -> list[tuple[str, bytes, bool]]:
    """Return (service, trace id, whether it is ours) of each span that counts as a call."""
    found = []
    for group in collector.resource_spans():
        service = as_dict(group.resource.attributes)["service.name"]
        for span in (span for scope in group.scope_spans for span in scope.spans):
            attributes = as_dict(span.attributes)
            if attributes.get(GEN_AI_OPERATION_NAME) == "execute_tool" and not attributes.get(
                DUPLICATE
            ):
                found.append((service, span.trace_id, OUTCOME in attributes))
    return found
