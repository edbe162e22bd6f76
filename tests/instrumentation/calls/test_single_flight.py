"""Equal calls at the same time: one runs, the others are answered by it or go on themselves."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from scripted_tools import status_error

import fuseboard
from fuseboard import Cache, ErrorClass, Fallback, Outcome, Policy, ResultSource, Retry
from fuseboard.calls.cache_visits import Visit
from fuseboard.policy.cache import ToolCache
from fuseboard.policy.cache_flights import Ending, Flight

SOON = 20.0
"""Seconds after which a test that waits has failed."""


def cached(cache: Cache | None = None, **parts: Any) -> Policy:
    return Policy(cache=cache or Cache(), effects="none", **parts)


class Waiters:
    """Counts the calls that wait for another one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._changed = threading.Condition()
        wait, wait_async = Flight.wait, Flight.wait_async

        def counted(flight: Flight, seconds: float | None) -> bool:
            self._arrive()
            return wait(flight, seconds)

        async def counted_async(flight: Flight, seconds: float | None) -> bool:
            self._arrive()
            return await wait_async(flight, seconds)

        monkeypatch.setattr(Flight, "wait", counted)
        monkeypatch.setattr(Flight, "wait_async", counted_async)

    def _arrive(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def until(self, count: int) -> None:
        """Block until so many wait."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.count >= count, SOON), self.count

    async def until_async(self, count: int) -> None:
        async with asyncio.timeout(SOON):
            while self.count < count:  # noqa: ASYNC110 - those who arrive have loops of their own
                await asyncio.sleep(0.001)


@pytest.fixture
def waiters(monkeypatch: pytest.MonkeyPatch) -> Waiters:
    return Waiters(monkeypatch)


@pytest.fixture
def caches(monkeypatch: pytest.MonkeyPatch) -> set[ToolCache]:
    """The caches that calls come to."""
    visited: set[ToolCache] = set()
    init = Visit.__init__

    def remember(visit: Visit, run: Any, cache: ToolCache, key: str) -> None:
        visited.add(cache)
        init(visit, run, cache, key)

    monkeypatch.setattr(Visit, "__init__", remember)
    return visited


def outcomes(telemetry: Any) -> Counter[Outcome]:
    return Counter(call.outcome for call in telemetry.calls)


def sources(telemetry: Any) -> Counter[ResultSource]:
    return Counter(call.result_source for call in telemetry.calls)


def test_fifty_threads_run_the_tool_once(telemetry: Any, waiters: Waiters) -> None:
    runs: list[str] = []

    @fuseboard.tool(policy=cached())
    def read(city: str) -> dict[str, str]:
        runs.append(city)
        waiters.until(49)
        return {"city": city}

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(read, ["Oslo"] * 50))
    assert runs == ["Oslo"]
    assert answers == [{"city": "Oslo"}] * 50
    assert len({id(answer) for answer in answers}) == 50, "each caller has its own"
    assert outcomes(telemetry) == {Outcome.OK: 50}
    assert sources(telemetry) == {ResultSource.LIVE: 1, ResultSource.CACHE: 49}
    actions = Counter(action for call in telemetry.calls for action in call.layer_actions)
    assert actions == {("cache", "miss"): 1, ("cache", "hit_memory"): 49}


async def test_fifty_tasks_run_the_tool_once(telemetry: Any, waiters: Waiters) -> None:
    runs: list[str] = []

    @fuseboard.tool(policy=cached())
    async def read(city: str) -> dict[str, str]:
        runs.append(city)
        await waiters.until_async(49)
        return {"city": city}

    answers = await asyncio.gather(*(read("Oslo") for _ in range(50)))
    assert runs == ["Oslo"]
    assert answers == [{"city": "Oslo"}] * 50
    assert len({id(answer) for answer in answers}) == 50
    assert outcomes(telemetry) == {Outcome.OK: 50}
    assert sources(telemetry) == {ResultSource.LIVE: 1, ResultSource.CACHE: 49}


def test_hc_28_tasks_of_several_event_loops_at_once_run_the_tool_once(
    telemetry: Any, waiters: Waiters
) -> None:
    runs: list[str] = []

    @fuseboard.tool(policy=cached())
    async def read(city: str) -> str:
        runs.append(city)
        await waiters.until_async(39)
        return city

    async def ten() -> list[str]:
        return await asyncio.gather(*(read("Oslo") for _ in range(10)))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: asyncio.run(ten()), range(4)))
    assert answers == [["Oslo"] * 10] * 4
    assert runs == ["Oslo"]
    assert sources(telemetry) == {ResultSource.LIVE: 1, ResultSource.CACHE: 39}


def test_calls_that_are_not_equal_do_not_wait(telemetry: Any) -> None:
    together = threading.Barrier(8)

    @fuseboard.tool(policy=cached())
    def read(number: int) -> int:
        together.wait(SOON)  # passes only if all of them run at once
        return number

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(8))) == list(range(8))


def test_without_single_flight_each_runs(telemetry: Any) -> None:
    together = threading.Barrier(4)

    @fuseboard.tool(policy=cached(Cache(single_flight=False)))
    def read() -> int:
        return together.wait(SOON)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(lambda _: read(), range(4))) == [0, 1, 2, 3]


async def test_cancelled_leader_hands_over_to_one_of_those_who_wait(
    telemetry: Any, waiters: Waiters
) -> None:
    runs = 0
    reached = asyncio.Event()

    @fuseboard.tool(policy=cached())
    async def read() -> int:
        nonlocal runs
        runs += 1
        if runs == 1:
            reached.set()
            await asyncio.sleep(3600)
        await waiters.until_async(9 + 8)  # the nine of before, and eight of them once more
        return runs

    leader = asyncio.create_task(read())
    await reached.wait()
    others = [asyncio.create_task(read()) for _ in range(9)]
    await waiters.until_async(9)
    leader.cancel()
    assert await asyncio.gather(*others) == [2] * 9
    with pytest.raises(asyncio.CancelledError):
        await leader
    assert runs == 2
    assert outcomes(telemetry) == {Outcome.CANCELLED: 1, Outcome.OK: 9}


def test_leader_that_is_interrupted_hands_over_between_threads(
    telemetry: Any, waiters: Waiters
) -> None:
    runs: list[int] = []

    @fuseboard.tool(policy=cached())
    def read() -> int:
        runs.append(1)
        if len(runs) == 1:
            waiters.until(5)
            raise KeyboardInterrupt
        return len(runs)

    def attempt(_: int) -> int | None:
        try:
            return read()
        except KeyboardInterrupt:
            return None

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(attempt, range(6)))
    assert Counter(answers) == {None: 1, 2: 5}
    assert outcomes(telemetry) == {Outcome.CANCELLED: 1, Outcome.OK: 5}


async def test_waiting_call_that_is_cancelled_leaves_the_others_alone(
    telemetry: Any, waiters: Waiters
) -> None:
    go_on = asyncio.Event()

    @fuseboard.tool(policy=cached())
    async def read() -> str:
        await go_on.wait()
        return "live"

    tasks = [asyncio.create_task(read()) for _ in range(3)]
    await waiters.until_async(2)
    tasks[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
    call = telemetry.last
    assert (call.outcome, call.layer, call.attempts) == (Outcome.CANCELLED, "cache", [])
    go_on.set()
    assert [await tasks[0], await tasks[2]] == ["live", "live"]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_failed_leader_lets_the_others_call_for_themselves_at_once(
    telemetry: Any, waiters: Waiters, is_async: bool
) -> None:
    runs: list[int] = []
    together = threading.Barrier(5)

    def body() -> str:
        runs.append(1)
        if len(runs) == 1:
            waiters.until(5)
            raise status_error(503)
        together.wait(SOON)  # none of them waits for another
        return "live"

    @fuseboard.tool(policy=cached())
    def read() -> str:
        return body()

    @fuseboard.tool(policy=cached())
    async def read_later() -> str:
        return await asyncio.to_thread(body)

    def attempt(_: int) -> Any:
        try:
            return asyncio.run(read_later()) if is_async else read()
        except Exception as error:
            return type(error)

    with ThreadPoolExecutor(6) as pool:
        answers = Counter(pool.map(attempt, range(6)))
    assert answers == {type(status_error(503)): 1, "live": 5}
    assert outcomes(telemetry) == {Outcome.ERROR: 1, Outcome.OK: 5}


def test_failed_leader_gives_the_others_their_stale_answer(
    telemetry: Any, clock: Any, waiters: Waiters
) -> None:
    runs: list[int] = []

    @fuseboard.tool(policy=cached(Cache(ttl=1, stale=60)))
    def read() -> str:
        runs.append(1)
        if len(runs) == 1:
            return "old"
        waiters.until(5)
        raise status_error(503)

    read()
    clock.move(2)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: read(), range(6)))
    assert answers == ["old"] * 6
    assert len(runs) == 2, "nobody asked a tool again that had just failed"
    degraded = [call for call in telemetry.calls if call.outcome is Outcome.DEGRADED]
    assert len(degraded) == 6
    assert {call.fault.verdict.error_class for call in degraded} == {ErrorClass.L3_TRANSIENT}
    assert sorted(len(call.attempts) for call in degraded) == [0, 0, 0, 0, 0, 1]


def test_answer_that_is_not_kept_is_not_shared(telemetry: Any, waiters: Waiters) -> None:
    runs: list[int] = []

    @fuseboard.tool(policy=cached())
    def read() -> dict[str, Any]:
        runs.append(1)
        if len(runs) == 1:
            waiters.until(3)
        return {"partial_failures": [{"item": len(runs)}]}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: read(), range(4)))
    assert len(runs) == 4
    assert outcomes(telemetry) == {Outcome.PARTIAL: 4}


def test_degraded_answer_is_not_shared(telemetry: Any, waiters: Waiters) -> None:
    served: list[int] = []

    @fuseboard.tool(policy=cached(fallback=lambda: served.append(1) or len(served)))
    def read() -> int:
        if not served:
            waiters.until(3)
        raise status_error(503)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(lambda _: read(), range(4))) == [1, 2, 3, 4]


@pytest.mark.parametrize("limit", [{"budget": 0.05}, {"timeout": 0.05}], ids=str)
async def test_nobody_waits_longer_than_its_own_limits_allow(
    telemetry: Any, waiters: Waiters, limit: dict[str, float]
) -> None:
    go_on = asyncio.Event()
    started = 0
    policy = cached(**limit)

    @fuseboard.tool(policy=policy)
    async def read() -> str:
        nonlocal started
        started += 1
        if started == 1:
            go_on.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                await asyncio.sleep(0.2)  # a tool that takes its time to stop
                raise
        return "own"

    leader = asyncio.create_task(read())
    await go_on.wait()
    waiting = asyncio.create_task(read())
    await asyncio.wait([leader, waiting], timeout=SOON)
    first = telemetry.calls[0]
    assert len(telemetry.calls) == 2
    if "timeout" in limit:
        assert await waiting == "own", "past its patience it made a call of its own"
    else:
        assert isinstance(waiting.exception(), fuseboard.BudgetExhaustedError)
        assert (first.outcome, first.attempts) == (Outcome.REJECTED, [])
    assert isinstance(leader.exception(), fuseboard.FuseboardError)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_tool_that_calls_itself_does_not_wait_for_itself(telemetry: Any, is_async: bool) -> None:
    depth = 0

    @fuseboard.tool(policy=cached())
    def read() -> int:
        nonlocal depth
        depth += 1
        return depth if depth == 3 else read()

    @fuseboard.tool(policy=cached())
    async def read_later() -> int:
        nonlocal depth
        depth += 1
        # In a task of its own, which has a copy of the context.
        return depth if depth == 3 else await asyncio.create_task(read_later())

    async def main() -> int:
        async with asyncio.timeout(SOON):
            return await read_later()

    assert (asyncio.run(main()) if is_async else read()) == 3
    assert outcomes(telemetry) == {Outcome.OK: 3}


class Never:
    """An awaitable that nobody ever wakes."""

    def __await__(self) -> Iterator[None]:
        yield


def test_flight_whose_event_loop_was_left_ends_with_its_task(
    telemetry: Any, waiters: Waiters
) -> None:
    telemetry.may_fault = True
    runs: list[int] = []

    @fuseboard.tool(policy=cached())
    async def read() -> int:
        runs.append(1)
        if len(runs) == 1:
            await Never()
        return len(runs)

    abandoned = read()
    abandoned.send(None)  # as a loop would, which then forgets it
    assert runs == [1]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: asyncio.run(read()))
        waiters.until(1)
        del abandoned
        gc.collect()
        assert waiting.result(SOON) == 2


def test_leader_may_be_collected_in_the_thread_that_begins_to_wait_for_it(telemetry: Any) -> None:
    flight = Flight()

    class Collecting(dict[Any, Any]):
        """As where the collector runs while the flight's lock is held."""

        def __setitem__(self, waiter: object, waker: object) -> None:
            flight.end(Ending.HANDED_OVER)
            super().__setitem__(waiter, waker)

    flight._wakers = Collecting()
    waiting = threading.Thread(target=lambda: asyncio.run(flight.wait_async(None)), daemon=True)
    waiting.start()
    waiting.join(SOON)
    assert not waiting.is_alive()
    assert flight.ending is Ending.HANDED_OVER


def test_recovered_leader_shares_its_answer(telemetry: Any, waiters: Waiters) -> None:
    runs: list[int] = []

    @fuseboard.tool(policy=cached(retry=Retry(wait_initial=0), fallback=Fallback(value=0)))
    def read() -> int:
        runs.append(1)
        waiters.until(5)
        if len(runs) < 3:
            raise status_error(503)
        return len(runs)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda _: read(), range(6))) == [3] * 6
    assert len(runs) == 3


