"""FastMCP's clients and servers, connected for real."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import fastmcp.tools
import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ToolError
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry

import fuseboard
from fuseboard import ErrorClass, Outcome, Policy, Retry, Validation
from fuseboard.adapters import instrument_fastmcp, uninstrument_fastmcp
from fuseboard.arguments import hash_arguments
from fuseboard.record import CallRecord

RETRY = Policy(retry=Retry(attempts=3, wait_initial=0.01), effects="none")
OSLO = {"city": "Oslo"}


@pytest.fixture(autouse=True)
def _installed(telemetry: RecordingTelemetry) -> Iterator[None]:
    instrument_fastmcp()
    yield
    uninstrument_fastmcp()


@pytest.fixture
def server() -> FastMCP[Any]:
    made: FastMCP[Any] = FastMCP("meteo")

    @made.tool
    def weather(city: str, days: int = 1) -> str:
        """Tell the weather."""
        return f"sunny in {city} for {days}"

    @made.tool
    async def later(city: str, context: Context) -> str:
        """Tell the weather, after a while."""
        assert context is not None
        await asyncio.sleep(0)
        return f"rain in {city}"

    return made


def failing(server: FastMCP[Any], error: BaseException, times: int = 99) -> list[str]:
    """Add a tool that fails so many times; return what counts its runs."""
    runs: list[str] = []

    @server.tool
    def fog(city: str) -> str:
        """Tell the fog."""
        runs.append(city)
        if len(runs) <= times:
            raise error
        return f"fog in {city}"

    return runs


def only_server() -> None:
    """Leave the client's side out."""
    uninstrument_fastmcp()
    instrument_fastmcp(client=False)


def sides(telemetry: RecordingTelemetry) -> tuple[CallRecord, CallRecord]:
    """Return the server's and the client's call."""
    on_server, on_client = telemetry.calls
    return on_server, on_client


@pytest.mark.parametrize(
    ("tool", "answer"), [("weather", "sunny in Oslo for 1"), ("later", "rain in Oslo")]
)
async def test_each_side_records_a_call_once(
    telemetry: RecordingTelemetry, server: FastMCP[Any], tool: str, answer: str
) -> None:
    async with Client(server) as client:
        assert (await client.call_tool(tool, OSLO)).data == answer
    for call in sides(telemetry):
        assert (call.tool.name, call.outcome, len(call.attempts)) == (tool, Outcome.OK, 1)
        assert call.args_hash == hash_arguments(OSLO)
    assert telemetry.calls[1].upstream == "meteo"


