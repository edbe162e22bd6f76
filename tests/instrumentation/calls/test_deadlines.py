"""HC-05: a time limit cancels in the caller's own task, and only what it itself asked for."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

import fuseboard
from fuseboard import AttemptTimeoutError, BudgetExhaustedError, Outcome, Policy, Retry

SHORT = Policy(timeout=0.02)


def tool(policy: Policy, body: Any) -> Any:
    return fuseboard.wrap(body, name="work", policy=policy)


def pending_cancellations() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


@pytest.mark.parametrize("policy", [SHORT, Policy(budget=0.02)], ids=["timeout", "budget"])
async def test_hc_05_every_attempt_runs_in_the_callers_task(telemetry: Any, policy: Policy) -> None:
    tasks = []

    async def work() -> None:
        async with anyio.create_task_group() as group:
            tasks.append(asyncio.current_task())
            group.start_soon(anyio.sleep, 60)
            try:
                await anyio.sleep(60)
            finally:
                tasks.append(asyncio.current_task())

    with pytest.raises((AttemptTimeoutError, BudgetExhaustedError)):
        await tool(policy, work)()
    assert tasks == [asyncio.current_task()] * 2
    assert pending_cancellations() == 0


async def test_hc_05_retries_after_a_timeout_stay_in_the_task(telemetry: Any) -> None:
    tasks = []

    async def work() -> str:
        tasks.append(asyncio.current_task())
        async with anyio.create_task_group():
            if len(tasks) < 3:
                await anyio.sleep(60)
        return "done"

    policy = Policy(timeout=0.02, retry=Retry(wait_initial=0), effects="none")
    assert await tool(policy, work)() == "done"
    assert tasks == [asyncio.current_task()] * 3
    assert [len(telemetry.last.attempts), telemetry.last.outcome] == [3, Outcome.OK]


async def test_callers_own_cancellation_is_no_timeout(telemetry: Any) -> None:
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(tool(Policy(timeout=30), work)())
    await begun.wait()
    task.cancel("by the caller")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert telemetry.last.outcome is Outcome.CANCELLED


async def test_cancelled_and_timed_out_at_once_is_cancelled(telemetry: Any) -> None:
    """The caller's wish weighs more than our limit, as with ``asyncio.timeout``."""

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            task.cancel()  # while the limit's cancellation is under way
            raise

    task = asyncio.create_task(tool(SHORT, work)())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert telemetry.last.outcome is Outcome.CANCELLED


async def test_the_narrower_of_two_limits_decides(telemetry: Any) -> None:
    async def inner_work() -> None:
        await asyncio.sleep(60)

    inner = fuseboard.wrap(inner_work, name="inner", policy=Policy(timeout=30))

    async def outer_work() -> None:
        await inner()

    with pytest.raises(AttemptTimeoutError, match="'work'"):
        await tool(SHORT, outer_work)()
    assert [call.outcome for call in telemetry.calls] == [Outcome.CANCELLED, Outcome.ERROR]
    assert pending_cancellations() == 0


async def test_a_surrounding_timeout_of_asyncio_is_not_taken_for_ours(telemetry: Any) -> None:
    async def work() -> None:
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.02):
            await tool(Policy(timeout=30), work)()
    assert not isinstance(caught.value, AttemptTimeoutError)
    assert telemetry.last.outcome is Outcome.CANCELLED
    assert pending_cancellations() == 0


async def test_a_tool_that_swallows_the_cancellation_is_believed(telemetry: Any) -> None:
    async def work() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "what was there"
        return "never"

    assert await tool(SHORT, work)() == "what was there"
    await asyncio.sleep(0)
    assert pending_cancellations() == 0
    assert telemetry.last.outcome is Outcome.OK


async def test_an_error_while_being_cancelled_is_the_tools(telemetry: Any) -> None:
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            raise RuntimeError("while closing")

    with pytest.raises(RuntimeError, match="while closing"):
        await tool(SHORT, work)()
    assert pending_cancellations() == 0


def note_timers(monkeypatch: pytest.MonkeyPatch) -> list[asyncio.TimerHandle]:
    """Return the list of the timers that the running loop is asked for."""
    loop = asyncio.get_running_loop()
    made: list[asyncio.TimerHandle] = []
    call_at = loop.call_at

    def noted(*args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        made.append(call_at(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(loop, "call_at", noted)
    return made


async def test_calls_share_one_timer_and_leave_no_deadline(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(*, fails: bool) -> None:
        if fails:
            raise ValueError("x")

    timers = note_timers(monkeypatch)
    guarded = tool(Policy(timeout=30), work)
    for _ in range(50):
        await guarded(fails=False)
        with pytest.raises(ValueError, match="x"):
            await guarded(fails=True)
    with pytest.raises(TypeError):
        await guarded(nonsense=1)
    (timer,) = timers
    assert timer._callback.__self__.due == {}  # type: ignore[attr-defined]


async def test_each_call_has_its_whole_time_though_they_share_a_timer(telemetry: Any) -> None:
    async def work(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    guarded = tool(Policy(timeout=0.2), work)
    loop = asyncio.get_running_loop()

    async def timed(seconds: float, delay: float) -> tuple[str, float]:
        await asyncio.sleep(delay)
        began = loop.time()
        try:
            await guarded(seconds)
        except AttemptTimeoutError:
            return "late", loop.time() - began
        return "done", loop.time() - began

    ways = [(60, 0.0), (0, 0.0), (0.01, 0.05), (60, 0.1), (0, 0.1), (60, 0.15)]
    ended = await asyncio.gather(*(timed(*way) for way in ways))
    assert [end for end, _ in ended] == ["late", "done", "done", "late", "done", "late"]
    assert all(took >= 0.199 for end, took in ended if end == "late")


def test_hc_28_one_limit_serves_several_event_loops(telemetry: Any) -> None:
    async def work(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    guarded = tool(Policy(timeout=0.05), work)

    async def both() -> str:
        with pytest.raises(AttemptTimeoutError):
            await guarded(60)
        return str(await guarded(0))

    assert [asyncio.run(both()) for _ in range(2)] == ["done"] * 2
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(both()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["done"] * 4


def test_a_closed_loop_is_not_kept_alive(telemetry: Any) -> None:
    async def work() -> None:
        pass

    guarded = tool(Policy(timeout=30), work)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(guarded())
    loop.close()
    gone = weakref.ref(loop)
    del loop
    gc.collect()
    assert gone() is None


async def test_a_coroutine_closed_in_the_middle_stops_its_timer(telemetry: Any) -> None:
    async def work() -> None:
        await asyncio.sleep(60)

    task = asyncio.create_task(tool(Policy(timeout=0.05), work)())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.1)
    assert pending_cancellations() == 0


async def test_hc_05_streams_keep_their_task_and_their_limit_per_item(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(timeout=0.5))
    async def stream() -> AsyncIterator[asyncio.Task[Any] | None]:
        for _ in range(4):
            async with anyio.create_task_group():
                await anyio.sleep(0.01)
            yield asyncio.current_task()

    assert [task async for task in stream()] == [asyncio.current_task()] * 4


async def test_what_a_plain_function_returns_to_be_awaited_is_limited_too(telemetry: Any) -> None:
    async def work(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "done"

    plain = tool(Policy(timeout=0.05), lambda seconds: work(seconds))
    assert await plain(0) == "done"
    with pytest.raises(AttemptTimeoutError):
        await plain(60)
    assert [call.outcome for call in telemetry.calls] == [Outcome.OK, Outcome.ERROR]
    assert pending_cancellations() == 0
