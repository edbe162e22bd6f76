"""The adapter for Google ADK, driven by the real framework and a model that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools import BaseTool, FunctionTool, LongRunningFunctionTool, ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel, Field
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry

import fuseboard
from fuseboard import conventions as c
from fuseboard.adapters import instrument_google_adk, uninstrument_google_adk
from fuseboard.arguments import hash_arguments
from fuseboard.conventions import ErrorClass, Outcome


@pytest.fixture(autouse=True)
def instrumented() -> Iterator[None]:
    instrument_google_adk()
    yield
    uninstrument_google_adk()


class Script(BaseLlm):
    """A model that asks for the tools of each turn, then says ``done``."""

    model: str = "script"
    turns: list[Any] = Field(default_factory=list)
    declared: list[Any] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        self.declared.append(llm_request.config.tools)
        turn = self.turns.pop(0) if self.turns else []
        parts = [
            types.Part(
                function_call=types.FunctionCall(name=name, args=arguments, id=f"call-{number}")
            )
            for number, (name, arguments) in enumerate(turn)
        ]
        content = types.Content(role="model", parts=parts or [types.Part(text="done")])
        yield LlmResponse(content=content)


class Talk:
    """A session with an agent; ``answers`` are the responses that the model got."""

    def __init__(self, *turns: Any, tools: Any, **options: Any) -> None:
        self.model = Script(turns=list(turns))
        self.agent = LlmAgent(name="helper", model=self.model, tools=list(tools), **options)
        self.runner = InMemoryRunner(self.agent, app_name="app")
        self.session = ""
        self.answers: list[Any] = []
        self.calls: list[Any] = []

    async def run(self) -> list[Any]:
        session = await self.runner.session_service.create_session(app_name="app", user_id="u")
        self.session = session.id
        await self.say(types.Part(text="go"))
        return self.answers

    async def say(self, part: types.Part) -> None:
        message = types.Content(role="user", parts=[part])
        async for event in self.runner.run_async(
            user_id="u", session_id=self.session, new_message=message
        ):
            for one in event.content.parts or [] if event.content else []:
                if one.function_response:
                    self.answers.append(one.function_response.response)
                if one.function_call:
                    self.calls.append(one.function_call)


def add(a: int, tool_context: ToolContext, b: int = 0) -> int:
    """Add two numbers."""
    assert tool_context.agent_name == "helper"
    return a + b


async def add_later(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


class Failing:
    """A tool that raises what it is given, then says ``sun``."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.runs = 0

    async def forecast(self, city: str) -> str:
        """Tell the weather."""
        self.runs += 1
        if self.errors:
            raise self.errors.pop(0)
        return f"sun in {city}"


@pytest.mark.parametrize("function", [add, add_later])
async def test_a_call_is_recorded_with_what_adk_knows(
    telemetry: RecordingTelemetry, function: Any
) -> None:
    talk = Talk([(function.__name__, {"a": 1, "b": 2})], tools=[function])
    assert await talk.run() == [{"result": 3}]
    (call,) = telemetry.calls
    assert (call.tool.name, call.outcome, len(call.attempts)) == (
        function.__name__, Outcome.OK, 1,
    )  # fmt: skip
    assert (call.call_id, call.agent, call.session) == ("call-0", "helper", talk.session)
    # The context is injected, and no argument of the model's.
    assert call.args_hash == hash_arguments({"a": 1, "b": 2})


async def test_hc_14_declarations_are_what_they_are_without_the_adapter() -> None:
    functions = (add, add_later, fuseboard.tool(add), fuseboard.tool(add_later))
    declared = [FunctionTool(one)._get_declaration() for one in functions]
    uninstrument_google_adk()
    plain = [FunctionTool(one)._get_declaration() for one in (add, add_later)]
    assert declared == plain * 2
    assert "tool_context" not in str(plain)


