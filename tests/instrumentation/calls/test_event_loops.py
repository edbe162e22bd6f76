"""HC-28: one tool in several event loops and threads at once, and no loop is ever blocked."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import Any

import pytest

import fuseboard
from fuseboard import Breaker, Outcome, Policy, Retry

POLICY = Policy(
    retry=Retry(attempts=3, wait_initial=0.002, wait_max=0.004),
    breaker=Breaker(minimum_throughput=10_000),
    timeout=5,
    effects="none",
)


def make_tools() -> tuple[Any, Any]:
    counter = iter(range(10**9))

    @fuseboard.tool(name="shared", policy=POLICY)
    async def later() -> str:
        await asyncio.sleep(0.001)
        if next(counter) % 2:
            raise ConnectionResetError
        return "ok"

    @fuseboard.tool(name="shared", policy=POLICY)
    def now() -> str:
        if next(counter) % 2:
            raise ConnectionResetError
        return "ok"

    return later, now


async def many(tool: Any, count: int) -> list[Any]:
    return await asyncio.gather(*(tool() for _ in range(count)), return_exceptions=True)


def test_hc_28_two_loops_in_a_row(telemetry: Any) -> None:
    tool, _ = make_tools()
    for _ in range(2):
        assert len(asyncio.run(many(tool, 20))) == 20
    assert len(telemetry.calls) == 40


def test_hc_28_two_loops_at_once_with_the_sync_variant(telemetry: Any) -> None:
    later, now = make_tools()
    results: list[Any] = []

    def run_sync() -> None:
        for _ in range(30):
            try:
                results.append(now())
            except ConnectionResetError as error:
                results.append(error)

    threads = [
        threading.Thread(target=lambda: results.extend(asyncio.run(many(later, 30))))
        for _ in range(2)
    ]
    threads.append(threading.Thread(target=run_sync))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(results) == 90
    assert {type(r) for r in results} <= {str, ConnectionResetError}
    assert len(telemetry.calls) == 90
    assert {call.outcome for call in telemetry.calls} <= {Outcome.OK, Outcome.ERROR}


def test_hc_28_what_a_closed_loop_left_unfinished_is_let_go(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(timeout=3600))
    async def hang(seconds: float) -> None:
        await asyncio.sleep(seconds)

    loop = asyncio.new_event_loop()
    task = loop.create_task(hang(1800))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to be
    del task, loop
    asyncio.run(hang(0))
    gc.collect()
    outcomes = sorted(call.outcome for call in telemetry.calls)
    assert outcomes == [Outcome.ABANDONED, Outcome.OK]


async def test_hc_28_backing_off_does_not_block_the_loop(telemetry: Any) -> None:
    ticks = 0

    async def heartbeat() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    @fuseboard.tool(policy=Policy(retry=Retry(attempts=3, wait_initial=0.2), effects="none"))
    async def flaky() -> None:
        raise ConnectionResetError

    beat = asyncio.create_task(heartbeat())
    started = time.monotonic()
    while time.monotonic() - started < 0.3:
        with pytest.raises(ConnectionResetError):
            await flaky()
    beat.cancel()
    assert telemetry.calls
    waited = sum(call.backoff_seconds for call in telemetry.calls)
    assert ticks >= waited / 0.005 / 10, "the loop went on while calls backed off"
