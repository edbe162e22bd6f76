"""Whatever a tool does, retry and breaker keep within their bounds."""

from __future__ import annotations

import contextlib
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fuseboard
from fuseboard import Breaker, ErrorClass, Outcome, Policy, Retry, Verdict
from fuseboard.conventions import BreakerState, RetryStrategy
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, Permit
from fuseboard.policy.registry import BREAKERS
from fuseboard.policy.retry import MAX_UNBOUNDED_WAIT, GiveUp, Wait, full_jitter, plan_retry
from fuseboard.runtime import RUNTIME

PASSING = Verdict(ErrorClass.L3_TRANSIENT, "test", True)
SHARED_FIXTURES = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None
)


def upper(low: float, high: float) -> float:
    return high


@given(
    st.floats(0, 10),
    st.floats(0, 100),
    st.integers(0, 10_000),
    st.floats(0, 1),
)
def test_full_jitter_stays_in_its_bounds(
    initial: float, more: float, number: int, share: float
) -> None:
    retry = Retry(wait_initial=initial, wait_max=initial + more)
    bounds = []

    def draw(low: float, high: float) -> float:
        bounds.append((low, high))
        return low + share * (high - low)

    wait = full_jitter(retry, number, draw)
    assert bounds == [(0.0, min(retry.wait_max, initial * 2.0 ** min(number, 64)))]
    assert 0 <= wait <= retry.wait_max


def test_full_jitter_doubles_to_the_cap() -> None:
    retry = Retry(wait_initial=0.5, wait_max=30)
    waits = [full_jitter(retry, number, upper) for number in range(9)]
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(
    ("retry", "budget", "retry_after", "elapsed", "expected"),
    [
        (Retry(), None, 5.0, 0, Wait(5.0, RetryStrategy.RETRY_AFTER)),
        (Retry(), None, 30.0, 0, GiveUp.BUDGET),
        (Retry(), None, 5.0, 26, GiveUp.BUDGET),
        (Retry(), 4.0, 5.0, 0, GiveUp.BUDGET),
        (Retry(budget=None), 6.0, 5.0, 0, Wait(5.0, RetryStrategy.RETRY_AFTER)),
        (Retry(budget=None), None, 9999.0, 0,
         Wait(MAX_UNBOUNDED_WAIT, RetryStrategy.RETRY_AFTER)),
        (None, None, None, 0, GiveUp.NO_RETRY),
        (Retry(attempts=1), None, None, 0, GiveUp.EXHAUSTED),
    ],
)  # fmt: skip
def test_budgets_and_retry_after(
    retry: Retry | None,
    budget: float | None,
    retry_after: float | None,
    elapsed: float,
    expected: Any,
) -> None:
    verdict = Verdict(ErrorClass.L3_TRANSIENT, "test", True, retry_after=retry_after)
    policy = Policy(retry=retry, budget=budget)
    assert plan_retry(policy, verdict, 1, elapsed, upper) == expected


@given(
    attempts=st.integers(1, 8),
    budget=st.floats(0.1, 60),
    wait_initial=st.floats(0, 5),
    durations=st.lists(st.floats(0, 20), min_size=8, max_size=8),
    retry_afters=st.lists(st.one_of(st.none(), st.floats(0, 50)), min_size=8, max_size=8),
)
@SHARED_FIXTURES
def test_attempts_and_total_time_are_bounded(
    telemetry: Any,
    clock: Any,
    attempts: int,
    budget: float,
    wait_initial: float,
    durations: list[float],
    retry_afters: list[float | None],
) -> None:
    """A sync tool on a fake clock can't be cut short, so what is bounded is when it begins."""
    begun: list[float] = []
    call_began = clock.now

    def flaky() -> None:
        n = len(begun)
        begun.append(clock.now - call_began)
        clock.move(durations[n])
        error = ConnectionRefusedError()
        error.status_code = 429  # type: ignore[attr-defined]
        after = retry_afters[n]
        error.headers = {} if after is None else {"retry-after": f"{after:.3f}"}  # type: ignore[attr-defined]
        raise error

    retry = Retry(attempts=attempts, wait_initial=wait_initial, wait_max=9, budget=budget)
    with pytest.raises(ConnectionRefusedError):
        fuseboard.wrap(flaky, policy=Policy(retry=retry))()
    assert 1 <= len(begun) <= attempts
    assert all(start < budget for start in begun), "no attempt begins after the budget's end"
    call = telemetry.last
    assert len(call.attempts) == len(begun)
    assert call.backoff_seconds <= budget
    assert call.duration == pytest.approx(call.backoff_seconds + sum(durations[: len(begun)]))