async def test_what_a_tool_raises_reaches_the_caller_unchanged(
    telemetry: RecordingTelemetry,
) -> None:
    error = ConnectionRefusedError("refused")
    talk = Talk([("forecast", {"city": "Lisbon"})], tools=[Failing(error).forecast])
    with pytest.raises(ConnectionRefusedError) as caught:
        await talk.run()
    assert caught.value is error
    (call,) = telemetry.calls
    assert call.outcome is Outcome.ERROR
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_a_callback_may_still_answer_for_a_tool_that_failed(
    telemetry: RecordingTelemetry,
) -> None:
    def answers(tool: Any, args: Any, tool_context: Any, error: Exception) -> Any:
        return {"instead": str(error)}

    talk = Talk(
        [("forecast", {"city": "Lisbon"})],
        tools=[Failing(ConnectionRefusedError("no")).forecast], on_tool_error_callback=answers,
    )  # fmt: skip
    assert await talk.run() == [{"instead": "no"}]
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ({"error": "no such city", "status": 404}, ErrorClass.L1_INPUT),
        ({"error": "it did not work"}, ErrorClass.L5_SEMANTIC),
    ],
)
async def test_a_returned_error_is_recorded_and_returned(
    telemetry: RecordingTelemetry, response: Any, expected: ErrorClass
) -> None:
    def forecast(city: str) -> dict[str, Any]:
        """Tell the weather."""
        return response

    talk = Talk([("forecast", {"city": "Lisbon"})], tools=[forecast])
    assert await talk.run() == [response]
    assert telemetry.last.outcome is Outcome.ERROR
    assert telemetry.last.fault is not None
    assert telemetry.last.fault.verdict.error_class is expected


async def test_refused_arguments_are_one_call_of_the_models_fault(
    telemetry: RecordingTelemetry,
) -> None:
    talk = Talk([("add", {"b": 2})], tools=[add])
    (answer,) = await talk.run()
    assert "mandatory" in answer["error"]
    (call,) = telemetry.calls
    assert (call.tool.name, call.outcome, call.call_id) == ("add", Outcome.ERROR, "call-0")
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert call.fault.error_type == "invalid_arguments"


async def test_hc_49_a_name_that_the_model_invents_is_no_label(
    telemetry: RecordingTelemetry,
) -> None:
    talk = Talk([("forecast_for_mars", {"a": 1})], tools=[add])
    try:
        await talk.run()
    except ValueError as error:
        assert "not found" in str(error)  # noqa: PT017 - older releases raise, newer tell the model
    (call,) = telemetry.calls
    assert (call.tool.name, call.call_id) == ("_other", "call-0")
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT


async def test_hc_17_waiting_for_a_confirmation_is_an_interrupt(
    telemetry: RecordingTelemetry,
) -> None:
    talk = Talk(
        [("add_later", {"a": 1})], tools=[FunctionTool(add_later, require_confirmation=True)]
    )
    await talk.run()
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED]
    assert telemetry.last.tool.name == "add_later"
    asked = next(call for call in talk.calls if call.name == "adk_request_confirmation")
    answer = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": True})
    await talk.say(types.Part(function_response=answer))
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED, Outcome.OK]
    assert {call.call_id for call in telemetry.calls} == {"call-0"}


async def test_hc_17_a_tool_that_asks_the_user_itself_is_an_interrupt(
    telemetry: RecordingTelemetry,
) -> None:
    def asks(tool_context: ToolContext) -> dict[str, Any]:
        """Ask."""
        if not tool_context.tool_confirmation:
            tool_context.request_confirmation(hint="Sure?")
            return {"error": "please confirm"}
        return {"sure": True}

    await Talk([("asks", {})], tools=[asks]).run()
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED]


async def test_hc_17_a_transfer_to_another_agent_is_an_interrupt(
    telemetry: RecordingTelemetry,
) -> None:
    second = LlmAgent(
        name="second", model=Script(turns=[[("add_later", {"a": 1})]]), tools=[add_later]
    )
    talk = Talk([("transfer_to_agent", {"agent_name": "second"})], tools=[], sub_agents=[second])
    await talk.run()
    assert [(call.tool.name, call.outcome, call.agent) for call in telemetry.calls] == [
        ("transfer_to_agent", Outcome.INTERRUPTED, "helper"),
        ("add_later", Outcome.OK, "second"),
    ]


