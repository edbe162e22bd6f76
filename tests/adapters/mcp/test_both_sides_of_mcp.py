"""Clients and servers of MCP's SDK, of version 1 and 2, connected for real."""

# Annotations are not postponed: the first releases look for Context itself.

import asyncio
import inspect
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.adapters.mcp.both_sides import (
    IS_FIRST,
    Context,
    FastMCP,
    McpError,
    ToolError,
    connected,
    error_result,
    is_error,
    low_level,
    text_of,
)
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry

if not IS_FIRST:
    from mcp.types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

import fuseboard
from fuseboard import ErrorClass, Fallback, Outcome, Policy, Retry, Validation
from fuseboard.adapters import instrument_mcp, uninstrument_mcp
from fuseboard.arguments import hash_arguments
from fuseboard.record import CallRecord

RETRY = Policy(retry=Retry(attempts=3, wait_initial=0.01), effects="none")
OSLO = {"city": "Oslo"}


@pytest.fixture(autouse=True)
def _installed(telemetry: RecordingTelemetry) -> Iterator[None]:
    instrument_mcp()
    yield
    uninstrument_mcp()


@pytest.fixture
def server() -> Any:
    made = FastMCP("meteo")

    @made.tool()
    def weather(city: str, days: int = 1) -> str:
        """Tell the weather."""
        return f"sunny in {city} for {days}"

    @made.tool()
    async def later(city: str, context: Context) -> str:  # type: ignore[type-arg]
        """Tell the weather, after a while."""
        assert context is not None
        await asyncio.sleep(0)
        return f"rain in {city}"

    return made


def failing(server: Any, error: BaseException, times: int = 99) -> list[str]:
    """Add a tool that fails so many times; return what counts its runs."""
    runs: list[str] = []

    @server.tool()
    async def fog(city: str) -> str:
        """Tell the fog."""
        runs.append(city)
        if len(runs) <= times:
            raise error
        return f"fog in {city}"

    return runs


def sides(telemetry: RecordingTelemetry) -> tuple[CallRecord, CallRecord]:
    """Return the server's and the client's call."""
    server, client = telemetry.calls
    return server, client


# --- Success -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "answer"), [("weather", "sunny in Oslo for 1"), ("later", "rain in Oslo")]
)
async def test_each_side_records_a_call_once(
    telemetry: RecordingTelemetry, server: Any, tool: str, answer: str
) -> None:
    async with connected(server) as session:
        assert text_of(await session.call_tool(tool, OSLO)) == answer
    for call in sides(telemetry):
        assert (call.tool.name, call.outcome, len(call.attempts)) == (tool, Outcome.OK, 1)
        assert call.args_hash == hash_arguments(OSLO)
    assert [call.upstream for call in telemetry.calls] == [None, "meteo"]


async def test_a_side_can_be_left_out(telemetry: RecordingTelemetry, server: Any) -> None:
    uninstrument_mcp()
    instrument_mcp(server=False)
    async with connected(server) as session:
        await session.call_tool("weather", OSLO)
    assert [call.upstream for call in telemetry.calls] == ["meteo"]
    uninstrument_mcp()
    instrument_mcp(client=False)
    async with connected(server) as session:
        await session.call_tool("weather", OSLO)
    assert [call.upstream for call in telemetry.calls] == ["meteo", None]


async def test_arguments_may_be_given_by_name(telemetry: RecordingTelemetry, server: Any) -> None:
    async with connected(server) as session:
        await session.call_tool(name="weather", arguments=OSLO)
    assert [call.args_hash for call in telemetry.calls] == [hash_arguments(OSLO)] * 2


async def test_a_low_level_server_records_its_calls(telemetry: RecordingTelemetry) -> None:
    server = low_level(lambda name, arguments: error_result("").content)
    async with connected(server) as session:
        assert not is_error(await session.call_tool("weather", OSLO))
    assert [(c.tool.name, c.outcome, c.upstream) for c in telemetry.calls] == [
        ("weather", Outcome.OK, None),
        ("weather", Outcome.OK, "low"),
    ]


