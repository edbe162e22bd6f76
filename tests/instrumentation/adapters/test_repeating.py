"""Tools that a framework runs again by itself: one call, an attempt for each run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.instrumentation.conftest import FakeClock, RecordingTelemetry

import fuseboard
from fuseboard.adapters.repeating import RepeatedCall
from fuseboard.adapters.running import FrameworkCalls
from fuseboard.calls.current import current_call
from fuseboard.calls.invocation import Invocation
from fuseboard.calls.packets import words_of
from fuseboard.conventions import ErrorClass, Layer, Outcome, RetryEnd


class Framework:
    """Runs a tool up to ``tries`` times for one call, as CrewAI does."""

    def __init__(self, *, is_async: bool, tries: int = 6, **settings: Any) -> None:
        self.calls = FrameworkCalls("instrument_framework", lambda _, packet: words_of(packet))
        self.calls.configure(settings.get("policy"), settings.get("on_error", "raise"))
        self._is_async = is_async
        self._tries = tries

    def ask(self, tool: Callable[[], Any]) -> Any:
        return asyncio.run(self._ask(tool))

    async def _ask(self, tool: Callable[[], Any]) -> Any:
        invocation = Invocation("weather", {"city": "Oslo"}, call_id="call-1", agent="helper")
        call = RepeatedCall(self.calls, invocation)

        async def later() -> Any:
            return tool()

        try:
            for left in range(self._tries - 1, -1, -1):
                try:
                    if self._is_async:
                        return await call.run_async(invocation, later)
                    return call.run(invocation, tool)
                except Exception:
                    if not left:
                        raise
        finally:
            call.close()


class Tool:
    """Raises what it is given, in turn, then returns the answer."""

    def __init__(self, *errors: BaseException, answer: Any = "sun") -> None:
        self.errors = list(errors)
        self.answer = answer
        self.attempts: list[int] = []

    def __call__(self) -> Any:
        running = current_call()
        self.attempts.append(running.attempt if running is not None else 0)
        if self.errors:
            raise self.errors.pop(0)
        return self.answer


both = pytest.mark.parametrize("is_async", [False, True])


@both
def test_runs_that_fail_before_one_succeeds_are_attempts(
    telemetry: RecordingTelemetry, is_async: bool
) -> None:
    tool = Tool(ConnectionResetError("reset"), ConnectionResetError("reset"))
    assert Framework(is_async=is_async).ask(tool) == "sun"
    (call,) = telemetry.calls
    assert tool.attempts == [1, 2, 3]
    assert (call.outcome, call.layer, call.retry_end) == (
        Outcome.OK, Layer.RETRY, RetryEnd.RECOVERED,
    )  # fmt: skip
    assert [attempt.fault is None for attempt in call.attempts] == [False, False, True]
    assert (call.call_id, call.agent, call.fault) == ("call-1", "helper", None)


@both
def test_a_framework_that_gives_up_ends_the_call(
    telemetry: RecordingTelemetry, is_async: bool
) -> None:
    errors = [ConnectionResetError(str(number)) for number in range(6)]
    with pytest.raises(ConnectionResetError, match="5") as caught:
        Framework(is_async=is_async).ask(Tool(*errors))
    assert caught.value is errors[-1]
    (call,) = telemetry.calls
    assert (call.outcome, len(call.attempts)) == (Outcome.ERROR, 6)
    assert call.retry_end is RetryEnd.EXHAUSTED
    assert call.fault is not None
    assert (call.fault.message, call.fault.verdict.error_class) == ("5", ErrorClass.L3_TRANSIENT)


@both
def test_one_run_that_fails_is_no_retry(telemetry: RecordingTelemetry, is_async: bool) -> None:
    with pytest.raises(KeyError):
        Framework(is_async=is_async, tries=1).ask(Tool(KeyError("x")))
    (call,) = telemetry.calls
    assert (call.outcome, call.layer, call.retry_end) == (
        Outcome.ERROR, Layer.TOOL, RetryEnd.NONE,
    )  # fmt: skip


@both
def test_control_flow_ends_the_call_at_once(telemetry: RecordingTelemetry, is_async: bool) -> None:
    with pytest.raises(asyncio.CancelledError):
        Framework(is_async=is_async).ask(Tool(asyncio.CancelledError()))
    assert [call.outcome for call in telemetry.calls] == [Outcome.CANCELLED]


@both
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"ok": False, "error_code": "quota", "status": 402}, Outcome.ERROR),
        ({"items": [1], "partial_failures": ["b"]}, Outcome.PARTIAL),
    ],
)
def test_what_a_tool_returns_is_judged(
    telemetry: RecordingTelemetry, is_async: bool, answer: Any, outcome: Outcome
) -> None:
    tool = Tool(ConnectionResetError(), answer=answer)
    assert Framework(is_async=is_async).ask(tool) == answer
    (call,) = telemetry.calls
    assert (call.outcome, len(call.attempts)) == (outcome, 2)


@both
def test_a_policy_has_the_last_word_on_how_often_a_tool_runs(
    telemetry: RecordingTelemetry, clock: FakeClock, is_async: bool
) -> None:
    policy = fuseboard.Policy(retry=fuseboard.Retry(attempts=2), effects="none")
    tool = Tool(*[ConnectionResetError("reset")] * 9)
    with pytest.raises(ConnectionResetError):
        Framework(is_async=is_async, policy=policy).ask(tool)
    assert tool.attempts == [1, 2]
    (call,) = telemetry.calls
    assert (call.outcome, len(call.attempts)) == (Outcome.ERROR, 2)


@both
def test_a_packet_ends_the_frameworks_tries(telemetry: RecordingTelemetry, is_async: bool) -> None:
    tool = Tool(*[ConnectionResetError("10.0.0.1 reset")] * 9)
    said = Framework(is_async=is_async, on_error="packet").ask(tool)
    assert "can't be reached" in said
    assert "10.0.0.1" not in said
    assert tool.attempts == [1]
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]


@both
def test_a_session_counts_each_run_and_none_is_made_beyond_its_budget(
    telemetry: RecordingTelemetry, is_async: bool
) -> None:
    errors = [ConnectionResetError(str(number)) for number in range(9)]
    tool = Tool(*errors)
    with (
        fuseboard.session(budget=fuseboard.Budget(retries=1)) as opened,
        pytest.raises(ConnectionResetError) as caught,
    ):
        Framework(is_async=is_async).ask(tool)
    assert caught.value is errors[1]  # what the tool said is worth more than that it was stopped
    assert tool.attempts == [1, 2]
    assert (opened.spent.requests, opened.spent.retries) == (2, 1)
    (call,) = telemetry.calls
    assert (call.outcome, call.layer, len(call.attempts)) == (Outcome.ERROR, Layer.BUDGET, 2)
    assert (call.retry_end, call.layer_actions) == (
        RetryEnd.STOPPED, ((Layer.BUDGET, "exhausted"),),
    )  # fmt: skip


@both
def test_a_call_that_its_session_refuses_is_rejected_once_however_often_it_is_tried(
    telemetry: RecordingTelemetry, is_async: bool
) -> None:
    tool = Tool()
    with fuseboard.session(budget=fuseboard.Budget(requests=1)):
        Framework(is_async=is_async).ask(Tool())
        with pytest.raises(fuseboard.SessionBudgetError):
            Framework(is_async=is_async).ask(tool)
    assert tool.attempts == []
    assert [call.outcome for call in telemetry.calls] == [Outcome.OK, Outcome.REJECTED]


@both
def test_the_frameworks_own_tries_are_no_repeats_of_the_models(
    telemetry: RecordingTelemetry, is_async: bool
) -> None:
    with fuseboard.session(repeats=fuseboard.Repeats(limit=2, action="reject")):
        framework = Framework(is_async=is_async)
        for _ in range(2):
            assert framework.ask(Tool(*[ConnectionResetError("reset")] * 4)) == "sun"
        with pytest.raises(fuseboard.RepeatedCallError):
            framework.ask(Tool())
    assert [call.outcome for call in telemetry.calls] == [Outcome.OK] * 2 + [Outcome.REJECTED]
