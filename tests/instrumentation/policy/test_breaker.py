"""HC-25, 26, 27: the breaker's states, its probes and what it counts."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

import fuseboard
from fuseboard import Breaker, CircuitOpenError, ErrorClass, Outcome, Policy, Retry
from fuseboard.conventions import BreakerState
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, Permit, Rejection
from fuseboard.policy.registry import BREAKERS, MAX_BREAKERS
from fuseboard.policy.window import Window
from fuseboard.runtime import RUNTIME

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


# --- Through the wrappers -------------------------------------------------------------------

POLICY = Policy(breaker=Breaker(minimum_throughput=2, break_duration=30))


class Switch:
    """A tool whose next ending the test chooses."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.ending: BaseException | None = None
        self.run = fuseboard.wrap(self._run, name="switch", policy=policy)

    def _run(self) -> str:
        if self.ending is not None:
            raise self.ending
        return "ok"

    def break_open(self) -> None:
        self.ending = ConnectionResetError()
        for _ in range(2):
            with pytest.raises(ConnectionResetError):
                self.run()
        assert state_of("switch") is BreakerState.OPEN


def state_of(name: str) -> BreakerState:
    breaker = BREAKERS.find(name)
    assert breaker is not None
    return breaker.state


class NotFound(Exception):  # noqa: N818
    status_code = 404


class GraphInterrupt(Exception):  # noqa: N818
    __module__ = "langgraph.errors"


INCONCLUSIVE = [
    asyncio.CancelledError(),
    KeyboardInterrupt(),
    GeneratorExit(),
    NotFound(),
    GraphInterrupt(),
]


@pytest.mark.parametrize("ending", INCONCLUSIVE, ids=repr)
def test_hc_26_inconclusive_probe_gives_its_permit_back(
    telemetry: Any, clock: Any, ending: BaseException
) -> None:
    tool = Switch()
    tool.break_open()
    clock.move(30)
    for _ in range(3):
        tool.ending = ending
        with pytest.raises(type(ending)):
            tool.run()
        assert state_of("switch") is BreakerState.HALF_OPEN, "neither closed nor opened"
    tool.ending = None
    assert tool.run() == "ok"
    assert state_of("switch") is BreakerState.CLOSED


async def test_hc_26_cancelled_task_gives_its_permit_back(telemetry: Any, clock: Any) -> None:
    mode = "fail"

    @fuseboard.tool(policy=POLICY)
    async def remote() -> str:
        if mode == "fail":
            raise ConnectionResetError
        if mode == "hang":
            await asyncio.sleep(60)
        return "ok"

    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            await remote()
    clock.move(30)
    mode = "hang"
    task = asyncio.create_task(remote())
    await asyncio.sleep(0)
    with pytest.raises(CircuitOpenError):
        await remote()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    mode = "ok"
    assert await remote() == "ok"
    assert state_of("remote") is BreakerState.CLOSED


def test_hc_26_probe_that_is_a_stream_left_half_way(telemetry: Any, clock: Any) -> None:
    fails = True

    @fuseboard.tool(policy=POLICY)
    def stream() -> Any:
        if fails:
            raise ConnectionResetError
        yield 1
        yield 2

    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            list(stream())
    clock.move(30)
    fails = False
    items = stream()
    next(items)
    with pytest.raises(CircuitOpenError):
        list(stream())
    items.close()
    assert state_of("stream") is BreakerState.HALF_OPEN
    assert list(stream()) == [1, 2]
    assert state_of("stream") is BreakerState.CLOSED


def test_hc_26_timed_out_probe_in_a_thread_counts_as_a_failure(telemetry: Any) -> None:
    let_go = threading.Event()
    mode = "fail"
    policy = Policy(breaker=Breaker(minimum_throughput=2, break_duration=0.05), timeout=0.05)

    @fuseboard.tool(policy=policy)
    def remote() -> str:
        if mode == "fail":
            raise ConnectionResetError
        let_go.wait(60)
        return "late"

    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            remote()
    mode = "hang"
    deadline = RUNTIME.clock.monotonic() + 10
    while RUNTIME.clock.monotonic() < deadline:
        try:
            remote()
        except CircuitOpenError:
            continue
        except fuseboard.AttemptTimeoutError:
            break
    assert state_of("remote") is BreakerState.OPEN
    let_go.set()
    assert telemetry.transitions[-1].reason == "probe_failed"


