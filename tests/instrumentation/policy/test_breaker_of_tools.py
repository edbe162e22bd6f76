"""HC-25, 26, 27: the breaker as tools meet it: its probes and what it counts."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import fuseboard
from fuseboard import Breaker, CircuitOpenError, ErrorClass, Outcome, Policy, Retry
from fuseboard.conventions import BreakerState
from fuseboard.policy.breaker import BreakerKey
from fuseboard.policy.registry import BREAKERS, MAX_BREAKERS
from fuseboard.runtime import RUNTIME

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
