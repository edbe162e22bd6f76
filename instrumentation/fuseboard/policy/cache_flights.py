"""Single flight: of equal calls at the same time one is made, and the others wait for it.

Callers may be threads, tasks, and tasks of several event loops at once. No lock is held while
anybody waits, and what a task waits for is a future of its own loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum, auto
from typing import Final

from fuseboard.policy.cache_memory import Entry
from fuseboard.record import Fault

LED: Final[ContextVar[tuple[object, ...]]] = ContextVar("fuseboard_led_flights", default=())
"""Tokens of the flights that the code running here is part of; waiting for one never ends."""


class Ending(Enum):
    """How a flight ended, for those who wait for it."""

    SHARED = auto()
    """It has an answer for them."""
    FAILED = auto()
    """It has none; each goes on alone, since in turn the last would wait for all others."""
    HANDED_OVER = auto()
    """Its caller left, which says nothing of the tool; one of them takes its place."""


class Flight:
    """A call that others wait for.

    Attributes:
        token: Stands for the flight and holds nothing of it.
        ending: How it ended; None while it runs, and so with what follows.
        entry: The answer to share.
        fault: What the call failed with, if it did.
    """

    __slots__ = ("_done", "_lock", "_wakers", "ending", "entry", "fault", "token")

    def __init__(self) -> None:
        self.token = object()
        self.ending: Ending | None = None
        self.entry: Entry | None = None
        self.fault: Fault | None = None
        # Reentrant: the garbage collector may end the call that leads, in a thread that is here.
        self._lock = threading.RLock()
        self._done = threading.Event()
        self._wakers: dict[object, Callable[[], object]] = {}

    def end(self, ending: Ending, entry: Entry | None = None, fault: Fault | None = None) -> None:
        """Wake all who wait; only the first end counts."""
        with self._lock:
            if self.ending is not None:
                return
            self.entry, self.fault, self.ending = entry, fault, ending
            wakers, self._wakers = list(self._wakers.values()), {}
        self._done.set()
        for wake in wakers:
            try:  # noqa: SIM105 - suppress is a generator, and this is no place for surprises
                wake()
            except RuntimeError:
                pass  # the waiter's loop is closed

    def wait(self, seconds: float | None) -> bool:
        """Block until the end; return False if it did not come within ``seconds``."""
        return self._done.wait(seconds)

    async def wait_async(self, seconds: float | None) -> bool:
        """Suspend until the end; return False if it did not come within ``seconds``."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            # Asked afterwards, lest it ends between the two.
            self._wakers[future] = lambda: loop.call_soon_threadsafe(_wake, future)
            if self.ending is not None:
                return True
        try:
            async with asyncio.timeout(seconds) as scope:
                await future
        except TimeoutError:
            if not scope.expired():
                raise
        finally:
            with self._lock:
                self._wakers.pop(future, None)
        return self.ending is not None


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Flights:
    """The running flights of one tool, by the key of the call."""

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}
        self.renew()

    def renew(self) -> None:
        """Forget all flights in a forked child, where nobody is there to end them."""
        self._lock = threading.RLock()
        self._flights = {}

    def join(self, key: str) -> tuple[Flight, bool]:
        """Return the flight of a key, and whether it was made for this caller to lead."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                return flight, False
            self._flights[key] = made = Flight()
            return made, True

    def end(
        self,
        key: str,
        flight: Flight,
        ending: Ending,
        entry: Entry | None = None,
        fault: Fault | None = None,
    ) -> None:
        """End a flight; those who come later make another."""
        with self._lock:
            if self._flights.get(key) is flight:
                del self._flights[key]
        flight.end(ending, entry, fault)

    def __len__(self) -> int:
        return len(self._flights)
