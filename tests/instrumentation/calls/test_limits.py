"""HC-28, HC-29: concurrency and rate limits of calls, over threads, loops and every way out."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fuseboard
from fuseboard import (
    AttemptTimeoutError,
    Breaker,
    BudgetExhaustedError,
    CircuitOpenError,
    ErrorClass,
    Fallback,
    Limit,
    LimitExceededError,
    Outcome,
    Policy,
    Retry,
)
from fuseboard.conventions import BreakerState, Layer, Origin
from fuseboard.policy.breaker import BreakerKey, Permit
from fuseboard.policy.limiters import LIMITERS
from fuseboard.policy.registry import BREAKERS

ONE = Limit(concurrency=1, wait=30)
AT_ONCE = Limit(concurrency=1, wait=0)


def limiter_of(tool: str) -> Any:
    (found,) = (limiter for key, limiter in LIMITERS._limiters.items() if key.tool == tool)
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


class Holder:
    """A tool that holds its only slot until it is let go."""

    def __init__(self, policy: Policy) -> None:
        self.let_go = threading.Event()
        self.runs = 0

        @fuseboard.tool(policy=policy)
        def held() -> str:
            self.runs += 1
            assert self.let_go.wait(30)
            return "held"

        self.tool = held
        self.thread = threading.Thread(target=held)

    def __enter__(self) -> Holder:
        self.thread.start()
        wait_until(lambda: self.runs == 1)
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go.set()
        self.thread.join(20)


def test_call_beyond_the_limit_is_rejected_and_says_why(telemetry: Any) -> None:
    with Holder(Policy(limit=AT_ONCE)) as holder:
        with pytest.raises(LimitExceededError, match=r"'held' was not called: its limit") as caught:
            holder.tool()
        assert isinstance(caught.value, fuseboard.CallRejectedError)
        assert caught.value.retry_after is None
        call = telemetry.last
        assert (call.outcome, call.layer, call.attempts) == (Outcome.REJECTED, Layer.LIMIT, [])
        assert call.layer_actions == (("limit", "rejected"),)
        verdict = call.fault.verdict
        assert verdict.error_class is ErrorClass.L3_TRANSIENT
        assert verdict.origin is Origin.ORCHESTRATION
        assert not verdict.ambiguous
    assert holder.runs == 1


def test_call_waits_for_its_turn_and_the_wait_is_no_part_of_the_attempt(telemetry: Any) -> None:
    with Holder(Policy(limit=ONE)) as holder, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(holder.tool)
        wait_until(lambda: limiter_of("held").waiting == 1)
        time.sleep(0.05)
        holder.let_go.set()
        assert waiting.result(20) == "held"
    call = telemetry.last
    (attempt,) = call.attempts
    assert call.layer_actions == (("limit", "queued"),)
    assert call.outcome is Outcome.OK
    assert attempt.delay >= 0.05
    assert attempt.started - call.started >= 0.05
    assert attempt.duration <= call.duration - 0.05
    assert call.backoff_seconds == 0


def test_rate_is_kept_on_a_clock_of_the_tests(telemetry: Any, clock: Any) -> None:
    begun: list[float] = []

    @fuseboard.tool(policy=Policy(limit=Limit(rate=2, burst=2, wait=10)))
    def paced() -> None:
        begun.append(clock.now - 1000)

    for _ in range(5):
        paced()
    assert begun == [0, 0, 0.5, 1.0, 1.5]
    assert clock.slept == [0.5, 0.5, 0.5]
    assert [call.layer_actions for call in telemetry.calls][1:3] == [(), (("limit", "queued"),)]


async def test_rate_is_kept_by_tasks_and_says_when_the_next_turn_is(
    telemetry: Any, clock: Any
) -> None:
    begun: list[float] = []

    @fuseboard.tool(policy=Policy(limit=Limit(rate=0.5, burst=1, wait=2)))
    async def paced() -> None:
        begun.append(clock.now - 1000)

    for _ in range(2):
        await paced()
    LIMITERS.get(BreakerKey("paced"), Limit(rate=1)).enter()  # takes the turn after that
    with pytest.raises(LimitExceededError, match=r"its next turn is in 4 s") as caught:
        await paced()
    assert begun == [0, 2]
    assert caught.value.retry_after == 4
    assert telemetry.last.fault.verdict.retry_after == 4


@pytest.mark.parametrize("ending", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_slot_comes_back_however_the_call_ends(telemetry: Any, ending: type) -> None:
    @fuseboard.tool(policy=Policy(limit=AT_ONCE))
    def ends() -> None:
        raise ending

    for _ in range(3):
        with pytest.raises(ending):
            ends()
    assert limiter_of("ends").running == 0


async def test_slot_comes_back_from_a_cancelled_task(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(limit=ONE))
    async def hangs() -> None:
        await asyncio.sleep(60)

    running, queued = (asyncio.create_task(hangs()) for _ in range(2))
    await until(lambda: "hangs" in {k.tool for k in LIMITERS._limiters})
    await until(lambda: limiter_of("hangs").waiting == 1)
    queued.cancel()
    await asyncio.wait([queued])
    assert limiter_of("hangs").waiting == 0
    running.cancel()
    await asyncio.wait([running])
    assert limiter_of("hangs").running == 0
    by_layer = {call.layer: call for call in telemetry.calls}
    assert {call.outcome for call in telemetry.calls} == {Outcome.CANCELLED}
    assert by_layer[Layer.LIMIT].attempts == []


def test_stream_holds_its_slot_until_it_ends_or_is_left(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(limit=AT_ONCE))
    def numbers() -> Iterator[int]:
        yield 1
        yield 2

    assert list(numbers()) == [1, 2]
    assert limiter_of("numbers").running == 0
    kept = numbers()
    assert next(kept) == 1
    with pytest.raises(LimitExceededError):
        list(numbers())
    kept.close()  # type: ignore[attr-defined]
    dropped = numbers()
    assert next(dropped) == 1
    del dropped
    gc.collect()
    assert limiter_of("numbers").running == 0
    assert list(numbers()) == [1, 2]


async def test_async_stream_holds_its_slot_until_it_ends_or_is_left(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(limit=AT_ONCE))
    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2

    kept: Any = numbers()
    assert await anext(kept) == 1
    with pytest.raises(LimitExceededError):
        await anext(numbers())
    await kept.aclose()
    assert [item async for item in numbers()] == [1, 2]
    assert limiter_of("numbers").running == 0


def test_returned_generator_holds_its_slot(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(limit=AT_ONCE))
    def numbers() -> Iterator[int]:
        return (n for n in (1, 2))

    kept = numbers()
    assert limiter_of("numbers").running == 1
    assert list(kept) == [1, 2]
    assert limiter_of("numbers").running == 0


def test_hc_29_hung_thread_keeps_its_slot_until_it_really_ends(telemetry: Any) -> None:
    let_go = threading.Event()

    @fuseboard.tool(policy=Policy(limit=AT_ONCE, timeout=0.3))
    def hangs() -> None:
        let_go.wait(30)

    try:
        with pytest.raises(AttemptTimeoutError):
            hangs()
        with pytest.raises(LimitExceededError):
            hangs()
        assert limiter_of("hangs").running == 1
    finally:
        let_go.set()
    wait_until(lambda: limiter_of("hangs").running == 0)
    hangs()
    assert limiter_of("hangs").running == 0
    outcomes = [call.outcome for call in telemetry.calls]
    assert outcomes == [Outcome.ERROR, Outcome.REJECTED, Outcome.OK]


def test_budget_bounds_the_wait(telemetry: Any) -> None:
    policy = Policy(limit=Limit(concurrency=1, wait=600), budget=0.3)
    with Holder(Policy(limit=policy.limit)) as holder:
        other = fuseboard.wrap(lambda: None, name="held", policy=policy)
        with pytest.raises(BudgetExhaustedError):
            other()
        call = telemetry.last
        assert (call.outcome, call.layer) == (Outcome.REJECTED, Layer.BUDGET)
        assert call.layer_actions == (("limit", "queued"), ("budget", "exhausted"))
        assert limiter_of("held").waiting == 0
    assert holder.runs == 1


def test_fallback_stands_in_for_a_rejected_call(telemetry: Any) -> None:
    with Holder(Policy(limit=AT_ONCE, fallback=Fallback(value="old"))) as holder:
        assert holder.tool() == "old"
        assert telemetry.last.outcome is Outcome.DEGRADED


def test_refusal_in_mid_retry_leaves_the_tools_own_error(telemetry: Any, clock: Any) -> None:
    limit = Limit(rate=1, burst=1, wait=0)

    @fuseboard.tool(policy=Policy(limit=limit, retry=Retry(wait_initial=0), effects="none"))
    def fails() -> None:
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        fails()
    call = telemetry.last
    assert (len(call.attempts), call.layer, call.outcome) == (1, Layer.LIMIT, Outcome.ERROR)
    assert call.layer_actions == (("limit", "rejected"),)


def test_rejections_never_open_the_breaker_and_give_its_probe_back(
    telemetry: Any, clock: Any
) -> None:
    breaker = Breaker(minimum_throughput=2, break_duration=10)
    policy = Policy(breaker=breaker, limit=Limit(rate=1, burst=2, wait=0))
    is_well = False

    @fuseboard.tool(policy=policy)
    def remote() -> str:
        if is_well:
            return "ok"
        raise ConnectionResetError

    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            remote()
    circuit = BREAKERS.find("remote")
    assert circuit is not None
    assert circuit.state is BreakerState.OPEN
    clock.move(10)
    is_well = True
    limiter = LIMITERS.get(BreakerKey("remote"), policy.limit)  # type: ignore[arg-type]
    for _ in range(2):
        limiter.enter()
    for _ in range(3):
        with pytest.raises(LimitExceededError):
            remote()
        assert circuit.state is BreakerState.HALF_OPEN
    clock.move(1)
    assert remote() == "ok"
    assert circuit.state is BreakerState.CLOSED


def test_probe_without_a_place_gives_way_while_its_fallback_runs(
    telemetry: Any, clock: Any
) -> None:
    answers = []

    def instead() -> str:
        circuit = BREAKERS.find("remote")
        assert circuit is not None
        answers.append(isinstance(circuit.acquire(), Permit))
        return "old"

    policy = Policy(
        breaker=Breaker(minimum_throughput=2, break_duration=10),
        limit=Limit(rate=1, burst=2, wait=0),
        fallback=instead,
    )

    @fuseboard.tool(policy=policy)
    def remote() -> str:
        raise ConnectionResetError

    for _ in range(2):
        remote()
    clock.move(10)
    for _ in range(2):
        LIMITERS.get(BreakerKey("remote"), Limit(rate=1)).enter()
    answers.clear()
    assert remote() == "old"
    assert telemetry.last.layer_actions[0] == ("limit", "rejected")
    assert answers == [True]


def test_breaker_that_opens_while_calls_queue_stops_them(telemetry: Any) -> None:
    policy = Policy(limit=ONE, breaker=Breaker(minimum_throughput=2, failure_ratio=1.0))
    let_go, runs = threading.Event(), []

    @fuseboard.tool(policy=policy)
    def breaks() -> None:
        runs.append(1)
        assert let_go.wait(30)
        raise ConnectionResetError

    def call() -> type | None:
        try:
            breaks()
        except Exception as error:
            return type(error)
        return None

    with ThreadPoolExecutor(10) as pool:
        pending = [pool.submit(call) for _ in range(10)]
        wait_until(lambda: bool(runs) and limiter_of("breaks").waiting == 9)
        let_go.set()
        kinds = [done.result(20) for done in pending]
    assert len(runs) == 2, "those who queued are asked again before they begin"
    assert kinds.count(CircuitOpenError) == 8
    assert limiter_of("breaks").running == 0


def test_hc_28_fifty_threads_and_fifty_tasks_in_two_loops_share_a_limit(telemetry: Any) -> None:
    policy = Policy(limit=Limit(concurrency=7, wait=60, queue=1000))
    lock = threading.Lock()
    running = most = 0

    def come(by: int) -> None:
        nonlocal running, most
        with lock:
            running += by
            most = max(most, running)

    @fuseboard.tool(name="shared", policy=policy)
    def now() -> str:
        come(1)
        time.sleep(0.002)
        come(-1)
        return "ok"

    @fuseboard.tool(name="shared", policy=policy)
    async def later() -> str:
        come(1)
        await asyncio.sleep(0.002)
        come(-1)
        return "ok"

    longest = 0.0

    async def pulse() -> None:
        nonlocal longest
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.001)
            longest = max(longest, time.monotonic() - began)

    async def many() -> list[str]:
        beat = asyncio.create_task(pulse())
        answers = await asyncio.gather(*(later() for _ in range(25)))
        beat.cancel()
        return answers

    barrier = threading.Barrier(52)

    def by_thread() -> list[str]:
        barrier.wait(30)
        return [now() for _ in range(4)]

    def by_loop() -> list[str]:
        barrier.wait(30)
        return asyncio.run(many())

    with ThreadPoolExecutor(52) as pool:
        pending = [pool.submit(by_thread) for _ in range(50)]
        pending += [pool.submit(by_loop) for _ in range(2)]
        answers = [answer for done in pending for answer in done.result(60)]
    assert answers == ["ok"] * 250
    assert most == 7, "as many as allowed, and never more"
    limiter = limiter_of("shared")
    assert (limiter.running, limiter.waiting) == (0, 0)
    assert longest < 5, "no loop was blocked while its tasks queued"


async def test_hc_28_waiting_for_a_place_or_a_token_does_not_block_the_loop(
    telemetry: Any,
) -> None:
    ticks = 0

    async def heartbeat() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    @fuseboard.tool(policy=Policy(limit=Limit(concurrency=1, rate=10, burst=1, wait=30)))
    async def paced() -> None: ...

    place = LIMITERS.get(BreakerKey("paced"), Limit(concurrency=1)).enter()
    beat = asyncio.create_task(heartbeat())
    waiting = asyncio.create_task(paced())
    await until(lambda: limiter_of("paced").waiting == 1)
    await asyncio.sleep(0.2)
    in_the_queue = ticks
    place.has_begun = True
    place.give_back()
    await waiting
    await asyncio.gather(*(paced() for _ in range(3)))
    beat.cancel()
    assert in_the_queue >= 4
    assert ticks - in_the_queue >= 4, "three tokens take 0.3 s"


def test_hc_28_limit_outlives_its_first_event_loop(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(limit=Limit(concurrency=2, wait=30)))
    async def later() -> str:
        await asyncio.sleep(0.001)
        return "ok"

    async def many() -> list[str]:
        return await asyncio.gather(*(later() for _ in range(10)))

    for _ in range(2):
        assert asyncio.run(many()) == ["ok"] * 10


def test_limits_are_kept_per_region_and_upstream(telemetry: Any) -> None:
    inside = 0

    @fuseboard.tool(
        policy=Policy(limit=AT_ONCE),
        region=lambda args: str(args["region"]),
        upstream=lambda args: str(args["host"]),
    )
    def nested(region: str, host: str, then: Any = None) -> None:
        nonlocal inside
        inside += 1
        if then:
            nested(*then)

    nested("eu", "a", ("us", "a", ("eu", "b")))
    assert inside == 3
    with pytest.raises(LimitExceededError):
        nested("eu", "a", ("eu", "a"))


def test_call_that_spends_its_budget_in_the_queue_has_done_nothing(telemetry: Any) -> None:
    answer = threading.Event()
    policy = Policy(
        limit=Limit(concurrency=1, wait=30),
        timeout=0.05,
        budget=0.2,
        fallback=Fallback(lambda: "acts", effects="unsafe"),
    )
    work = fuseboard.wrap(lambda: answer.wait(30), name="work", policy=policy)
    try:
        with pytest.raises(fuseboard.AttemptTimeoutError):
            work()  # it may have taken effect, and so nothing else may act
        assert work() == "acts"
    finally:
        answer.set()
    call = telemetry.last
    assert (call.outcome, len(call.attempts)) == (Outcome.DEGRADED, 0)
    assert not call.fault.verdict.ambiguous


class TooMany(Exception):  # noqa: N818
    status_code = 429


@pytest.mark.parametrize(("budget", "attempts"), [(1, 1), (10, 2)])
def test_no_retry_begins_after_the_budget_of_retries_by_queueing(
    budget: float, attempts: int, telemetry: Any, clock: Any
) -> None:
    policy = Policy(
        retry=Retry(attempts=2, wait_initial=0, wait_max=0, budget=budget),
        limit=Limit(rate=0.25, burst=1, wait=5),
        effects="none",
    )

    @fuseboard.tool(policy=policy)
    def search() -> None:
        raise TooMany

    with pytest.raises(TooMany):
        search()
    assert len(telemetry.last.attempts) == attempts
