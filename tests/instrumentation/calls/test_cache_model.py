"""Random calls of two processes that share a store, against a model of what the cache promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_tools import status_error

import fuseboard
from fuseboard import Cache, Confidence, Outcome, Policy, RedisStore, ResultSource

TTL, REDIS_TTL, BACKFILL, STALE = 120.0, 300.0, 60.0, 400.0
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([1.0, 30.0, 59.0, 61.0, 119.0, 179.0, 500.0])),
        st.tuples(
            st.sampled_from(["call", "fail"]),
            st.tuples(st.sampled_from([0, 1]), st.sampled_from(["Oslo", "Rome"])),
        ),
    ),
    max_size=40,
)


class Store:
    """A client that keeps answers in a dict, by the clock of the test."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[bytes, float]] = {}

    def get(self, key: str) -> bytes | None:
        data, until = self._kept.get(key, (None, 0.0))
        return data if self._clock.now < until else None

    def set(self, key: str, data: bytes, px: int) -> None:
        self._kept[key] = (data, self._clock.now + px / 1000)


@dataclass
class Known:
    """What one level knows of a city."""

    answer: int
    born: float
    fresh_until: float


@dataclass
class Model:
    """The promises, written down a second time and as plainly as possible."""

    memories: list[dict[str, Known]] = field(default_factory=lambda: [{}, {}])
    store: dict[str, Known] = field(default_factory=dict)
    answers: int = 0

    def expect(self, process: int, city: str, now: float, *, fails: bool) -> tuple[Any, ...]:
        """Return what the cache does, the outcome, the source, the answer and its age."""
        memory = self.memories[process]
        mine, shared = memory.get(city), self.store.get(city)
        if mine is not None and now < mine.fresh_until:
            return "hit_memory", Outcome.OK, ResultSource.CACHE, mine.answer, now - mine.born
        if shared is not None and now < shared.born + REDIS_TTL + STALE:
            left = shared.born + REDIS_TTL - now
            if left > 0:
                memory[city] = Known(shared.answer, shared.born, now + min(BACKFILL, left))
                age = now - shared.born
                return "hit_redis", Outcome.OK, ResultSource.CACHE, shared.answer, age
        if fails:
            youngest = max(
                (one for one in (mine, shared) if one is not None),
                key=lambda one: one.born,
                default=None,
            )
            if youngest is not None and now - youngest.born <= REDIS_TTL + STALE:
                age = now - youngest.born
                return "miss stale", Outcome.DEGRADED, ResultSource.CACHE, youngest.answer, age
            return "miss", Outcome.ERROR, None, None, None
        self.answers += 1
        memory[city] = self.store[city] = Known(self.answers, now, now + TTL)
        return "miss", Outcome.OK, ResultSource.LIVE, self.answers, None


class Tool:
    """The tool of both processes; each has a memory of its own."""

    def __init__(self, store: RedisStore) -> None:
        self.fails = False
        self.answers = 0
        cache = Cache(ttl=TTL, redis=store, redis_ttl=REDIS_TTL, backfill_ttl=BACKFILL, stale=STALE)
        policy = Policy(cache=cache, effects="none")

        def first(city: str) -> int:
            return self.answer()

        def second(city: str) -> int:
            return self.answer()

        self.processes = [
            fuseboard.wrap(function, name="read", policy=policy) for function in (first, second)
        ]

    def answer(self) -> int:
        if self.fails:
            raise status_error(503)
        self.answers += 1
        return self.answers

    def call(self, process: int, city: str, *, fails: bool) -> int | None:
        self.fails = fails
        try:
            return self.processes[process](city)
        except type(status_error(503)):
            return None


def confidence(source: ResultSource | None, age: float | None) -> Confidence | None:
    if source is ResultSource.LIVE:
        return Confidence.HIGH
    if age is None:
        return None
    return Confidence.MEDIUM_HIGH if age <= 60 else Confidence.MEDIUM


@given(steps=STEPS)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_two_levels_keep_their_promises(telemetry: Any, clock: Any, steps: Any) -> None:
    model, tool = Model(), Tool(RedisStore(Store(clock)))
    for action, detail in steps:
        if action == "wait":
            clock.move(detail)
            continue
        process, city = detail
        fails = action == "fail"
        expected = model.expect(process, city, clock.now, fails=fails)
        actions, outcome, source, answer, age = expected
        assert tool.call(process, city, fails=fails) == answer
        call = telemetry.last
        assert " ".join(action for _, action in call.layer_actions) == actions
        assert (call.outcome, call.result_source) == (outcome, source)
        assert call.result_age_seconds == (None if age is None else pytest.approx(age, abs=0.001))
        assert call.confidence == confidence(source, age)
        was_asked = source is ResultSource.LIVE or outcome is not Outcome.OK
        assert len(call.attempts) == was_asked
    assert telemetry.in_flight == {}


def test_younger_of_two_stale_answers_stands_in(telemetry: Any, clock: Any) -> None:
    store = Store(clock)
    tool = Tool(RedisStore(store))
    tool.call(0, "Oslo", fails=False)
    clock.move(REDIS_TTL + 1)
    store.set = lambda *args, **options: None  # type: ignore[method-assign]
    tool.call(0, "Oslo", fails=False)
    clock.move(REDIS_TTL + 1)
    assert tool.call(0, "Oslo", fails=True) == 2, "from memory, which Redis never got"
    assert telemetry.last.result_age_seconds == REDIS_TTL + 1
