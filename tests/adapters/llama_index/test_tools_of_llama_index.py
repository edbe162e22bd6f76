"""The adapter for LlamaIndex, driven by the real framework and a model that follows a script."""

# No postponed annotations: LlamaIndex finds the parameter for its context by the class itself.
import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import llama_index.core.tools.function_tool
import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool, QueryEngineTool, ToolMetadata, ToolOutput
from llama_index.core.tools.types import AsyncBaseTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from opentelemetry import trace
from pydantic import Field
from tests.adapters.counting import counted, marked, received
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry
from tests.instrumentation.telemetry.fake_collector import FakeCollector

import fuseboard
from fuseboard.adapters import instrument_llama_index, uninstrument_llama_index
from fuseboard.arguments import hash_arguments
from fuseboard.conventions import ErrorClass, Outcome


@pytest.fixture(autouse=True)
def instrumented() -> Iterator[None]:
    instrument_llama_index()
    yield
    uninstrument_llama_index()


class Script(FunctionCallingLLM):
    """A model that asks for the tools of each turn, then says ``done``."""

    turns: list[Any] = Field(default_factory=list)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name="script")

    def chat(self, messages: Any, **options: Any) -> ChatResponse:
        turn = self.turns.pop(0) if self.turns else []
        return ChatResponse(
            message=ChatMessage(
                role="assistant",
                content="" if turn else "done",
                additional_kwargs={"asked": list(enumerate(turn))},
            )
        )

    async def achat(self, messages: Any, **options: Any) -> ChatResponse:
        return self.chat(messages)

    async def astream_chat(self, messages: Any, **options: Any) -> Any:
        async def stream() -> Any:
            yield self.chat(messages)

        return stream()

    def _prepare_chat_with_tools(self, tools: Any, **options: Any) -> dict[str, Any]:
        return {"messages": []}

    def get_tool_calls_from_response(self, response: Any, **options: Any) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id=f"call-{number}", tool_name=name, tool_kwargs=arguments)
            for number, (name, arguments) in response.message.additional_kwargs.get("asked", [])
        ]

    def stream_chat(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    complete = acomplete = stream_complete = astream_complete = stream_chat


class Talk(ChatMemoryBuffer):
    """A memory that names its session, as LlamaIndex' own does, but has no database to close."""

    session_id: str = "talk-7"


def agent_of(*turns: Any, tools: Any, name: str = "helper", **options: Any) -> FunctionAgent:
    return FunctionAgent(
        tools=list(tools), llm=Script(turns=list(turns)), name=name, description="helps", **options
    )


async def outputs_of(agent: Any, **options: Any) -> list[ToolOutput]:
    result = await agent.run("go", **options)
    return [call.tool_output for call in result.tool_calls]


async def add(ctx: Context, a: int, b: int = 0) -> int:
    """Add two numbers."""
    assert await ctx.store.get("memory") is not None
    return a + b


def add_plainly(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


class Failing:
    """A tool that raises what it is given, then says ``sun``."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.runs = 0

    def tool(self) -> FunctionTool:
        async def forecast(city: str) -> str:
            """Tell the weather."""
            self.runs += 1
            if self.errors:
                raise self.errors.pop(0)
            return f"sun in {city}"

        return FunctionTool.from_defaults(forecast)


@pytest.mark.parametrize("function", [add, add_plainly])
async def test_a_call_is_recorded_with_what_llama_index_knows(
    telemetry: RecordingTelemetry, function: Any
) -> None:
    agent = agent_of([(function.__name__, {"a": 1, "b": 2})], tools=[function])
    (output,) = await outputs_of(agent, memory=Talk.from_defaults())
    assert output.content == "3"
    (call,) = telemetry.calls
    assert (call.tool.name, call.outcome, len(call.attempts)) == (
        function.__name__, Outcome.OK, 1,
    )  # fmt: skip
    assert (call.call_id, call.agent, call.session) == ("call-0", "helper", "talk-7")
    # The context is injected, and no argument of the model's.
    assert call.args_hash == hash_arguments({"a": 1, "b": 2})


async def test_hc_14_schemas_are_what_they_are_without_the_adapter() -> None:
    schemas = [
        FunctionTool.from_defaults(one).metadata.get_parameters_dict()
        for one in (add, add_plainly, fuseboard.tool(add), fuseboard.tool(add_plainly))
    ]
    uninstrument_llama_index()
    plain = [
        FunctionTool.from_defaults(one).metadata.get_parameters_dict() for one in (add, add_plainly)
    ]
    assert schemas == plain * 2
    assert "ctx" not in str(plain)


async def test_what_a_tool_raises_is_judged_and_told_to_the_model_as_before(
    telemetry: RecordingTelemetry,
) -> None:
    error = ConnectionRefusedError("refused")
    agent = agent_of([("forecast", {"city": "Lisbon"})], tools=[Failing(error).tool()])
    (output,) = await outputs_of(agent)
    assert (output.is_error, output.content) == (True, "refused")
    assert output.exception is error
    (call,) = telemetry.calls
    assert call.outcome is Outcome.ERROR
    assert call.fault is not None
    assert call.fault.error_type == "ConnectionRefusedError"
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_an_error_packet_is_recorded_and_returned(telemetry: RecordingTelemetry) -> None:
    packet = {"ok": False, "error_code": "quota", "status": 402, "message": "pay first"}

    def pays() -> Any:
        return packet

    agent = agent_of([("pays", {})], tools=[FunctionTool.from_defaults(pays, description="Pays.")])
    (output,) = await outputs_of(agent)
    assert output.raw_output == packet
    assert telemetry.last.outcome is Outcome.ERROR
    assert telemetry.last.fault is not None
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L2_ACCESS


async def test_an_output_that_says_it_is_an_error_is_semantic(
    telemetry: RecordingTelemetry,
) -> None:
    class Reports(AsyncBaseTool):
        @property
        def metadata(self) -> ToolMetadata:
            return ToolMetadata(description="Reports.", name="reports")

        def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
            return ToolOutput(
                content="no such city", tool_name="reports", raw_input={}, raw_output=None,
                is_error=True,
            )  # fmt: skip

        async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
            return self.call(*args, **kwargs)

    agent = agent_of([("reports", {"q": 1})], tools=[Reports()])
    (output,) = await outputs_of(agent)
    assert output.is_error
    (call,) = telemetry.calls
    assert (call.tool.name, call.outcome, call.call_id) == ("reports", Outcome.ERROR, "call-0")
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
    assert call.fault.message == "no such city"


@pytest.mark.parametrize("arguments", [{"city": "Lisbon", "planet": "Mars"}, {}])
async def test_arguments_that_do_not_fit_are_the_models_fault(
    telemetry: RecordingTelemetry, arguments: Any
) -> None:
    agent = agent_of([("forecast", arguments)], tools=[Failing().tool()])
    (output,) = await outputs_of(agent)
    assert output.is_error
    assert isinstance(output.exception, TypeError)
    (call,) = telemetry.calls
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert call.fault.error_type == "TypeError"


async def test_a_type_error_inside_the_tool_is_the_tools_fault(
    telemetry: RecordingTelemetry,
) -> None:
    agent = agent_of(
        [("forecast", {"city": "Lisbon"})], tools=[Failing(TypeError("None + 1")).tool()]
    )
    await outputs_of(agent)
    assert telemetry.last.fault is not None
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L4_PERSISTENT


async def test_hc_49_a_name_that_the_model_invents_is_no_label(
    telemetry: RecordingTelemetry,
) -> None:
    agent = agent_of([("forecast_for_mars", {"a": 1})], tools=[add_plainly])
    (output,) = await outputs_of(agent)
    assert output.is_error
    (call,) = telemetry.calls
    assert call.tool.name == "_other"
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT


async def test_hc_17_waiting_for_a_person_is_an_interrupt(telemetry: RecordingTelemetry) -> None:
    async def ask(ctx: Context, question: str) -> str:
        """Ask the user."""
        answer = await ctx.wait_for_event(
            HumanResponseEvent, waiter_id=question, waiter_event=InputRequiredEvent(prefix=question)
        )
        return str(answer.response)

    instrument_llama_index(
        fuseboard.Policy(
            retry=fuseboard.Retry(), fallback=fuseboard.Fallback(value="no"), effects="none"
        )
    )
    handler = agent_of([("ask", {"question": "Sure?"})], tools=[ask]).run("go")
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            assert handler.ctx is not None
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
    result = await handler
    assert [call.tool_output.content for call in result.tool_calls] == ["yes"]
    assert [call.outcome for call in telemetry.calls] == [Outcome.INTERRUPTED, Outcome.OK]


async def test_hc_17_handing_over_is_an_interrupt_and_agents_are_told_apart(
    telemetry: RecordingTelemetry,
) -> None:
    first = agent_of(
        [("handoff", {"to_agent": "second", "reason": "it knows"})],
        tools=[add_plainly], name="first", can_handoff_to=["second"],
    )  # fmt: skip
    second = agent_of([("add_plainly", {"a": 1})], tools=[add_plainly], name="second")
    await AgentWorkflow(agents=[first, second], root_agent="first").run("go")
    assert [(call.tool.name, call.outcome, call.agent) for call in telemetry.calls] == [
        ("handoff", Outcome.INTERRUPTED, "first"),
        ("add_plainly", Outcome.OK, "second"),
    ]


async def test_parallel_calls_keep_their_own_ids_and_arguments(
    telemetry: RecordingTelemetry,
) -> None:
    await outputs_of(agent_of([("add_plainly", {"a": n}) for n in range(6)], tools=[add_plainly]))
    assert {(call.call_id, call.args_hash) for call in telemetry.calls} == {
        (f"call-{n}", hash_arguments({"a": n})) for n in range(6)
    }


async def test_hc_04_cancelling_the_task_cancels_the_call(telemetry: RecordingTelemetry) -> None:
    began = asyncio.Event()

    async def waits() -> None:
        """Wait."""
        began.set()
        await asyncio.sleep(30)

    task = asyncio.create_task(FunctionTool.from_defaults(waits).acall())
    await asyncio.wait_for(began.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [call.outcome for call in telemetry.calls] == [Outcome.CANCELLED]


class TestToolsWithoutAnAgent:
    def test_predict_and_call_counts_once(self, telemetry: RecordingTelemetry) -> None:
        model = Script(turns=[[("add_plainly", {"a": 1})]])
        answer = model.predict_and_call([FunctionTool.from_defaults(add_plainly)], "go")
        assert str(answer) == "1"
        assert [call.outcome for call in telemetry.calls] == [Outcome.OK]

    def test_a_tool_called_by_hand_is_recorded(self, telemetry: RecordingTelemetry) -> None:
        tool = FunctionTool.from_defaults(add_plainly)
        assert tool(1, b=2).raw_output == 3
        assert tool.call(a=1).raw_output == 1
        assert telemetry.calls[0].args_hash == hash_arguments({"a": 1, "b": 2})
        assert len(telemetry.calls) == 2

    async def test_a_query_engine_is_a_tool(self, telemetry: RecordingTelemetry) -> None:
        class Engine:
            async def aquery(self, query: str) -> str:
                raise ConnectionRefusedError(query)

        tool = QueryEngineTool(
            query_engine=Engine(),  # type: ignore[arg-type]
            metadata=ToolMetadata(description="Asks.", name="documents"),
        )
        agent = agent_of([("documents", {"input": "who"})], tools=[tool])
        (output,) = await outputs_of(agent)
        assert output.is_error
        (call,) = telemetry.calls
        assert (call.tool.name, call.call_id) == ("documents", "call-0")
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


class TestPolicies:
    async def test_a_policy_retries_below_the_framework(
        self, telemetry: RecordingTelemetry, clock: FakeClock
    ) -> None:
        policy = fuseboard.Policy(retry=fuseboard.Retry(attempts=3), effects="none")
        instrument_llama_index({"forecast": policy})
        failing = Failing(ConnectionResetError(), ConnectionResetError())
        agent = agent_of([("forecast", {"city": "Lisbon"})], tools=[failing.tool()])
        (output,) = await outputs_of(agent)
        assert (output.content, output.is_error) == ("sun in Lisbon", False)
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.OK, 3)

    async def test_a_fallback_is_served_as_a_tools_output(
        self, telemetry: RecordingTelemetry
    ) -> None:
        instrument_llama_index(fuseboard.Policy(fallback=fuseboard.Fallback(value="no news")))
        failing = Failing(ConnectionRefusedError())
        agent = agent_of([("forecast", {"city": "Lisbon"})], tools=[failing.tool()])
        (output,) = await outputs_of(agent)
        assert (output.content, output.is_error) == ("no news", False)
        assert telemetry.last.outcome is Outcome.DEGRADED

    async def test_an_open_breaker_keeps_the_tool_from_running(
        self, telemetry: RecordingTelemetry
    ) -> None:
        instrument_llama_index(
            {"forecast": fuseboard.Policy(breaker=fuseboard.Breaker(minimum_throughput=2))}
        )
        failing = Failing(*[ConnectionRefusedError()] * 9)
        agent = agent_of(*[[("forecast", {"city": "Lisbon"})]] * 3, tools=[failing.tool()])
        outputs = await outputs_of(agent)
        assert failing.runs == 2
        assert isinstance(outputs[-1].exception, fuseboard.CircuitOpenError)
        assert telemetry.last.outcome is Outcome.REJECTED


@pytest.mark.parametrize("is_own", [False, True])
async def test_a_packet_is_an_output_that_says_it_is_an_error(
    telemetry: RecordingTelemetry, is_own: bool
) -> None:
    async def fails() -> Any:
        """Fail."""
        raise ConnectionRefusedError("10.0.0.1 refused")

    instrument_llama_index(on_error="raise" if is_own else "packet")
    tool = fuseboard.tool(on_error="packet")(fails) if is_own else fails
    (output,) = await outputs_of(agent_of([("fails", {})], tools=[tool]))
    assert output.is_error
    assert "can't be reached" in output.content
    assert "10.0.0.1" not in output.content
    (call,) = telemetry.calls
    assert (call.outcome, call.call_id) == (Outcome.ERROR, "call-0")


class TestToolsOfFuseboard:
    @pytest.mark.skipif(
        not hasattr(llama_index.core.tools.function_tool, "contextvars"),
        reason="runs synchronous tools in a thread that knows nothing of the agent",
    )
    @pytest.mark.parametrize("function", [add, add_plainly])
    async def test_a_decorated_tool_records_itself_once_and_learns_what_is_known(
        self, telemetry: RecordingTelemetry, function: Any
    ) -> None:
        own = fuseboard.wrap(function, name="sum")
        agent = agent_of([(function.__name__, {"a": 1})], tools=[own])
        await outputs_of(agent)
        (call,) = telemetry.calls
        assert (call.tool.name, call.call_id, call.agent) == ("sum", "call-0", "helper")


class TestBesideOpenInference:
    @pytest.fixture
    def started(self, start: Callable[..., None]) -> Iterator[None]:
        theirs = pytest.importorskip("openinference.instrumentation.llama_index")
        instrumentor = theirs.LlamaIndexInstrumentor()
        start()
        instrumentor.instrument(tracer_provider=trace.get_tracer_provider())
        yield
        instrumentor.uninstrument()

    async def test_a_call_counts_once(self, started: None, collector: FakeCollector) -> None:
        await outputs_of(agent_of([("add_plainly", {"a": 1})], tools=[add_plainly]))
        spans = received(collector)
        assert counted(spans) == [("execute_tool add_plainly", True)]
        assert marked(spans) == ["FunctionTool.acall"]


class TestInstallation:
    async def test_removed_it_records_nothing_and_leaves_no_trace(
        self, telemetry: RecordingTelemetry
    ) -> None:
        uninstrument_llama_index()
        before = FunctionTool.acall, FunctionAgent.call_tool, AgentWorkflow._call_tool
        instrument_llama_index()
        assert FunctionTool.acall is not before[0]
        uninstrument_llama_index()
        assert before == (FunctionTool.acall, FunctionAgent.call_tool, AgentWorkflow._call_tool)
        await outputs_of(agent_of([("add_plainly", {"a": 1})], tools=[add_plainly]))
        assert telemetry.calls == []

    async def test_installed_twice_it_counts_once(self, telemetry: RecordingTelemetry) -> None:
        instrument_llama_index()
        await outputs_of(agent_of([("add_plainly", {"a": 1})], tools=[add_plainly]))
        assert len(telemetry.calls) == 1
