"""Telling the user that a slow call is still running."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import fuseboard
from fuseboard import ConfigurationError, Policy, Progress, Retry, guard
from fuseboard.sessions.progress import TICKER, Ticker


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def progress_threads() -> int:
    return sum(thread.name == "fuseboard-progress" for thread in threading.enumerate())


class Slow:
    """A tool that runs until enough was heard of it."""

    def __init__(self, heard: list[Progress], count: int, policy: Policy | None = None) -> None:
        @fuseboard.tool(policy=policy)
        def slow() -> None:
            wait_until(lambda: len(heard) >= count)

        self.tool = slow


def test_slow_call_is_told_of_again_and_again_until_it_ends(telemetry: Any) -> None:
    heard: list[Progress] = []
    slow = Slow(heard, 3)
    opened = fuseboard.session("s1", agent="a", on_progress=heard.append, progress_seconds=0.02)
    with opened, opened.step(2):
        slow.tool()
    count = len(heard)
    first, second, third = heard[:3]
    assert (first.tool, first.attempt, first.session, first.agent, first.step) == (
        "slow", 1, "s1", "a", "2",
    )  # fmt: skip
    assert 0.02 <= first.seconds < second.seconds < third.seconds
    wait_until(lambda: progress_threads() == 0)
    assert len(heard) <= count + 1, "nothing is heard of a call that has ended"


def test_attempts_are_counted(telemetry: Any) -> None:
    heard: list[Progress] = []
    policy = Policy(retry=Retry(wait_initial=0), effects="none")

    @fuseboard.tool(policy=policy)
    def flaky() -> str:
        current = fuseboard.current_call()
        assert current is not None
        number = current.attempt
        wait_until(lambda: any(progress.attempt == number for progress in heard))
        if number == 1:
            raise ConnectionResetError
        return "ok"

    with fuseboard.session(on_progress=heard.append, progress_seconds=0.01):
        assert flaky() == "ok"
    attempts = [progress.attempt for progress in heard]
    assert attempts == sorted(attempts)
    assert set(attempts) == {1, 2}


async def test_many_slow_calls_share_one_thread(telemetry: Any) -> None:
    heard: list[Progress] = []

    @fuseboard.tool
    async def slow(number: int) -> None:
        while len({progress.call_id for progress in heard}) < 1 or len(heard) < 60:
            assert progress_threads() <= 1
            await asyncio.sleep(0.005)

    async with fuseboard.session(on_progress=heard.append, progress_seconds=0.02):
        await asyncio.wait_for(asyncio.gather(*(slow(n) for n in range(30))), 20)
    assert len(heard) >= 60


def test_call_by_hand_is_followed(telemetry: Any) -> None:
    heard: list[Progress] = []
    opened = fuseboard.session(on_progress=heard.append, progress_seconds=0.01)
    with opened, fuseboard.call("by_hand", call_id="c1"):
        wait_until(lambda: bool(heard))
    assert (heard[0].tool, heard[0].call_id, heard[0].attempt) == ("by_hand", "c1", 1)


def test_quick_calls_are_not_told_of(telemetry: Any) -> None:
    heard: list[Progress] = []

    @fuseboard.tool
    def quick() -> None: ...

    with fuseboard.session(on_progress=heard.append):
        for _ in range(100):
            quick()
    assert heard == []


def test_without_a_callback_there_is_no_thread(telemetry: Any) -> None:
    wait_until(lambda: progress_threads() == 0 or not TICKER._watches)

    @fuseboard.tool
    def quick() -> None: ...

    watched = len(TICKER._watches)
    with fuseboard.session("s1", timeout=60):
        quick()
    assert len(TICKER._watches) == watched


def test_callback_that_raises_is_logged_once_and_harms_nobody(telemetry: Any) -> None:
    telemetry.may_fault = True
    calls: list[int] = []

    def breaks(progress: Progress) -> None:
        calls.append(1)
        raise ValueError("mine")

    @fuseboard.tool
    def slow() -> str:
        wait_until(lambda: len(calls) >= 3)
        return "done"

    with fuseboard.session(on_progress=breaks, progress_seconds=0.01):
        assert slow() == "done"
    assert guard.fault_counts()["reporting the progress of a call", "ValueError"] >= 3


def test_inner_session_may_have_a_callback_of_its_own(telemetry: Any) -> None:
    outer: list[Progress] = []
    inner: list[Progress] = []
    slow = Slow(inner, 1)
    outer_session = fuseboard.session("s1", on_progress=outer.append, progress_seconds=0.01)
    with outer_session, fuseboard.session(on_progress=inner.append, progress_seconds=0.01):
        slow.tool()
    assert outer == []


def test_calls_that_nobody_holds_are_forgotten(telemetry: Any) -> None:
    ticker = Ticker()
    call = fuseboard.record.CallRecord(fuseboard.record.ToolInfo("gone"), None, None, 0, 0.0)
    told: list[Progress] = []
    ticker.watch(call, told.append, 0.01)
    del call
    gc.collect()
    wait_until(lambda: ticker._thread is None)
    assert told == []


def test_coroutine_function_is_refused() -> None:
    async def later(progress: Progress) -> None: ...

    with pytest.raises(ConfigurationError, match="must be a plain function"):
        fuseboard.session(on_progress=later)
