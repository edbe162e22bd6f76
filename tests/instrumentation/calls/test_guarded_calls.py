"""The onion: fallback, budget, retry, breaker, time-out and validation around one tool."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import httpx
import pytest

import fuseboard
from fuseboard import (
    AbandonedThreadsError,
    AttemptTimeoutError,
    Breaker,
    BudgetExhaustedError,
    CircuitOpenError,
    Confidence,
    ConfigurationError,
    ErrorClass,
    Fallback,
    Outcome,
    Policy,
    ResultSource,
    Retry,
    Validation,
)
from fuseboard.conventions import BreakerState, Layer, Origin, RetryEnd, RetryStrategy
from fuseboard.policy import timeout as timeouts

QUICK = Retry(attempts=3, wait_initial=0)


def status_error(status: int, **headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://127.0.0.1/")
    response = httpx.Response(status, request=request, headers=headers)
    return httpx.HTTPStatusError("?", request=request, response=response)


class Script:
    """Raises or returns one entry after the other."""

    def __init__(self, *events: Any) -> None:
        self.events = list(events)
        self.runs = 0

    def __call__(self) -> Any:
        event = self.events[min(self.runs, len(self.events) - 1)]
        self.runs += 1
        if isinstance(event, BaseException):
            raise event
        return event


def make_tool(script: Script, policy: Policy, *, is_async: bool = False) -> Any:
    """Return a function that runs a tool made of a script to its end."""
    if not is_async:
        return fuseboard.wrap(script, name="scripted", policy=policy)

    @fuseboard.tool(name="scripted", policy=policy)
    async def scripted() -> Any:
        await asyncio.sleep(0)
        return script()

    return lambda: asyncio.run(scripted())


BOTH = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])

AMBIGUOUS = [TimeoutError(), ConnectionResetError(), status_error(502), RuntimeError("?")]
REFUSALS = [ConnectionRefusedError(), status_error(429), status_error(503, **{"retry-after": "0"})]


@BOTH
@pytest.mark.parametrize("fault", AMBIGUOUS[:3], ids=repr)
@pytest.mark.parametrize(
    ("options", "effects"),
    [
        ({}, 1),
        ({"effects": "unsafe"}, 1),
        ({"effects": "idempotent"}, 3),
        ({"effects": "none"}, 3),
        ({"idempotency_key": lambda arguments: "k"}, 3),
    ],
    ids=["default", "unsafe", "idempotent", "none", "key"],
)
def test_hc_24_ambiguous_faults_are_repeated_only_where_it_does_no_harm(
    telemetry: Any, is_async: bool, fault: Exception, options: dict[str, Any], effects: int
) -> None:
    script = Script(fault)
    with pytest.raises(type(fault)):
        make_tool(script, Policy(retry=QUICK, **options), is_async=is_async)()
    assert script.runs == effects
    assert len(telemetry.last.attempts) == effects


@BOTH
@pytest.mark.parametrize("fault", REFUSALS, ids=repr)
@pytest.mark.parametrize("effects", ["unsafe", "idempotent", "none"])
def test_hc_24_refusals_prove_that_nothing_happened(
    telemetry: Any, is_async: bool, fault: Exception, effects: Any
) -> None:
    script = Script(fault, fault, "done")
    tool = make_tool(script, Policy(retry=QUICK, effects=effects), is_async=is_async)
    assert tool() == "done"
    assert script.runs == 3


@pytest.mark.parametrize("effects", ["unsafe", "none"])
def test_hc_24_our_own_timeout_is_ambiguous(telemetry: Any, effects: Any) -> None:
    sent = []

    @fuseboard.tool(policy=Policy(retry=Retry(attempts=2, wait_initial=0), timeout=0.05,
                                  effects=effects))  # fmt: skip
    async def send_email() -> None:
        sent.append(1)
        await asyncio.sleep(60)

    with pytest.raises(AttemptTimeoutError):
        asyncio.run(send_email())
    assert len(sent) == (1 if effects == "unsafe" else 2)


def test_hc_24_unknown_faults_are_never_retried(telemetry: Any) -> None:
    script = Script(RuntimeError("?"))
    with pytest.raises(RuntimeError):
        make_tool(script, Policy(retry=QUICK, effects="none"))()
    assert script.runs == 1


@pytest.mark.parametrize(
    ("fault", "fallback_effects", "runs"),
    [
        (TimeoutError(), "unsafe", 0),
        (TimeoutError(), "none", 1),
        (ConnectionRefusedError(), "unsafe", 1),
    ],
)
def test_hc_24_fallback_that_acts_is_passed_over_when_the_tool_may_have_acted(
    telemetry: Any, fault: Exception, fallback_effects: Any, runs: int
) -> None:
    other = Script("sent by another provider")
    policy = Policy(fallback=Fallback(other, effects=fallback_effects))
    tool = make_tool(Script(fault), policy)
    if runs:
        assert tool() == "sent by another provider"
    else:
        with pytest.raises(type(fault)):
            tool()
    assert other.runs == runs


@BOTH
def test_hc_24_attempts_share_the_key_and_differ_in_the_request(
    telemetry: Any, is_async: bool
) -> None:
    keys, requests = [], []

    def note() -> None:
        current = fuseboard.current_call()
        assert current is not None
        keys.append(current.idempotency_key)
        requests.append(current.request_id)
        raise ConnectionRefusedError

    tool = make_tool(note, Policy(retry=QUICK), is_async=is_async)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            tool()
    assert len(set(keys[:3])) == len(set(keys[3:])) == 1
    assert keys[0] != keys[3]
    assert requests[:3] == [f"{keys[0]}:{n}" for n in (1, 2, 3)]
    assert fuseboard.current_call() is None


def test_key_made_from_the_arguments(telemetry: Any) -> None:
    seen = []

    @fuseboard.tool(policy=Policy(idempotency_key=lambda arguments: f"order-{arguments['n']}"))
    def order(n: int) -> None:
        current = fuseboard.current_call()
        assert current is not None
        seen.append(current.request_id)

    order(7)
    assert seen == ["order-7:1"]


# --- HC-22: how long to wait ---------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({"retry-after": "5"}, [5.0]),
        ({"retry-after": "1.5"}, [1.5]),
        ({"retry-after-ms": "250", "retry-after": "9"}, [0.25]),
        ({"retry-after": "-1"}, [0.5]),
        ({"retry-after": "nan"}, [0.5]),
        ({"retry-after": "1e999"}, [0.5]),
        ({"retry-after": "garbage"}, [0.5]),
        ({"retry-after": ""}, [0.5]),
        ({"retry-after": "86400"}, []),
        ({"retry-after": "30"}, []),
    ],
    ids=str,
)
def test_hc_22_retry_after(
    telemetry: Any, clock: Any, full_wait: None, is_async: bool, headers: Any, waits: list[float]
) -> None:
    error = status_error(429, **headers)
    script = Script(error, "done")
    tool = make_tool(script, Policy(retry=Retry(attempts=2)), is_async=is_async)
    if waits:
        assert tool() == "done"
        assert telemetry.last.backoff_seconds == sum(waits)
    else:
        with pytest.raises(httpx.HTTPStatusError) as caught:
            tool()
        assert caught.value is error, "the tool's own error, not ours"
        assert telemetry.last.layer is Layer.BUDGET
        assert telemetry.last.outcome is Outcome.ERROR
    assert clock.slept == waits


def test_retry_says_what_it_did(telemetry: Any, clock: Any, full_wait: None) -> None:
    script = Script(status_error(503), status_error(503), "done")
    assert make_tool(script, Policy(retry=Retry(), effects="none"))() == "done"
    call = telemetry.last
    assert clock.slept == [0.5, 1.0]
    assert (call.outcome, call.layer, call.retry_end) == (Outcome.OK, Layer.RETRY, "recovered")
    assert call.retry_strategy is RetryStrategy.EXPONENTIAL_BACKOFF_FULL_JITTER
    assert call.fault is None, "a fault that retries handled is not the call's"
    assert [a.fault is None for a in call.attempts] == [False, False, True]


def test_retries_end_exhausted_or_stopped(telemetry: Any, clock: Any) -> None:
    policy = Policy(retry=Retry(), effects="none")
    with pytest.raises(httpx.HTTPStatusError):
        make_tool(Script(status_error(503)), policy)()
    assert telemetry.last.retry_end is RetryEnd.EXHAUSTED
    assert telemetry.last.layer is Layer.RETRY
    with pytest.raises(httpx.HTTPStatusError):
        make_tool(Script(status_error(503), status_error(404)), policy)()
    assert telemetry.last.retry_end is RetryEnd.STOPPED
    assert telemetry.last.fault.verdict.http_status == 404


# --- Breaker in the onion ------------------------------------------------------------------

OPENS_AT_2 = Breaker(minimum_throughput=2, break_duration=60)


@BOTH
def test_open_breaker_rejects_without_an_attempt(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    script = Script(ConnectionResetError())
    tool = make_tool(script, Policy(breaker=OPENS_AT_2), is_async=is_async)
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            tool()
    clock.move(10)
    with pytest.raises(CircuitOpenError) as caught:
        tool()
    assert script.runs == 2
    assert caught.value.retry_after == pytest.approx(50)
    assert caught.value.error_class is ErrorClass.L3_TRANSIENT
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.REJECTED, Layer.BREAKER)
    assert call.attempts == []
    assert call.breaker_state is BreakerState.OPEN
    assert call.fault.verdict.classifier_id == "circuit_open"
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
    (transition,) = telemetry.transitions
    assert transition.call is telemetry.calls[1]
    assert (transition.calls, transition.failures, transition.failure_ratio) == (2, 2, 1.0)


def test_breaker_that_opens_in_mid_retry_stops_the_retry(telemetry: Any, clock: Any) -> None:
    error = ConnectionRefusedError()
    script = Script(error)
    policy = Policy(retry=Retry(attempts=9), breaker=OPENS_AT_2)
    with pytest.raises(ConnectionRefusedError) as caught:
        make_tool(script, policy)()
    assert caught.value is error
    assert script.runs == 2
    assert len(clock.slept) == 1, "it does not wait for a rejection"
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.ERROR, Layer.BREAKER)
    assert call.retry_end is RetryEnd.STOPPED
    assert ("breaker", "rejected") in call.layer_actions


def test_breaker_of_scope_call_judges_whole_calls(telemetry: Any, clock: Any) -> None:
    breaker = Breaker(minimum_throughput=2, scope="call")
    script = Script(*[ConnectionRefusedError()] * 6)
    tool = make_tool(script, Policy(retry=Retry(attempts=3), breaker=breaker))
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            tool()
    assert script.runs == 6
    with pytest.raises(CircuitOpenError):
        tool()


def test_breakers_are_apart_by_region_and_upstream(telemetry: Any, clock: Any) -> None:
    @fuseboard.tool(
        policy=Policy(breaker=OPENS_AT_2),
        region=lambda arguments: arguments["region"],
        upstream=lambda arguments: arguments["host"],
    )
    def fetch(region: str, host: str, *, fails: bool) -> str:
        if fails:
            raise ConnectionResetError
        return "ok"

    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            fetch("eu", "a", fails=True)
    with pytest.raises(CircuitOpenError, match="fetch/eu/a"):
        fetch("eu", "a", fails=False)
    assert fetch("us", "a", fails=False) == "ok"
    assert fetch("eu", "b", fails=False) == "ok"
    assert (telemetry.last.region, telemetry.last.upstream) == ("eu", "b")


# --- Time ----------------------------------------------------------------------------------


async def test_async_timeout_is_hard_and_says_so(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(timeout=0.05))
    async def hangs() -> None:
        await asyncio.sleep(60)

    with pytest.raises(AttemptTimeoutError, match=r"'hangs' did not answer within .* 0.05 s"):
        await hangs()
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.ERROR, Layer.TIMEOUT)
    assert ("timeout", "timed_out") in call.layer_actions
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_tools_own_timeout_error_is_the_tools(telemetry: Any) -> None:
    error = TimeoutError("my own")

    @fuseboard.tool(policy=Policy(timeout=30))
    async def gives_up() -> None:
        raise error

    with pytest.raises(TimeoutError) as caught:
        await gives_up()
    assert caught.value is error
    assert telemetry.last.layer is Layer.TOOL


async def test_budget_cuts_the_attempt_short(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(budget=0.05, retry=Retry(), effects="none"))
    async def hangs() -> None:
        await asyncio.sleep(60)

    with pytest.raises(BudgetExhaustedError):
        await hangs()
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.ERROR, Layer.BUDGET)
    assert call.fault.verdict.error_class is ErrorClass.L4_PERSISTENT
    assert call.fault.verdict.origin is Origin.ORCHESTRATION
    assert call.duration < 5


def test_sync_timeout_leaves_the_thread_behind_and_ignores_its_late_result(
    telemetry: Any,
) -> None:
    let_go = threading.Event()

    @fuseboard.tool(policy=Policy(timeout=0.05))
    def hangs() -> str:
        let_go.wait(60)
        return "late"

    with pytest.raises(AttemptTimeoutError):
        hangs()
    assert timeouts.THREADS.count_abandoned() == 1
    let_go.set()
    wait_until(lambda: timeouts.THREADS.count_abandoned() == 0)
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]


def test_hc_29_abandoned_threads_are_bounded(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(timeouts.THREADS, "limit", 8)
    before = threading.active_count()

    @fuseboard.tool(policy=Policy(timeout=0.01))
    def hangs() -> None:
        let_go.wait(60)

    try:
        for _ in range(50):
            with pytest.raises((AttemptTimeoutError, AbandonedThreadsError)):
                hangs()
        assert threading.active_count() - before <= 8
    finally:
        let_go.set()
        wait_until(lambda: timeouts.THREADS.count_abandoned() == 0)
    outcomes = [call.outcome for call in telemetry.calls]
    assert outcomes == [Outcome.ERROR] * 8 + [Outcome.REJECTED] * 42
    assert telemetry.last.layer is Layer.LIMIT
    assert telemetry.last.fault.verdict.origin is Origin.ORCHESTRATION


def test_sync_timeout_keeps_context_and_exception(telemetry: Any) -> None:
    error = KeyError("x")

    @fuseboard.tool(policy=Policy(timeout=30))
    def breaks() -> None:
        assert fuseboard.current_call() is not None
        raise error

    with pytest.raises(KeyError) as caught:
        breaks()
    assert caught.value is error


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


# --- Fallback and validation ----------------------------------------------------------------


@BOTH
def test_fallbacks_are_tried_in_order_and_labelled(telemetry: Any, is_async: bool) -> None:
    def cached() -> str:
        current = fuseboard.current_call()
        assert current is not None
        current.set_result_age(90)
        return "stale"

    policy = Policy(
        fallback=(
            Script(OSError("the first fails")),
            Fallback(Script({"ok": False}), name="packet"),
            Fallback(cached, source=ResultSource.CACHE, confidence=Confidence.MEDIUM),
            Fallback(value="never reached"),
        )
    )
    assert make_tool(Script(status_error(503)), policy, is_async=is_async)() == "stale"
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.DEGRADED, Layer.FALLBACK)
    assert call.fault.verdict.http_status == 503, "the class of the fault that was handled"
    assert call.retry_strategy is RetryStrategy.SWITCH
    assert (call.result_source, call.confidence) == (ResultSource.CACHE, Confidence.MEDIUM)
    assert (call.fallback_tool, call.result_age_seconds) == ("cached", 90)
    assert call.layer_actions == [
        ("fallback", "failed"),
        ("fallback", "failed"),
        ("fallback", "served"),
    ]


def test_rejected_call_is_served_by_the_fallback(telemetry: Any, clock: Any) -> None:
    policy = Policy(breaker=OPENS_AT_2, fallback=Fallback(value={"forecast": None}))
    tool = make_tool(Script(ConnectionResetError()), policy)
    answers = [tool() for _ in range(3)]
    assert answers == [{"forecast": None}] * 3
    assert answers[0] is not answers[1], "a caller may change what it got"
    call = telemetry.last
    assert (call.outcome, call.attempts) == (Outcome.DEGRADED, [])
    assert call.fault.verdict.classifier_id == "circuit_open"
    assert (call.result_source, call.confidence) == (ResultSource.DEFAULT, Confidence.LOW)


def test_callers_mistake_is_not_papered_over(telemetry: Any) -> None:
    policy = Policy(fallback=Fallback(value=0))
    with pytest.raises(httpx.HTTPStatusError):
        make_tool(Script(status_error(422)), policy)()
    assert telemetry.last.outcome is Outcome.ERROR


def test_async_fallback(telemetry: Any) -> None:
    async def other() -> str:
        await asyncio.sleep(0)
        return "other"

    tool = make_tool(Script(OSError()), Policy(fallback=other), is_async=True)
    assert tool() == "other"
    with pytest.raises(ConfigurationError, match="needs an async tool"):
        make_tool(Script(1), Policy(fallback=other))


async def test_cancelled_in_the_fallback_is_cancelled(telemetry: Any) -> None:
    async def other() -> None:
        task.cancel()
        await asyncio.sleep(60)

    @fuseboard.tool(policy=Policy(fallback=other))
    async def fails() -> None:
        raise OSError

    task = asyncio.create_task(fails())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert telemetry.last.outcome is Outcome.CANCELLED


@pytest.mark.parametrize("empty", [None, "", "  ", [], {}, ()])
def test_empty_answers_fail_only_where_asked(telemetry: Any, empty: Any) -> None:
    assert make_tool(Script(empty), Policy())() == empty
    assert telemetry.last.outcome is Outcome.OK
    policy = Policy(validation=Validation(non_empty=True))
    assert make_tool(Script(empty), policy)() == empty
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.ERROR, Layer.VALIDATION)
    assert call.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
    assert ("validation", "failed") in call.layer_actions


def test_unusable_answers_are_retried_where_asked(telemetry: Any) -> None:
    policy = Policy(
        retry=Retry(wait_initial=0, semantic=True),
        validation=Validation(non_empty=True),
        effects="none",
    )
    assert make_tool(Script([], [], [1]), policy)() == [1]
    assert len(telemetry.last.attempts) == 3


def test_returned_error_with_a_transient_status_is_retried(telemetry: Any) -> None:
    packet = {"ok": False, "status": 503}
    tool = make_tool(Script(packet, {"ok": True}), Policy(retry=QUICK, effects="none"))
    assert tool() == {"ok": True}
    tool = make_tool(Script(packet), Policy(retry=QUICK, effects="none"))
    assert tool() is packet, "exhausted: the tool's own value comes back"
    assert telemetry.last.outcome is Outcome.ERROR
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


class GraphInterrupt(Exception):  # noqa: N818
    __module__ = "langgraph.errors"


class Approval(GraphInterrupt):
    """A user's own kind of pause."""