def test_no_flight_is_left_behind(telemetry: Any, caches: set[ToolCache]) -> None:
    faults: list[BaseException | None] = [None, OSError(), KeyboardInterrupt(), None]

    @fuseboard.tool(policy=cached())
    def read(number: int) -> int:
        fault = faults[number]
        if fault is not None:
            raise fault
        return number

    call: Callable[[int], Any] = read
    for number, fault in enumerate(faults):
        if fault is None:
            call(number)
        else:
            with pytest.raises(type(fault)):
                call(number)
    (cache,) = caches
    assert len(cache.flights) == 0


CROWDED = Cache(ttl=0.004, stale=0.01, max_entries=3, key=lambda args: args["number"])


def crowded_tools() -> tuple[Any, Any]:
    """Return a sync and an async tool that take a moment and fail now and then."""

    @fuseboard.tool(policy=cached(CROWDED))
    async def later(number: int, luck: random.Random) -> int:
        await asyncio.sleep(luck.random() / 200)
        if luck.random() < 0.3:
            raise OSError
        return number

    @fuseboard.tool(policy=cached(CROWDED))
    def read(number: int, luck: random.Random) -> int:
        time.sleep(luck.random() / 200)
        if luck.random() < 0.3:
            raise OSError
        return number

    return read, later


