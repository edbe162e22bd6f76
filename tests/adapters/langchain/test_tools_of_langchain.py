"""LangChain's tools and agents, driven for real by a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from langchain.tools import ToolRuntime
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, interrupt
from pydantic import ValidationError
from tests.adapters.langchain.scripted import AGENT, THREAD, agent_of, answers_of, asks
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry

import fuseboard
from fuseboard import Breaker, ErrorClass, Fallback, Outcome, Policy, Retry, Validation
from fuseboard.adapters import instrument_langchain, uninstrument_langchain
from fuseboard.arguments import hash_arguments

pytestmark = pytest.mark.usefixtures("installed")
RETRY = Policy(retry=Retry(attempts=3, wait_initial=0.01), effects="none")


@pytest.fixture
def installed(telemetry: RecordingTelemetry) -> Iterator[None]:
    instrument_langchain()
    yield
    uninstrument_langchain()


@tool
def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return f"sunny in {city} for {days}"


@tool
async def weather_later(city: str) -> str:
    """Tell the weather, after a while."""
    await asyncio.sleep(0)
    return f"rain in {city}"


class Failing:
    """A tool's function that fails so many times."""

    def __init__(self, times: int, error: BaseException | None = None) -> None:
        self.left = times
        self.runs = 0
        self.error = error or ConnectionError("no route to the weather")

    def __call__(self, city: str) -> str:
        self.runs += 1
        if self.left:
            self.left -= 1
            raise self.error
        return f"fog in {city}"

    def as_tool(self, name: str = "fog", **options: Any) -> StructuredTool:
        def fog(city: str) -> str:
            return self(city)

        async def fog_later(city: str) -> str:
            return self(city)

        return StructuredTool.from_function(
            fog, fog_later, name=name, description="Tell the fog.", **options
        )


# --- Success -----------------------------------------------------------------------------------


def test_a_call_of_an_agent_is_recorded_once_with_all_that_langgraph_knows(
    telemetry: RecordingTelemetry,
) -> None:
    agent = agent_of([weather], asks("weather", "call-9", city="Oslo"))
    state = agent.invoke({"messages": [("user", "?")]}, THREAD)
    assert answers_of(state)[0].content == "sunny in Oslo for 1"
    (call,) = telemetry.calls
    assert (call.tool.name, call.outcome, len(call.attempts)) == ("weather", Outcome.OK, 1)
    assert (call.call_id, call.session, call.agent) == ("call-9", "thread-7", AGENT)
    assert call.args_hash == hash_arguments({"city": "Oslo"})


async def test_an_async_call_of_an_agent_is_recorded_once(telemetry: RecordingTelemetry) -> None:
    agent = agent_of([weather_later], asks("weather_later", city="Oslo"))
    state = await agent.ainvoke({"messages": [("user", "?")]}, THREAD)
    assert answers_of(state)[0].content == "rain in Oslo"
    assert [(c.tool.name, c.outcome, c.session) for c in telemetry.calls] == [
        ("weather_later", Outcome.OK, "thread-7")
    ]


async def test_a_sync_tool_that_is_awaited_is_recorded_once(telemetry: RecordingTelemetry) -> None:
    assert await weather.ainvoke({"city": "Oslo"}) == "sunny in Oslo for 1"
    (call,) = telemetry.calls
    assert call.outcome is Outcome.OK


async def test_calls_at_once_are_kept_apart(telemetry: RecordingTelemetry) -> None:
    cities = [f"city-{number}" for number in range(20)]
    answers = await asyncio.gather(*(weather_later.ainvoke({"city": c}) for c in cities))
    assert answers == [f"rain in {city}" for city in cities]
    hashes = {call.args_hash for call in telemetry.calls}
    assert hashes == {hash_arguments({"city": city}) for city in cities}


def test_a_text_as_only_input_is_an_argument(telemetry: RecordingTelemetry) -> None:
    assert weather.invoke("Oslo") == "sunny in Oslo for 1"
    assert telemetry.last.args_hash == hash_arguments({"input": "Oslo"})


