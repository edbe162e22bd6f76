"""The adapter for smolagents, driven by the real framework and a model that follows a script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace
from smolagents import CodeAgent, Tool, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    Model,
)
from tests.adapters.counting import counted, marked, received
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry
from tests.instrumentation.telemetry.fake_collector import FakeCollector

import fuseboard
from fuseboard.adapters import instrument_smolagents, uninstrument_smolagents
from fuseboard.arguments import hash_arguments
from fuseboard.conventions import ErrorClass, Outcome

FINAL = [("final_answer", {"answer": "done"})]


@pytest.fixture(autouse=True)
def instrumented() -> Iterator[None]:
    instrument_smolagents()
    yield
    uninstrument_smolagents()


class Script(Model):
    """A model that says the next line of its script: tool calls, or code."""

    def __init__(self, *turns: Any) -> None:
        super().__init__(model_id="script")
        self.turns = list(turns)

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        turn = self.turns.pop(0)
        if isinstance(turn, str):
            return ChatMessage(role=MessageRole.ASSISTANT, content=f"<code>\n{turn}\n</code>")
        calls = [
            ChatMessageToolCall(
                id=f"call-{number}",
                type="function",
                function=ChatMessageToolCallFunction(name=name, arguments=arguments),
            )
            for number, (name, arguments) in enumerate(turn)
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content=None, tool_calls=calls)


@tool
def add(a: int, b: int = 0) -> int:
    """Add two numbers.

    Args:
        a: One number.
        b: Another.
    """
    return a + b


class Forecast(Tool):
    name = "forecast"
    description = "Tells the weather."
    inputs = {"city": {"type": "string", "description": "Where."}}  # noqa: RUF012 - smolagents' way
    output_type = "object"

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[str] = []

    def forward(self, city: str) -> Any:
        self.asked.append(city)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def calling(*turns: Any, tools: Any = (add,), **options: Any) -> Any:
    agent = ToolCallingAgent(
        list(tools), model=Script(*turns, FINAL), name="helper", description="helps",
        verbosity_level=0, **options,
    )  # fmt: skip
    agent.run("go")
    return agent


def coding(*turns: str, tools: Any = (add,)) -> Any:
    agent = CodeAgent(
        list(tools), model=Script(*turns, "final_answer('done')"), name="coder",
        description="codes", verbosity_level=0,
    )  # fmt: skip
    agent.run("go")
    return agent


def errors_of(agent: Any) -> list[Any]:
    found = [getattr(step, "error", None) for step in agent.memory.steps]
    return [error for error in found if error is not None]


class TestToolCallingAgents:
    def test_a_call_is_recorded_with_what_smolagents_knows(
        self, telemetry: RecordingTelemetry
    ) -> None:
        agent = calling([("add", {"a": 1, "b": 2})])
        assert errors_of(agent) == []
        assert "3" in agent.memory.steps[1].observations
        (call,) = telemetry.calls
        assert (call.tool.name, call.outcome, len(call.attempts)) == ("add", Outcome.OK, 1)
        assert (call.call_id, call.agent) == ("call-0", "helper")
        assert call.args_hash == hash_arguments({"a": 1, "b": 2})

    def test_parallel_calls_keep_their_own_ids_and_arguments(
        self, telemetry: RecordingTelemetry
    ) -> None:
        calling([("add", {"a": n}) for n in range(6)])
        assert {(call.call_id, call.args_hash) for call in telemetry.calls} == {
            (f"call-{n}", hash_arguments({"a": n})) for n in range(6)
        }

    def test_equal_parallel_calls_keep_an_id_each(self, telemetry: RecordingTelemetry) -> None:
        calling([("add", {"a": 1}) for _ in range(4)])
        assert sorted(str(call.call_id) for call in telemetry.calls) == [
            f"call-{n}" for n in range(4)
        ]

    def test_what_a_tool_raises_is_judged_and_framework_reports_it_as_before(
        self, telemetry: RecordingTelemetry
    ) -> None:
        error = ConnectionRefusedError("refused")
        agent = calling([("forecast", {"city": "Lisbon"})], tools=[Forecast(error)])
        (reported,) = errors_of(agent)
        assert type(reported).__name__ == "AgentToolExecutionError"
        assert reported.__cause__ is error
        (call,) = telemetry.calls
        assert call.outcome is Outcome.ERROR
        assert call.fault is not None
        assert call.fault.error_type == "ConnectionRefusedError"
        assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT

    def test_an_error_packet_is_recorded(self, telemetry: RecordingTelemetry) -> None:
        packet = {"ok": False, "error_code": "quota", "status": 402, "message": "pay first"}
        agent = calling([("forecast", {"city": "Lisbon"})], tools=[Forecast(packet)])
        assert errors_of(agent) == []
        assert telemetry.last.outcome is Outcome.ERROR
        assert telemetry.last.fault is not None
        assert telemetry.last.fault.verdict.error_class is ErrorClass.L2_ACCESS

    def test_refused_arguments_are_one_call_of_the_models_fault(
        self, telemetry: RecordingTelemetry
    ) -> None:
        agent = calling([("add", {"a": "many"})])
        assert len(errors_of(agent)) == 1
        (call,) = telemetry.calls
        assert (call.tool.name, call.outcome, call.attempts) == ("add", Outcome.ERROR, [])
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
        assert call.call_id == "call-0"

    def test_hc_49_a_name_that_the_model_invents_is_no_label(
        self, telemetry: RecordingTelemetry
    ) -> None:
        agent = calling([("forecast_for_mars", {"a": 1})])
        assert len(errors_of(agent)) == 1
        (call,) = telemetry.calls
        assert call.tool.name == "_other"
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT

    def test_a_managed_agent_is_no_tool_but_its_tools_are(
        self, telemetry: RecordingTelemetry
    ) -> None:
        inner = ToolCallingAgent(
            [add], model=Script([("add", {"a": 5})], FINAL), name="inner", description="adds",
            verbosity_level=0,
        )  # fmt: skip
        calling([("inner", {"task": "add", "additional_args": {}})], managed_agents=[inner])
        assert [(call.tool.name, call.agent) for call in telemetry.calls] == [("add", "inner")]


class TestCodeAgents:
    def test_calls_from_code_are_recorded_with_their_arguments_by_name(
        self, telemetry: RecordingTelemetry
    ) -> None:
        coding("x = add(1, b=2)\nprint(add(x))")
        assert [(call.outcome, call.agent) for call in telemetry.calls] == [
            (Outcome.OK, "coder")
        ] * 2
        assert telemetry.calls[0].args_hash == hash_arguments({"a": 1, "b": 2})

    def test_arguments_that_do_not_fit_are_the_models_fault(
        self, telemetry: RecordingTelemetry
    ) -> None:
        agent = coding("add(c=1)")
        assert "unexpected keyword" in str(errors_of(agent)[0])
        (call,) = telemetry.calls
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
        assert call.fault.error_type == "TypeError"

    def test_a_type_error_inside_the_tool_is_the_tools_fault(
        self, telemetry: RecordingTelemetry
    ) -> None:
        coding("forecast('Lisbon')", tools=[Forecast(TypeError("None + 1"))])
        assert telemetry.last.fault is not None
        assert telemetry.last.fault.verdict.error_class is ErrorClass.L4_PERSISTENT

    def test_a_name_that_is_no_tool_is_a_mistake_in_the_code_and_no_call(
        self, telemetry: RecordingTelemetry
    ) -> None:
        agent = coding("forecast_for_mars(1)")
        assert len(errors_of(agent)) == 1
        assert telemetry.calls == []

    def test_calls_from_code_hang_under_the_callers_span(
        self, start: Callable[..., None], collector: FakeCollector
    ) -> None:
        start()
        with trace.get_tracer("application").start_as_current_span("outer") as outer:
            coding("add(1)")
        (call,) = [span for span in received(collector) if span.name == "execute_tool add"]
        assert call.parent_span_id == outer.get_span_context().span_id.to_bytes(8, "big")


class TestSchemas:
    def test_hc_14_what_the_model_is_shown_stays_the_same(self) -> None:
        decorated = tool(fuseboard.tool(add.forward.__wrapped__))
        shown = (decorated.name, decorated.description, decorated.inputs, decorated.output_type)
        uninstrument_smolagents()
        assert shown == (add.name, add.description, add.inputs, add.output_type)


class TestPolicies:
    def test_a_policy_retries_below_the_framework(
        self, telemetry: RecordingTelemetry, clock: FakeClock
    ) -> None:
        policy = fuseboard.Policy(retry=fuseboard.Retry(attempts=3), effects="none")
        instrument_smolagents({"forecast": policy})
        weather = Forecast(ConnectionResetError(), ConnectionResetError(), "sun")
        agent = calling([("forecast", {"city": "Lisbon"})], tools=[weather])
        assert errors_of(agent) == []
        assert weather.asked == ["Lisbon"] * 3
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.OK, 3)

    def test_an_open_breaker_keeps_the_tool_from_running(
        self, telemetry: RecordingTelemetry
    ) -> None:
        instrument_smolagents(
            {"forecast": fuseboard.Policy(breaker=fuseboard.Breaker(minimum_throughput=2))}
        )
        weather = Forecast(*[ConnectionRefusedError()] * 9)
        agent = coding(*["forecast('Lisbon')"] * 3, tools=[weather])
        assert len(weather.asked) == 2
        assert telemetry.last.outcome is Outcome.REJECTED
        assert "circuit breaker" in str(errors_of(agent)[-1])

    def test_a_policy_may_cut_a_tool_short(self, telemetry: RecordingTelemetry) -> None:
        release = threading.Event()

        @tool
        def slow() -> str:
            """Take long."""
            release.wait(30)
            return "late"

        instrument_smolagents(fuseboard.Policy(timeout=0.05))
        try:
            agent = calling([("slow", {})], tools=[slow])
        finally:
            release.set()
        assert type(errors_of(agent)[0].__cause__) is fuseboard.AttemptTimeoutError
        assert telemetry.last.fault is not None
        assert telemetry.last.fault.verdict.classifier_id == "attempt_timeout"
        assert telemetry.last.call_id == "call-0"


class TestPackets:
    def test_a_packet_is_what_the_model_reads(self, telemetry: RecordingTelemetry) -> None:
        instrument_smolagents(on_error="packet")
        error = ConnectionRefusedError("10.0.0.1 refused")
        agents = [
            calling([("forecast", {"city": "Lisbon"})], tools=[Forecast(error)]),
            coding("forecast('Lisbon')", tools=[Forecast(error)]),
        ]
        for agent in agents:
            (reported,) = errors_of(agent)
            assert "can't be reached" in str(reported)
            assert "10.0.0.1" not in str(reported)
        assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR] * 2
        assert telemetry.last.fault is not None
        assert telemetry.last.fault.error_type == "ConnectionRefusedError"

    def test_a_tools_own_packet_is_read_alike(self, telemetry: RecordingTelemetry) -> None:
        class Own(Forecast):
            name = "own"

            @fuseboard.tool(name="weather", on_error="packet")
            def forward(self, city: str) -> Any:
                raise ConnectionRefusedError("10.0.0.1 refused")

        (reported,) = errors_of(calling([("own", {"city": "Lisbon"})], tools=[Own()]))
        assert "can't be reached" in str(reported)
        assert len(telemetry.calls) == 1


class TestToolsOfFuseboard:
    def test_a_decorated_tool_records_itself_once_and_learns_what_is_known(
        self, telemetry: RecordingTelemetry
    ) -> None:
        class Own(Forecast):
            name = "own"

            @fuseboard.tool(name="weather")
            def forward(self, city: str) -> Any:
                return city

        calling([("own", {"city": "Lisbon"})], tools=[Own()])
        coding("own('Porto')", tools=[Own()])
        assert [(call.tool.name, call.call_id, call.agent) for call in telemetry.calls] == [
            ("weather", "call-0", "helper"), ("weather", None, "coder"),
        ]  # fmt: skip


class TestBesideOpenInference:
    @pytest.fixture(params=["ours outside", "theirs outside"])
    def started(self, start: Callable[..., None], request: pytest.FixtureRequest) -> Iterator[None]:
        theirs = pytest.importorskip("openinference.instrumentation.smolagents")
        instrumentor = theirs.SmolagentsInstrumentor()
        start()
        uninstrument_smolagents()
        if request.param == "theirs outside":
            instrument_smolagents()
        instrumentor.instrument(tracer_provider=trace.get_tracer_provider())
        instrument_smolagents()
        yield
        instrumentor.uninstrument()

    def test_a_call_counts_once(self, started: None, collector: FakeCollector) -> None:
        calling([("add", {"a": 1})])
        coding("add(2)")
        spans = received(collector)
        ours = [name for name, is_own in counted(spans) if is_own]
        assert ours == ["execute_tool add"] * 2
        assert len(marked(spans)) == 2


class TestInstallation:
    def test_removed_it_records_nothing_and_leaves_no_trace(
        self, telemetry: RecordingTelemetry
    ) -> None:
        assert hasattr(Tool.__call__, "__wrapped__")
        uninstrument_smolagents()
        for function in (Tool.__call__, ToolCallingAgent.execute_tool_call, CodeAgent.run):
            assert not hasattr(function, "__wrapped__")
        calling([("add", {"a": 1})])
        assert telemetry.calls == []

    def test_installed_twice_it_counts_once(self, telemetry: RecordingTelemetry) -> None:
        instrument_smolagents()
        calling([("add", {"a": 1})])
        assert len(telemetry.calls) == 1
