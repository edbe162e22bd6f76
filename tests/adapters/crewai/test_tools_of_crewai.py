"""The adapter for CrewAI, driven by the real framework and a model that follows a script."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import trace

# Before it is imported: CrewAI would report its users' doings, and write to their home.
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["HOME"] = tempfile.mkdtemp(prefix="fuseboard-crewai-")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import BaseTool, tool
from crewai.tools.base_tool import Tool
from crewai.tools.structured_tool import CrewStructuredTool
from crewai.tools.tool_usage import ToolUsage
from tests.adapters.counting import counted, received
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry
from tests.instrumentation.telemetry.fake_collector import FakeCollector

import fuseboard
from fuseboard.adapters import instrument_crewai, uninstrument_crewai
from fuseboard.arguments import hash_arguments
from fuseboard.conventions import ErrorClass, Outcome, RetryEnd

FINAL = "Thought: I now know the final answer\nFinal Answer: done"


@pytest.fixture(autouse=True)
def instrumented() -> Iterator[None]:
    instrument_crewai()
    yield
    uninstrument_crewai()


class Script(BaseLLM):
    """A model that says the next line of its script: native tool calls, or text."""

    turns: list[Any] = []  # noqa: RUF012 - a field of pydantic's
    heard: list[Any] = []  # noqa: RUF012 - likewise
    is_native: bool = True

    def supports_function_calling(self) -> bool:
        return self.is_native

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        self.heard.append(messages if isinstance(messages, str) else list(messages))
        turn = self.turns.pop(0) if self.turns else FINAL
        if isinstance(turn, str):
            return turn
        return [
            {
                "id": f"call-{number}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": said if isinstance(said, str) else json.dumps(said),
                },
            }
            for number, (name, said) in enumerate(turn)
        ]

    async def acall(self, *args: Any, **options: Any) -> Any:
        return self.call(*args, **options)


def run(*turns: Any, tools: Any, is_native: bool = True) -> str:
    """Run a crew of one and return all that its model was told."""
    crew, model = crew_of(*turns, tools=tools, is_native=is_native)
    crew.kickoff()
    return json.dumps(model.heard, default=str)


def crew_of(*turns: Any, tools: Any, is_native: bool = True) -> tuple[Crew, Script]:
    model = Script(model="script", is_native=is_native)
    model.turns, model.heard = list(turns), []
    agent = Agent(
        role="helper", goal="help", backstory="none", tools=list(tools), llm=model,
        max_retry_limit=0, verbose=False,
    )  # fmt: skip
    task = Task(description="do", expected_output="it", agent=agent)
    return Crew(agents=[agent], tasks=[task], verbose=False), model


def text(name: str, arguments: Any) -> str:
    """Return a tool call as models without native ones write it."""
    return f"Thought: so\nAction: {name}\nAction Input: {json.dumps(arguments)}"


@tool("add")
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


class Forecast(BaseTool):
    name: str = "forecast"
    description: str = "Tells the weather."
    answers: list[Any] = []  # noqa: RUF012 - a field of pydantic's
    asked: list[str] = []  # noqa: RUF012 - likewise

    def _run(self, city: str) -> Any:
        self.asked.append(city)
        answer = self.answers.pop(0) if self.answers else f"sun in {city}"
        if isinstance(answer, BaseException):
            raise answer
        return answer


def forecast(*answers: Any) -> Forecast:
    made = Forecast()
    made.answers, made.asked = list(answers), []
    return made


class TestNativeToolCalls:
    def test_a_call_is_recorded_with_what_crewai_knows(self, telemetry: RecordingTelemetry) -> None:
        heard = run([("add", {"a": 1, "b": 2})], tools=[add])
        assert '"content": "3"' in heard
        (call,) = telemetry.calls
        assert (call.tool.name, call.outcome, len(call.attempts)) == ("add", Outcome.OK, 1)
        assert (call.call_id, call.agent) == ("call-0", "helper")
        assert call.args_hash == hash_arguments({"a": 1, "b": 2})

    def test_parallel_calls_keep_their_own_ids_and_arguments(
        self, telemetry: RecordingTelemetry
    ) -> None:
        run([("add", {"a": 1}), ("forecast", {"city": "Lisbon"})], tools=[add, forecast()])
        assert {(call.tool.name, call.call_id, call.args_hash) for call in telemetry.calls} == {
            ("add", "call-0", hash_arguments({"a": 1})),
            ("forecast", "call-1", hash_arguments({"city": "Lisbon"})),
        }

    def test_what_a_tool_raises_is_judged_and_told_to_the_model_as_before(
        self, telemetry: RecordingTelemetry
    ) -> None:
        heard = run(
            [("forecast", {"city": "Lisbon"})], tools=[forecast(ConnectionRefusedError("refused"))]
        )
        assert "Error executing tool: refused" in heard
        (call,) = telemetry.calls
        assert call.outcome is Outcome.ERROR
        assert call.fault is not None
        assert call.fault.error_type == "ConnectionRefusedError"
        assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT

    def test_an_error_packet_is_recorded(self, telemetry: RecordingTelemetry) -> None:
        packet = {"ok": False, "error_code": "quota", "status": 402, "message": "pay first"}
        run([("forecast", {"city": "Lisbon"})], tools=[forecast(packet)])
        assert telemetry.last.outcome is Outcome.ERROR
        assert telemetry.last.fault is not None
        assert telemetry.last.fault.verdict.error_class is ErrorClass.L2_ACCESS

    def test_a_failure_in_crewais_own_form_is_recorded(self, telemetry: RecordingTelemetry) -> None:
        forms = pytest.importorskip("crewai.tools.tool_failure", reason="came after 1.15.0")
        failure = forms.ToolFailure(message="no such channel", code="channel_not_found")
        run([("forecast", {"city": "Lisbon"})], tools=[forecast(failure)])
        assert telemetry.last.fault is not None
        assert telemetry.last.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
        assert telemetry.last.fault.error_type == "channel_not_found"

    def test_refused_arguments_are_one_call_of_the_models_fault(
        self, telemetry: RecordingTelemetry
    ) -> None:
        heard = run([("add", {"a": "many"})], tools=[add])
        assert "validation" in heard
        (call,) = telemetry.calls
        assert (call.tool.name, call.outcome, call.attempts) == ("add", Outcome.ERROR, [])
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
        assert call.call_id == "call-0"

    def test_arguments_that_are_no_json_are_one_call(self, telemetry: RecordingTelemetry) -> None:
        run([("add", '{"a": 1')], tools=[add])
        (call,) = telemetry.calls
        assert (call.tool.name, call.outcome) == ("add", Outcome.ERROR)
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT

    def test_hc_49_a_name_that_the_model_invents_is_no_label(
        self, telemetry: RecordingTelemetry
    ) -> None:
        run([("forecast_for_mars", {"a": 1})], tools=[add])
        (call,) = telemetry.calls
        assert (call.tool.name, call.call_id) == ("_other", "call-0")
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT

    def test_a_spent_limit_keeps_the_tool_from_running(self, telemetry: RecordingTelemetry) -> None:
        weather = forecast()
        weather.max_usage_count = 1
        assert weather.run(city="Lisbon") == "sun in Lisbon"
        assert "usage limit" in str(weather.run(city="Porto"))
        assert weather.asked == ["Lisbon"]
        assert [len(call.attempts) for call in telemetry.calls] == [1, 0]
        assert telemetry.last.fault is not None
        assert telemetry.last.fault.error_type == "usage_limit"


class TestToolCallsInText:
    def test_a_call_is_recorded_with_what_crewai_knows(self, telemetry: RecordingTelemetry) -> None:
        run(text("add", {"a": 1, "b": 2}), tools=[add], is_native=False)
        (call,) = telemetry.calls
        assert (call.tool.name, call.outcome, call.agent) == ("add", Outcome.OK, "helper")
        assert call.args_hash == hash_arguments({"a": 1, "b": 2})

    def test_each_run_for_one_call_is_an_attempt(self, telemetry: RecordingTelemetry) -> None:
        weather = forecast(ConnectionResetError(), ConnectionResetError())
        run(text("forecast", {"city": "Lisbon"}), tools=[weather], is_native=False)
        (call,) = telemetry.calls
        assert weather.asked == ["Lisbon"] * 3
        assert (call.outcome, len(call.attempts)) == (Outcome.OK, 3)
        assert call.retry_end is RetryEnd.RECOVERED

    def test_a_tool_that_keeps_failing_is_one_failed_call(
        self, telemetry: RecordingTelemetry
    ) -> None:
        weather = forecast(*[ConnectionResetError("reset")] * 99)
        run(text("forecast", {"city": "Lisbon"}), tools=[weather], is_native=False)
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.ERROR, len(weather.asked))
        assert call.retry_end is RetryEnd.EXHAUSTED
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT

    def test_an_error_packet_ends_the_call(self, telemetry: RecordingTelemetry) -> None:
        packet = {"ok": False, "error_code": "quota", "status": 402, "message": "pay first"}
        weather = forecast(packet)
        run(text("forecast", {"city": "Lisbon"}), tools=[weather], is_native=False)
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.ERROR, 1)
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L2_ACCESS

    def test_refused_arguments_are_one_call_of_the_models_fault(
        self, telemetry: RecordingTelemetry
    ) -> None:
        run(text("add", {"a": "many"}), tools=[add], is_native=False)
        (call,) = telemetry.calls
        assert (call.tool.name, call.attempts) == ("add", [])
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT

    def test_hc_49_a_name_that_the_model_invents_is_no_label(
        self, telemetry: RecordingTelemetry
    ) -> None:
        run(text("mars_weather_service", {"a": 1}), tools=[add], is_native=False)
        (call,) = telemetry.calls
        assert (call.tool.name, call.agent) == ("_other", "helper")

    def test_arguments_that_are_none_are_one_call(self, telemetry: RecordingTelemetry) -> None:
        run("Thought: so\nAction: add\nAction Input: [1, 2", tools=[add], is_native=False)
        (call,) = telemetry.calls
        assert (call.tool.name, call.attempts) == ("add", [])
        assert call.fault is not None
        assert call.fault.verdict.error_class is ErrorClass.L1_INPUT

    async def test_the_asynchronous_way_records_as_well(
        self, telemetry: RecordingTelemetry
    ) -> None:
        weather = forecast(ConnectionResetError())
        crew, _ = crew_of(text("forecast", {"city": "Lisbon"}), tools=[weather], is_native=False)
        await crew.akickoff()
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.OK, 2)

    def test_a_policy_alone_says_how_often_a_tool_runs(
        self, telemetry: RecordingTelemetry, clock: FakeClock
    ) -> None:
        policy = fuseboard.Policy(retry=fuseboard.Retry(attempts=2), effects="none")
        instrument_crewai({"forecast": policy})
        weather = forecast(*[ConnectionResetError("reset")] * 99)
        heard = run(text("forecast", {"city": "Lisbon"}), tools=[weather], is_native=False)
        assert weather.asked == ["Lisbon"] * 2
        assert "reset" in heard
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.ERROR, 2)


class TestToolsByHand:
    async def test_run_and_arun_are_recorded(self, telemetry: RecordingTelemetry) -> None:
        @tool("later")
        async def later(a: int) -> int:
            """Add later."""
            return a

        assert add.run(1, b=2) == 3
        assert await later.arun(a=4) == 4
        assert [(call.tool.name, call.outcome) for call in telemetry.calls] == [
            ("add", Outcome.OK), ("later", Outcome.OK),
        ]  # fmt: skip
        assert telemetry.calls[0].args_hash == hash_arguments({"a": 1, "b": 2})

    def test_a_class_that_passes_on_counts_once(self, telemetry: RecordingTelemetry) -> None:
        class Passing(Forecast):
            def run(self, *args: Any, **kwargs: Any) -> Any:
                return super().run(*args, **kwargs)

        assert Passing().run(city="Lisbon") == "sun in Lisbon"
        assert len(telemetry.calls) == 1


class TestSchemas:
    def test_hc_14_what_the_model_is_shown_stays_the_same(self) -> None:
        def plus(a: int, b: int = 0) -> int:
            """Add two numbers."""
            return a + b

        shown = [tool("plus")(one) for one in (plus, fuseboard.tool(plus))]
        uninstrument_crewai()
        plain = tool("plus")(plus)
        for one in shown:
            assert one.description == plain.description
            assert one.args_schema.model_json_schema() == plain.args_schema.model_json_schema()


class TestPolicies:
    def test_a_policy_retries_below_the_framework(
        self, telemetry: RecordingTelemetry, clock: FakeClock
    ) -> None:
        policy = fuseboard.Policy(retry=fuseboard.Retry(attempts=3), effects="none")
        instrument_crewai({"forecast": policy})
        weather = forecast(ConnectionResetError(), ConnectionResetError())
        heard = run([("forecast", {"city": "Lisbon"})], tools=[weather])
        assert "sun in Lisbon" in heard
        assert "Error" not in heard
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.OK, 3)

    def test_an_open_breaker_keeps_the_tool_from_running(
        self, telemetry: RecordingTelemetry
    ) -> None:
        instrument_crewai(
            {"forecast": fuseboard.Policy(breaker=fuseboard.Breaker(minimum_throughput=2))}
        )
        weather = forecast(*[ConnectionRefusedError()] * 9)
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                weather.run(city="Lisbon")
        with pytest.raises(fuseboard.CircuitOpenError):
            weather.run(city="Lisbon")
        assert len(weather.asked) == 2
        assert telemetry.last.outcome is Outcome.REJECTED


class TestPackets:
    @pytest.mark.parametrize("is_native", [True, False])
    def test_a_packet_is_what_the_model_reads(
        self, telemetry: RecordingTelemetry, is_native: bool
    ) -> None:
        instrument_crewai(on_error="packet")
        weather = forecast(*[ConnectionRefusedError("10.0.0.1 refused")] * 9)
        said = (
            [("forecast", {"city": "Lisbon"})]
            if is_native
            else text("forecast", {"city": "Lisbon"})
        )
        heard = run(said, tools=[weather], is_native=is_native)
        assert "can't be reached" in heard
        assert "10.0.0.1" not in heard
        assert weather.asked == ["Lisbon"]
        (call,) = telemetry.calls
        assert (call.outcome, len(call.attempts)) == (Outcome.ERROR, 1)

    def test_a_tools_own_packet_is_read_alike(self, telemetry: RecordingTelemetry) -> None:
        class Own(Forecast):
            @fuseboard.tool(name="weather", on_error="packet")
            def _run(self, city: str) -> Any:
                raise ConnectionRefusedError("10.0.0.1 refused")

        heard = run([("forecast", {"city": "Lisbon"})], tools=[Own()])
        assert "can't be reached" in heard
        assert "10.0.0.1" not in heard
        assert len(telemetry.calls) == 1


class TestToolsOfFuseboard:
    def test_a_decorated_tool_records_itself_once_and_learns_what_is_known(
        self, telemetry: RecordingTelemetry
    ) -> None:
        class Own(Forecast):
            @fuseboard.tool(name="weather")
            def _run(self, city: str) -> Any:
                return city

        run([("forecast", {"city": "Lisbon"})], tools=[Own()])
        run(text("forecast", {"city": "Lisbon"}), tools=[Own()], is_native=False)
        assert [(call.tool.name, call.call_id, call.agent) for call in telemetry.calls] == [
            ("weather", "call-0", "helper"), ("weather", None, "helper"),
        ]  # fmt: skip


class TestBesideOpenInference:
    @pytest.fixture(params=[True, False])
    def started(self, start: Callable[..., None], request: pytest.FixtureRequest) -> Iterator[None]:
        theirs = pytest.importorskip("openinference.instrumentation.crewai")
        instrumentor = theirs.CrewAIInstrumentor()
        start()
        instrumentor.instrument(
            tracer_provider=trace.get_tracer_provider(), use_event_listener=request.param
        )
        yield
        instrumentor.uninstrument()

    @pytest.mark.parametrize("is_native", [True, False])
    def test_a_call_counts_once(
        self, started: None, collector: FakeCollector, is_native: bool
    ) -> None:
        said = [("add", {"a": 1})] if is_native else text("add", {"a": 1})
        run(said, tools=[add], is_native=is_native)
        assert [one for one in counted(received(collector)) if one[1]] == [
            ("execute_tool add", True)
        ]
        assert counted(received(collector)) == [("execute_tool add", True)]


class TestInstallation:
    def test_removed_it_records_nothing_and_leaves_no_trace(
        self, telemetry: RecordingTelemetry
    ) -> None:
        uninstrument_crewai()
        wrapped = (
            BaseTool.run, Tool.arun, CrewStructuredTool.invoke, ToolUsage.use,
            ToolUsage.parse_tool_calling,
        )  # fmt: skip
        assert not any(hasattr(function, "__wrapped__") for function in wrapped)
        run([("add", {"a": 1})], tools=[add])
        assert telemetry.calls == []

    def test_installed_twice_it_counts_once(self, telemetry: RecordingTelemetry) -> None:
        instrument_crewai()
        run([("add", {"a": 1})], tools=[add])
        assert len(telemetry.calls) == 1