def test_a_class_of_tools_is_recorded(telemetry: RecordingTelemetry) -> None:
    class Base(BaseTool):
        name: str = "own_class"
        description: str = "A class."

        def _run(self, city: str) -> str:
            return f"wind in {city}"

    class Derived(Base):
        def _run(self, city: str) -> str:
            return super()._run(city) + "!"

    assert Derived().invoke({"city": "Oslo"}) == "wind in Oslo!"
    assert Base().invoke({"city": "Oslo"}) == "wind in Oslo"
    assert [c.tool.name for c in telemetry.calls] == ["own_class", "own_class"]


def test_hc_14_injected_parameters_reach_the_tool_and_are_not_hashed(
    telemetry: RecordingTelemetry,
) -> None:
    seen: dict[str, Any] = {}

    @tool
    def with_runtime(
        city: str,
        config: RunnableConfig,
        runtime: ToolRuntime,
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Use what belongs to the run."""
        seen.update(config=config, runtime=runtime, tool_call_id=tool_call_id)
        return city

    @tool
    def with_state(city: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Use the state."""
        seen.update(state=state)
        return city

    for name in ("with_runtime", "with_state"):
        agent = agent_of([with_runtime, with_state], asks(name, "call-3", city="Oslo"))
        agent.invoke({"messages": [("user", "?")]}, THREAD)
    assert seen["config"]["configurable"]["thread_id"] == "thread-7"
    assert seen["runtime"].tool_call_id == seen["tool_call_id"] == "call-3"
    assert len(seen["state"]["messages"]) == 2
    assert [call.outcome for call in telemetry.calls] == [Outcome.OK] * 2
    assert {call.args_hash for call in telemetry.calls} == {hash_arguments({"city": "Oslo"})}


def test_hc_14_schemas_stay_as_they_are() -> None:
    def described() -> list[Any]:
        tools = [weather, weather_later, Failing(0).as_tool()]
        return [convert_to_openai_tool(one) for one in tools] + [one.args for one in tools]

    wrapped = described()
    uninstrument_langchain()
    assert wrapped == described()


# --- Failure -----------------------------------------------------------------------------------


def test_an_exception_passes_as_the_same_object(telemetry: RecordingTelemetry) -> None:
    failing = Failing(1)
    with pytest.raises(ConnectionError) as caught:
        failing.as_tool().invoke({"city": "Oslo"})
    assert caught.value is failing.error
    (call,) = telemetry.calls
    assert call.outcome is Outcome.ERROR
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
    assert call.fault.error_type == "ConnectionError"


def test_a_failure_that_the_node_tells_the_model_is_an_error(
    telemetry: RecordingTelemetry,
) -> None:
    state = agent_of_node(Failing(1).as_tool(), asks("fog", city="Oslo"))
    assert answers_of(state)[0].status == "error"
    assert [(c.outcome, c.call_id) for c in telemetry.calls] == [(Outcome.ERROR, "call-1")]


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_exception_that_the_tool_turns_into_words_is_judged_by_its_cause(
    telemetry: RecordingTelemetry, is_async: bool
) -> None:
    error = ToolException("the weather is away")
    error.__cause__ = ConnectionResetError("reset")
    handled = Failing(1, error).as_tool(handle_tool_error=True)
    request = {"name": "fog", "args": {"city": "Oslo"}, "id": "call-5", "type": "tool_call"}
    answer = await handled.ainvoke(request) if is_async else handled.invoke(request)
    assert (answer.status, answer.content) == ("error", "the weather is away")
    (call,) = telemetry.calls
    assert call.fault is not None
    assert (call.outcome, call.call_id) == (Outcome.ERROR, "call-5")
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
    assert call.fault.verdict.cause_type == "ConnectionResetError"


def test_a_message_that_reports_an_error_is_one(telemetry: RecordingTelemetry) -> None:
    @tool
    def telling(city: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Tell of an error."""
        return ToolMessage("no such place", tool_call_id=tool_call_id, status="error")

    state = agent_of_node(telling, asks("telling", city="Atlantis"))
    assert answers_of(state)[0].content == "no such place"
    assert telemetry.last.fault is not None
    assert telemetry.last.outcome is Outcome.ERROR
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
    assert telemetry.last.fault.message == "no such place"


def test_an_error_packet_is_judged_before_langchain_makes_text_of_it(
    telemetry: RecordingTelemetry,
) -> None:
    packet = {"ok": False, "error_code": "rate_limit_exceeded", "message": "slow down"}

    @tool
    def packing(city: str) -> dict[str, Any]:
        """Answer with a packet."""
        return packet

    state = agent_of_node(packing, asks("packing", city="Oslo"))
    assert json.loads(str(answers_of(state)[0].content)) == packet
    assert telemetry.last.fault is not None
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


@pytest.mark.parametrize("is_async", [False, True])
async def test_bad_arguments_are_one_call_that_never_reached_the_tool(
    telemetry: RecordingTelemetry, is_async: bool
) -> None:
    failing = Failing(0)
    arguments = {"town": "Oslo"}
    fog = failing.as_tool()
    with pytest.raises(ValidationError):
        await fog.ainvoke(arguments) if is_async else fog.invoke(arguments)
    (call,) = telemetry.calls
    assert call.fault is not None
    assert (call.outcome, call.attempts, failing.runs) == (Outcome.ERROR, [], 0)
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert call.args_hash == hash_arguments(arguments)


def test_bad_arguments_that_the_model_is_told_of_are_one_call(
    telemetry: RecordingTelemetry,
) -> None:
    fog = Failing(0).as_tool(handle_validation_error=True)
    fog.invoke({"name": "fog", "args": {}, "id": "call-2", "type": "tool_call"})
    (call,) = telemetry.calls
    assert call.fault is not None
    assert (call.outcome, call.attempts, call.call_id) == (Outcome.ERROR, [], "call-2")
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert "validation" in call.fault.message.lower()


def test_hc_49_names_that_the_model_invents_are_one_series(telemetry: RecordingTelemetry) -> None:
    names = [f"wether_{number}" for number in range(3)]
    for name in names:
        state = agent_of_node(weather, asks(name, city="Oslo"))
        assert "not a valid tool" in answers_of(state)[0].content
    assert {call.tool.name for call in telemetry.calls} == {"_other"}
    assert [c.fault.message for c in telemetry.calls if c.fault] == [
        f"there is no tool named {name!r}" for name in names
    ]
    assert {c.fault.verdict.error_class for c in telemetry.calls if c.fault} == {
        ErrorClass.L1_INPUT
    }
    assert {(c.call_id, c.session) for c in telemetry.calls} == {("call-1", "thread-7")}


# --- Control flow ------------------------------------------------------------------------------


def test_hc_17_a_pause_for_a_human_is_interrupted_and_the_second_run_ok(
    telemetry: RecordingTelemetry,
) -> None:
    @tool
    def asking(city: str) -> str:
        """Ask a human."""
        return f"{city}: {interrupt('sure?')}"

    agent = agent_of([asking], asks("asking", city="Oslo"))
    agent.invoke({"messages": [("user", "?")]}, THREAD)
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED]
    state = agent.invoke(Command(resume="yes"), THREAD)
    assert answers_of(state)[0].content == "Oslo: yes"
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED, Outcome.OK]


def test_hc_17_a_command_is_ok(telemetry: RecordingTelemetry) -> None:
    @tool
    def commanding(city: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Change the state."""
        return Command(update={"messages": [ToolMessage(city, tool_call_id=tool_call_id)]})

    state = agent_of_node(commanding, asks("commanding", city="Oslo"))
    assert answers_of(state)[0].content == "Oslo"
    assert [call.outcome for call in telemetry.calls] == [Outcome.OK]


async def test_hc_04_a_cancelled_call_is_cancelled(telemetry: RecordingTelemetry) -> None:
    started = asyncio.Event()

    @tool
    async def waiting(city: str) -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return city

    task = asyncio.create_task(waiting.ainvoke({"city": "Oslo"}))
    await asyncio.wait_for(started.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.outcome for call in telemetry.calls] == [Outcome.CANCELLED]


# --- Policies ----------------------------------------------------------------------------------


class Runs(BaseCallbackHandler):
    """Counts what LangChain's callbacks see, which other instrumentation is made of."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_tool_start(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("start")

    def on_tool_end(self, *args: Any, **kwargs: Any) -> None:
        self.seen.append("end")


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_retry_is_one_run_for_everybody_else(
    telemetry: RecordingTelemetry, clock: FakeClock, is_async: bool
) -> None:
    instrument_langchain({"fog": RETRY})
    failing, runs = Failing(2), Runs()
    fog, config = failing.as_tool(), {"callbacks": [runs]}
    arguments = {"city": "Oslo"}
    answer = await fog.ainvoke(arguments, config) if is_async else fog.invoke(arguments, config)
    assert answer == "fog in Oslo"
    (call,) = telemetry.calls
    assert (call.outcome, len(call.attempts), failing.runs) == (Outcome.OK, 3, 3)
    assert runs.seen == ["start", "end"]


def test_a_policy_is_chosen_by_the_name_of_the_tool(
    telemetry: RecordingTelemetry, clock: FakeClock
) -> None:
    instrument_langchain({"fog": RETRY})
    other = Failing(1)
    with pytest.raises(ConnectionError):
        other.as_tool(name="mist").invoke({"city": "Oslo"})
    assert other.runs == 1
    assert Failing(1).as_tool().invoke({"city": "Oslo"}) == "fog in Oslo"


def test_a_fallback_gets_the_models_arguments_and_becomes_a_message(
    telemetry: RecordingTelemetry,
) -> None:
    instrument_langchain({"fog": Policy(fallback=lambda city: f"perhaps fog in {city}")})
    state = agent_of_node(Failing(9).as_tool(), asks("fog", city="Oslo"))
    message = answers_of(state)[0]
    assert (message.content, message.status) == ("perhaps fog in Oslo", "success")
    assert telemetry.last.outcome is Outcome.DEGRADED


def test_an_async_fallback_acts_where_the_tool_is_awaited(telemetry: RecordingTelemetry) -> None:
    async def guess(city: str) -> str:
        return f"guessed {city}"

    instrument_langchain(Policy(fallback=(guess, Fallback(value="static"))))
    fog = Failing(9).as_tool()
    assert asyncio.run(fog.ainvoke({"city": "Oslo"})) == "guessed Oslo"
    assert fog.invoke({"city": "Oslo"}) == "static"


def test_an_open_breaker_rejects_the_call(telemetry: RecordingTelemetry, clock: FakeClock) -> None:
    breaker = Breaker(minimum_throughput=2, failure_ratio=0.5)
    instrument_langchain(Policy(breaker=breaker))
    failing = Failing(9)
    fog = failing.as_tool()
    for _ in range(2):
        with pytest.raises(ConnectionError):
            fog.invoke({"city": "Oslo"})
    with pytest.raises(fuseboard.CircuitOpenError):
        fog.invoke({"city": "Oslo"})
    assert failing.runs == 2
    assert telemetry.last.outcome is Outcome.REJECTED


def test_validation_sees_what_the_tool_returned(telemetry: RecordingTelemetry) -> None:
    instrument_langchain(Policy(validation=Validation(non_empty=True)))

    @tool
    def nothing(city: str) -> str:
        """Return nothing."""
        return "  "

    with pytest.raises(fuseboard.InvalidResultError):
        nothing.invoke({"city": "Oslo"})
    assert telemetry.last.outcome is Outcome.ERROR


def test_a_time_limit_reaches_a_sync_tool_with_its_context(telemetry: RecordingTelemetry) -> None:
    instrument_langchain(Policy(timeout=30))
    agent = agent_of([weather], asks("weather", city="Oslo"))
    state = agent.invoke({"messages": [("user", "?")]}, THREAD)
    assert answers_of(state)[0].content == "sunny in Oslo for 1"
    assert (telemetry.last.outcome, telemetry.last.session) == (Outcome.OK, "thread-7")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
async def test_a_packet_is_a_message_that_says_it_is_an_error(
    telemetry: RecordingTelemetry, is_async: bool, is_own: bool, response_format: Any
) -> None:
    instrument_langchain(on_error="raise" if is_own else "packet")
    runs = Failing(9)

    def fog(city: str) -> str:
        """Tell the fog."""
        return runs(city)

    function = fuseboard.tool(on_error="packet")(fog) if is_own else fog
    made = StructuredTool.from_function(function, name="fog", response_format=response_format)
    request = {"name": "fog", "args": {"city": "Oslo"}, "id": "call-5", "type": "tool_call"}
    message = await made.ainvoke(request) if is_async else made.invoke(request)
    assert isinstance(message, ToolMessage)
    assert (message.status, message.tool_call_id, message.name) == ("error", "call-5", "fog")
    assert "ConnectionError" not in str(message.content)
    assert message.artifact["error_code"] == "temporarily_unavailable"
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]


def test_a_fallback_stands_in_for_content_and_artifact(telemetry: RecordingTelemetry) -> None:
    instrument_langchain(Policy(fallback=Fallback(value="no idea")))
    made = Failing(9).as_tool(response_format="content_and_artifact")
    assert made.invoke({"city": "Oslo"}) == "no idea"


# --- Tools that are fuseboard's already ----------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_of_fuseboards_own_is_counted_once_and_keeps_its_policy(
    telemetry: RecordingTelemetry, clock: FakeClock, is_async: bool
) -> None:
    instrument_langchain(Policy(fallback=Fallback(value="never")))
    runs = Failing(1)

    @fuseboard.tool(policy=RETRY, name="own_name")
    def fog(city: str) -> str:
        """Tell the fog."""
        return runs(city)

    @fuseboard.tool(policy=RETRY, name="own_name_too")
    async def fog_later(city: str) -> str:
        """Tell the fog."""
        return runs(city)

    made = StructuredTool.from_function(fog, fog_later, name="fog")
    agent = agent_of([made], asks("fog", "call-4", city="Oslo"))
    question = {"messages": [("user", "?")]}
    state = await agent.ainvoke(question, THREAD) if is_async else agent.invoke(question, THREAD)
    assert answers_of(state)[0].content == "fog in Oslo"
    (call,) = telemetry.calls
    assert (call.tool.name, len(call.attempts)) == ("own_name_too" if is_async else "own_name", 2)
    assert (call.call_id, call.session, call.agent) == ("call-4", "thread-7", AGENT)


def test_a_decorated_function_that_runs_a_tool_of_its_name_is_counted_once(
    telemetry: RecordingTelemetry,
) -> None:
    @fuseboard.tool(name="weather")
    def outer(city: str) -> Any:
        return weather.invoke({"city": city})

    assert outer("Oslo") == "sunny in Oslo for 1"
    assert len(telemetry.calls) == 1


def test_a_tool_that_runs_another_is_two_calls(telemetry: RecordingTelemetry) -> None:
    @tool
    def planning(city: str) -> str:
        """Plan a trip."""
        return str(weather.invoke({"city": city}))

    planning.invoke({"city": "Oslo"})
    assert [call.tool.name for call in telemetry.calls] == ["weather", "planning"]


def test_a_tool_that_runs_itself_is_as_many_calls(telemetry: RecordingTelemetry) -> None:
    @tool
    def counting(left: int) -> int:
        """Count down."""
        return 0 if not left else int(counting.invoke({"left": left - 1})) + 1

    assert counting.invoke({"left": 2}) == 2
    assert [call.tool.name for call in telemetry.calls] == ["counting"] * 3


def agent_of_node(one: BaseTool, *script: Any) -> Any:
    """Run an agent whose node tells the model of every error."""
    from langgraph.graph import END, MessagesState, StateGraph

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([one], handle_tool_errors=True))
    graph.set_entry_point("tools")
    graph.add_edge("tools", END)
    return graph.compile().invoke({"messages": list(script)}, THREAD)


def test_each_try_of_the_frameworks_own_retry_is_a_call_with_the_same_id(
    telemetry: RecordingTelemetry,
) -> None:
    middleware = pytest.importorskip("langchain.agents.middleware")
    retry = middleware.ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    failing = Failing(2)
    agent = agent_of([failing.as_tool()], asks("fog", "call-8", city="Oslo"), middleware=[retry])
    state = agent.invoke({"messages": [("user", "?")]}, THREAD)
    assert answers_of(state)[0].content == "fog in Oslo"
    assert [(c.call_id, c.outcome) for c in telemetry.calls] == [
        ("call-8", Outcome.ERROR), ("call-8", Outcome.ERROR), ("call-8", Outcome.OK),
    ]  # fmt: skip
