"""The limiter by itself: slots, the queue before them, tokens, and what never leaks."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fuseboard import Limit
from fuseboard.clock import SystemClock
from fuseboard.policy import limiter as limiters_own
from fuseboard.policy.breaker import BreakerKey
from fuseboard.policy.limiter import Limiter, Place, PlaceState
from fuseboard.policy.limiters import LIMITERS, MAX_LIMITERS

HELD, WAITING, REFUSED = PlaceState.HELD, PlaceState.WAITING, PlaceState.REFUSED


def make_limiter(clock: Any = None, **settings: Any) -> Limiter:
    return Limiter(BreakerKey("tool"), Limit(**settings), clock or SystemClock())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def in_thread(place: Place) -> threading.Thread:
    thread = threading.Thread(target=place.wait)
    thread.start()
    return thread


def test_slots_are_bounded_and_pass_on_in_order(clock: Any) -> None:
    limiter = make_limiter(clock, concurrency=2, wait=30)
    first, second, third, fourth = (limiter.enter() for _ in range(4))
    assert [p.state for p in (first, second, third, fourth)] == [HELD, HELD, WAITING, WAITING]
    first.give_back()
    assert (third.state, fourth.state) == (HELD, WAITING)
    assert (limiter.running, limiter.waiting) == (2, 1)
    newcomer = limiter.enter()
    assert newcomer.state is WAITING, "a newcomer does not overtake the queue"
    for place in (second, third, fourth, newcomer):
        place.give_back()
    assert (limiter.running, limiter.waiting) == (0, 0)


def test_giving_back_twice_frees_one_slot(clock: Any) -> None:
    limiter = make_limiter(clock, concurrency=2)
    first, _ = limiter.enter(), limiter.enter()
    first.give_back()
    first.give_back()
    assert limiter.running == 1


def test_queue_is_bounded_and_a_wait_of_0_never_queues(clock: Any) -> None:
    short = make_limiter(clock, concurrency=1, queue=1, wait=30)
    assert [short.enter().state for _ in range(3)] == [HELD, WAITING, REFUSED]
    hasty = make_limiter(clock, concurrency=1, wait=0)
    assert [hasty.enter().state for _ in range(2)] == [HELD, REFUSED]
    bounded_by_the_call = make_limiter(clock, concurrency=1, wait=30)
    assert [bounded_by_the_call.enter(0).state for _ in range(2)] == [HELD, REFUSED]


def test_waiting_thread_gets_the_slot_that_comes_free() -> None:
    limiter = make_limiter(concurrency=1, wait=30)
    holder, waiter = limiter.enter(), limiter.enter()
    thread = in_thread(waiter)
    holder.give_back()
    thread.join(20)
    assert waiter.state is HELD


def test_slot_granted_just_before_the_thread_waits_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limiter = make_limiter(concurrency=1, wait=600)
    holder, waiter = limiter.enter(), limiter.enter()

    def make_event() -> threading.Event:
        holder.give_back()  # by another thread, at the worst moment
        return threading.Event()

    monkeypatch.setattr(limiters_own, "threading", SimpleNamespace(Event=make_event))
    waiter.wait()
    assert waiter.state is HELD


async def test_slot_granted_just_before_the_task_waits_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limiter = make_limiter(concurrency=1, wait=600)
    holder, waiter = limiter.enter(), limiter.enter()
    loop = asyncio.get_running_loop()
    create = loop.create_future

    def create_future() -> asyncio.Future[None]:
        monkeypatch.undo()
        holder.give_back()
        return create()

    monkeypatch.setattr(loop, "create_future", create_future)
    await asyncio.wait_for(asyncio.ensure_future(waiter.async_wait()), 60)
    assert waiter.state is HELD


def test_forked_child_owes_no_slots_of_its_parent(clock: Any) -> None:
    limiter = make_limiter(clock, concurrency=1, wait=30)
    of_the_parent, waiting = limiter.enter(), limiter.enter()
    limiter.renew()
    own = limiter.enter()
    assert own.state is HELD
    of_the_parent.give_back()
    waiting.give_back()
    assert (limiter.running, limiter.waiting) == (1, 0)
    assert limiter.enter().state is WAITING


def test_waiter_whose_time_is_over_leaves_the_queue() -> None:
    limiter = make_limiter(concurrency=1, wait=0.02)
    holder, late = limiter.enter(), limiter.enter()
    late.wait()
    assert late.state is REFUSED
    assert late.retry_after is None
    assert limiter.waiting == 0
    holder.give_back()
    assert limiter.running == 0, "the slot does not go to who has left"


def test_slot_passes_over_who_has_waited_too_long_and_has_not_noticed(clock: Any) -> None:
    limiter = make_limiter(clock, concurrency=1, wait=1)
    holder, late = limiter.enter(), limiter.enter()
    clock.move(0.5)
    patient = limiter.enter()
    clock.move(0.7)
    holder.give_back()
    assert (late.state, patient.state) == (REFUSED, HELD)


async def test_cancelled_waiter_leaves_the_queue_and_no_slot_is_lost() -> None:
    limiter = make_limiter(concurrency=1, wait=30)
    holder, cancelled, next_one = (limiter.enter() for _ in range(3))

    async def stand_in_line(place: Place) -> None:
        try:
            await place.async_wait()
        except BaseException:
            place.give_back()
            raise

    tasks = [asyncio.create_task(stand_in_line(place)) for place in (cancelled, next_one)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait([tasks[0]])
    holder.give_back()
    await asyncio.wait_for(tasks[1], 20)
    assert next_one.state is HELD
    assert (limiter.running, limiter.waiting) == (1, 0)


async def test_waiter_cancelled_after_it_was_granted_passes_the_slot_on() -> None:
    limiter = make_limiter(concurrency=1, wait=30)
    holder, granted, next_one = (limiter.enter() for _ in range(3))

    async def stand_in_line() -> None:
        try:
            await granted.async_wait()
        except BaseException:
            granted.give_back()
            raise

    task = asyncio.create_task(stand_in_line())
    await asyncio.sleep(0)
    holder.give_back()  # grants it, and wakes the task in the loop's next round
    assert granted.state is HELD
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert next_one.state is HELD


def test_slot_is_not_lost_to_a_loop_that_is_closed() -> None:
    limiter = make_limiter(concurrency=1, wait=30)
    holder, orphan, next_one = (limiter.enter() for _ in range(3))
    loop = asyncio.new_event_loop()
    waiting = orphan.async_wait()
    task = loop.create_task(waiting)
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    holder.give_back()
    assert next_one.state is HELD
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    waiting.close()
    del task
    gc.collect()


def test_garbage_collector_may_give_a_place_back_in_the_middle_of_another_step(
    clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    limiter = make_limiter(clock, concurrency=1, wait=30)
    dropped = limiter.enter()
    plain = clock.monotonic

    def collecting() -> float:
        # In the place where it hurts: the limiter has found all slots taken, and is about to
        # put the newcomer into the queue.
        if limiter._is_at_work:
            dropped.give_back()
        return plain()

    monkeypatch.setattr(clock, "monotonic", collecting)
    newcomer = limiter.enter()
    assert newcomer.state is HELD
    assert (limiter.running, limiter.waiting) == (1, 0)


def test_tokens_bound_what_begins(clock: Any) -> None:
    limiter = make_limiter(clock, rate=2, burst=3, wait=1)
    start = clock.now
    places = [limiter.enter() for _ in range(6)]
    assert [p.state for p in places] == [HELD] * 5 + [REFUSED]
    assert [p.begins - start for p in places[:5]] == [0, 0, 0, 0.5, 1.0]
    assert places[5].retry_after == 1.5
    places[3].wait()
    assert clock.now - start == 0.5


def test_bucket_fills_up_to_the_burst_and_no_further(clock: Any) -> None:
    limiter = make_limiter(clock, rate=10, burst=2, wait=0)
    assert [limiter.enter().state for _ in range(3)] == [HELD, HELD, REFUSED]
    clock.move(0.1)
    assert [limiter.enter().state for _ in range(2)] == [HELD, REFUSED]
    clock.move(3600)
    assert [limiter.enter().state for _ in range(3)] == [HELD, HELD, REFUSED]


def test_rate_holds_over_any_stretch_of_time(clock: Any) -> None:
    limiter = make_limiter(clock, rate=30, burst=50, wait=0)
    begun: list[float] = []
    while clock.now < 1010:
        place = limiter.enter()
        if place.state is HELD:
            place.has_begun = True
            begun.append(clock.now)
        place.give_back()
        clock.move(0.003)
    for start in begun:
        for seconds in (1, 3):
            inside = sum(start <= at < start + seconds for at in begun)
            assert inside <= 50 + 30 * seconds
    assert len(begun) >= 50 + 30 * 9.9


def test_token_that_was_not_used_goes_back(clock: Any) -> None:
    limiter = make_limiter(clock, rate=1, burst=1, wait=5)
    begun = limiter.enter()
    begun.has_begun = True
    begun.give_back()
    left = limiter.enter()
    assert left.must_wait
    left.give_back()
    again = limiter.enter()
    assert again.begins - clock.now == 1


def test_turn_that_was_given_back_goes_to_the_next_and_nobody_comes_too_close(
    clock: Any,
) -> None:
    limiter = make_limiter(clock, rate=1, burst=1, wait=50)
    first, second, third = (limiter.enter() for _ in range(3))
    first.has_begun = True
    second.give_back()
    assert limiter.enter().begins == second.begins
    assert limiter.enter().begins == third.begins + 1
    first_of_all = make_limiter(clock, rate=1, burst=1, wait=50)
    unused, waits = first_of_all.enter(), first_of_all.enter()
    unused.give_back()
    assert first_of_all.enter().begins == waits.begins + 1, "its time is over: it is lost"


def test_number_that_waits_for_tokens_is_bounded_by_the_queue(clock: Any) -> None:
    limiter = make_limiter(clock, rate=10, burst=1, queue=2, wait=100)
    states = [limiter.enter().state for _ in range(5)]
    assert states == [HELD, HELD, HELD, REFUSED, REFUSED]
    clock.move(0.1)
    assert [limiter.enter().state for _ in range(2)] == [HELD, REFUSED]


def test_slots_that_come_free_at_once_do_not_burst_through_the_rate(clock: Any) -> None:
    limiter = make_limiter(clock, concurrency=3, rate=1, burst=3, wait=100)
    running = [limiter.enter() for _ in range(3)]
    queued = [limiter.enter() for _ in range(3)]
    for place in running:
        place.has_begun = True
        place.give_back()
    assert [place.begins - clock.now for place in queued] == [1, 2, 3]


def test_waiter_whose_token_would_come_too_late_is_refused_and_the_next_is_asked(
    clock: Any,
) -> None:
    limiter = make_limiter(clock, concurrency=1, rate=0.1, burst=1, wait=5)
    holder, waiter = limiter.enter(), limiter.enter()
    holder.has_begun = True
    holder.give_back()
    assert waiter.state is REFUSED
    assert waiter.retry_after == 10
    assert (limiter.running, limiter.waiting) == (0, 0)


def test_registry_is_bounded_and_gives_a_tool_one_limiter_past_that(clock: Any) -> None:
    LIMITERS.clear()
    config = Limit(concurrency=1)
    for number in range(MAX_LIMITERS):
        LIMITERS.get(BreakerKey("tool", "eu", str(number)), config)
    past = [LIMITERS.get(BreakerKey("tool", "eu", f"past-{n}"), config) for n in range(2)]
    assert past[0] is past[1]
    assert LIMITERS.get(BreakerKey("tool", "eu", "0"), config) is not past[0]
    LIMITERS.clear()


def test_other_settings_make_limiters_anew_and_old_places_go_home(clock: Any) -> None:
    LIMITERS.clear()
    key = BreakerKey("tool")
    narrow, wide = Limit(concurrency=1), Limit(concurrency=2)
    LIMITERS.declare("tool", narrow)
    old = LIMITERS.get(key, narrow)
    place = old.enter()
    LIMITERS.declare("tool", wide)
    new = LIMITERS.get(key, wide)
    assert new is not old
    assert [new.enter().state for _ in range(2)] == [HELD, HELD]
    place.give_back()
    assert (old.running, new.running) == (0, 2)
    LIMITERS.clear()