async def crowd(later: Any, luck: random.Random) -> None:
    numbers = [luck.randrange(4) for _ in range(60)]
    tasks = [asyncio.create_task(later(number, luck)) for number in numbers]
    for task in tasks:
        await asyncio.sleep(luck.random() / 1000)
        if luck.random() < 0.3:
            task.cancel()
    async with asyncio.timeout(SOON):
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    for number, answer in zip(numbers, answers, strict=True):
        assert answer == number or isinstance(answer, OSError | asyncio.CancelledError)


def queue(read: Any, luck: random.Random) -> None:
    for _ in range(60):
        number = luck.randrange(4)
        with contextlib.suppress(OSError):
            assert read(number, luck) == number


def test_every_call_of_a_crowd_ends_once_whatever_happens_to_it(
    telemetry: Any, caches: set[ToolCache]
) -> None:
    read, later = crowded_tools()

    def work(seed: int) -> None:
        luck = random.Random(seed)
        if seed % 2:
            asyncio.run(crowd(later, luck))
        else:
            queue(read, luck)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    counts = outcomes(telemetry)
    # A task that is cancelled before it began has made no call.
    assert 4 * 60 < len(telemetry.calls) <= 8 * 60
    assert counts.keys() <= {Outcome.OK, Outcome.ERROR, Outcome.DEGRADED, Outcome.CANCELLED}
    assert len(caches) == 2
    assert all(len(cache.flights) == 0 for cache in caches)


def test_answer_that_cannot_be_shared_says_nothing_of_an_earlier_fault(
    telemetry: Any, clock: Any, waiters: Waiters
) -> None:
    runs: list[int] = []

    @fuseboard.tool(policy=cached(Cache(ttl=1, stale=60), retry=Retry(wait_initial=0)))
    def read() -> Any:
        runs.append(1)
        if len(runs) == 1:
            return "old"
        if len(runs) == 2:
            waiters.until(3)
            raise status_error(503)
        return {"partial_failures": [{"item": 1}]}

    read()
    clock.move(2)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: read(), range(4)))
    assert outcomes(telemetry) == {Outcome.OK: 1, Outcome.PARTIAL: 4}, "nobody got the old one"
