"""Threads that sync attempts with a time limit run in, and that can be left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any, Final

from fuseboard import guard
from fuseboard.forking import after_fork_in_child
from fuseboard.policy.timeout import OverrunError
from fuseboard.raising import KeptContext
from fuseboard.runtime import RUNTIME

MAX_ABANDONED_THREADS: Final = 32
MAX_IDLE_THREADS: Final = 32
IDLE_SECONDS: Final = 10.0
"""How long a thread waits for its next attempt before it ends."""
LeaveBehind = Callable[[], Callable[[], None] | None]
"""Called when a thread is left behind; returns what to call when it ends, if anything."""
_LONGEST: Final = threading.TIMEOUT_MAX


class _Worker:
    """A thread, seen by the caller that has it for one job at a time.

    Plain locks, and no object for the job: with an Event or a Future each job would cost half
    as much again.

    Attributes:
        job: What to run: a context's ``run``, and its positional and keyword arguments.
        wake: Released once for every job; the first is there from the start.
        claim: Taken by whoever decides first, the thread that the job is done or the caller that
            it comes too late.
        done: Released when a job is done in time.
        at_end: What to call when a job ends that came too late.
    """

    __slots__ = ("at_end", "claim", "done", "error", "job", "value", "wake")

    def __init__(self) -> None:
        self.job: tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]] | None = None
        self.at_end: Callable[[], None] | None = None
        self.value: Any = None
        self.error: BaseException | None = None
        self.wake, self.claim, self.done = threading.Lock(), threading.Lock(), threading.Lock()
        self.wake.acquire()
        self.done.acquire()


class WorkerThreads:
    """Runs sync attempts in threads that are used again, and counts those that were left behind.

    Threads are daemons, so a tool that hangs does not delay the end of the process.
    """

    def __init__(self, limit: int = MAX_ABANDONED_THREADS) -> None:
        """Allow up to ``limit`` threads to be left behind at a time."""
        self.limit = limit
        self._abandoned = 0
        self._idle: list[_Worker] = []  # append, pop and remove are atomic
        self._renew_lock()

    def count_abandoned(self) -> int:
        """Return how many threads still run for calls that have long been answered."""
        return self._abandoned

    def is_full(self) -> bool:
        """Tell whether no further thread may be left behind."""
        return self._abandoned >= self.limit

    def renew(self) -> None:
        """Start anew in a forked child, which has none of the threads."""
        self._renew_lock()
        self._abandoned = 0
        self._idle = []

    def run(
        self,
        seconds: float,
        when_left: LeaveBehind | None,
        function: Callable[..., Any],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Run a function in a worker thread, with a copy of the context variables.

        Args:
            seconds: How long it may take.
            when_left: Told if the thread is left behind, or None.
            function: What to run.
            *args: Its positional arguments.
            **kwargs: Its keyword arguments.

        Raises:
            OverrunError: If it took longer than ``seconds``; its late result is dropped.
        """
        idle = self._idle
        try:
            worker: _Worker | None = idle.pop()
        except IndexError:
            worker = self._start(idle)
        if worker is None:
            return function(*args, **kwargs)
        worker.job = (copy_context().run, (function, *args), kwargs)
        worker.wake.release()
        try:
            is_done = worker.done.acquire(True, min(seconds, _LONGEST))
        except BaseException:
            if not self._abandon(worker, when_left):
                worker.wake.release()  # without a job: it ends
            raise
        if not is_done:
            if self._abandon(worker, when_left):
                raise OverrunError
            worker.done.acquire()  # it was done just now
        value, error = worker.value, worker.error
        worker.value = worker.error = None
        worker.claim.release()
        if len(idle) < MAX_IDLE_THREADS:
            idle.append(worker)
        else:
            worker.wake.release()  # without a job: it ends
        if error is None:
            return value
        try:
            with KeptContext(error):
                raise error
        finally:
            del error  # its traceback holds this frame

    def _start(self, idle: list[_Worker]) -> _Worker | None:
        worker = _Worker()
        thread = threading.Thread(
            target=self._serve, args=(worker, idle), name="fuseboard-attempt", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as fault:
            guard.swallow("starting a thread for a timeout; the attempt runs without one", fault)
            return None
        return worker

    def _serve(self, worker: _Worker, idle: list[_Worker]) -> None:
        """Run jobs until none comes for a while, or one comes too late."""
        wake, claim, done = worker.wake, worker.claim, worker.done
        while wake.acquire(True, IDLE_SECONDS) or _stays(worker, idle):
            job, worker.job = worker.job, None
            if job is None:
                return
            run, args, kwargs = job
            try:
                worker.value = run(*args, **kwargs)
            except BaseException as error:
                worker.error = error
            del job, run, args, kwargs  # an idle thread keeps nothing of anybody's
            if idle is not self._idle:
                return  # a child that was forked within the job, where nobody waits for it
            if not claim.acquire(False):
                self._count_off(worker)
                return
            done.release()

    def _abandon(self, worker: _Worker, when_left: LeaveBehind | None) -> bool:
        """Leave a thread behind; tell whether that came before its job was done."""
        with self._lock:  # so that it is counted before it can be counted off
            if not worker.claim.acquire(blocking=False):
                return False
            self._abandoned += 1
            if when_left is not None:
                worker.at_end = when_left()
            return True

    def _count_off(self, worker: _Worker) -> None:
        with self._lock:
            self._abandoned -= 1
        if worker.at_end is not None:
            worker.at_end()

    def _renew_lock(self) -> None:
        # Reentrant, because the garbage collector may run anything anywhere.
        self._lock = threading.RLock()


def _stays(worker: _Worker, idle: list[_Worker]) -> bool:
    """Tell whether a worker that has waited long enough gets a job all the same."""
    try:
        idle.remove(worker)
    except ValueError:
        return worker.wake.acquire()  # somebody has it, and a job is on its way
    return False


THREADS: Final = WorkerThreads()
RUNTIME.abandoned_threads = THREADS.count_abandoned
after_fork_in_child(THREADS.renew)