async def test_calls_at_once_are_kept_apart(telemetry: RecordingTelemetry, server: Any) -> None:
    cities = [f"city-{number}" for number in range(10)]
    async with connected(server) as session:
        answers = await asyncio.gather(*(session.call_tool("later", {"city": c}) for c in cities))
    assert [text_of(answer) for answer in answers] == [f"rain in {city}" for city in cities]
    hashes = sorted(str(call.args_hash) for call in telemetry.calls)
    assert hashes == sorted([hash_arguments({"city": city}) for city in cities] * 2)


async def test_hc_14_schemas_stay_as_they_are(server: Any) -> None:
    async def described() -> list[Any]:
        async with connected(server) as session:
            await session.call_tool("weather", OSLO)
            return [tool.model_dump() for tool in (await session.list_tools()).tools]

    wrapped = await described()
    uninstrument_mcp()
    assert wrapped == await described()


# --- Failure -----------------------------------------------------------------------------------


async def test_the_server_knows_the_exception_and_the_client_the_words(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    failing(server, ConnectionError("no route"))
    async with connected(server) as session:
        assert is_error(await session.call_tool("fog", OSLO))
    on_server, on_client = sides(telemetry)
    assert on_server.fault is not None
    assert on_server.fault.error_type == "ConnectionError"
    assert on_server.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
    assert on_client.fault is not None
    assert on_client.fault.error_type == "tool_error"
    assert on_client.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
    assert "fog" in on_client.fault.message
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR] * 2


