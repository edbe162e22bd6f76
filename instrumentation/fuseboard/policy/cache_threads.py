"""Threads that ask a store, so that nobody else waits for it longer than agreed.

Daemons, unlike those of ``concurrent.futures``: a store that hangs must not delay the end of the
process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Final

MAX_THREADS: Final = 8
IDLE_SECONDS: Final = 10.0
"""How long a thread waits for its next question before it ends."""

_Job = tuple[Future[Any], Callable[[], Any]]


class AskingThreads:
    """A few threads, started when they are needed."""

    def __init__(self, name: str) -> None:
        """Name the threads."""
        self._name = name
        self.renew()

    def renew(self) -> None:
        """Start anew in a forked child, which has none of the threads."""
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._threads = 0
        self._waiting = 0

    def submit(self, ask: Callable[[], Any]) -> Future[Any]:
        """Have a question asked; the answer or the fault is in the future.

        Raises:
            RuntimeError: If there is no thread and none can be started.
        """
        future: Future[Any] = Future()
        with self._lock:
            if self._waiting <= self._jobs.qsize() and self._threads < MAX_THREADS:
                self._start()
            self._jobs.put((future, ask))
        return future

    def _start(self) -> None:
        thread = threading.Thread(
            target=self._work, args=(self._jobs,), name=self._name, daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                raise
            return  # one of the others will come to it
        self._threads += 1

    def _work(self, jobs: SimpleQueue[_Job]) -> None:
        while True:
            with self._lock:
                self._waiting += 1
            try:
                future, ask = jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                if self._may_end(jobs):
                    return
                continue
            with self._lock:
                self._waiting -= 1
            if future.set_running_or_notify_cancel():
                _answer(future, ask)
            del future, ask  # an idle thread keeps nothing of anybody's

    def _may_end(self, jobs: SimpleQueue[_Job]) -> bool:
        with self._lock:
            self._waiting -= 1
            if not jobs.empty():
                return False
            self._threads -= 1
            return True


def _answer(future: Future[Any], ask: Callable[[], Any]) -> None:
    try:
        future.set_result(ask())
    except BaseException as error:
        future.set_exception(error)
