"""HC-29: attempt time-outs and total budgets, hard for coroutines, by thread for functions."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import fuseboard
from fuseboard import (
    AbandonedThreadsError,
    AttemptTimeoutError,
    Breaker,
    BudgetExhaustedError,
    ErrorClass,
    Outcome,
    Policy,
    Retry,
)
from fuseboard.conventions import Layer, Origin
from fuseboard.policy import workers


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
    assert workers.THREADS.count_abandoned() == 1
    let_go.set()
    wait_until(lambda: workers.THREADS.count_abandoned() == 0)
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]


def test_hc_29_abandoned_threads_are_bounded(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(workers.THREADS, "limit", 8)
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
        wait_until(lambda: workers.THREADS.count_abandoned() == 0)
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


def test_hc_29_what_outlived_its_timeout_asks_late_and_still_learns_its_own_number(
    telemetry: Any,
) -> None:
    learnt: dict[int, int] = {}
    runs = iter((1, 2, 3))
    third_runs, late_ones_are_done = threading.Event(), threading.Barrier(3)

    @fuseboard.tool(policy=Policy(timeout=0.3, retry=Retry(wait_initial=0), effects="none"))
    def slow() -> None:
        run = next(runs)
        if run == 3:
            third_runs.set()
        assert third_runs.wait(10)
        current = fuseboard.current_call()
        assert current is not None
        learnt[run] = current.attempt
        late_ones_are_done.wait(10)

    slow()
    assert learnt == {1: 1, 2: 2, 3: 3}
    wait_until(lambda: workers.THREADS.count_abandoned() == 0)


def test_what_outlived_its_timeout_keeps_its_own_request_id(telemetry: Any) -> None:
    late: list[tuple[str, int]] = []
    second_runs = threading.Event()
    first_is_done = threading.Event()

    @fuseboard.tool(policy=Policy(timeout=1, retry=Retry(wait_initial=0), effects="none"))
    def slow() -> str:
        current = fuseboard.current_call()
        assert current is not None
        if current.attempt == 1:
            assert second_runs.wait(10)
            current.set_cost(0.5)
            late.append((current.request_id, current.attempt))
            first_is_done.set()
            return "late"
        second_runs.set()
        assert first_is_done.wait(10)
        assert current.request_id.endswith(":2")
        return "done"

    assert slow() == "done"
    ((request_id, attempt),) = late
    assert (request_id[-2:], attempt) == (":1", 1)
    assert [each.cost for each in telemetry.last.attempts] == [0.5, None]


@pytest.mark.parametrize("ending", ["returns", "raises", "pays"])
def test_hc_29_a_late_end_changes_neither_the_call_nor_its_breaker(
    telemetry: Any, ending: str
) -> None:
    let_go = threading.Event()
    breaker = Breaker(minimum_throughput=2, failure_ratio=0.6)

    @fuseboard.tool(policy=Policy(timeout=0.02, breaker=breaker))
    def work(*, hangs: bool) -> str:
        current = fuseboard.current_call()
        assert current is not None
        if hangs:
            let_go.wait(60)
            if ending == "raises":
                raise KeyError("late")
            if ending == "pays":
                current.set_cost(7.0)
        return "late"

    with pytest.raises(AttemptTimeoutError):
        work(hangs=True)
    (call,) = telemetry.calls
    before = dict(vars(call))
    let_go.set()
    wait_until(lambda: workers.THREADS.count_abandoned() == 0)
    assert dict(vars(call)) == before
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR]
    # One failure is in the window and nothing else: a second one opens the breaker, of 2 of 2.
    let_go.clear()
    with pytest.raises(AttemptTimeoutError):
        work(hangs=True)
    let_go.set()
    wait_until(lambda: workers.THREADS.count_abandoned() == 0)
    (opened,) = telemetry.transitions
    assert (opened.calls, opened.failures) == (2, 2)


def test_hc_29_timeouts_of_many_callers_at_once_are_each_counted_once(telemetry: Any) -> None:
    let_go = threading.Event()
    got: list[str] = []

    @fuseboard.tool(policy=Policy(timeout=0.2))
    def work(number: int) -> int:
        if number % 2:
            let_go.wait(60)
        return number

    def call(number: int) -> None:
        try:
            got.append("done" if work(number) == number else "mixed up")
        except AttemptTimeoutError:
            got.append("late")

    callers = [threading.Thread(target=call, args=(number,)) for number in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    let_go.set()
    wait_until(lambda: workers.THREADS.count_abandoned() == 0)
    assert sorted(got) == ["done"] * 8 + ["late"] * 8
    assert len(telemetry.calls) == 16