async def test_an_error_of_the_tools_own_words_is_judged_by_its_cause(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    error = ToolError("the weather is away")
    error.__cause__ = ConnectionResetError("reset")
    failing(server, error)
    async with connected(server) as session:
        assert "away" in text_of(await session.call_tool("fog", OSLO))
    on_server, on_client = sides(telemetry)
    assert on_server.fault is not None
    assert on_server.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
    assert on_client.fault is not None
    assert "away" in on_client.fault.message


async def test_a_structured_error_says_its_class(telemetry: RecordingTelemetry) -> None:
    def run(name: str, arguments: dict[str, Any]) -> Any:
        return error_result("slow down", error_code="rate_limit_exceeded")

    uses_results = (
        not IS_FIRST or "isinstance(results, types.CallToolResult)" in _source_of_low_level()
    )
    if not uses_results:
        pytest.skip("low-level servers of this release can't return a result as it is")
    async with connected(low_level(run)) as session:
        assert text_of(await session.call_tool("weather", OSLO)) == "slow down"
    for call in sides(telemetry):
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
        assert call.fault.message == "slow down"


def _source_of_low_level() -> str:
    from mcp.server.lowlevel import Server

    return inspect.getsource(Server.call_tool)


async def test_an_error_packet_is_judged_on_the_server(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    @server.tool()
    def packing(city: str) -> dict[str, Any]:
        """Answer with a packet."""
        return {"ok": False, "error_code": "rate_limit_exceeded"}

    async with connected(server) as session:
        await session.call_tool("packing", OSLO)
    assert telemetry.calls[0].fault is not None
    assert telemetry.calls[0].fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_bad_arguments_never_reach_the_tool(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    runs = failing(server, ConnectionError())
    async with connected(server) as session:
        assert is_error(await session.call_tool("fog", {"town": "Oslo"}))
    on_server, on_client = sides(telemetry)
    assert (on_server.outcome, on_server.attempts, runs) == (Outcome.ERROR, [], [])
    for call in (on_server, on_client):
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
        assert call.args_hash == hash_arguments({"town": "Oslo"})


async def test_hc_49_names_that_the_model_invents_are_one_series(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    async with connected(server) as session:
        await session.list_tools()
        for number in range(3):
            try:
                await session.call_tool(f"wether_{number}", OSLO)
            except McpError:
                assert not IS_FIRST
    assert len(telemetry.calls) == 6
    assert {call.tool.name for call in telemetry.calls} == {"_other"}
    for call in telemetry.calls:
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT


async def test_hc_49_names_that_nobody_can_check_are_bounded(
    telemetry: RecordingTelemetry,
) -> None:
    server = low_level(lambda name, arguments: error_result("").content)
    uninstrument_mcp()
    instrument_mcp(client=False)
    async with connected(server) as session:
        for number in range(150):
            await session.call_tool(f"invented_{number}", OSLO)
    names = {call.tool.name for call in telemetry.calls}
    assert len(telemetry.calls) == 150
    assert len(names) == 101
    assert "_other" in names


async def test_a_server_that_is_slower_than_the_client_waits_for_timed_out(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    release = asyncio.Event()

    @server.tool()
    async def slow(city: str) -> str:
        """Take long."""
        await release.wait()
        return city

    limit: Any = timedelta(seconds=0.05) if IS_FIRST else 0.05
    async with connected(server) as session:
        with pytest.raises(McpError):
            await session.call_tool("slow", OSLO, limit)
        release.set()
        await session.call_tool("weather", OSLO)  # behind it, so that the answer has been sent
    on_client = next(c for c in telemetry.calls if c.upstream and c.tool.name == "slow")
    assert on_client.fault is not None
    assert on_client.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_hc_04_a_cancelled_call_is_cancelled(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    started = asyncio.Event()

    @server.tool()
    async def waiting(city: str) -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return city

    async with connected(server) as session:
        task = asyncio.create_task(session.call_tool("waiting", OSLO))
        await asyncio.wait_for(started.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert {call.outcome for call in telemetry.calls} == {Outcome.CANCELLED}
    assert len(telemetry.calls) == 2


@pytest.mark.skipif(IS_FIRST, reason="version 1 has no such results")
async def test_hc_17_a_question_to_the_user_is_an_interruption(
    telemetry: RecordingTelemetry,
) -> None:
    made = FastMCP("asking")
    asked = ElicitRequestFormParams(
        message="sure?", requested_schema={"type": "object", "properties": {}}
    )

    @made.tool()
    async def asking(city: str) -> InputRequiredResult:
        """Ask the user."""
        return InputRequiredResult(input_requests={"sure": ElicitRequest(params=asked)})

    async with connected(made) as session:
        result = await session.call_tool("asking", OSLO, allow_input_required=True)  # type: ignore[call-arg]
    assert type(result).__name__ == "InputRequiredResult"
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED] * 2


# --- Policies ----------------------------------------------------------------------------------


async def test_a_server_retries_its_tool_and_the_client_sees_one_answer(
    telemetry: RecordingTelemetry, server: Any, clock: FakeClock
) -> None:
    instrument_mcp({"fog": RETRY})
    runs = failing(server, ConnectionError(), times=2)
    async with connected(server) as session:
        assert text_of(await session.call_tool("fog", OSLO)) == "fog in Oslo"
    assert [len(call.attempts) for call in telemetry.calls] == [3, 1]
    assert len(runs) == 3


async def test_a_client_retries_a_request(
    telemetry: RecordingTelemetry, server: Any, clock: FakeClock
) -> None:
    uninstrument_mcp()
    retry = Retry(attempts=3, wait_initial=0.01, semantic=True)
    policy = Policy(retry=retry, effects="none")
    instrument_mcp({"fog": policy}, server=False)
    runs = failing(server, ConnectionError(), times=2)
    async with connected(server) as session:
        assert text_of(await session.call_tool("fog", OSLO)) == "fog in Oslo"
    (call,) = telemetry.calls
    assert (call.outcome, len(call.attempts), len(runs)) == (Outcome.OK, 3, 3)


async def test_a_result_that_reports_an_error_is_handed_on_unchanged(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    uninstrument_mcp()
    async with connected(server) as session:
        plain = await session.call_tool("weather", {"town": "Oslo"})
    instrument_mcp()
    async with connected(server) as session:
        assert await session.call_tool("weather", {"town": "Oslo"}) == plain


async def test_a_fallback_on_the_server_becomes_a_result(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    uninstrument_mcp()
    fallback = Policy(fallback=lambda city: f"perhaps fog in {city}")
    instrument_mcp({"fog": fallback}, client=False)
    failing(server, ConnectionError())
    async with connected(server) as session:
        assert text_of(await session.call_tool("fog", OSLO)) == "perhaps fog in Oslo"
    assert [call.outcome for call in telemetry.calls] == [Outcome.DEGRADED]


async def test_validation_on_the_server_sees_what_the_tool_returned(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    instrument_mcp({"nothing": Policy(validation=Validation(non_empty=True))})

    @server.tool()
    def nothing(city: str) -> str:
        """Return nothing."""
        return ""

    async with connected(server) as session:
        assert is_error(await session.call_tool("nothing", OSLO))
    assert telemetry.calls[0].outcome is Outcome.ERROR


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("kind", ["high", "low"])
async def test_a_packet_is_a_result_that_reports_an_error(
    telemetry: RecordingTelemetry, server: Any, side: str, kind: str
) -> None:
    uninstrument_mcp()
    instrument_mcp(on_error="packet", client=side == "client", server=side == "server")

    def fail(name: str, arguments: dict[str, Any]) -> Any:
        raise ConnectionError("no route to 10.0.0.1")

    failing(server, ConnectionError("no route to 10.0.0.1"))
    async with connected(server if kind == "high" else low_level(fail)) as session:
        try:
            result = await session.call_tool("fog" if kind == "high" else "weather", OSLO)
        except McpError:
            pytest.fail("an exception instead of a packet")
    assert is_error(result)
    if side == "server" and not (IS_FIRST and kind == "low"):
        assert "can't be reached" in text_of(result)
        assert "10.0.0.1" not in text_of(result)
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]


async def test_a_fallback_on_either_side_of_a_low_level_server_is_a_result(
    telemetry: RecordingTelemetry,
) -> None:
    def fail(name: str, arguments: dict[str, Any]) -> Any:
        return error_result("away").content if not arguments else _raise()

    def _raise() -> Any:
        raise ConnectionError

    for side in ("client", "server"):
        uninstrument_mcp()
        policy = Policy(fallback=Fallback(value="no idea"))
        instrument_mcp(policy, client=side == "client", server=side == "server")
        async with connected(low_level(fail)) as session:
            result = await session.call_tool("weather", OSLO)
        assert (is_error(result), text_of(result)) == (False, "no idea")
    assert [call.outcome for call in telemetry.calls] == [Outcome.DEGRADED] * 2


# --- Tools that are fuseboard's already ----------------------------------------------------------


async def test_a_tool_of_fuseboards_own_is_counted_once_on_the_server(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    instrument_mcp(Policy(fallback=Fallback(value="never")), client=False)

    @server.tool()
    @fuseboard.tool(name="own_name")
    def fog(city: str, context: Context) -> str:  # type: ignore[type-arg]
        """Tell the fog."""
        assert context is not None
        return f"fog in {city}"

    async with connected(server) as session:
        assert text_of(await session.call_tool("fog", OSLO)) == "fog in Oslo"
    assert [call.tool.name for call in telemetry.calls if not call.upstream] == ["own_name"]


async def test_a_decorated_function_that_calls_a_tool_of_its_name_is_counted_once(
    telemetry: RecordingTelemetry, server: Any
) -> None:
    uninstrument_mcp()
    instrument_mcp(server=False)
    async with connected(server) as session:

        @fuseboard.tool
        async def weather(city: str) -> Any:
            return await session.call_tool("weather", {"city": city})

        assert text_of(await weather("Oslo")) == "sunny in Oslo for 1"
    assert len(telemetry.calls) == 1
