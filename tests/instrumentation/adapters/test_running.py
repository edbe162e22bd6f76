"""Running calls of a framework: names, policies, refusals, and calls that two adapters see."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from typing import Any

import pytest
from tests.instrumentation.conftest import RecordingTelemetry

import fuseboard
from fuseboard import Breaker, ErrorClass, Fallback, Outcome, Policy, Retry
from fuseboard.adapters.findings import checked, report
from fuseboard.adapters.running import MAX_UNCERTAIN, FrameworkCalls, is_own_tool
from fuseboard.arguments import hash_arguments
from fuseboard.calls.invocation import RUNNING, Invocation
from fuseboard.classification import ResultFinding
from fuseboard.classification.results import MCP_IS_ERROR
from fuseboard.errors import ConfigurationError

OSLO = {"city": "Oslo"}
RETRY = Policy(retry=Retry(attempts=3, wait_initial=0.01), effects="none")


@pytest.fixture
def calls() -> FrameworkCalls:
    made = FrameworkCalls("instrument_it", lambda invocation, packet: ("answer", packet))
    made.configure(None)
    return made


def _fails(times: int, error: Exception | None = None) -> Any:
    left = [times]

    def fail() -> str:
        if left[0]:
            left[0] -= 1
            raise error or ConnectionError("no route")
        return "fine"

    return fail


def test_a_call_has_what_the_framework_says_of_it(telemetry: Any, calls: FrameworkCalls) -> None:
    invocation = Invocation(
        "weather", OSLO, call_id="call-1", session="s", agent="a", upstream="meteo"
    )
    assert calls.run(invocation, lambda: "sunny") == "sunny"
    call = telemetry.last
    assert (call.tool.name, call.call_id, call.session, call.agent, call.upstream) == (
        "weather", "call-1", "s", "a", "meteo"
    )  # fmt: skip
    assert call.args_hash == hash_arguments(OSLO)
    assert RUNNING.get() is None


def test_what_is_no_text_is_left_out(telemetry: Any, calls: FrameworkCalls) -> None:
    calls.run(Invocation("weather", None, call_id=3, session="", agent=object()), lambda: 1)
    call = telemetry.last
    assert (call.call_id, call.session, call.agent) == (None, None, None)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_policy_acts_by_name(
    telemetry: Any, clock: Any, calls: FrameworkCalls, is_async: bool
) -> None:
    calls.configure({"weather": RETRY})
    for name, attempts in (("weather", 3), ("other", 1)):
        fails = _fails(2)

        async def fails_later(fails: Any = fails) -> Any:
            await asyncio.sleep(0)
            return fails()

        try:
            if is_async:
                await calls.run_async(Invocation(name), fails_later)
            else:
                calls.run(Invocation(name), fails)
        except ConnectionError:
            assert name == "other"
        assert len(telemetry.last.attempts) == attempts


def test_a_new_policy_acts_from_the_next_call_on(
    telemetry: Any, clock: Any, calls: FrameworkCalls
) -> None:
    with pytest.raises(ConnectionError):
        calls.run(Invocation("weather"), _fails(1))
    calls.configure(RETRY)
    assert calls.run(Invocation("weather"), _fails(1)) == "fine"


@pytest.mark.parametrize("policy", [3, "often", {"weather": 3}, {3: RETRY}, [RETRY]])
def test_a_wrong_policy_is_refused(calls: FrameworkCalls, policy: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"instrument_it\(policy="):
        calls.configure(policy)


def test_a_policy_with_a_cache_is_refused_with_the_way_to_have_one(calls: FrameworkCalls) -> None:
    cached = Policy(cache=fuseboard.Cache(ttl=60), effects="none")
    for policy in (cached, {"weather": cached}):
        with pytest.raises(ConfigurationError, match=r"instrument_it.*cache.*@fuseboard\.tool"):
            calls.configure(policy)


def test_a_breaker_is_one_for_each_server_of_a_tool(
    telemetry: Any, clock: Any, calls: FrameworkCalls
) -> None:
    calls.configure(Policy(breaker=Breaker(minimum_throughput=2, failure_ratio=0.5)))
    for _ in range(2):
        with pytest.raises(ConnectionError):
            calls.run(Invocation("weather", upstream="one"), _fails(1))
    with pytest.raises(fuseboard.CircuitOpenError):
        calls.run(Invocation("weather", upstream="one"), _fails(0))
    assert calls.run(Invocation("weather", upstream="two"), _fails(0)) == "fine"


def test_hc_49_a_name_that_no_tool_has_is_no_name_of_a_tool(
    telemetry: Any, calls: FrameworkCalls
) -> None:
    calls.refuse_unknown(Invocation("wether", OSLO, call_id="call-1"))
    call = telemetry.last
    assert (call.tool.name, call.outcome, call.attempts) == ("_other", Outcome.ERROR, [])
    assert call.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert "'wether'" in call.fault.message
    assert call.call_id == "call-1"


def test_hc_49_names_that_nobody_can_check_are_bounded(
    telemetry: Any, calls: FrameworkCalls
) -> None:
    for number in range(MAX_UNCERTAIN + 50):
        calls.run(Invocation(f"invented_{number}", is_known=None), lambda: 1)
    assert len({call.tool.name for call in telemetry.calls}) == MAX_UNCERTAIN + 1
    calls.run(Invocation("listed"), lambda: 1)
    assert telemetry.last.tool.name == "listed"


@pytest.mark.parametrize("name", ["x" * 1000, "  "])
def test_a_strange_name_harms_nobody(telemetry: Any, calls: FrameworkCalls, name: str) -> None:
    assert calls.run(Invocation(name), lambda: "fine") == "fine"
    assert len(telemetry.calls) == 1


@pytest.mark.parametrize(
    ("error", "outcome", "error_class"),
    [
        (ValueError("no such argument"), Outcome.ERROR, ErrorClass.L1_INPUT),
        (TimeoutError(), Outcome.ERROR, ErrorClass.L3_TRANSIENT),
        (asyncio.CancelledError(), Outcome.CANCELLED, None),
    ],
)
def test_what_a_framework_refuses_is_a_call_without_an_attempt(
    telemetry: Any, calls: FrameworkCalls, error: BaseException, outcome: Any, error_class: Any
) -> None:
    invocation = Invocation("weather", OSLO)
    with pytest.raises(type(error)) as caught, calls.offer(invocation):
        raise error
    assert caught.value is error
    (call,) = telemetry.calls
    assert (call.outcome, call.attempts) == (outcome, [])
    assert (call.fault and call.fault.verdict.error_class) == error_class


def test_a_call_that_ran_is_not_refused_as_well(telemetry: Any, calls: FrameworkCalls) -> None:
    invocation = Invocation("weather", OSLO)
    with pytest.raises(RuntimeError), calls.offer(invocation):
        calls.run(invocation, lambda: 1)
        raise RuntimeError("after the tool")
    assert [call.outcome for call in telemetry.calls] == [Outcome.OK]


def test_one_call_that_two_adapters_see_is_one_call(telemetry: Any, calls: FrameworkCalls) -> None:
    inner = FrameworkCalls("instrument_inner")

    def run_inner() -> Any:
        assert inner.is_recorded("weather")
        assert not inner.is_recorded("other")
        assert not calls.is_recorded("weather"), "a tool that calls itself"
        return "fine"

    calls.run(Invocation("weather"), run_inner)
    assert not inner.is_recorded("weather")


def test_a_server_in_the_process_of_its_client_is_the_other_side(
    telemetry: Any, calls: FrameworkCalls
) -> None:
    server = FrameworkCalls("instrument_server")
    seen: list[bool] = []

    def serve() -> None:
        seen.append(server.is_recorded("weather"))
        seen.append(server.is_recorded("weather", is_remote=True))

    calls.run(Invocation("weather", is_remote=True), serve)
    assert seen == [False, True]


def test_a_tool_of_fuseboards_own_takes_over_what_the_framework_knows_once(
    telemetry: Any, calls: FrameworkCalls
) -> None:
    @fuseboard.tool
    def helper() -> None:
        pass

    @fuseboard.tool
    def own() -> str:
        helper()
        return "fine"

    assert not is_own_tool(print, None)
    assert is_own_tool(None, own)
    assert is_own_tool(helper)
    with calls.offer(Invocation("weather", call_id="call-1")):
        assert own() == "fine"
    own()
    named = {call.tool.name: call.call_id for call in telemetry.calls[:2]}
    assert named == {"helper": None, "own": "call-1"}
    assert [call.call_id for call in telemetry.calls[2:]] == [None, None]


class Reply:
    """A framework's own form of a result."""

    def __init__(self, is_error: bool) -> None:
        self.is_error = is_error


