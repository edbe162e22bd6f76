"""Whatever is asked of a limiter in whatever order, it keeps its bounds and loses nothing."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from fuseboard import Limit
from fuseboard.policy.breaker import BreakerKey
from fuseboard.policy.limiter import Limiter, Place, PlaceState

HELD, WAITING, REFUSED, GIVEN_BACK = (
    PlaceState.HELD,
    PlaceState.WAITING,
    PlaceState.REFUSED,
    PlaceState.GIVEN_BACK,
)


class HandClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return int(self.now * 1e9)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def async_sleep(self, seconds: float) -> None:
        self.now += seconds


class AnyUse(RuleBasedStateMachine):
    """Attempts come, begin, end, are cancelled and give up in any order."""

    @initialize(
        concurrency=st.none() | st.integers(1, 3),
        rate=st.none() | st.sampled_from([0.5, 1, 4]),
        burst=st.integers(1, 3),
        wait=st.sampled_from([0, 1, 5]),
        queue=st.integers(0, 3),
    )
    def begin(self, concurrency: Any, rate: Any, burst: int, wait: float, queue: int) -> None:
        if concurrency is None and rate is None:
            concurrency = 1
        self.clock = HandClock()
        self.config = Limit(
            concurrency=concurrency,
            rate=rate,
            burst=burst if rate is not None else None,
            wait=wait,
            queue=queue,
        )
        self.limiter = Limiter(BreakerKey("tool"), self.config, self.clock)
        self.queue: deque[Place] = deque()
        self.held: list[Place] = []
        self.begun: list[float] = []

    @rule(seconds=st.sampled_from([0.1, 0.25, 1.0, 7.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(longest=st.none() | st.sampled_from([0.0, 2.0]))
    def an_attempt_comes(self, longest: float | None) -> None:
        was_free = not self.queue
        place = self.limiter.enter(longest)
        if place.state is WAITING:
            self.queue.append(place)
        elif place.state is HELD:
            assert was_free, "nobody overtakes the queue"
            self.held.append(place)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def one_begins_and_ends(self, data: st.DataObject) -> None:
        place = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.clock.now = max(self.clock.now, place.begins)
        place.has_begun = True
        self.begun.append(place.begins)
        place.give_back()
        self._see_who_moved_up()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def one_is_cancelled_before_it_begins(self, data: st.DataObject) -> None:
        place = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        place.give_back()
        self._see_who_moved_up()

    @precondition(lambda self: self.queue)
    @rule(data=st.data())
    def one_leaves_the_queue(self, data: st.DataObject) -> None:
        place = self.queue[data.draw(st.integers(0, len(self.queue) - 1))]
        self.queue.remove(place)
        place.give_back()
        assert place.state is GIVEN_BACK

    @precondition(lambda self: self.queue)
    @rule()
    def those_whose_time_is_over_give_up(self) -> None:
        for place in list(self.queue):
            if place.expires <= self.clock.now:
                self.limiter.time_out(place)
                assert place.state is REFUSED
                self.queue.remove(place)

    def _see_who_moved_up(self) -> None:
        while self.queue and self.queue[0].state is not WAITING:
            place = self.queue.popleft()
            if place.state is HELD:
                self.held.append(place)
        assert all(place.state is WAITING for place in self.queue), "served in their order"

    @invariant()
    def bounds_are_kept_and_counts_agree(self) -> None:
        limiter, config = self.limiter, self.config
        assert limiter.running == len(self.held)
        assert limiter.waiting == len(self.queue) <= config.queue
        if config.concurrency is not None:
            assert limiter.running <= config.concurrency
            if self.queue:
                assert limiter.running == config.concurrency, "nobody waits for a free slot"

    @invariant()
    def rate_is_kept(self) -> None:
        rate, allowance = self.config.rate, self.config.allowance
        if rate is None:
            return
        begins = sorted(self.begun + [place.begins for place in self.held])
        for count, first in enumerate(begins):
            for steps in (1, 3):
                inside = [at for at in begins[count:] if at - first < steps / rate - 1e-9]
                assert len(inside) < allowance + steps


AnyUse.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestAnyUse = AnyUse.TestCase
