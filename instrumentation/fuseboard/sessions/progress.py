"""Tell somebody that a call takes its time: one thread for all calls, and only if asked."""

from __future__ import annotations

import heapq
import itertools
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from fuseboard import guard
from fuseboard.forking import after_fork_in_child
from fuseboard.record import CallRecord
from fuseboard.runtime import RUNTIME


@dataclass(frozen=True, slots=True)
class Progress:
    """A call that has not ended yet.

    Attributes:
        tool: The tool's name.
        seconds: How long the call has run, waits included.
        attempt: The number of its latest attempt, from 1; 0 before the first.
        session: The session's id.
        agent: The agent that called.
        step: The step of the session.
        call_id: The model's id of the call, if it is known.

    Since 0.1.
    """

    tool: str
    seconds: float
    attempt: int
    session: str | None = None
    agent: str | None = None
    step: str | None = None
    call_id: str | None = None


class _Watch(NamedTuple):
    """A call that somebody is to be told about.

    Attributes:
        due: When, monotonic seconds.
        number: Orders those that are due at the same time.
    """

    due: float
    number: int
    call: weakref.ref[CallRecord]
    tell: Callable[[Progress], object]
    seconds: float


class Ticker:
    """A daemon thread that lives while there are calls to watch."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self.renew()

    def renew(self) -> None:
        """Start anew in a forked child, where the parent's calls do not run."""
        self._changed = threading.Condition(threading.RLock())
        self._watches: list[_Watch] = []
        self._thread: threading.Thread | None = None

    def watch(self, call: CallRecord, tell: Callable[[Progress], object], seconds: float) -> None:
        """Call ``tell`` after so many seconds, and again after as many, until the call ends."""
        due = call.started + seconds
        watch = _Watch(due, next(self._numbers), weakref.ref(call), tell, seconds)
        with self._changed:
            heapq.heappush(self._watches, watch)
            if self._thread is None:
                self._start()
            elif self._watches[0] is watch:
                self._changed.notify()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="fuseboard-progress", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as fault:  # no thread to be had, or the interpreter is ending
            self._thread = None
            self._watches.clear()
            guard.swallow("starting the thread that reports progress", fault)

    def _run(self) -> None:
        while (watch := self._next()) is not None:
            self._report(watch)

    def _next(self) -> _Watch | None:
        """Wait for the next call that is due; return None when there is none to watch."""
        with self._changed:
            while self._watches:
                wait = self._watches[0].due - RUNTIME.clock.monotonic()
                if wait <= 0:
                    return heapq.heappop(self._watches)
                self._changed.wait(wait)
            self._thread = None
            return None

    def _report(self, watch: _Watch) -> None:
        call = watch.call()
        if call is None or call.outcome is not None:
            return
        seconds = RUNTIME.clock.monotonic() - call.started
        progress = Progress(
            call.tool.name,
            seconds,
            # Not by the attribute, which makes the list if there is none, and so may race.
            len(vars(call).get("attempts", ())),
            call.session,
            call.agent,
            call.step,
            call.call_id,
        )
        try:
            watch.tell(progress)
        except Exception as fault:
            guard.swallow("reporting the progress of a call", fault)
        # Counted from the call's start, so that reports come at 3, 6, 9 s however long one takes.
        missed = int(seconds // watch.seconds)
        again = watch._replace(
            due=call.started + (missed + 1) * watch.seconds, number=next(self._numbers)
        )
        with self._changed:
            heapq.heappush(self._watches, again)


TICKER: Final = Ticker()
after_fork_in_child(TICKER.renew)