async def test_parallel_calls_keep_their_own_ids_and_arguments(
    telemetry: RecordingTelemetry,
) -> None:
    await Talk([("add_later", {"a": n}) for n in range(6)], tools=[add_later]).run()
    assert {(call.call_id, call.args_hash) for call in telemetry.calls} == {
        (f"call-{n}", hash_arguments({"a": n})) for n in range(6)
    }


async def test_hc_04_cancelling_the_run_cancels_the_call(telemetry: RecordingTelemetry) -> None:
    began = asyncio.Event()

    async def waits() -> None:
        """Wait."""
        began.set()
        await asyncio.sleep(30)

    task = asyncio.create_task(Talk([("waits", {})], tools=[waits]).run())
    await asyncio.wait_for(began.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.outcome for call in telemetry.calls] == [Outcome.CANCELLED]


class TestClassesOfTools:
    async def test_long_running_tools_count_once(self, telemetry: RecordingTelemetry) -> None:
        await Talk([("add_later", {"a": 1})], tools=[LongRunningFunctionTool(add_later)]).run()
        assert [call.outcome for call in telemetry.calls] == [Outcome.OK]

    async def test_a_class_of_ones_own_counts_once_though_it_passes_on(
        self, telemetry: RecordingTelemetry
    ) -> None:
        class Passing(FunctionTool):
            async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
                return await super().run_async(args=args, tool_context=tool_context)

        class Bare(BaseTool):
            async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
                return {"bare": True}

            def _get_declaration(self) -> types.FunctionDeclaration:
                return types.FunctionDeclaration(name=self.name, description=self.description)

        talk = Talk(
            [("add_later", {"a": 1}), ("bare", {})],
            tools=[Passing(add_later), Bare(name="bare", description="Bare.")],
        )
        assert await talk.run() == [{"result": 1}, {"bare": True}]
        assert [call.tool.name for call in telemetry.calls] == ["add_later", "bare"]

    async def test_an_agent_as_a_tool_and_its_own_tools_are_calls(
        self, telemetry: RecordingTelemetry
    ) -> None:
        inner = LlmAgent(
            name="inner", description="Adds.", tools=[add_later],
            model=Script(turns=[[("add_later", {"a": 1})]]),
        )  # fmt: skip
        await Talk([("inner", {"request": "add"})], tools=[AgentTool(inner)]).run()
        assert [(call.tool.name, call.agent) for call in telemetry.calls] == [
            ("add_later", "inner"), ("inner", "helper"),
        ]  # fmt: skip

    async def test_the_answer_of_a_run_is_no_tool(self, telemetry: RecordingTelemetry) -> None:
        class City(BaseModel):
            name: str

        talk = Talk(
            [("add_later", {"a": 1})], [("set_model_response", {"name": "Lisbon"})],
            tools=[add_later], output_schema=City,
        )  # fmt: skip
        await talk.run()
        assert [call.tool.name for call in telemetry.calls] == ["add_later"]


class TestPolicies:
    async def test_a_policy_retries_below_the_framework(
        self, telemetry: RecordingTelemetry, clock: FakeClock
    ) -> None:
        policy = fuseboard.Policy(retry=fuseboard.Retry(attempts=3), effects="none")
        instrument_google_adk({"forecast": policy})
        failing = Failing(ConnectionResetError(), ConnectionResetError())
        talk = Talk([("forecast", {"city": "Lisbon"})], tools=[failing.forecast])
        assert await talk.run() == [{"result": "sun in Lisbon"}]
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.OK, 3)

    async def test_a_fallback_is_what_the_model_hears(self, telemetry: RecordingTelemetry) -> None:
        instrument_google_adk(fuseboard.Policy(fallback=fuseboard.Fallback(value="no news")))
        failing = Failing(ConnectionRefusedError())
        talk = Talk([("forecast", {"city": "Lisbon"})], tools=[failing.forecast])
        assert await talk.run() == [{"result": "no news"}]
        assert telemetry.last.outcome is Outcome.DEGRADED

    async def test_an_open_breaker_keeps_the_tool_from_running(
        self, telemetry: RecordingTelemetry
    ) -> None:
        instrument_google_adk(
            {"forecast": fuseboard.Policy(breaker=fuseboard.Breaker(minimum_throughput=2))}
        )
        failing = Failing(*[ConnectionRefusedError()] * 9)
        for _ in range(3):
            talk = Talk([("forecast", {"city": "Lisbon"})], tools=[failing.forecast])
            with pytest.raises((ConnectionRefusedError, fuseboard.CircuitOpenError)):
                await talk.run()
        assert failing.runs == 2
        assert telemetry.last.outcome is Outcome.REJECTED


