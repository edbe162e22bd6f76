"""Time that only passes where somebody waits: for threads, event loops and the shim alike.

Everything takes multiples of 1/64 s, which binary fractions hold exactly, so that a reference
can say to the last digit how long a call takes.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import threading
import types
from collections.abc import Callable
from typing import Any, Final

TICK: Final = 1 / 64
BEGINNING: Final = 1000.0
REAL_SECONDS: Final = 60.0
"""How long a thread really waits for another before the test fails."""


class LateError(Exception):
    """What a thread raises whose attempt was given up long ago; nobody may see it."""


class Request:
    """A worker thread's wish that time may pass."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.granted = threading.Event()


class World:
    """One clock for everything.

    Attributes:
        now: Monotonic seconds.
        share: Where in its range the jitter lies, 0 to 1.
    """

    def __init__(self, share: float = 1.0) -> None:
        self.now = BEGINNING
        self.share = share
        self._owner = threading.get_ident()
        self._changed = threading.Condition()
        self._requests: list[Request] = []
        self._late: list[Request] = []

    def time_ns(self) -> int:
        """Return nanoseconds since the epoch."""
        return 1_800_000_000_000_000_000 + int(self.now * 1e9)

    def monotonic(self) -> float:
        """Return seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds >= 0
        self.now += seconds

    async def async_sleep(self, seconds: float) -> None:
        """Let time pass for this task."""
        await asyncio.sleep(seconds)

    def uniform(self, low: float, high: float) -> float:
        """Return a number of the range, rounded down to a tick."""
        return math.floor((low + self.share * (high - low)) / TICK) * TICK

    # --- Threads --------------------------------------------------------------------------
    def spend(self, seconds: float) -> None:
        """Take time, in the thread that owns the world or in a worker of the shim's."""
        if self.owns_this_thread():
            self.now += seconds
            return
        request = Request(seconds)
        with self._changed:
            self._requests.append(request)
            self._changed.notify_all()
        assert request.granted.wait(REAL_SECONDS), "nobody waits for this thread"
        if request in self._late:
            raise LateError

    def wait_for(self, is_done: Callable[[], bool], seconds: float) -> bool:
        """Wait for a worker within virtual seconds, granting what it asks for meanwhile.

        Args:
            is_done: Tells whether it is done; not asked again after it said so.
            seconds: How long to wait.
        """
        deadline = self.now + seconds
        while (request := self._next_request(is_done)) is not None:
            if self.now + request.seconds >= deadline:
                self.now = deadline
                self._late.append(request)
                return False
            self.now += request.seconds
            request.granted.set()
        return True

    def _next_request(self, is_done: Callable[[], bool]) -> Request | None:
        """Return what a worker asks for, or None once it is done."""
        done = False

        def has_news() -> bool:
            nonlocal done
            done = is_done()
            return done or bool(self._requests)

        with self._changed:
            is_in_time = self._changed.wait_for(has_news, REAL_SECONDS)
            assert is_in_time, "a worker thread neither ended nor asked for time"
            return None if done else self._requests.pop()

    def owns_this_thread(self) -> bool:
        """Tell whether this is the thread of the callers."""
        return threading.get_ident() == self._owner

    def let_late_ones_end(self) -> None:
        """Let the threads go on that were left behind."""
        self._late.extend(self._requests)
        for request in self._late:
            request.granted.set()

    def told(self) -> None:
        """Look again at what changed."""
        with self._changed:
            self._changed.notify_all()


def threading_of(world: World) -> Any:
    """Return a stand-in for the module ``threading`` whose waits take virtual time."""

    class Lock:
        def __init__(self) -> None:
            self._real = threading.Lock()

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
            if not blocking or timeout < 0 or not world.owns_this_thread():
                return self._real.acquire(blocking, timeout)
            return world.wait_for(lambda: self._real.acquire(blocking=False), timeout)

        def release(self) -> None:
            self._real.release()
            world.told()

    class Event(threading.Event):
        """What only those set who end before the callers' thread waits, or never."""

        def wait(self, timeout: float | None = None) -> bool:
            if self.is_set() or timeout is None or not world.owns_this_thread():
                return super().wait(timeout)
            world.sleep(timeout)
            return False

    return types.SimpleNamespace(**{**vars(threading), "Lock": Lock, "Event": Event})


class Loop(asyncio.SelectorEventLoop):
    """An event loop on the world's clock, which jumps to the next timer when nobody is ready."""

    def __init__(self, world: World) -> None:
        self._world = world
        super().__init__()
        self._clock_resolution = 1e-9

    def time(self) -> float:
        """Return the world's time."""
        return self._world.now

    def _run_once(self) -> None:
        timers: Any = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0]._cancelled:
            self._timer_cancelled_count -= 1
            heapq.heappop(timers)._scheduled = False
        if not self._ready and not self._stopping:  # type: ignore[attr-defined]
            assert timers, "a task waits for something that never comes"
            self._world.now = max(self._world.now, timers[0]._when)
        super()._run_once()  # type: ignore[misc]
