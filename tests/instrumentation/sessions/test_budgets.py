"""What the calls of a session may use up together: retries, requests, cost."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from subprocess import CompletedProcess
from typing import Any

import pytest

import fuseboard
from fuseboard import (
    Breaker,
    Budget,
    CallRejectedError,
    ConfigurationError,
    ErrorClass,
    Fallback,
    Limit,
    Outcome,
    Policy,
    Retry,
    SessionBudgetError,
)
from fuseboard.conventions import BreakerState, Layer, Origin, RetryEnd
from fuseboard.policy.registry import BREAKERS
from fuseboard.sessions.accounts import Account, take_attempt

RETRYING = Policy(retry=Retry(attempts=4, wait_initial=0), effects="none")


def make_flaky(policy: Policy) -> Any:
    @fuseboard.tool(policy=policy)
    def flaky() -> str:
        raise ConnectionResetError

    return flaky


def test_retries_stop_when_the_sessions_are_used_up(telemetry: Any) -> None:
    flaky = make_flaky(RETRYING)
    with fuseboard.session("s1", budget=Budget(retries=4)) as opened:
        for _ in range(3):
            with pytest.raises(ConnectionResetError):
                flaky()
    assert [len(call.attempts) for call in telemetry.calls] == [4, 2, 1]
    assert [call.layer for call in telemetry.calls] == [Layer.RETRY, Layer.BUDGET, Layer.BUDGET]
    assert ("budget", "exhausted") in telemetry.last.layer_actions
    assert telemetry.last.outcome is Outcome.ERROR
    assert telemetry.calls[1].retry_end is RetryEnd.STOPPED
    assert opened.spent == (4, 7, 0.0)
    with pytest.raises(ConnectionResetError):
        flaky()
    assert len(telemetry.last.attempts) == 4, "outside of the session nothing is shared"


def test_fallback_serves_at_once_when_no_retry_is_left(telemetry: Any, clock: Any) -> None:
    policy = Policy(retry=Retry(attempts=4), effects="none", fallback=Fallback(value="old"))
    flaky = make_flaky(policy)
    with fuseboard.session(budget=Budget(retries=0)):
        assert flaky() == "old"
    call = telemetry.last
    assert (call.outcome, len(call.attempts), clock.slept) == (Outcome.DEGRADED, 1, [])


def test_requests_beyond_the_budget_are_rejected_also_of_bare_tools(telemetry: Any) -> None:
    runs = 0

    @fuseboard.tool
    def bare() -> None:
        nonlocal runs
        runs += 1

    with fuseboard.session(budget=Budget(requests=3)) as opened:
        for _ in range(3):
            bare()
        with pytest.raises(SessionBudgetError, match="used up its budget of 3 requests") as caught:
            bare()
        assert (caught.value.kind, caught.value.budget) == ("requests", 3)
        assert isinstance(caught.value, CallRejectedError | fuseboard.BudgetExhaustedError)
        with (
            pytest.raises(SessionBudgetError),
            fuseboard.call("by_hand"),
        ):
            raise AssertionError("the block must not run")
    assert runs == 3
    for call in telemetry.calls[3:]:
        assert (call.outcome, call.layer, call.attempts) == (Outcome.REJECTED, Layer.BUDGET, [])
        assert call.layer_actions == (("budget", "exhausted"),)
        verdict = call.fault.verdict
        assert (verdict.error_class, verdict.origin, verdict.ambiguous) == (
            ErrorClass.L4_PERSISTENT,
            Origin.ORCHESTRATION,
            False,
        )
    assert opened.spent.requests == 3
    bare()


async def test_requests_of_every_kind_of_tool_count(telemetry: Any) -> None:
    @fuseboard.tool
    async def later() -> None: ...

    @fuseboard.tool
    def numbers() -> Iterator[int]:
        yield 1

    @fuseboard.tool
    async def later_numbers() -> AsyncIterator[int]:
        yield 1

    @fuseboard.tool
    def returned() -> Iterator[int]:
        return (n for n in (1,))

    async with fuseboard.session(budget=Budget(requests=5)) as opened:
        await later()
        assert list(numbers()) == [1]
        assert [n async for n in later_numbers()] == [1]
        assert list(returned()) == [1]
        with fuseboard.call("by_hand"):
            pass
        assert opened.spent.requests == 5
        with pytest.raises(SessionBudgetError):
            await later()
        with pytest.raises(SessionBudgetError):
            list(numbers())
        with pytest.raises(SessionBudgetError):
            [n async for n in later_numbers()]
        with pytest.raises(SessionBudgetError):
            returned()
    assert [call.outcome for call in telemetry.calls[5:]] == [Outcome.REJECTED] * 4


def test_bare_tools_within_a_budget_behave_as_without(telemetry: Any) -> None:
    error = KeyError("mine")

    @fuseboard.tool
    def fails() -> None:
        raise error

    @fuseboard.tool
    def partial() -> dict[str, Any]:
        return {"partial_failures": [{"item": 1, "reason": "x", "retryable": False}]}

    for budget in (None, Budget(requests=100)):
        with fuseboard.session("s1", budget=budget):
            with pytest.raises(KeyError) as caught:
                fails()
            assert caught.value is error
            partial()
    facts = [
        (c.outcome, c.layer, c.retry_strategy, c.partial_failures, len(c.attempts), c.layer_actions)
        for c in telemetry.calls
    ]
    assert facts[:2] == facts[2:]


def test_requests_end_in_mid_retry_with_the_tools_own_error(telemetry: Any) -> None:
    flaky = make_flaky(RETRYING)
    with fuseboard.session(budget=Budget(requests=2)):
        with pytest.raises(ConnectionResetError):
            flaky()
        with pytest.raises(SessionBudgetError):
            flaky()
    assert [len(call.attempts) for call in telemetry.calls] == [2, 0]


def test_cost_is_bounded(telemetry: Any) -> None:
    @fuseboard.tool
    def priced() -> None:
        current = fuseboard.current_call()
        assert current is not None
        current.set_cost(0.4)

    with fuseboard.session(budget=Budget(cost=1.0)) as opened:
        for _ in range(3):
            priced()
        with pytest.raises(SessionBudgetError, match="reached its cost budget of 1") as caught:
            priced()
    assert caught.value.kind == "cost"
    assert opened.spent == (0, 3, pytest.approx(1.2))


def test_cost_of_a_call_by_hand_counts(telemetry: Any) -> None:
    with fuseboard.session(budget=Budget(cost=1.0)) as opened:
        with fuseboard.call("by_hand") as call:
            call.set_cost(1.5)
        with pytest.raises(SessionBudgetError), fuseboard.call("by_hand"):
            pass
    assert opened.spent == (0, 1, 1.5)


def test_retry_that_would_pass_the_cost_is_not_made(telemetry: Any) -> None:
    @fuseboard.tool(policy=RETRYING)
    def priced() -> None:
        current = fuseboard.current_call()
        assert current is not None
        current.set_cost(0.6)
        raise ConnectionResetError

    with fuseboard.session(budget=Budget(cost=1.0)), pytest.raises(ConnectionResetError):
        priced()
    assert len(telemetry.last.attempts) == 2


def test_budgets_of_nested_sessions_both_apply_and_take_all_or_nothing(telemetry: Any) -> None:
    @fuseboard.tool
    def bare() -> None: ...

    with fuseboard.session("outer", budget=Budget(requests=3)) as outer:
        with fuseboard.session("inner", budget=Budget(requests=2)) as inner:
            bare()
            bare()
            with pytest.raises(SessionBudgetError, match="2 requests"):
                bare()
        assert (outer.spent.requests, inner.spent.requests) == (2, 2)
        with fuseboard.session("another", budget=Budget(requests=9)) as another:
            bare()
            with pytest.raises(SessionBudgetError, match="3 requests"):
                bare()
        assert (outer.spent.requests, another.spent.requests) == (3, 1)


def test_object_entered_again_goes_on_counting(telemetry: Any) -> None:
    @fuseboard.tool
    def bare() -> None: ...

    opened = fuseboard.session("s1", budget=Budget(requests=2))
    for _ in range(2):
        with opened:
            bare()
    with opened, pytest.raises(SessionBudgetError):
        bare()


def test_refused_attempt_spends_nothing_and_gives_breaker_and_limit_back(
    telemetry: Any, clock: Any
) -> None:
    policy = Policy(
        breaker=Breaker(minimum_throughput=2, break_duration=10), limit=Limit(concurrency=1)
    )
    is_well = False

    @fuseboard.tool(policy=policy)
    def remote() -> str:
        if is_well:
            return "ok"
        raise ConnectionResetError

    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            remote()
    with fuseboard.session(budget=Budget(requests=1)) as opened:
        with pytest.raises(fuseboard.CircuitOpenError):
            remote()
        assert opened.spent.requests == 0, "the breaker's rejections cost no request"
        is_well = True
        with fuseboard.call("by_hand"):
            pass
        clock.move(10)
        for _ in range(3):
            with pytest.raises(SessionBudgetError):
                remote()
    breaker = BREAKERS.find("remote")
    assert breaker is not None
    assert breaker.state is BreakerState.HALF_OPEN
    assert remote() == "ok"
    assert breaker.state is BreakerState.CLOSED


def test_hc_28_threads_and_loops_never_overspend(telemetry: Any) -> None:
    runs = []
    barrier = threading.Barrier(10)

    @fuseboard.tool
    def now() -> None:
        runs.append(1)

    @fuseboard.tool(policy=RETRYING)
    async def later() -> None:
        runs.append(1)
        await asyncio.sleep(0)
        raise ConnectionResetError

    refused = []

    def by_thread() -> None:
        barrier.wait(30)
        for _ in range(20):
            try:
                now()
            except SessionBudgetError:
                refused.append(1)

    async def many() -> None:
        await asyncio.gather(*(later() for _ in range(20)), return_exceptions=True)

    def by_loop() -> None:
        barrier.wait(30)
        asyncio.run(many())

    with fuseboard.session(budget=Budget(requests=123, retries=17)) as opened:
        with ThreadPoolExecutor(10) as pool:
            jobs = [by_thread] * 8 + [by_loop] * 2
            for done in [pool.submit(contextvars.copy_context().run, job) for job in jobs]:
                done.result(60)
        spent = opened.spent
    assert len(runs) == spent.requests == 123
    assert spent.retries <= 17
    made = sum(len(call.attempts) for call in telemetry.calls)
    retries = sum(max(0, len(call.attempts) - 1) for call in telemetry.calls)
    assert (made, retries) == (spent.requests, spent.retries)
    assert refused, "or nothing was tested"


def test_checking_and_taking_are_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    account = Account(Budget(requests=1000, retries=300))
    barrier, taken = threading.Barrier(8), []
    missing = Account._missing

    def slowly(self: Account, is_retry: bool, cost: float = 0.0) -> str | None:
        found = missing(self, is_retry, cost)
        time.sleep(0)  # lets another thread in, if it may
        return found

    monkeypatch.setattr(Account, "_missing", slowly)

    def work() -> None:
        barrier.wait(30)
        for number in range(300):
            if take_attempt((account,), "tool", is_retry=number % 2 == 0) is None:
                taken.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(taken) == account.spent.requests == 1000
    assert account.spent.retries == 300


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, r"Budget\(\): must be given"),
        ({"retries": -1}, r"Budget\(retries=-1\)"),
        ({"retries": True}, r"Budget\(retries=True\)"),
        ({"requests": 0}, r"Budget\(requests=0\)"),
        ({"cost": 0}, r"Budget\(cost=0\)"),
        ({"cost": float("nan")}, r"Budget\(cost=nan\)"),
    ],
    ids=repr,
)
def test_wrong_budgets_are_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Budget(**wrong)


FORK = """
import os, signal, threading
import fuseboard
from fuseboard import Budget, Limit, Policy, Repeats
from fuseboard.policy.limiters import LIMITERS
from fuseboard.policy.breaker import BreakerKey
from fuseboard.sessions import accounts, progress

