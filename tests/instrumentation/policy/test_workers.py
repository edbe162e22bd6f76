"""HC-29: threads for time limits are used again, left behind, counted, never waited for."""

from __future__ import annotations

import contextvars
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fuseboard.policy import workers
from fuseboard.policy.timeout import OverrunError
from fuseboard.policy.workers import WorkerThreads

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def alive() -> int:
    return sum(thread.name == "fuseboard-attempt" for thread in threading.enumerate())


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerThreads]:
    before = alive()
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.05)
    yield WorkerThreads(limit=8)
    wait_until(lambda: alive() <= before)


def test_a_thread_is_used_again(pool: WorkerThreads) -> None:
    seen = {pool.run(5, None, threading.get_ident) for _ in range(50)}
    assert len(seen) == 1
    assert threading.get_ident() not in seen


def test_an_idle_thread_ends_and_the_next_job_starts_another(pool: WorkerThreads) -> None:
    before = alive()
    assert pool.run(5, None, int, "7") == 7
    wait_until(lambda: alive() == before)
    assert pool.run(5, None, int, "8") == 8


def test_idle_threads_are_bounded(pool: WorkerThreads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "IDLE_SECONDS", 30.0)
    monkeypatch.setattr(workers, "MAX_IDLE_THREADS", 2)
    before, together = alive(), threading.Barrier(6)
    callers = [threading.Thread(target=pool.run, args=(5, None, together.wait)) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    wait_until(lambda: alive() - before == 2)
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.01)
    for worker in list(pool._idle):
        pool._idle.remove(worker)
        worker.wake.release()


def test_jobs_have_the_callers_context_and_change_only_a_copy(pool: WorkerThreads) -> None:
    def work() -> str:
        found = NAME.get()
        NAME.set("work")
        return found

    token = NAME.set("caller")
    try:
        assert [pool.run(5, None, work), pool.run(5, None, work)] == ["caller", "caller"]
        assert NAME.get() == "caller"
    finally:
        NAME.reset(token)


def test_the_very_exception_comes_back(pool: WorkerThreads) -> None:
    error = KeyError("k")

    def fail() -> None:
        raise error

    with pytest.raises(KeyError) as caught:
        pool.run(5, None, fail)
    assert caught.value is error
    assert pool.run(5, None, int, "1") == 1, "the thread goes on"


def test_arguments_may_have_any_name(pool: WorkerThreads) -> None:
    def work(**arguments: int) -> int:
        return sum(arguments.values())

    assert pool.run(5, None, work, self=1, seconds=2, function=4, worker=8) == 15


def test_an_idle_thread_keeps_nothing_alive(
    pool: WorkerThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Thing:
        pass

    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.5)
    thing = Thing()
    gone = weakref.ref(thing)
    token = NAME.set(thing)  # type: ignore[arg-type]
    assert pool.run(5, None, lambda given: given, thing) is thing
    NAME.reset(token)
    del thing, token
    wait_until(lambda: gone() is None)


def test_hc_29_fifty_timeouts_leave_no_more_threads_than_allowed(pool: WorkerThreads) -> None:
    before, let_go, refused = alive(), threading.Event(), 0
    for _ in range(50):
        if pool.is_full():
            refused += 1
            continue
        with pytest.raises(OverrunError):
            pool.run(0.001, None, let_go.wait, 60)
    assert (pool.count_abandoned(), refused) == (8, 42)
    assert alive() - before <= 8
    let_go.set()
    wait_until(lambda: pool.count_abandoned() == 0)


@pytest.mark.parametrize("ending", ["returns", "raises"])
def test_hc_29_a_late_end_changes_nothing(pool: WorkerThreads, ending: str) -> None:
    let_go, results = threading.Event(), []

    def late() -> str:
        let_go.wait(60)
        if ending == "raises":
            raise SystemExit("late")
        return "late"

    with pytest.raises(OverrunError):
        pool.run(0.001, None, late)
    let_go.set()
    results = [pool.run(5, None, str, number) for number in range(20)]
    assert results == [str(number) for number in range(20)]
    wait_until(lambda: pool.count_abandoned() == 0)


def test_results_reach_the_caller_who_asked_for_them(pool: WorkerThreads) -> None:
    wrong: list[Any] = []

    def call_often(me: int) -> None:
        for number in range(200):
            if pool.run(10, None, divmod, me * 1000 + number, 7) != divmod(me * 1000 + number, 7):
                wrong.append((me, number))

    callers = [threading.Thread(target=call_often, args=(me,)) for me in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []
    assert pool.count_abandoned() == 0


def test_results_on_the_edge_of_the_limit_are_never_mixed_up(pool: WorkerThreads) -> None:
    pool.limit = 10_000

    def work(number: int) -> int:
        time.sleep(0.0005)
        return number

    kept, overrun = 0, 0
    for number in range(300):
        try:
            assert pool.run(0.0004 + (number % 5) * 0.0001, None, work, number) == number
            kept += 1
        except OverrunError:
            overrun += 1
    assert kept + overrun == 300
    wait_until(lambda: pool.count_abandoned() == 0)


def test_an_interrupted_caller_leaves_its_thread_behind(pool: WorkerThreads) -> None:
    let_go = threading.Event()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            pool.run(60, None, let_go.wait, 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert pool.count_abandoned() == 1
    let_go.set()
    wait_until(lambda: pool.count_abandoned() == 0)


def test_where_no_thread_can_be_started_the_job_runs_without(
    pool: WorkerThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert pool.run(5, None, threading.get_ident) == threading.get_ident()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    script = """
        import os, threading
        from fuseboard.policy.workers import THREADS
        from fuseboard.policy.timeout import OverrunError

        assert THREADS.run(5, None, int, "1") == 1
        try:
            THREADS.run(0.001, None, threading.Event().wait, 60)
        except OverrunError:
            pass
        child = os.fork()
        if child == 0:
            fine = THREADS.count_abandoned() == 0 and THREADS.run(5, None, int, "2") == 2
            os._exit(0 if fine else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        # Forked within a job: its thread is the child's only one, and ends with the job.
        child = THREADS.run(5, None, os.fork)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (THREADS.run(5, None, int, "3"), THREADS.count_abandoned()) == (3, 1)
    """
    done = run_script(script)
    assert done.returncode == 0, done.stderr


def test_hc_29_the_process_ends_while_a_tool_hangs() -> None:
    script = """
        import fuseboard, threading

        @fuseboard.tool(policy=fuseboard.Policy(timeout=0.05))
        def hangs() -> None:
            threading.Event().wait()

        try:
            hangs()
        except fuseboard.AttemptTimeoutError:
            print("timed out", flush=True)
    """
    began = time.monotonic()
    done = run_script(script)
    assert (done.returncode, done.stdout.strip()) == (0, "timed out"), done.stderr
    assert time.monotonic() - began < 20, "it waits for nobody"


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