def _finding(reply: Any) -> ResultFinding | None:
    return ResultFinding(MCP_IS_ERROR, "said_so", "no") if reply.is_error else None


def test_a_returned_error_is_handed_on_and_is_an_error(
    telemetry: Any, calls: FrameworkCalls
) -> None:
    bad = Reply(True)
    assert calls.run(Invocation("weather"), lambda: checked(bad, _finding)) is bad
    assert telemetry.last.outcome is Outcome.ERROR
    assert (telemetry.last.fault.error_type, telemetry.last.fault.message) == ("said_so", "no")
    good = Reply(False)
    assert calls.run(Invocation("weather"), lambda: checked(good, _finding)) is good
    assert telemetry.last.outcome is Outcome.OK


def test_a_returned_error_is_retried_and_replaced_like_any_other(
    telemetry: Any, clock: Any, calls: FrameworkCalls
) -> None:
    retry = Retry(attempts=3, wait_initial=0.01, semantic=True)
    calls.configure(Policy(retry=retry, effects="none", fallback=Fallback(value="instead")))
    replies = [Reply(True), Reply(True), Reply(False)]
    value = calls.run(Invocation("weather"), lambda: checked(replies.pop(0), _finding))
    assert value.is_error is False
    assert calls.run(Invocation("weather"), lambda: checked(Reply(True), _finding)) == "instead"
    assert telemetry.last.outcome is Outcome.DEGRADED