async def test_calls_at_once_are_kept_apart(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    cities = [f"city-{number}" for number in range(10)]
    async with Client(server) as client:
        answers = await asyncio.gather(*(client.call_tool("later", {"city": c}) for c in cities))
    assert [answer.data for answer in answers] == [f"rain in {city}" for city in cities]
    assert len({call.args_hash for call in telemetry.calls}) == 10


async def test_a_tool_of_a_mounted_server_is_counted_once(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    only_server()
    outer: FastMCP[Any] = FastMCP("outer")
    outer.mount(server)
    async with Client(outer) as client:
        assert (await client.call_tool("weather", OSLO)).data == "sunny in Oslo for 1"
    assert [call.tool.name for call in telemetry.calls] == ["weather"]


async def test_hc_14_schemas_stay_as_they_are(server: FastMCP[Any]) -> None:
    async def described() -> list[Any]:
        async with Client(server) as client:
            await client.call_tool("weather", OSLO)
            return [tool.model_dump() for tool in await client.list_tools()]

    wrapped = await described()
    uninstrument_fastmcp()
    assert wrapped == await described()


async def test_the_server_knows_the_exception_and_the_client_the_words(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    failing(server, ConnectionError("no route"))
    async with Client(server) as client:
        with pytest.raises(ToolError):
            await client.call_tool("fog", OSLO)
    on_server, on_client = sides(telemetry)
    assert on_server.fault is not None
    assert on_server.fault.error_type == "ConnectionError"
    assert on_server.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
    assert on_client.fault is not None
    assert on_client.fault.error_type == "tool_error"
    assert on_client.fault.message


async def test_an_error_packet_is_judged_on_the_server(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    @server.tool
    def packing(city: str) -> dict[str, Any]:
        """Answer with a packet."""
        return {"ok": False, "error_code": "rate_limit_exceeded"}

    async with Client(server) as client:
        await client.call_tool("packing", OSLO)
    assert telemetry.calls[0].fault is not None
    assert telemetry.calls[0].fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_bad_arguments_never_reach_the_tool(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    runs = failing(server, ConnectionError())
    async with Client(server) as client:
        with pytest.raises(ToolError):
            await client.call_tool("fog", {"town": "Oslo"})
    on_server, on_client = sides(telemetry)
    assert (on_server.outcome, on_server.attempts, runs) == (Outcome.ERROR, [], [])
    for call in (on_server, on_client):
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT


async def test_hc_49_names_that_the_model_invents_are_one_series(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    async with Client(server) as client:
        await client.list_tools()
        for number in range(3):
            with pytest.raises(ToolError):
                await client.call_tool(f"wether_{number}", OSLO)
    assert len(telemetry.calls) == 6
    assert {call.tool.name for call in telemetry.calls} == {"_other"}
    for call in telemetry.calls:
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT


async def test_hc_04_a_cancelled_call_is_cancelled(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    started = asyncio.Event()

    @server.tool
    async def waiting(city: str) -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return city

    async with Client(server) as client:
        task = asyncio.create_task(client.call_tool("waiting", OSLO))
        await asyncio.wait_for(started.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert {call.outcome for call in telemetry.calls} == {Outcome.CANCELLED}


async def test_a_server_retries_its_tool_and_the_client_sees_one_answer(
    telemetry: RecordingTelemetry, server: FastMCP[Any], clock: FakeClock
) -> None:
    instrument_fastmcp({"fog": RETRY})
    runs = failing(server, ConnectionError(), times=2)
    async with Client(server) as client:
        assert (await client.call_tool("fog", OSLO)).data == "fog in Oslo"
    assert [len(call.attempts) for call in telemetry.calls] == [3, 1]
    assert len(runs) == 3


async def test_a_fallback_on_the_server_becomes_a_result(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    only_server()
    instrument_fastmcp({"fog": Policy(fallback=lambda city: f"perhaps {city}")}, client=False)
    failing(server, ConnectionError())
    async with Client(server) as client:
        assert (await client.call_tool("fog", OSLO)).data == "perhaps Oslo"
    assert [call.outcome for call in telemetry.calls] == [Outcome.DEGRADED]


@pytest.mark.parametrize("is_own", [False, True])
async def test_a_packet_is_a_result_that_reports_an_error(
    telemetry: RecordingTelemetry, server: FastMCP[Any], is_own: bool
) -> None:
    uninstrument_fastmcp()
    instrument_fastmcp(on_error="raise" if is_own else "packet", client=False)

    def fog(city: str) -> Any:
        """Tell the fog."""
        raise ConnectionError("no route to 10.0.0.1")

    server.tool(fuseboard.tool(on_error="packet")(fog) if is_own else fog)
    async with Client(server) as client:
        result = await client.call_tool("fog", OSLO, raise_on_error=False)
    assert result.is_error
    assert "can't be reached" in result.content[0].text
    assert "10.0.0.1" not in result.content[0].text
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]


async def test_validation_on_the_server_sees_what_the_tool_returned(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    instrument_fastmcp({"nothing": Policy(validation=Validation(non_empty=True))})

    @server.tool
    def nothing(city: str) -> str:
        """Return nothing."""
        return ""

    async with Client(server) as client:
        with pytest.raises(ToolError):
            await client.call_tool("nothing", OSLO)
    assert telemetry.calls[0].outcome is Outcome.ERROR


async def test_a_tool_of_fuseboards_own_is_counted_once_on_the_server(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    only_server()

    @server.tool
    @fuseboard.tool(name="own_name")
    def fog(city: str, context: Context) -> str:
        """Tell the fog."""
        assert context is not None
        return f"fog in {city}"

    async with Client(server) as client:
        assert (await client.call_tool("fog", OSLO)).data == "fog in Oslo"
    assert [call.tool.name for call in telemetry.calls] == ["own_name"]


async def test_with_the_sdks_adapter_too_each_side_still_counts_once(
    telemetry: RecordingTelemetry, server: FastMCP[Any]
) -> None:
    from fuseboard.adapters import instrument_mcp, uninstrument_mcp

    instrument_mcp()
    try:
        async with Client(server) as client:
            await client.call_tool("weather", OSLO)
    finally:
        uninstrument_mcp()
    assert len(telemetry.calls) == 2


async def test_everything_is_restored(telemetry: RecordingTelemetry, server: FastMCP[Any]) -> None:
    uninstrument_fastmcp()
    before = vars(fastmcp.tools.Tool)["_run"], vars(FastMCP)["call_tool"]
    instrument_fastmcp()
    uninstrument_fastmcp()
    assert (vars(fastmcp.tools.Tool)["_run"], vars(FastMCP)["call_tool"]) == before
    async with Client(server) as client:
        await client.call_tool("weather", OSLO)
    assert telemetry.calls == []
