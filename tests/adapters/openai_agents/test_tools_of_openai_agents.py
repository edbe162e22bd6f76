"""Agents of the OpenAI Agents SDK, driven for real by a scripted model."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator
from typing import Any

import agents.tool
import pytest
from agents import (
    Agent,
    FunctionTool,
    ModelBehaviorError,
    RunContextWrapper,
    Runner,
    function_tool,
    set_trace_processors,
)
from tests.adapters.openai_agents.scripted import CONFIG, ScriptedModel, asks, run
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry

import fuseboard
from fuseboard import Breaker, ErrorClass, Outcome, Policy, Retry, Validation
from fuseboard.adapters import instrument_openai_agents, uninstrument_openai_agents
from fuseboard.arguments import hash_arguments

RETRY = Policy(retry=Retry(attempts=3, wait_initial=0.01), effects="none")
OSLO = {"city": "Oslo"}


@pytest.fixture(autouse=True)
def _installed(telemetry: RecordingTelemetry) -> Iterator[None]:
    set_trace_processors([])
    instrument_openai_agents()
    yield
    uninstrument_openai_agents()


@function_tool
def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return f"sunny in {city} for {days}"


@function_tool
async def later(context: RunContextWrapper[Any], city: str) -> str:
    """Tell the weather, after a while."""
    assert isinstance(context, RunContextWrapper)
    await asyncio.sleep(0)
    return f"rain in {city}"


class Failing:
    """A tool that fails so many times."""

    def __init__(self, times: int = 99, error: Exception | None = None) -> None:
        self.runs = 0
        self.times = times
        self.error = error or ConnectionError("no route to the weather")

    def tool(self, **options: Any) -> FunctionTool:
        async def fog(city: str) -> str:
            """Tell the fog."""
            self.runs += 1
            if self.runs <= self.times:
                raise self.error
            return f"fog in {city}"

        return function_tool(fog, **options)


# --- Success -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "answer"), [(weather, "sunny in Oslo for 1"), (later, "rain in Oslo")]
)
async def test_a_call_is_recorded_once_with_all_that_the_sdk_knows(
    telemetry: RecordingTelemetry, tool: FunctionTool, answer: str
) -> None:
    model = await run([tool], asks(tool.name, OSLO, "call-9"))
    assert model.told == [answer]
    (call,) = telemetry.calls
    assert (call.tool.name, call.outcome, len(call.attempts)) == (tool.name, Outcome.OK, 1)
    assert (call.call_id, call.agent, call.session) == ("call-9", "weather-bot", "thread-7")
    assert call.args_hash == hash_arguments(OSLO)


async def test_a_streamed_run_records_a_call_once(telemetry: RecordingTelemetry) -> None:
    model = ScriptedModel([asks("weather", OSLO)])
    agent: Agent[Any] = Agent(name="weather-bot", model=model, tools=[weather])
    result = Runner.run_streamed(agent, "?", run_config=CONFIG)
    async for _ in result.stream_events():
        pass
    assert [(c.tool.name, c.outcome) for c in telemetry.calls] == [("weather", Outcome.OK)]


def test_a_run_without_an_event_loop_records_a_call_once(telemetry: RecordingTelemetry) -> None:
    model = ScriptedModel([asks("weather", OSLO)])
    agent: Agent[Any] = Agent(name="weather-bot", model=model, tools=[weather])
    Runner.run_sync(agent, "?", run_config=CONFIG)
    assert [(c.tool.name, c.outcome) for c in telemetry.calls] == [("weather", Outcome.OK)]


async def test_calls_of_one_turn_are_kept_apart(telemetry: RecordingTelemetry) -> None:
    cities = [f"city-{number}" for number in range(10)]
    calls = [asks("later", {"city": city}, f"call-{city}") for city in cities]
    model = await run([later], *calls)
    assert model.told == [f"rain in {city}" for city in cities]
    assert {(c.call_id, c.args_hash) for c in telemetry.calls} == {
        (f"call-{city}", hash_arguments({"city": city})) for city in cities
    }


async def test_a_tool_with_a_function_of_its_own_is_recorded(telemetry: RecordingTelemetry) -> None:
    async def invoke(context: Any, text: str) -> str:
        return text

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    made = FunctionTool("raw", "Raw.", schema, invoke, strict_json_schema=False)
    model = await run([made], asks("raw", OSLO))
    assert len(model.told) == 1
    (call,) = telemetry.calls
    assert (call.tool.name, call.outcome, call.args_hash) == (
        "raw",
        Outcome.OK,
        hash_arguments(OSLO),
    )


def _raw(*answers: Any, **options: Any) -> FunctionTool:
    """Return a tool with a function of its own for all of it, which gives these answers."""
    left = list(answers)

    async def invoke(context: RunContextWrapper[Any], text: str) -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return await answer() if callable(answer) else answer

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    return FunctionTool("raw", "Raw.", schema, invoke, strict_json_schema=False, **options)


async def test_the_answer_of_a_function_of_its_own_is_judged(telemetry: RecordingTelemetry) -> None:
    model = await run(
        [_raw({"ok": False, "error_code": "quota", "status": 402})], asks("raw", OSLO)
    )
    assert "quota" in model.told[0]
    (call,) = telemetry.calls
    assert call.fault is not None
    assert (call.outcome, call.call_id) == (Outcome.ERROR, "call-1")
    assert call.fault.verdict.error_class is ErrorClass.L2_ACCESS


async def test_policies_act_on_a_function_of_its_own(telemetry: RecordingTelemetry) -> None:
    instrument_openai_agents(RETRY)
    model = await run([_raw(ConnectionError("no route"), "sunny")], asks("raw", OSLO))
    assert model.told == ["sunny"]
    instrument_openai_agents(Policy(fallback=[lambda city: f"as ever in {city}"]))
    model = await run([_raw(ConnectionError("no route"))], asks("raw", OSLO))
    assert model.told == ["as ever in Oslo"]
    instrument_openai_agents(on_error="packet")
    model = await run([_raw(ConnectionError("no route"))], asks("raw", OSLO))
    assert "can't be reached" in model.told[0]
    assert [(call.outcome, len(call.attempts)) for call in telemetry.calls] == [
        (Outcome.OK, 2),
        (Outcome.DEGRADED, 1),
        (Outcome.ERROR, 1),
    ]


@pytest.mark.parametrize("is_raw", [False, True])
async def test_the_sdks_time_limit_is_a_fault_in_whichever_attempt_it_comes(
    telemetry: RecordingTelemetry, is_raw: bool
) -> None:
    instrument_openai_agents(RETRY)
    runs: list[int] = []

    async def fog(city: str) -> str:
        """Tell the fog."""
        runs.append(len(runs))
        if len(runs) == 1:
            raise ConnectionError("no route")
        await asyncio.Event().wait()
        return city

    tool = _raw(*[lambda: fog("Oslo")] * 2, timeout_seconds=1.0)
    if not is_raw:
        tool = function_tool(fog, name_override="raw", timeout=1.0)
    model = await run([tool], asks("raw", OSLO))
    assert "timed out" in model.told[0]
    (call,) = telemetry.calls
    assert call.fault is not None
    assert (call.outcome, len(call.attempts), len(runs)) == (Outcome.ERROR, 2, 2)
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_an_agent_as_a_tool_and_its_own_tools_are_a_call_each(
    telemetry: RecordingTelemetry,
) -> None:
    inner: Agent[Any] = Agent(
        name="inner", model=ScriptedModel([asks("weather", OSLO)]), tools=[weather]
    )
    outer = inner.as_tool(tool_name="ask_inner", tool_description="Ask.")
    await run([outer], asks("ask_inner", {"input": "?"}))
    assert [(c.tool.name, c.agent) for c in telemetry.calls] == [
        ("weather", "inner"),
        ("ask_inner", "weather-bot"),
    ]


async def test_hc_17_a_handoff_is_no_call(telemetry: RecordingTelemetry) -> None:
    other: Agent[Any] = Agent(name="other", model=ScriptedModel())
    await run([], asks("transfer_to_other", {}), handoffs=[other])
    assert telemetry.calls == []


async def test_hc_14_schemas_stay_as_they_are(telemetry: RecordingTelemetry) -> None:
    def described() -> list[Any]:
        made = [weather, later, Failing().tool()]
        return [(tool.name, tool.description, tool.params_json_schema) for tool in made]

    wrapped = described()
    uninstrument_openai_agents()
    assert wrapped == described()


# --- Failure -----------------------------------------------------------------------------------


async def test_an_exception_that_becomes_words_is_judged_itself(
    telemetry: RecordingTelemetry,
) -> None:
    model = await run([Failing().tool()], asks("fog", OSLO))
    assert model.told[0].startswith("An error occurred")
    (call,) = telemetry.calls
    assert call.fault is not None
    assert call.outcome is Outcome.ERROR
    assert call.fault.error_type == "ConnectionError"
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_an_exception_without_words_passes(telemetry: RecordingTelemetry) -> None:
    failing = Failing()
    with pytest.raises(Exception) as caught:
        await run([failing.tool(failure_error_function=None)], asks("fog", OSLO))
    assert failing.error in (caught.value, caught.value.__cause__)
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]


async def test_an_error_packet_is_an_error(telemetry: RecordingTelemetry) -> None:
    @function_tool
    def packing(city: str) -> dict[str, Any]:
        """Answer with a packet."""
        return {"ok": False, "error_code": "rate_limit_exceeded"}

    await run([packing], asks("packing", OSLO))
    assert telemetry.last.fault is not None
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


@pytest.mark.parametrize("arguments", [{"town": "Oslo"}, "no JSON {"])
async def test_bad_arguments_are_one_call_and_the_models_mistake(
    telemetry: RecordingTelemetry, clock: FakeClock, arguments: Any
) -> None:
    instrument_openai_agents(RETRY)
    failing = Failing()
    try:
        model = await run([failing.tool()], asks("fog", arguments))
        assert model.told[0].startswith("An error occurred")
    except ModelBehaviorError:
        assert isinstance(arguments, str)
    (call,) = telemetry.calls
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert failing.runs == 0
    given = arguments if isinstance(arguments, dict) else {"input": arguments}
    assert call.args_hash == hash_arguments(given)


async def test_hc_49_names_that_the_model_invents_are_one_series(
    telemetry: RecordingTelemetry,
) -> None:
    for number in range(3):
        with pytest.raises(ModelBehaviorError):
            await run([weather], asks(f"wether_{number}", OSLO, f"call-{number}"))
    assert {call.tool.name for call in telemetry.calls} == {"_other"}
    assert [call.call_id for call in telemetry.calls] == ["call-0", "call-1", "call-2"]
    for call in telemetry.calls:
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT


async def test_the_sdks_own_time_limit_is_a_fault_and_no_cancellation(
    telemetry: RecordingTelemetry,
) -> None:
    instrument_openai_agents(RETRY)
    runs: list[str] = []

    @function_tool(timeout=0.05)
    async def slow(city: str) -> str:
        """Take long."""
        runs.append(city)
        await asyncio.Event().wait()
        return city

    model = await run([slow], asks("slow", OSLO))
    assert "timed out" in model.told[0]
    (call,) = telemetry.calls
    assert call.fault is not None
    assert (call.outcome, len(call.attempts), len(runs)) == (Outcome.ERROR, 1, 1)
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_hc_04_a_cancelled_call_is_cancelled(telemetry: RecordingTelemetry) -> None:
    started = asyncio.Event()

    @function_tool
    async def waiting(city: str) -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return city

    task = asyncio.create_task(run([waiting], asks("waiting", OSLO)))
    await asyncio.wait_for(started.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.outcome for call in telemetry.calls] == [Outcome.CANCELLED]


# --- Policies ----------------------------------------------------------------------------------


async def test_a_retry_is_one_run_for_the_sdk(
    telemetry: RecordingTelemetry, clock: FakeClock
) -> None:
    instrument_openai_agents({"fog": RETRY})
    failing = Failing(2)
    words: list[str] = []

    def fail(context: Any, error: Exception) -> str:
        words.append(str(error))
        return "no fog"

    model = await run([failing.tool(failure_error_function=fail)], asks("fog", OSLO))
    assert model.told == ["fog in Oslo"]
    (call,) = telemetry.calls
    assert (call.outcome, len(call.attempts), failing.runs, words) == (Outcome.OK, 3, 3, [])


async def test_a_fallback_gets_the_models_arguments(telemetry: RecordingTelemetry) -> None:
    async def guess(city: str) -> str:
        return f"perhaps fog in {city}"

    instrument_openai_agents({"fog": Policy(fallback=guess)})
    model = await run([Failing().tool()], asks("fog", OSLO))
    assert model.told == ["perhaps fog in Oslo"]
    assert telemetry.last.outcome is Outcome.DEGRADED


async def test_an_open_breaker_becomes_words_for_the_model(
    telemetry: RecordingTelemetry, clock: FakeClock
) -> None:
    instrument_openai_agents(Policy(breaker=Breaker(minimum_throughput=2, failure_ratio=0.5)))
    failing = Failing()
    for _ in range(3):
        model = await run([failing.tool()], asks("fog", OSLO))
    assert model.told[0].startswith("An error occurred")
    assert failing.runs == 2
    assert telemetry.last.outcome is Outcome.REJECTED


async def test_validation_sees_what_the_tool_returned(telemetry: RecordingTelemetry) -> None:
    instrument_openai_agents(Policy(validation=Validation(non_empty=True)))

    @function_tool
    def nothing(city: str) -> str:
        """Return nothing."""
        return " "

    await run([nothing], asks("nothing", OSLO))
    assert telemetry.last.outcome is Outcome.ERROR


@pytest.mark.parametrize("is_own", [False, True])
async def test_a_packet_becomes_words_for_the_model(
    telemetry: RecordingTelemetry, is_own: bool
) -> None:
    instrument_openai_agents(on_error="raise" if is_own else "packet")

    async def fog(city: str) -> Any:
        """Tell the fog."""
        raise ConnectionError("no route to 10.0.0.1")

    function: Any = fuseboard.tool(on_error="packet")(fog) if is_own else fog
    model = await run([function_tool(function)], asks("fog", OSLO))
    assert "can't be reached" in model.told[0]
    assert "10.0.0.1" not in model.told[0]
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]


# --- Installation ------------------------------------------------------------------------------


async def test_a_tool_of_fuseboards_own_is_counted_once_with_what_the_sdk_knows(
    telemetry: RecordingTelemetry, clock: FakeClock
) -> None:
    instrument_openai_agents(Policy(fallback=lambda city: "never"))
    runs: list[str] = []

    @function_tool
    @fuseboard.tool(policy=RETRY, name="own_name")
    async def fog(city: str) -> str:
        """Tell the fog."""
        runs.append(city)
        if len(runs) < 2:
            raise ConnectionError
        return f"fog in {city}"

    model = await run([fog], asks("fog", OSLO, "call-4"))
    assert model.told == ["fog in Oslo"]
    (call,) = telemetry.calls
    assert (call.tool.name, len(call.attempts)) == ("own_name", 2)
    assert (call.call_id, call.agent, call.session) == ("call-4", "weather-bot", "thread-7")


async def test_everything_is_restored(telemetry: RecordingTelemetry) -> None:
    uninstrument_openai_agents()
    invoker = agents.tool._FailureHandlingFunctionToolInvoker
    before = vars(invoker)["__call__"]
    instrument_openai_agents()
    assert vars(invoker)["__call__"] is not before
    uninstrument_openai_agents()
    assert vars(invoker)["__call__"] is before
    await run([weather], asks("weather", OSLO))
    assert telemetry.calls == []


async def test_a_wrapper_on_top_stays(
    telemetry: RecordingTelemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoker = agents.tool._FailureHandlingFunctionToolInvoker
    ours = vars(invoker)["__call__"]

    @functools.wraps(ours)
    async def theirs(*args: Any) -> Any:
        return await ours(*args)

    monkeypatch.setattr(invoker, "__call__", theirs)
    uninstrument_openai_agents()
    await run([weather], asks("weather", OSLO))
    assert telemetry.calls == []
    instrument_openai_agents()
    await run([weather], asks("weather", OSLO))
    assert len(telemetry.calls) == 1
    monkeypatch.undo()