limit = Limit(concurrency=1, wait=30)

@fuseboard.tool(policy=Policy(limit=limit))
def held(stop=None):
    if stop:
        inside.set()
        stop.wait()

inside, forever = threading.Event(), threading.Event()
threading.Thread(target=held, args=(forever,), daemon=True).start()
assert inside.wait(10)
threading.Thread(target=held, daemon=True).start()  # waits in the queue
limiter = LIMITERS.get(BreakerKey("held"), limit)
while not limiter.waiting:
    pass
locks = [LIMITERS._lock, limiter._lock, accounts.COUNTING.lock, progress.TICKER._changed]

def hold():
    for lock in locks:
        lock.acquire()
    taken.set()
    forever.wait()

taken = threading.Event()
told = threading.Event()
with fuseboard.session("s1", budget=Budget(requests=3), repeats=Repeats(), timeout=60,
                       on_progress=lambda progress: told.set(), progress_seconds=0.05) as opened:
    with fuseboard.call("before"):
        pass
    threading.Thread(target=hold, daemon=True).start()
    assert taken.wait(10)
    child = os.fork()
    if child == 0:
        signal.alarm(15)  # kills it where it waits for ever
        held()
        assert (limiter.running, limiter.waiting) == (0, 0)
        assert opened.spent.requests == 2
        with fuseboard.session("s2"), fuseboard.call("slow"):
            assert told.wait(10)
        try:
            held()
        except fuseboard.SessionBudgetError:
            pass
        else:
            os._exit(8)
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_hc_06_forked_child_has_free_slots_and_its_own_count_though_all_locks_were_held(
    run_script: Callable[..., CompletedProcess[str]],
) -> None:
    done = run_script(FORK)
    assert done.stdout == "7\n", done.stderr