@BOTH
@pytest.mark.parametrize("cls", [GraphInterrupt, Approval])
def test_hc_17_control_flow_is_no_failure(telemetry: Any, is_async: bool, cls: Any) -> None:
    pause = cls({"question": "book?"})
    script = Script(pause)
    policy = Policy(
        retry=QUICK,
        breaker=Breaker(minimum_throughput=2),
        fallback=Fallback(value="instead"),
        effects="none",
    )
    tool = make_tool(script, policy, is_async=is_async)
    for _ in range(5):
        with pytest.raises(cls) as caught:
            tool()
        assert caught.value is pause
    assert script.runs == 5
    assert {call.outcome for call in telemetry.calls} == {Outcome.INTERRUPTED}
    assert telemetry.transitions == []


def test_hc_17_users_own_interrupt(telemetry: Any) -> None:
    class AskHuman(Exception):  # noqa: N818
        pass

    @fuseboard.classifier
    def pauses(error: BaseException) -> Any:
        return Outcome.INTERRUPTED if isinstance(error, AskHuman) else None

    with pytest.raises(AskHuman):
        make_tool(Script(AskHuman()), Policy(retry=QUICK, fallback=Fallback(value=1)))()
    assert telemetry.last.outcome is Outcome.INTERRUPTED


def test_costs_of_attempts_add_up(telemetry: Any) -> None:
    costs = iter([0.5, 0.25])

    def costly() -> str:
        current = fuseboard.current_call()
        assert current is not None
        cost = next(costs)
        current.set_cost(cost)
        with pytest.raises(ValueError, match="set_cost"):
            current.set_cost(float("nan"))
        if cost == 0.5:
            raise ConnectionRefusedError
        return "done"

    fuseboard.wrap(costly, policy=Policy(retry=QUICK))()
    assert telemetry.last.cost == 0.75
    assert [attempt.cost for attempt in telemetry.last.attempts] == [0.5, 0.25]