def test_hc_25_one_probe_of_fifty_threads(telemetry: Any, clock: Any) -> None:
    let_go, barrier = threading.Event(), threading.Barrier(50)
    entries = []
    tool = Switch(Policy(breaker=POLICY.breaker, retry=Retry(attempts=3, wait_initial=0)))
    tool.break_open()

    @fuseboard.tool(name="switch", policy=POLICY)
    def probe() -> str:
        entries.append(1)
        let_go.wait(30)
        return "ok"

    clock.move(30)

    def knock() -> str:
        barrier.wait(30)
        try:
            return probe()
        except CircuitOpenError:
            return "rejected"

    with ThreadPoolExecutor(50) as pool:
        pending = [pool.submit(knock) for _ in range(50)]
        deadline = 30.0
        while sum(done.done() for done in pending) < 49 and deadline > 0:
            threading.Event().wait(0.01)
            deadline -= 0.01
        assert sum(done.done() for done in pending) == 49, "rejections do not wait for the probe"
        let_go.set()
        answers = [done.result(30) for done in pending]
    assert len(entries) == 1
    assert sorted(answers) == ["ok"] + ["rejected"] * 49
    rejected = [call for call in telemetry.calls if call.outcome is Outcome.REJECTED]
    assert len(rejected) == 49
    assert all(call.attempts == [] for call in rejected)


async def test_hc_25_one_probe_of_fifty_tasks_through_retry(telemetry: Any, clock: Any) -> None:
    let_go = asyncio.Event()
    entries, mode = [], "fail"
    policy = Policy(breaker=POLICY.breaker, retry=Retry(attempts=2, wait_initial=0), effects="none")

    @fuseboard.tool(policy=policy)
    async def remote() -> str:
        if mode == "fail":
            raise ConnectionResetError
        entries.append(1)
        await let_go.wait()
        return "ok"

    with pytest.raises(ConnectionResetError):
        await remote()
    clock.move(30)
    mode = "probe"
    tasks = [asyncio.create_task(remote()) for _ in range(50)]
    done, pending = await asyncio.wait(tasks, timeout=5, return_when=asyncio.FIRST_EXCEPTION)
    while len(done) < 49:
        done, pending = await asyncio.wait(tasks, timeout=0.01)
    assert len(entries) == len(pending) == 1
    let_go.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(a, CircuitOpenError) for a in answers) == 49
    assert state_of("remote") is BreakerState.CLOSED


class WithStatus(Exception):  # noqa: N818
    def __init__(self, status_code: int) -> None:
        super().__init__(status_code)
        self.status_code = status_code


@pytest.mark.parametrize(
    ("fault", "counts"),
    [
        *((WithStatus(status), False) for status in (400, 401, 403, 404, 422)),
        *((WithStatus(status), True) for status in (408, 429, 500, 503, 410, 501)),
        (asyncio.CancelledError(), False),
        (GraphInterrupt(), False),
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (KeyError("defect"), True),
        (RuntimeError("unknown"), True),
    ],
    ids=repr,
)
def test_hc_27_only_the_dependencys_failures_count(
    telemetry: Any, clock: Any, fault: BaseException, counts: bool
) -> None:
    tool = Switch()
    tool.ending = fault
    for _ in range(20):
        with pytest.raises((type(fault), CircuitOpenError)):
            tool.run()
    assert state_of("switch") is (BreakerState.OPEN if counts else BreakerState.CLOSED)


def test_hc_27_one_failure_in_half_open_opens(telemetry: Any, clock: Any) -> None:
    tool = Switch()
    tool.break_open()
    clock.move(30)
    tool.ending = WithStatus(503)
    with pytest.raises(WithStatus):
        tool.run()
    assert state_of("switch") is BreakerState.OPEN


def test_hc_27_wrong_arguments_do_not_count(telemetry: Any, clock: Any) -> None:
    @fuseboard.tool(policy=POLICY)
    def strict(city: str) -> str:
        return city

    for _ in range(10):
        with pytest.raises(TypeError):
            strict(town="x")  # type: ignore[call-arg]
    assert state_of("strict") is BreakerState.CLOSED


def test_access_and_semantic_faults_count_if_asked(telemetry: Any, clock: Any) -> None:
    breaker = Breaker(minimum_throughput=2, also_counts=[ErrorClass.L2_ACCESS])
    tool = Switch(Policy(breaker=breaker))
    tool.ending = WithStatus(401)
    for _ in range(2):
        with pytest.raises(WithStatus):
            tool.run()
    assert state_of("switch") is BreakerState.OPEN


def test_open_breaker_of_a_tool_within_is_not_counted_without(telemetry: Any, clock: Any) -> None:
    inner = Switch()
    inner.break_open()
    outer = fuseboard.wrap(lambda: inner.run(), name="outer", policy=POLICY)
    for _ in range(5):
        with pytest.raises(CircuitOpenError):
            outer()
    assert state_of("outer") is BreakerState.CLOSED
    assert telemetry.last.outcome is Outcome.ERROR, "the outer tool did make its attempt"


