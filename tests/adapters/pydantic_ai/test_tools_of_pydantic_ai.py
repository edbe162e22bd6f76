"""The adapter for Pydantic AI, driven by the real framework and a model that follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    exceptions,
)
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.toolsets import FunctionToolset
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry

import fuseboard
from fuseboard import conventions as c
from fuseboard.adapters import instrument_pydantic_ai, uninstrument_pydantic_ai
from fuseboard.arguments import hash_arguments
from fuseboard.conventions import ErrorClass, Outcome, ResultSource, RetryStrategy


@pytest.fixture(autouse=True)
def instrumented() -> Iterator[None]:
    instrument_pydantic_ai()
    yield
    uninstrument_pydantic_ai()


class Script:
    """A model that asks for the tools of each turn, then says ``done``; keeps what it was shown."""

    def __init__(self, *turns: list[tuple[str, Any]]) -> None:
        self.__name__ = "script"  # the name of the model
        self.turns = list(turns)
        self.schemas: list[Any] = []
        self.heard: list[Any] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.schemas = [(t.name, t.parameters_json_schema) for t in info.function_tools]
        self.heard = [part for message in messages for part in message.parts]
        if not self.turns:
            return ModelResponse(parts=[TextPart("done")])
        calls = self.turns.pop(0)
        return ModelResponse(
            parts=[
                ToolCallPart(name, arguments, tool_call_id=f"call-{number}")
                for number, (name, arguments) in enumerate(calls)
            ]
        )


def agent_of(*turns: list[tuple[str, Any]], **options: Any) -> Agent[Any, Any]:
    script = Script(*turns)
    agent: Agent[Any, Any] = Agent(FunctionModel(script), name="helper", **options)
    agent.script = script  # type: ignore[attr-defined]
    return agent


def add(ctx: RunContext[int], a: int, b: int = 0) -> int:
    return a + b + (ctx.deps or 0)


async def add_later(ctx: RunContext[int], a: int, b: int = 0) -> int:
    await asyncio.sleep(0)
    return a + b + (ctx.deps or 0)


@pytest.mark.parametrize("function", [add, add_later])
async def test_a_call_is_recorded_with_what_pydantic_ai_knows(
    telemetry: RecordingTelemetry, function: Any
) -> None:
    agent = agent_of([(function.__name__, {"a": 1, "b": 2})])
    agent.tool(function)
    result = await agent.run("go", deps=10)
    assert result.output == "done"
    (call,) = telemetry.calls
    assert (call.tool.name, call.outcome, len(call.attempts)) == (
        function.__name__, Outcome.OK, 1,
    )  # fmt: skip
    assert call.call_id == "call-0"
    assert call.agent == "helper"
    assert call.session == result.all_messages()[0].conversation_id
    # The context reached the tool (10 is in the sum) and is no argument of the model's.
    assert agent.script.heard[-1].content == 13  # type: ignore[attr-defined]
    assert call.args_hash == hash_arguments({"a": 1, "b": 2})


async def test_hc_14_schemas_are_what_they_are_without_the_adapter() -> None:
    agent = agent_of()
    agent.tool(add)
    agent.tool(fuseboard.wrap(add_later, name="add_later"))
    await agent.run("go")
    uninstrument_pydantic_ai()
    plain = agent_of()
    plain.tool(add)
    plain.tool(add_later)
    await plain.run("go")
    assert agent.script.schemas == plain.script.schemas  # type: ignore[attr-defined]
    assert "ctx" not in str(plain.script.schemas)  # type: ignore[attr-defined]


async def test_what_a_tool_raises_reaches_the_caller_unchanged(
    telemetry: RecordingTelemetry,
) -> None:
    error = ConnectionRefusedError("refused")

    def fails() -> None:
        raise error

    agent = agent_of([("fails", {})])
    agent.tool_plain(fails)
    with pytest.raises(ConnectionRefusedError) as caught:
        await agent.run("go")
    assert caught.value is error
    assert telemetry.last.outcome is Outcome.ERROR
    assert telemetry.last.fault is not None
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


@pytest.mark.skipif(not hasattr(exceptions, "ToolFailed"), reason="came after 2.0")
async def test_a_failure_told_to_the_model_is_semantic(telemetry: RecordingTelemetry) -> None:
    def fails() -> None:
        raise exceptions.ToolFailed("there is no such city")

    agent = agent_of([("fails", {})])
    agent.tool_plain(fails)
    await agent.run("go")
    (call,) = telemetry.calls
    assert call.outcome is Outcome.ERROR
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
    assert call.fault.error_type == "pydantic_ai.exceptions.ToolFailed"
    assert call.retry_strategy is RetryStrategy.FEEDBACK


async def test_an_error_packet_is_recorded_and_returned(telemetry: RecordingTelemetry) -> None:
    packet = {"ok": False, "error_code": "not_found", "status": 404, "message": "no such city"}
    agent = agent_of([("fails", {})])
    agent.tool_plain(lambda: packet, name="fails")
    await agent.run("go")
    assert agent.script.heard[-1].content == packet  # type: ignore[attr-defined]
    assert telemetry.last.outcome is Outcome.ERROR
    assert telemetry.last.fault is not None
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L1_INPUT


async def test_hc_17_asking_the_model_again_is_an_interrupt_for_each_try(
    telemetry: RecordingTelemetry,
) -> None:
    tries: list[int] = []

    def picky(ctx: RunContext[None], n: int) -> int:
        tries.append(ctx.retry)
        if ctx.retry == 0:
            raise ModelRetry("a larger number, please")
        return n

    instrument_pydantic_ai(
        fuseboard.Policy(retry=fuseboard.Retry(), breaker=fuseboard.Breaker(), effects="none")
    )
    agent = agent_of([("picky", {"n": 1})], [("picky", {"n": 2})])
    agent.tool(picky)
    await agent.run("go")
    assert tries == [0, 1]
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED, Outcome.OK]


@pytest.mark.parametrize("pause", [ApprovalRequired, CallDeferred])
async def test_hc_17_approval_and_deferral_are_interrupts(
    telemetry: RecordingTelemetry, pause: type[Exception]
) -> None:
    def asks() -> None:
        raise pause

    agent = agent_of([("asks", {})], output_type=[str, DeferredToolRequests])
    agent.tool_plain(asks)
    result = await agent.run("go")
    assert isinstance(result.output, DeferredToolRequests)
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED]


async def test_a_tool_that_needs_approval_is_recorded_when_it_runs(
    telemetry: RecordingTelemetry,
) -> None:
    agent = agent_of([("add_later", {"a": 1})], output_type=[str, DeferredToolRequests])
    agent.tool(add_later, requires_approval=True)
    asked = await agent.run("go")
    assert [call.tool_name for call in asked.output.approvals] == ["add_later"]
    assert telemetry.calls == []
    await agent.run(
        message_history=asked.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={"call-0": True}),
    )
    assert [(call.outcome, call.call_id) for call in telemetry.calls] == [(Outcome.OK, "call-0")]


async def test_refused_arguments_are_one_call_of_the_models_fault(
    telemetry: RecordingTelemetry,
) -> None:
    agent = agent_of([("add", {"a": "many"})], [("add", {"a": 2})])
    agent.tool(add)
    await agent.run("go", deps=0)
    refused, good = telemetry.calls
    assert (refused.outcome, refused.attempts) == (Outcome.ERROR, [])
    assert refused.fault is not None
    assert refused.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert (refused.tool.name, refused.call_id) == ("add", "call-0")
    assert refused.args_hash == hash_arguments({"a": "many"})
    assert good.outcome is Outcome.OK


async def test_refused_arguments_that_end_the_run_are_one_call(
    telemetry: RecordingTelemetry,
) -> None:
    agent = agent_of([("add", {"a": "many"})], retries=0)
    agent.tool(add)
    with pytest.raises(UnexpectedModelBehavior, match="exceeded max"):
        await agent.run("go")
    (call,) = telemetry.calls
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT


async def test_arguments_that_are_no_json_are_one_call(telemetry: RecordingTelemetry) -> None:
    agent = agent_of([("add", '{"a": 1')])
    agent.tool(add)
    await agent.run("go")
    (call,) = telemetry.calls
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT


async def test_hc_49_a_name_that_the_model_invents_is_no_label(
    telemetry: RecordingTelemetry,
) -> None:
    agent = agent_of([("forecast_for_mars", {"a": 1})])
    agent.tool(add)
    await agent.run("go")
    (call,) = telemetry.calls
    assert call.tool.name == "_other"
    assert call.outcome is Outcome.ERROR
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert call.fault.error_type == "unknown_tool"


async def test_a_tools_time_limit_is_a_timeout_although_the_model_is_asked_again(
    telemetry: RecordingTelemetry,
) -> None:
    agent = agent_of([("slow", {})])

    @agent.tool_plain(timeout=0.02)
    async def slow() -> None:
        await asyncio.sleep(30)

    await agent.run("go")
    assert "Timed out" in str(agent.script.heard[-1].content)  # type: ignore[attr-defined]
    (call,) = telemetry.calls
    assert call.outcome is Outcome.ERROR
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_hc_04_cancelling_the_run_cancels_the_call(telemetry: RecordingTelemetry) -> None:
    began = asyncio.Event()
    agent = agent_of([("waits", {})])

    @agent.tool_plain
    async def waits() -> None:
        began.set()
        await asyncio.sleep(30)

    task = asyncio.create_task(agent.run("go"))
    await asyncio.wait_for(began.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.outcome for call in telemetry.calls] == [Outcome.CANCELLED]


async def test_parallel_calls_keep_their_own_ids_and_arguments(
    telemetry: RecordingTelemetry,
) -> None:
    agent = agent_of([("add", {"a": n}) for n in range(4)])
    agent.tool(add)
    await agent.run("go")
    assert {(call.call_id, call.args_hash) for call in telemetry.calls} == {
        (f"call-{n}", hash_arguments({"a": n})) for n in range(4)
    }


async def test_tools_of_combined_and_renamed_toolsets_count_once(
    telemetry: RecordingTelemetry,
) -> None:
    tools: FunctionToolset[Any] = FunctionToolset([add])
    agent = agent_of([("math_add", {"a": 3})], toolsets=[tools.prefixed("math")])
    await agent.run("go")
    assert [call.tool.name for call in telemetry.calls] == ["math_add"]


async def test_output_functions_are_no_tools(telemetry: RecordingTelemetry) -> None:
    class City(BaseModel):
        name: str

    agent = agent_of(
        [("final_result", {"nome": "x"})], [("final_result", {"name": "Lisbon"})], output_type=City
    )
    result = await agent.run("go")
    assert result.output == City(name="Lisbon")
    assert telemetry.calls == []


def test_the_synchronous_way_records_as_well(telemetry: RecordingTelemetry) -> None:
    agent = agent_of([("add", {"a": 1})])
    agent.tool(add)
    agent.run_sync("go", deps=0)
    assert [call.outcome for call in telemetry.calls] == [Outcome.OK]


class TestPolicies:
    async def test_a_policy_retries_below_the_framework(
        self, telemetry: RecordingTelemetry, clock: FakeClock
    ) -> None:
        retries_seen: list[int] = []

        async def flaky(ctx: RunContext[None], city: str) -> str:
            retries_seen.append(ctx.retry)
            if len(retries_seen) < 3:
                raise ConnectionResetError("reset")
            return f"sun in {city}"

        policy = fuseboard.Policy(retry=fuseboard.Retry(attempts=3), effects="none")
        instrument_pydantic_ai({"flaky": policy})
        agent = agent_of([("flaky", {"city": "Lisbon"})])
        agent.tool(flaky)
        await agent.run("go")
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.OK, 3)
        # The framework knows nothing of it: to it the tool succeeded at once.
        assert retries_seen == [0, 0, 0]
        assert agent.script.heard[-1].content == "sun in Lisbon"  # type: ignore[attr-defined]

    async def test_a_policy_is_for_its_tool_only(self, telemetry: RecordingTelemetry) -> None:
        def fails() -> None:
            raise ConnectionResetError("reset")

        policy = fuseboard.Policy(retry=fuseboard.Retry(attempts=3), effects="none")
        instrument_pydantic_ai({"another": policy})
        agent = agent_of([("fails", {})])
        agent.tool_plain(fails)
        with pytest.raises(ConnectionResetError):
            await agent.run("go")
        assert len(telemetry.last.attempts) == 1

    async def test_a_fallback_is_what_the_model_hears(self, telemetry: RecordingTelemetry) -> None:
        def fails() -> None:
            raise ConnectionRefusedError

        instrument_pydantic_ai(fuseboard.Policy(fallback=fuseboard.Fallback(value="no news")))
        agent = agent_of([("fails", {})])
        agent.tool_plain(fails)
        await agent.run("go")
        assert agent.script.heard[-1].content == "no news"  # type: ignore[attr-defined]
        assert telemetry.last.outcome is Outcome.DEGRADED
        assert telemetry.last.result_source is ResultSource.DEFAULT

    async def test_an_open_breaker_keeps_the_tool_from_running(
        self, telemetry: RecordingTelemetry
    ) -> None:
        runs: list[int] = []

        def fails() -> None:
            runs.append(1)
            raise ConnectionRefusedError

        instrument_pydantic_ai(
            {"fails": fuseboard.Policy(breaker=fuseboard.Breaker(minimum_throughput=2))}
        )
        for _ in range(3):
            agent = agent_of([("fails", {})])
            agent.tool_plain(fails)
            with pytest.raises((ConnectionRefusedError, fuseboard.CircuitOpenError)):
                await agent.run("go")
        assert len(runs) == 2
        assert telemetry.last.outcome is Outcome.REJECTED


@pytest.mark.parametrize("is_own", [False, True])
async def test_a_packet_is_a_failure_that_is_told_to_the_model(
    telemetry: RecordingTelemetry, is_own: bool
) -> None:
    async def fails() -> Any:
        raise ConnectionRefusedError("10.0.0.1 refused")

    instrument_pydantic_ai(on_error="raise" if is_own else "packet")
    agent = agent_of([("fails", {})])
    agent.tool_plain(fuseboard.tool(on_error="packet")(fails) if is_own else fails)
    await agent.run("go")
    heard = agent.script.heard[-1]  # type: ignore[attr-defined]
    if hasattr(exceptions, "ToolFailed"):
        assert heard.outcome == "failed"
    assert "can't be reached" in str(heard.content)
    assert hasattr(exceptions, "ToolFailed") is ("10.0.0.1" not in str(heard.content))
    (call,) = telemetry.calls
    assert (call.outcome, call.call_id) == (Outcome.ERROR, "call-0")
    assert call.fault is not None
    assert call.fault.error_type == "ConnectionRefusedError"


async def test_control_flow_is_never_a_packet(telemetry: RecordingTelemetry) -> None:
    def picky(ctx: RunContext[None]) -> int:
        if ctx.retry == 0:
            raise ModelRetry("again")
        return 1

    instrument_pydantic_ai(on_error="packet")
    agent = agent_of([("picky", {})], [("picky", {})])
    agent.tool(picky)
    await agent.run("go")
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED, Outcome.OK]


@pytest.mark.parametrize("is_own", [False, True])
async def test_beside_pydantic_ais_own_spans_there_is_one_of_ours_and_it_alone_counts(
    spans: InMemorySpanExporter, is_own: bool
) -> None:
    Agent.instrument_all()
    try:
        agent = agent_of([("add_later", {"a": 1}), ("add_later", {"a": "many"})])
        agent.tool(fuseboard.tool(add_later) if is_own else add_later)
        await agent.run("go")
    finally:
        Agent.instrument_all(False)
    found = spans.get_finished_spans()
    own = [span for span in found if c.OUTCOME in span.attributes]
    assert sorted(span.attributes[c.OUTCOME] for span in own) == ["error", "ok"]
    foreign = [
        span for span in found
        if span not in own and span.attributes.get(c.GEN_AI_OPERATION_NAME) == c.EXECUTE_TOOL
    ]  # fmt: skip
    assert foreign
    good = next(span for span in own if span.attributes[c.OUTCOME] == "ok")
    around = next(span for span in foreign if span.context.span_id == good.parent.span_id)
    assert around.attributes[c.DUPLICATE] is True


class TestToolsOfFuseboard:
    async def test_a_decorated_tool_records_itself_once_and_learns_what_is_known(
        self, telemetry: RecordingTelemetry
    ) -> None:
        @fuseboard.tool(name="sum")
        async def adds(ctx: RunContext[None], a: int) -> int:
            return a

        agent = agent_of([("adds", {"a": 1})])
        agent.tool(adds)
        await agent.run("go")
        (call,) = telemetry.calls
        assert (call.tool.name, call.call_id, call.agent) == ("sum", "call-0", "helper")


class TestInstallation:
    async def test_removed_it_records_nothing_and_leaves_no_trace(
        self, telemetry: RecordingTelemetry
    ) -> None:
        instrument_pydantic_ai()
        assert hasattr(ToolManager._raw_execute, "__wrapped__")
        uninstrument_pydantic_ai()
        assert not hasattr(ToolManager._raw_execute, "__wrapped__")
        assert not hasattr(ToolManager.validate_tool_call, "__wrapped__")
        agent = agent_of([("add", {"a": 1})])
        agent.tool(add)
        await agent.run("go")
        assert telemetry.calls == []

    async def test_installed_twice_it_counts_once(self, telemetry: RecordingTelemetry) -> None:
        instrument_pydantic_ai()
        agent = agent_of([("add", {"a": 1})])
        agent.tool(add)
        await agent.run("go")
        assert len(telemetry.calls) == 1