def test_an_inner_adapter_tells_what_an_outer_one_cannot_see(
    telemetry: Any, calls: FrameworkCalls
) -> None:
    def run_inner() -> str:
        report(Reply(True), _finding)
        return "words for the model"

    assert calls.run(Invocation("weather"), run_inner) == "words for the model"
    assert telemetry.last.fault.error_type == "said_so"
    assert calls.run(Invocation("weather"), lambda: "fine") == "fine"
    assert telemetry.last.outcome is Outcome.OK


def test_a_finding_that_fails_harms_nobody(telemetry: Any, calls: FrameworkCalls) -> None:
    telemetry.may_fault = True
    assert calls.run(Invocation("weather"), lambda: checked(object(), _finding))
    assert telemetry.last.outcome is Outcome.OK


@pytest.mark.parametrize("name", ["langchain", "mcp", "fastmcp", "openai_agents"])
def test_an_adapter_without_its_framework_says_how_to_install_it(name: str) -> None:
    modules = {
        "langchain": "langchain_core", "mcp": "mcp", "fastmcp": "fastmcp", "openai_agents": "agents"
    }  # fmt: skip
    if importlib.util.find_spec(modules[name]) is not None:
        pytest.skip(f"{modules[name]} is installed here")
    from fuseboard import adapters

    function = getattr(adapters, f"instrument_{name}")
    extra = name.replace("_", "-")
    with pytest.raises(ConfigurationError, match=rf"pip install 'fuseboard\[{extra}\]'"):
        function()
    getattr(adapters, f"uninstrument_{name}")()
    assert modules[name] not in sys.modules


@pytest.mark.parametrize("said", [["Oslo"], "Oslo", 7, None])
def test_arguments_that_are_no_object_are_left_to_the_framework(
    telemetry: RecordingTelemetry, calls: FrameworkCalls, said: object
) -> None:
    assert calls.run(Invocation("weather", said), lambda: "fine") == "fine"
    assert [call.args_hash for call in telemetry.calls] == [hash_arguments({})]