def test_registry_is_bounded_and_lists_states(telemetry: Any, clock: Any) -> None:
    config = Breaker()
    for n in range(MAX_BREAKERS + 20):
        BREAKERS.get(BreakerKey("t", f"region-{n}"), config)
    statuses = BREAKERS.statuses()
    assert len(statuses) <= MAX_BREAKERS + 1
    assert {status.state for status in statuses} == {BreakerState.CLOSED}
    assert len(telemetry.breakers) == len(statuses)
    assert RUNTIME.breaker_statuses() == statuses


def test_redefined_tool_gets_its_new_thresholds(telemetry: Any, clock: Any) -> None:
    Switch().break_open()
    changed = Switch(Policy(breaker=Breaker(minimum_throughput=50)))
    assert changed.run() == "ok"
    assert state_of("switch") is BreakerState.CLOSED


def test_forked_child_can_use_a_breaker_whose_lock_was_held(clock: Any, reports: Reports) -> None:
    breaker = make_breaker(clock, reports)
    breaker._lock.acquire()
    breaker.renew_locks()
    fail(breaker, 4)
    assert breaker.state is BreakerState.OPEN


class Shared:
    """A tool in both worlds behind one breaker, whose probes wait until they are let go."""

    def __init__(self) -> None:
        self.fails = True
        self.let_go = threading.Event()
        self.entries: list[str] = []
        self.refused: list[str] = []
        self.now = fuseboard.wrap(self._now, name="shared", policy=POLICY)
        self.later = fuseboard.wrap(self._later, name="shared", policy=POLICY)

    def _now(self) -> str:
        if self.fails:
            raise ConnectionResetError
        self.entries.append("thread")
        assert self.let_go.wait(30)
        return "ok"

    async def _later(self) -> str:
        self.entries.append("task")
        assert await asyncio.to_thread(self.let_go.wait, 30)
        return "ok"

    def knock(self) -> list[str]:
        try:
            return [self.now()]
        except CircuitOpenError:
            self.refused.append("thread")
            return ["refused"]

    async def knock_later(self) -> str:
        try:
            return await self.later()
        except CircuitOpenError:
            self.refused.append("task")
            return "refused"

    async def knock_often(self) -> list[str]:
        return list(await asyncio.gather(*(self.knock_later() for _ in range(25))))


def test_hc_25_one_probe_of_threads_and_tasks_at_once(telemetry: Any, clock: Any) -> None:
    shared, barrier = Shared(), threading.Barrier(26)
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            shared.now()
    clock.move(30)
    shared.fails = False

    def by_thread() -> list[str]:
        barrier.wait(30)
        return shared.knock()

    def by_loop() -> list[str]:
        barrier.wait(30)
        return asyncio.run(shared.knock_often())

    with ThreadPoolExecutor(26) as pool:
        pending = [pool.submit(by_thread) for _ in range(25)] + [pool.submit(by_loop)]
        deadline = 30.0
        while len(shared.refused) < 49 and deadline > 0:
            threading.Event().wait(0.01)
            deadline -= 0.01
        assert (len(shared.entries), len(shared.refused)) == (1, 49)
        shared.let_go.set()
        answers = [answer for done in pending for answer in done.result(30)]
    assert answers.count("ok") == 1
    assert state_of("shared") is BreakerState.CLOSED


def test_hc_27_failing_tool_leaves_the_others_closed(telemetry: Any, clock: Any) -> None:
    healthy = fuseboard.wrap(lambda: "ok", name="healthy", policy=POLICY)
    assert healthy() == "ok"
    Switch().break_open()
    assert healthy() == "ok"
    assert state_of("healthy") is BreakerState.CLOSED


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


class _Interrupted(deque[float]):
    """Has the tool called, by a signal's handler or the garbage collector, while it is emptied."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then: Callable[[], None] | None = then

    def popleft(self) -> float:
        found = super().popleft()
        if self.then is not None:
            then, self.then = self.then, None
            then()
        return found


def test_successes_that_come_while_others_are_weighed_are_neither_lost_nor_fatal(
    clock: Any, reports: Reports
) -> None:
    breaker = make_breaker(clock, reports, Breaker(failure_ratio=0.5, minimum_throughput=1500))
    permit = permit_of(breaker)

    def call_tool() -> None:
        for _ in range(700):
            breaker.succeed_while_closed(permit, clock.monotonic())

    breaker._successes = _Interrupted(call_tool)
    for _ in range(600):
        breaker.succeed_while_closed(permit, clock.monotonic())
    fail(breaker, 1300)

    (report,) = reports
    assert (report.calls, report.failures) == (2600, 1300)
