"""A breaker whose permits are out at the same time, step by step beside a tiny reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from virtual_time import World

from fuseboard import Breaker, ErrorClass
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, Permit

SLICES = 10
CLASSES = (ErrorClass.L3_TRANSIENT, ErrorClass.L4_PERSISTENT, ErrorClass.UNCLASSIFIED)


@dataclass(eq=False)
class Held:
    """A permit, and what the reference knows of it."""

    permit: Permit
    round: int
    is_probe: bool
    expires: float


class Model:
    """What a breaker should do: every result is kept, and counted anew each time."""

    def __init__(self, config: Breaker) -> None:
        self.config = config
        self.state = "closed"
        self.round = 0
        self.moves: list[tuple[str, str]] = []
        self.results: list[tuple[float, bool]] = []
        self.probes: list[Held] = []
        self.passed = 0
        self.reopens = 0.0

    def admits(self, now: float) -> bool:
        if self.state == "open" and now >= self.reopens:
            self.move("half_open")
        if self.state == "half_open":
            busy = [probe for probe in self.probes if probe.expires > now]
            return len(busy) + self.passed < self.config.half_open_probes
        return self.state == "closed"

    def settle(self, held: Held, now: float, *, has_failed: bool | None) -> None:
        """Take a permit back; None says that nothing is to be learnt of it."""
        if held in self.probes:
            self.probes.remove(held)
        if held.round != self.round or has_failed is None:
            return
        if self.state == "half_open":
            if has_failed:
                self.open(now)
                return
            self.passed += 1
            if self.passed == self.config.half_open_probes:
                self.move("closed")
        elif self.state == "closed":
            self.results.append((now, has_failed))
            if has_failed:
                self.weigh(now)

    def weigh(self, now: float) -> None:
        length = self.config.sampling_duration / SLICES
        counted = [failed for at, failed in self.results if at // length > now // length - SLICES]
        share = counted.count(True) / len(counted)
        if len(counted) >= self.config.minimum_throughput and share >= self.config.failure_ratio:
            self.open(now)

    def open(self, now: float) -> None:
        self.reopens = now + self.config.break_duration
        self.move("open")

    def move(self, to: str) -> None:
        self.moves.append((self.state, to))
        self.state = to
        self.round += 1
        self.results, self.probes, self.passed = [], [], 0


class BreakerBesideItsReference(RuleBasedStateMachine):
    """Asks, settles in any order, lets time pass, and intervenes by hand."""

    permits: Bundle[Any] = Bundle("permits")

    @initialize(
        ratio=st.sampled_from([0.25, 0.5, 1.0]),
        minimum=st.integers(2, 5),
        window=st.sampled_from([10.0, 40.0]),
        pause=st.sampled_from([1.0, 4.0]),
        probes=st.integers(1, 3),
        lease=st.sampled_from([None, 2.0]),
    )
    def begin(
        self, ratio: float, minimum: int, window: float, pause: float, probes: int, lease: Any
    ) -> None:
        config = Breaker(
            failure_ratio=ratio,
            minimum_throughput=minimum,
            sampling_duration=window,
            break_duration=pause,
            half_open_probes=probes,
            probe_lease=lease,
        )
        self.world = World()
        self.reported: list[tuple[str, str]] = []
        self.settled: list[Held] = []
        self.breaker = CircuitBreaker(
            BreakerKey("it"),
            config,
            self.world,
            lambda move: self.reported.append((move.from_state.value, move.to_state.value)),
        )
        self.model = Model(config)

    @rule(target=permits)
    def ask(self) -> Any:
        return self.ask_once()

    @rule(target=permits)
    def ask_again(self) -> Any:
        return self.ask_once()

    def ask_once(self) -> Held | None:
        now = self.world.now
        is_admitted = self.model.admits(now)
        answer = self.breaker.acquire()
        assert isinstance(answer, Permit) == is_admitted
        if not isinstance(answer, Permit):
            assert answer.retry_after is None or answer.retry_after >= 0
            return None
        is_probe = self.model.state == "half_open"
        lease = self.model.config.probe_lease or self.model.config.break_duration
        held = Held(answer, self.model.round, is_probe, now + lease)
        if is_probe:
            self.model.probes.append(held)
            waiting = [probe for probe in self.model.probes if probe.expires > now]
            assert len(waiting) <= self.model.config.half_open_probes, "too many probes are out"
        return held

    @rule(held=consumes(permits), plain=st.booleans())
    def succeed_later(self, held: Held | None, plain: bool) -> None:
        self.succeed(held, plain)

    def succeed(self, held: Held | None, plain: bool) -> None:
        if held is None:
            return
        if plain and not held.is_probe:
            self.breaker.succeed_while_closed(held.permit, self.world.now)
        else:
            self.breaker.succeed(held.permit)
        self.settled_by(held, has_failed=False)

    @rule(held=consumes(permits), error_class=st.sampled_from(CLASSES))
    def fail_later(self, held: Held | None, error_class: ErrorClass) -> None:
        self.fail(held, error_class)

    def fail(self, held: Held | None, error_class: ErrorClass) -> None:
        if held is None:
            return
        self.breaker.fail(held.permit, error_class)
        self.settled_by(held, has_failed=True)

    @rule(held=consumes(permits))
    def say_nothing(self, held: Held | None) -> None:
        if held is None:
            return
        self.breaker.ignore(held.permit)
        self.settled_by(held, has_failed=None)

    def settled_by(self, held: Held, *, has_failed: bool | None) -> None:
        self.model.settle(held, self.world.now, has_failed=has_failed)
        if held.is_probe:
            self.settled.append(held)

    @rule(which=st.integers(0, 5))
    def settle_a_probe_again(self, which: int) -> None:
        if which < len(self.settled):
            self.breaker.fail(self.settled[-1 - which].permit, CLASSES[0])

    @rule(seconds=st.sampled_from([0.25, 1.0, 3.0, 15.0]))
    def let_time_pass(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(calls=st.lists(st.booleans(), min_size=1, max_size=6))
    def call_in_a_row(self, calls: list[bool]) -> None:
        for has_failed in calls:
            held = self.ask_once()
            if has_failed:
                self.fail(held, CLASSES[0])
            else:
                self.succeed(held, plain=False)

    @rule(seconds=st.sampled_from([0.0, 4.0]))
    def outage(self, seconds: float) -> None:
        self.call_in_a_row([True] * 6)
        self.world.now += seconds

    @rule(what=st.sampled_from(["isolate", "reset", *[""] * 8]))
    def intervene(self, what: str) -> None:
        if what == "isolate":
            self.breaker.isolate()
            if self.model.state != "isolated":
                self.model.move("isolated")
        elif what == "reset":
            self.breaker.reset()
            if self.model.state != "closed":
                self.model.move("closed")
            self.model.results = []

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "model"):
            return
        assert self.breaker.state.value == self.model.state
        assert self.reported == self.model.moves
        closed = self.breaker.seconds_closed_to_all()
        expected = {
            "open": max(0.0, self.model.reopens - self.world.now),
            "isolated": float("inf"),
        }.get(self.model.state, 0.0)
        assert closed == expected


def test_a_breaker_does_what_its_reference_does() -> None:
    run_state_machine_as_test(
        BreakerBesideItsReference,
        settings=settings(
            max_examples=150, stateful_step_count=40, derandomize=True, deadline=None
        ),
    )


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_breaker_does_what_its_reference_does_many_times() -> None:
    run_state_machine_as_test(
        BreakerBesideItsReference,
        settings=settings(max_examples=4000, stateful_step_count=80, deadline=None),
    )