@pytest.mark.parametrize("is_own", [False, True])
async def test_a_packet_is_a_response_with_an_error(
    telemetry: RecordingTelemetry, is_own: bool
) -> None:
    failing = Failing(ConnectionRefusedError("10.0.0.1 refused")).forecast
    instrument_google_adk(on_error="raise" if is_own else "packet")
    talk = Talk(
        [("forecast", {"city": "Lisbon"})],
        tools=[fuseboard.tool(on_error="packet")(failing) if is_own else failing],
    )
    (answer,) = await talk.run()
    assert "can't be reached" in answer["error"]
    assert (answer["error_code"], "10.0.0.1" in str(answer)) == ("temporarily_unavailable", False)
    (call,) = telemetry.calls
    assert (call.outcome, call.call_id) == (Outcome.ERROR, "call-0")


@pytest.mark.parametrize("is_own", [False, True])
async def test_beside_adks_own_spans_there_is_one_of_ours_and_it_alone_counts(
    spans: InMemorySpanExporter, is_own: bool
) -> None:
    own_tool = fuseboard.tool(add_later) if is_own else add_later
    await Talk([("add_later", {"a": 1}), ("add_later", {"b": 1})], tools=[own_tool]).run()
    found = spans.get_finished_spans()
    own = [span for span in found if c.OUTCOME in span.attributes]
    assert sorted(span.attributes[c.OUTCOME] for span in own) == ["error", "ok"]
    around = {span.context.span_id: span for span in found}
    for span in own:
        foreign = around[span.parent.span_id]
        assert foreign.name == "execute_tool add_later"
        assert foreign.attributes[c.DUPLICATE] is True


class TestToolsOfFuseboard:
    @pytest.mark.parametrize("function", [add, add_later])
    async def test_a_decorated_tool_records_itself_once_and_learns_what_is_known(
        self, telemetry: RecordingTelemetry, function: Any
    ) -> None:
        own = fuseboard.wrap(function, name="sum")
        talk = Talk([(function.__name__, {"a": 1})], tools=[own])
        assert await talk.run() == [{"result": 1}]
        (call,) = telemetry.calls
        assert (call.tool.name, call.call_id, call.agent) == ("sum", "call-0", "helper")

    async def test_arguments_that_adk_refuses_for_it_are_one_call(
        self, telemetry: RecordingTelemetry
    ) -> None:
        await Talk([("add_later", {"b": 1})], tools=[fuseboard.tool(add_later)]).run()
        (call,) = telemetry.calls
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT


class TestInstallation:
    async def test_removed_it_records_nothing_and_leaves_no_trace(
        self, telemetry: RecordingTelemetry
    ) -> None:
        uninstrument_google_adk()
        for function in (BaseTool.__init__, FunctionTool.run_async, AgentTool.run_async):
            assert not hasattr(function, "__wrapped__")
        await Talk([("add_later", {"a": 1})], tools=[add_later]).run()
        assert telemetry.calls == []

    async def test_installed_twice_it_counts_once(self, telemetry: RecordingTelemetry) -> None:
        instrument_google_adk()
        await Talk([("add_later", {"a": 1})], tools=[add_later]).run()
        assert len(telemetry.calls) == 1