STEPS = st.lists(
    st.one_of(
        st.sampled_from(["acquire", "succeed", "fail", "ignore"]),
        st.floats(0, 40).map(lambda seconds: ("move", seconds)),
    ),
    max_size=80,
)


@given(probes=st.integers(1, 3), minimum=st.integers(2, 6), steps=STEPS)
@SHARED_FIXTURES
def test_never_more_probes_than_allowed(  # noqa: C901 - one case for each step
    clock: Any, probes: int, minimum: int, steps: Any
) -> None:
    transitions: list[Any] = []
    config = Breaker(
        minimum_throughput=minimum, break_duration=10, half_open_probes=probes, probe_lease=15
    )
    breaker = CircuitBreaker(BreakerKey("t"), config, clock, transitions.append)
    out: list[Permit] = []
    for step in steps:
        if isinstance(step, tuple):
            clock.move(step[1])
        elif step == "acquire":
            answer = breaker.acquire()
            if isinstance(answer, Permit):
                assert breaker.state in (BreakerState.CLOSED, BreakerState.HALF_OPEN)
                out.append(answer)
            else:
                assert breaker.state is not BreakerState.CLOSED
                assert answer.retry_after is not None
                assert answer.retry_after >= 0
        elif out:
            permit = out.pop(0)
            if step == "succeed":
                breaker.succeed(permit)
            elif step == "fail":
                breaker.fail(permit, ErrorClass.L3_TRANSIENT)
            else:
                breaker.ignore(permit)
        live = [
            permit
            for permit in out
            if permit.state is BreakerState.HALF_OPEN
            and permit.expires > clock.now
            and permit.generation == breaker._generation
        ]
        assert len(live) <= probes
    for before, after in pairwise(transitions):
        assert before.to_state is after.from_state
    for transition in transitions:
        if transition.reason == "failure_ratio":
            assert transition.calls >= minimum
            assert transition.failures >= config.failure_ratio * transition.calls


@given(
    endings=st.lists(st.sampled_from(["ok", "refused", "404", "cancelled", "late"]), max_size=60),
    attempts=st.integers(1, 4),
)
@SHARED_FIXTURES
def test_retry_and_breaker_together(
    telemetry: Any, clock: Any, endings: list[str], attempts: int
) -> None:
    """Every call ends once, keeps its attempts, and a healthy tool always comes back."""
    BREAKERS.clear()
    telemetry.calls.clear()
    waiting = list(endings)

    def tool() -> str:
        ending = waiting.pop(0) if waiting else "ok"
        clock.move(3 if ending == "late" else 0.1)
        if ending == "refused":
            raise ConnectionRefusedError
        if ending == "404":
            raise type("NotFound", (Exception,), {"status_code": 404})
        if ending == "cancelled":
            raise KeyboardInterrupt
        return "ok"

    policy = Policy(
        retry=Retry(attempts=attempts, wait_initial=0.1),
        breaker=Breaker(minimum_throughput=3, break_duration=5, sampling_duration=20),
    )
    guarded = fuseboard.wrap(tool, name="mixed", policy=policy)
    made = 0
    while waiting:
        made += 1
        with contextlib.suppress(Exception, KeyboardInterrupt):
            guarded()
        clock.move(0.5)
    assert len(telemetry.calls) == made
    assert all(len(call.attempts) <= attempts for call in telemetry.calls)
    rejected = [call for call in telemetry.calls if call.outcome is Outcome.REJECTED]
    assert all(call.attempts == [] for call in rejected)
    clock.move(6)
    assert guarded() == "ok"
    (status,) = RUNTIME.breaker_statuses()
    assert status.state is BreakerState.CLOSED
