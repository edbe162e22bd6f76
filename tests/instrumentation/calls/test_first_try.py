"""The first attempt of a guarded call runs as a bare one; its policy must not notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import fuseboard
from fuseboard import Breaker, CircuitOpenError, Fallback, Outcome, Policy, Retry, Validation
from fuseboard.calls import guarded
from fuseboard.conventions import BreakerState, Layer, ResultSource
from fuseboard.policy.registry import BREAKERS
from fuseboard.runtime import RUNTIME

BREAKER = Breaker(failure_ratio=0.5, minimum_throughput=4, sampling_duration=60)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls for which a policy had to be asked."""
    made: list[Any] = []
    original = guarded.GuardedRun.__init__

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        made.append(self)
        original(self, *args, **kwargs)

    monkeypatch.setattr(guarded.GuardedRun, "__init__", noted)
    return made


def make(policy: Policy, kind: str, body: Callable[[int], Any]) -> Callable[[int], Any]:
    if kind == "sync":
        return fuseboard.tool(body, name="work", policy=policy)

    async def work(value: int) -> Any:
        return body(value)

    wrapped = fuseboard.tool(work, name="work", policy=policy)
    return lambda value: asyncio.run(wrapped(value))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_call_that_simply_succeeds_asks_no_policy(
    telemetry: Any, runs: list[Any], kind: str
) -> None:
    work = make(Policy(retry=Retry(), breaker=BREAKER), kind, lambda value: value)
    assert work(3) == 3
    assert runs == []
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.OK, Layer.TOOL)
    assert (call.result_source, call.breaker_state) == (ResultSource.LIVE, BreakerState.CLOSED)
    assert len(call.attempts) == 1
    assert call.attempts[0].duration == call.duration


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("policy", [Policy(timeout=5), Policy(budget=5)], ids=["timeout", "budget"])
def test_a_time_limit_alone_asks_no_policy(
    telemetry: Any, runs: list[Any], policy: Policy, kind: str
) -> None:
    work = make(policy, kind, lambda value: value)
    assert work(1) == 1
    assert runs == []


def test_a_key_is_made_before_the_first_try(telemetry: Any, runs: list[Any]) -> None:
    policy = Policy(idempotency_key=lambda arguments: str(arguments["value"]))
    work = make(policy, "sync", lambda value: value)
    assert work(1) == 1
    assert len(runs) == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_successes_of_first_tries_count_in_the_breakers_window(telemetry: Any, kind: str) -> None:
    def body(value: int) -> int:
        if value < 0:
            raise ConnectionResetError
        return value

    work = make(Policy(breaker=BREAKER), kind, body)
    for _ in range(6):
        work(1)
    for _ in range(5):
        with pytest.raises(ConnectionResetError):
            work(-1)
    assert telemetry.transitions == [], "5 of 11 is below one half"
    with pytest.raises(ConnectionResetError):
        work(-1)
    (opened,) = telemetry.transitions
    assert (opened.to_state, opened.calls, opened.failures) == (BreakerState.OPEN, 12, 6)
    with pytest.raises(CircuitOpenError):
        work(1)
    assert telemetry.last.outcome is Outcome.REJECTED


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_first_try_that_fails_is_the_first_attempt_of_its_policy(
    telemetry: Any, clock: Any, kind: str
) -> None:
    seen: list[int] = []

    def body(value: int) -> int:
        seen.append(value)
        if len(seen) < 3:
            raise ConnectionRefusedError("not yet")
        return value

    work = make(Policy(retry=Retry(attempts=3), breaker=BREAKER), kind, body)
    assert work(7) == 7
    call = telemetry.last
    assert [attempt.number for attempt in call.attempts] == [1, 2, 3]
    assert [attempt.fault is None for attempt in call.attempts] == [False, False, True]
    assert (call.outcome, call.layer) == (Outcome.OK, Layer.RETRY)
    assert telemetry.violations == []


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_first_answer_that_is_refused_goes_to_the_policy(telemetry: Any, kind: str) -> None:
    policy = Policy(validation=Validation(non_empty=True), fallback=(Fallback(value="spare"),))
    work = make(policy, kind, lambda value: [] if value else [1])
    assert work(0) == [1]
    assert work(1) == "spare"
    assert telemetry.last.outcome is Outcome.DEGRADED


def test_a_success_that_comes_after_the_breaker_opened_counts_nowhere(telemetry: Any) -> None:
    def body(value: int) -> int:
        if value < 0:
            raise ConnectionResetError
        if value:  # the breaker opens while this call runs
            for _ in range(4):
                with pytest.raises(ConnectionResetError):
                    work(-1)
        return value

    work = make(Policy(breaker=BREAKER), "sync", body)
    assert work(1) == 1
    breaker = BREAKERS.find("work")
    assert breaker is not None
    assert breaker.state is BreakerState.OPEN
    assert len(telemetry.transitions) == 1


def test_breakers_that_were_made_anew_are_found(telemetry: Any) -> None:
    work = make(Policy(breaker=BREAKER), "sync", lambda value: value)
    work(1)
    before = BREAKERS.find("work")
    BREAKERS.clear()
    work(1)
    after = BREAKERS.find("work")
    assert after is not None
    assert after is not before


def test_the_breaker_follows_the_region_of_the_process(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = make(Policy(breaker=BREAKER), "sync", lambda value: value)
    work(1)
    monkeypatch.setattr(RUNTIME, "region", "eu-west")
    work(1)
    assert BREAKERS.find("work") is not None
    assert BREAKERS.find("work/eu-west") is not None


def test_half_open_probes_are_not_gone_around(telemetry: Any, clock: Any) -> None:
    state = {"fails": True}

    def body(value: int) -> int:
        if state["fails"]:
            raise ConnectionResetError
        return value

    work = make(Policy(breaker=BREAKER), "sync", body)
    for _ in range(4):
        with pytest.raises(ConnectionResetError):
            work(1)
    with pytest.raises(CircuitOpenError):
        work(1)
    clock.move(61)
    state["fails"] = False
    assert work(1) == 1
    states = [transition.to_state for transition in telemetry.transitions]
    assert states == [BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED]
    assert telemetry.last.breaker_state is BreakerState.HALF_OPEN
