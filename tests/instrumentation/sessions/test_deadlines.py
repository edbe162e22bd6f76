"""Deadlines of turns and sessions: what begins late is rejected, what runs late is cut short."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

import fuseboard
from fuseboard import (
    AttemptTimeoutError,
    BudgetExhaustedError,
    CallRejectedError,
    ErrorClass,
    Fallback,
    Limit,
    Outcome,
    Policy,
    Retry,
    SessionBudgetError,
)
from fuseboard.conventions import Layer
from fuseboard.policy.breaker import BreakerKey
from fuseboard.policy.limiters import LIMITERS
from fuseboard.policy.workers import THREADS

GUARDED = Policy(retry=Retry(attempts=3, wait_initial=0), effects="none")


@pytest.fixture
def bare() -> Any:
    return fuseboard.wrap(lambda: None, name="bare")


def test_calls_that_begin_late_are_rejected_bare_ones_too(
    telemetry: Any, clock: Any, bare: Any
) -> None:
    with fuseboard.session("s1", timeout=60) as opened:
        with opened.step(timeout=10):
            clock.move(9.9)
            bare()
            clock.move(0.1)
            with pytest.raises(SessionBudgetError, match="the 10 s of its turn are over") as late:
                bare()
            assert (late.value.kind, late.value.budget) == ("turn", 10)
        bare()
        clock.move(50)
        with opened.step(timeout=10):
            with pytest.raises(SessionBudgetError, match="the 60 s of its session are over"):
                bare()
            with pytest.raises(SessionBudgetError), fuseboard.call("by_hand"):
                pass
    bare()
    outcomes = [str(call.outcome) for call in telemetry.calls]
    assert outcomes == ["ok", "rejected", "ok", "rejected", "rejected", "ok"]
    late_call = telemetry.calls[1]
    assert (late_call.layer, late_call.attempts) == (Layer.BUDGET, [])
    assert late_call.fault.verdict.error_class is ErrorClass.L4_PERSISTENT


def test_time_of_a_session_runs_from_its_first_entry(telemetry: Any, clock: Any, bare: Any) -> None:
    opened = fuseboard.session(timeout=10)
    clock.move(100)
    with opened:
        bare()
    clock.move(10)
    with opened, pytest.raises(SessionBudgetError):
        bare()


async def test_running_async_attempt_is_cut_short_to_the_turn(telemetry: Any) -> None:
    @fuseboard.tool(policy=GUARDED)
    async def hangs() -> None:
        await asyncio.sleep(60)

    async with fuseboard.turn(timeout=0.3):
        with pytest.raises(BudgetExhaustedError, match=r"used up the time of its turn of 0.3 s"):
            await hangs()
    call = telemetry.last
    assert (call.outcome, call.layer, len(call.attempts)) == (Outcome.ERROR, Layer.BUDGET, 1)
    assert call.layer_actions == (("budget", "exhausted"),)
    assert call.duration < 20


def test_running_sync_attempt_is_left_behind_at_the_deadline(telemetry: Any) -> None:
    let_go = threading.Event()

    @fuseboard.tool(policy=GUARDED)
    def hangs() -> None:
        let_go.wait(30)

    try:
        with fuseboard.session(timeout=0.3), pytest.raises(BudgetExhaustedError) as caught:
            hangs()
        assert not isinstance(caught.value, CallRejectedError), "it was called"
        assert "session of 0.3 s" in str(caught.value)
        assert THREADS.count_abandoned() == 1
    finally:
        let_go.set()
    deadline = time.monotonic() + 20
    while THREADS.count_abandoned():
        assert time.monotonic() < deadline
        time.sleep(0.001)


async def test_shortest_limit_wins_and_says_its_name(telemetry: Any) -> None:
    def tool_with(**limits: float) -> Any:
        @fuseboard.tool(policy=Policy(**limits))  # type: ignore[arg-type]
        async def hangs() -> None:
            await asyncio.sleep(60)

        return hangs

    with fuseboard.session(timeout=60), fuseboard.turn(timeout=30):
        with pytest.raises(AttemptTimeoutError):
            await tool_with(timeout=0.02)()
        with pytest.raises(BudgetExhaustedError, match=r"total time budget of 0\.02 s"):
            await tool_with(budget=0.02)()
    outer, inner = fuseboard.session(timeout=60), fuseboard.turn(timeout=0.3)
    with outer, inner, pytest.raises(BudgetExhaustedError, match="turn"):
        await tool_with(timeout=20, budget=30)()
    outer, inner = fuseboard.session(timeout=0.3), fuseboard.turn(timeout=30)
    with outer, inner, pytest.raises(BudgetExhaustedError, match="session"):
        await tool_with(timeout=20, budget=30)()


async def test_bare_tool_that_runs_is_never_cut_short(telemetry: Any) -> None:
    @fuseboard.tool
    async def slow() -> str:
        await asyncio.sleep(0.6)
        return "done"

    @fuseboard.tool
    def where() -> threading.Thread:
        return threading.current_thread()

    with fuseboard.turn(timeout=0.5):
        assert where() is threading.current_thread()
        assert await slow() == "done"
    assert telemetry.last.outcome is Outcome.OK


async def test_items_of_a_guarded_stream_come_within_the_deadline(telemetry: Any) -> None:
    @fuseboard.tool(policy=GUARDED)
    async def numbers() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(60)
        yield 2

    got = []
    with fuseboard.turn(timeout=0.3), pytest.raises(BudgetExhaustedError):
        async for item in numbers():
            got.append(item)
    assert got == [1]
    assert telemetry.last.stream_items == 1


def test_no_retry_is_planned_past_the_deadline(telemetry: Any, clock: Any, full_wait: None) -> None:
    policy = Policy(
        retry=Retry(attempts=5, wait_initial=4), effects="none", fallback=Fallback(value="old")
    )

    @fuseboard.tool(policy=policy)
    async def flaky() -> str:
        raise ConnectionResetError

    with fuseboard.turn(timeout=10):
        assert asyncio.run(flaky()) == "old"
    assert clock.slept == [4], "the next wait of 8 s would end after the turn"
    call = telemetry.last
    assert (call.outcome, len(call.attempts)) == (Outcome.DEGRADED, 2)
    assert call.layer_actions[0] == ("budget", "exhausted")


def test_wait_for_a_limit_ends_with_the_turn(telemetry: Any) -> None:
    limit = Limit(concurrency=1, wait=600)

    @fuseboard.tool(policy=Policy(limit=limit))
    async def later() -> None: ...

    place = LIMITERS.get(BreakerKey("later"), limit).enter()
    with fuseboard.turn(timeout=0.3), pytest.raises(SessionBudgetError, match="turn"):
        asyncio.run(later())
    place.give_back()
    assert telemetry.last.layer_actions == (("limit", "queued"), ("budget", "exhausted"))
