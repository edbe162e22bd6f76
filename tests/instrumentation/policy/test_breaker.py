"""HC-25, 26, 27: the breaker's states, its probes and what it counts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from tests.instrumentation.interrupted import Interrupted

from fuseboard import Breaker, ErrorClass
from fuseboard.conventions import BreakerState
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, Permit, Rejection
from fuseboard.policy.window import Window

L3 = ErrorClass.L3_TRANSIENT
CONFIG = Breaker(minimum_throughput=4, sampling_duration=60, break_duration=30)


class Reports(list[Any]):
    @property
    def moves(self) -> list[tuple[str, str, str]]:
        return [(r.from_state.value, r.to_state.value, r.reason) for r in self]


@pytest.fixture
def reports() -> Reports:
    return Reports()


def make_breaker(clock: Any, reports: Reports, config: Breaker = CONFIG) -> CircuitBreaker:
    return CircuitBreaker(BreakerKey("tool", "eu"), config, clock, reports.append)


def permit_of(breaker: CircuitBreaker) -> Permit:
    answer = breaker.acquire()
    assert isinstance(answer, Permit)
    return answer


def fail(breaker: CircuitBreaker, times: int, error_class: ErrorClass = L3) -> None:
    for _ in range(times):
        breaker.fail(permit_of(breaker), error_class)


def test_opens_at_the_ratio_and_not_below_the_throughput(clock: Any, reports: Reports) -> None:
    breaker = make_breaker(clock, reports)
    fail(breaker, 3)
    assert breaker.state is BreakerState.CLOSED
    fail(breaker, 1)
    assert breaker.state is BreakerState.OPEN
    (report,) = reports
    assert (report.name, report.calls, report.failures) == ("tool/eu", 4, 4)
    assert report.failure_ratio == 1.0
    assert report.error_class is L3
    rejection = breaker.acquire()
    assert rejection == Rejection(BreakerState.OPEN, 30.0, L3)


def test_successes_keep_it_closed(clock: Any, reports: Reports) -> None:
    breaker = make_breaker(clock, reports)
    for _ in range(10):
        breaker.succeed(permit_of(breaker))
        breaker.succeed(permit_of(breaker))
        fail(breaker, 1)
    assert reports == []


def test_old_failures_leave_the_window(clock: Any, reports: Reports) -> None:
    breaker = make_breaker(clock, reports)
    fail(breaker, 3)
    clock.move(61)
    fail(breaker, 3)
    assert breaker.state is BreakerState.CLOSED


def test_dominant_class_is_reported(clock: Any, reports: Reports) -> None:
    breaker = make_breaker(clock, reports)
    fail(breaker, 1, ErrorClass.UNCLASSIFIED)
    fail(breaker, 2, ErrorClass.L4_PERSISTENT)
    fail(breaker, 1, L3)
    assert reports[0].error_class is ErrorClass.L4_PERSISTENT
    rejection = breaker.acquire()
    assert isinstance(rejection, Rejection)
    assert rejection.error_class is ErrorClass.L4_PERSISTENT


def test_probe_that_succeeds_closes_and_one_that_fails_reopens(
    clock: Any, reports: Reports
) -> None:
    breaker = make_breaker(clock, reports)
    fail(breaker, 4)
    clock.move(30)
    breaker.fail(permit_of(breaker), ErrorClass.L4_PERSISTENT)
    assert breaker.state is BreakerState.OPEN
    assert isinstance(breaker.acquire(), Rejection), "the break begins anew"
    clock.move(30)
    breaker.succeed(permit_of(breaker))
    assert breaker.state is BreakerState.CLOSED
    assert reports.moves == [
        ("closed", "open", "failure_ratio"),
        ("open", "half_open", "break_over"),
        ("half_open", "open", "probe_failed"),
        ("open", "half_open", "break_over"),
        ("half_open", "closed", "probe_succeeded"),
    ]
    fail(breaker, 3)
    assert breaker.state is BreakerState.CLOSED, "what it counted before is forgotten"


def test_several_probes_must_all_succeed(clock: Any, reports: Reports) -> None:
    config = Breaker(minimum_throughput=2, break_duration=30, half_open_probes=3)
    breaker = make_breaker(clock, reports, config)
    fail(breaker, 2)
    clock.move(30)
    probes = [permit_of(breaker) for _ in range(3)]
    assert isinstance(breaker.acquire(), Rejection)
    for probe in probes[:2]:
        breaker.succeed(probe)
    assert isinstance(breaker.acquire(), Rejection), "never more than three in all"
    assert breaker.state is BreakerState.HALF_OPEN
    breaker.succeed(probes[2])
    assert breaker.state is BreakerState.CLOSED


def test_late_results_of_an_earlier_state_say_nothing(clock: Any, reports: Reports) -> None:
    breaker = make_breaker(clock, reports)
    late = [permit_of(breaker) for _ in range(3)]
    fail(breaker, 4)
    clock.move(30)
    probe = permit_of(breaker)
    breaker.succeed(late[0])
    breaker.fail(late[1], L3)
    breaker.ignore(late[2])
    assert breaker.state is BreakerState.HALF_OPEN
    breaker.succeed(probe)
    breaker.succeed(probe)
    breaker.fail(probe, L3)
    assert breaker.state is BreakerState.CLOSED, "a permit is settled once"


def test_hc_26_hung_probe_blocks_for_its_lease_only(clock: Any, reports: Reports) -> None:
    config = Breaker(minimum_throughput=2, break_duration=30, probe_lease=5)
    breaker = make_breaker(clock, reports, config)
    fail(breaker, 2)
    clock.move(30)
    hung = permit_of(breaker)
    clock.move(4.9)
    rejection = breaker.acquire()
    assert isinstance(rejection, Rejection)
    assert rejection.retry_after == pytest.approx(0.1)
    clock.move(0.2)
    second = permit_of(breaker)
    assert isinstance(breaker.acquire(), Rejection), "again one at a time"
    breaker.succeed(second)
    assert breaker.state is BreakerState.CLOSED
    breaker.fail(hung, L3)
    assert breaker.state is BreakerState.CLOSED


def test_probe_slower_than_its_lease_still_counts(clock: Any, reports: Reports) -> None:
    breaker = make_breaker(clock, reports)
    fail(breaker, 4)
    clock.move(30)
    slow = permit_of(breaker)
    clock.move(300)
    breaker.succeed(slow)
    assert breaker.state is BreakerState.CLOSED


def test_isolated_by_hand(clock: Any, reports: Reports) -> None:
    breaker = make_breaker(clock, reports)
    breaker.isolate()
    breaker.isolate()
    clock.move(10_000)
    rejection = breaker.acquire()
    assert isinstance(rejection, Rejection)
    assert rejection.retry_after is None
    assert breaker.seconds_closed_to_all() == float("inf")
    breaker.reset()
    breaker.succeed(permit_of(breaker))
    assert reports.moves == [
        ("closed", "isolated", "isolated_by_hand"),
        ("isolated", "closed", "closed_by_hand"),
    ]


def test_window_is_exact_within_a_tenth(clock: Any) -> None:
    window = Window(10)
    for second in range(100):
        window.add(float(second), L3 if second % 2 else None)
        assert window.calls <= 10
        assert window.calls >= min(second + 1, 10) - 1
        assert window.failures <= window.calls
    window.advance(1e9)
    assert (window.calls, window.failures, window.dominant_class()) == (0, 0, None)


def test_transitions_are_reported_outside_the_lock_and_in_order(clock: Any) -> None:
    seen: list[BreakerState] = []

    def report(transition: Any) -> None:
        seen.append(transition.to_state)
        breaker.status()  # takes the lock: a deadlock if it were held

    config = Breaker(minimum_throughput=2, break_duration=1e-9)
    breaker = CircuitBreaker(BreakerKey("t"), config, clock, report)

    def work() -> None:
        for _ in range(300):
            answer = breaker.acquire()
            if isinstance(answer, Permit):
                breaker.fail(answer, L3)
            clock.move(1)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result(30)
    # Open and half open take turns; a report out of order would show as a repetition.
    assert len(seen) > 100
    assert all(a is not b for a, b in pairwise(seen))


def test_forked_child_can_use_a_breaker_whose_lock_was_held(clock: Any, reports: Reports) -> None:
    breaker = make_breaker(clock, reports)
    breaker._lock.acquire()
    breaker.renew_locks()
    fail(breaker, 4)
    assert breaker.state is BreakerState.OPEN


def test_permit_of_another_breaker_says_nothing(clock: Any, reports: Reports) -> None:
    replaced, breaker = make_breaker(clock, reports), make_breaker(clock, reports)
    for _ in range(CONFIG.minimum_throughput):
        breaker.fail(permit_of(replaced), L3)
    assert breaker.state is BreakerState.CLOSED, "what its predecessor let pass is not its own"
    replaced.isolate()
    replaced.reset()
    late = permit_of(replaced)
    fail(breaker, CONFIG.minimum_throughput)
    clock.move(CONFIG.break_duration)
    permit_of(breaker)
    breaker.succeed(late)
    assert breaker.state is BreakerState.HALF_OPEN, "only its own probe closes it"


def test_successes_that_come_while_others_are_weighed_are_neither_lost_nor_fatal(
    clock: Any, reports: Reports
) -> None:
    breaker = make_breaker(clock, reports, Breaker(failure_ratio=0.5, minimum_throughput=1500))
    permit = permit_of(breaker)

    def call_tool() -> None:
        for _ in range(700):
            breaker.succeed_while_closed(permit, clock.monotonic())

    breaker._successes = Interrupted(call_tool)
    for _ in range(600):
        breaker.succeed_while_closed(permit, clock.monotonic())
    fail(breaker, 1300)

    (report,) = reports
    assert (report.calls, report.failures) == (2600, 1300)
