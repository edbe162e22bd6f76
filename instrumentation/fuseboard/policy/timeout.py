"""Bound one attempt in time: a scope in the caller's task, or a worker thread for sync tools."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fuseboard import guard
from fuseboard.forking import after_fork_in_child
from fuseboard.runtime import RUNTIME

MAX_ABANDONED_THREADS: Final = 32


LeaveBehind = Callable[[], Callable[[], None] | None]
"""Called when a thread is left behind; returns what to call when it ends, if anything."""


class OverrunError(Exception):
    """The attempt took too long; the caller of this module puts it into the right words."""


async def await_within(seconds: float, awaitable: Awaitable[Any]) -> Any:
    """Await in the caller's own task and cancel what runs there after ``seconds``.

    Raises:
        OverrunError: If it took longer. A ``TimeoutError`` of the tool's own passes through.
    """
    scope = asyncio.timeout(seconds)
    try:
        async with scope:
            return await awaitable
    except TimeoutError as error:
        if scope.expired():
            raise OverrunError from error
        raise


class _Job:
    """A function on its way through a worker thread."""

    __slots__ = ("_function", "at_end", "done", "error", "is_abandoned", "value", "when_left")

    def __init__(self, function: Callable[[], Any], when_left: LeaveBehind | None) -> None:
        self._function = function
        self.when_left = when_left
        self.at_end: Callable[[], None] | None = None
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None
        self.is_abandoned = False

    def run(self) -> None:
        try:
            self.value = self._function()
        except BaseException as error:
            self.error = error


class WorkerThreads:
    """Runs sync attempts in threads that can be left behind, and counts those that were.

    Threads are daemons, so a tool that hangs does not delay the end of the process.
    """

    def __init__(self, limit: int = MAX_ABANDONED_THREADS) -> None:
        """Allow up to ``limit`` threads to be left behind at a time."""
        self.limit = limit
        self._abandoned = 0
        self._lock = threading.Lock()

    def count_abandoned(self) -> int:
        """Return how many threads still run for calls that have long been answered."""
        return self._abandoned

    def is_full(self) -> bool:
        """Tell whether no further thread may be left behind."""
        return self._abandoned >= self.limit

    def renew(self) -> None:
        """Start anew in a forked child, which has none of the threads."""
        self._lock = threading.Lock()
        self._abandoned = 0

    def run(
        self, function: Callable[[], Any], seconds: float, when_left: LeaveBehind | None = None
    ) -> Any:
        """Run a function in a thread of its own, with a copy of the context variables.

        Args:
            function: What to run.
            seconds: How long it may take.
            when_left: Told if the thread is left behind.

        Raises:
            OverrunError: If it took longer than ``seconds``; its late result is dropped.
        """
        job = _Job(function, when_left)
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._work, job), name="fuseboard-attempt", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as fault:
            guard.swallow("starting a thread for a timeout; the attempt runs without one", fault)
            return function()
        try:
            is_late = not job.done.wait(seconds) and self._abandon(job)
        except BaseException:
            self._abandon(job)
            raise
        if is_late:
            raise OverrunError
        error, job.error = job.error, None  # whose traceback holds a frame that holds the job
        if error is None:
            return job.value
        try:
            raise error
        finally:
            del error  # and this frame

    def _work(self, job: _Job) -> None:
        job.run()
        with self._lock:
            job.done.set()
            if job.is_abandoned:
                self._abandoned -= 1
        if job.at_end is not None:
            job.at_end()

    def _abandon(self, job: _Job) -> bool:
        with self._lock:
            if job.done.is_set():
                return False
            job.is_abandoned = True
            self._abandoned += 1
            if job.when_left is not None:
                job.at_end = job.when_left()
            return True


THREADS: Final = WorkerThreads()
RUNTIME.abandoned_threads = THREADS.count_abandoned
after_fork_in_child(THREADS.renew)
