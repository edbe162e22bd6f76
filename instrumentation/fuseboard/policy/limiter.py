"""The limiter of one tool: slots for what runs, a queue before them, tokens for what begins.

An attempt takes a slot first and a token then, so what runs never exceeds the concurrency and
what begins never exceeds the rate, also when many slots come free at once. Waiters are served
in the order in which they came; a slot passes from the attempt that leaves to the next waiter
without ever being free, so nobody overtakes the queue.

One lock, held for a few assignments only. Nothing here belongs to an event loop: a waiter in a
thread waits for an event, one in a task for a future of its own loop.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from math import ceil

from fuseboard.clock import Clock
from fuseboard.policy.breaker import BreakerKey
from fuseboard.policy.config import Limit


class PlaceState(Enum):
    """How far an attempt has come."""

    WAITING = auto()
    HELD = auto()
    REFUSED = auto()
    GIVEN_BACK = auto()


class Place:
    """What one attempt has of a limiter: a place in the queue, then a slot.

    Attributes:
        state: How far it has come.
        begins: When the attempt may begin, monotonic seconds; valid while the slot is held.
        token: The number of its token; 0 for none, or for one that another gave back.
        since: When the attempt came, monotonic seconds.
        expires: Until when it waits, monotonic seconds.
        retry_after: Of a refused one, seconds until asking again may help, if that is known.
    """

    __slots__ = ("_limiter", "_wake", "begins", "expires", "generation", "has_begun",
                 "retry_after", "since", "state", "token")  # fmt: skip

    def __init__(self, limiter: Limiter, generation: int, since: float, expires: float) -> None:
        self._limiter = limiter
        self._wake: Callable[[], object] | None = None
        self.generation = generation
        self.since = since
        self.expires = expires
        self.state = PlaceState.WAITING
        self.begins = 0.0
        self.token = 0
        self.retry_after: float | None = None
        self.has_begun = False

    @property
    def must_wait(self) -> bool:
        """Whether the attempt has to wait, in the queue or for its token."""
        if self.state is PlaceState.HELD:
            return self.begins > self._limiter.clock.monotonic()
        return self.state is PlaceState.WAITING

    def wait(self) -> None:
        """Block the thread until the attempt may begin or is refused."""
        clock = self._limiter.clock
        if self.state is PlaceState.WAITING:
            granted = threading.Event()
            self._wake = granted.set
            # Asked again, because it may have been granted before there was anything to wake.
            if self.state is PlaceState.WAITING:
                granted.wait(max(0.0, self.expires - clock.monotonic()))
            self._stop_queueing()
        delay = self._delay(clock)
        if delay > 0:
            clock.sleep(delay)

    async def async_wait(self) -> None:
        """Suspend the task until the attempt may begin or is refused."""
        clock = self._limiter.clock
        if self.state is PlaceState.WAITING:
            loop = asyncio.get_running_loop()
            granted: asyncio.Future[None] = loop.create_future()
            self._wake = partial(loop.call_soon_threadsafe, _resolve, granted)
            if self.state is PlaceState.WAITING:
                await asyncio.wait([granted], timeout=max(0.0, self.expires - clock.monotonic()))
            self._stop_queueing()
        delay = self._delay(clock)
        if delay > 0:
            await clock.async_sleep(delay)

    def give_back(self) -> None:
        """Leave the queue or free the slot; a second time does nothing."""
        self._limiter.part_with(self)

    def wake(self) -> bool:
        """Tell the waiter that its state has changed; return False if it is gone."""
        wake = self._wake
        if wake is None:
            return True  # it looks again before it waits
        try:
            wake()
        except RuntimeError:  # its event loop is closed
            return False
        return True

    def _stop_queueing(self) -> None:
        self._wake = None
        if self.state is PlaceState.WAITING:
            self._limiter.time_out(self)

    def _delay(self, clock: Clock) -> float:
        if self.state is not PlaceState.HELD:
            return 0.0
        return self.begins - clock.monotonic()


class Limiter:
    """One limiter, shared by threads and event loops."""

    def __init__(self, key: BreakerKey, config: Limit, clock: Clock) -> None:
        """Make a limiter with all slots free and a full bucket.

        Args:
            key: What it guards.
            config: Its bounds.
            clock: Source of time.
        """
        self.key = key
        self.config = config
        self.clock = clock
        self._tokens = Tokens(config.rate, config.allowance) if config.rate is not None else None
        self._generation = 0
        self.renew()

    def renew(self) -> None:
        """Start anew in a forked child: what holds or awaits a slot does so in the parent."""
        # Reentrant: a stream that the garbage collector ends, wherever it happens to run, gives
        # its place back in the thread that holds the lock.
        self._lock = threading.RLock()
        self._is_at_work = False
        self._due: deque[tuple[Callable[[Place], None], Place]] = deque()
        self._queue: OrderedDict[Place, None] = OrderedDict()
        self._woken: deque[Place] = deque()
        self._running = 0
        self._generation += 1

    @property
    def running(self) -> int:
        """How many slots are taken."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many attempts wait for a slot."""
        return len(self._queue)

    def enter(self, longest: float | None = None) -> Place:
        """Ask for a place.

        Args:
            longest: Seconds that the attempt has to wait at most; None for no more than the
                limit's own.

        Returns:
            A place, which must be given back on every path, whatever its state.
        """
        wait = self.config.wait if longest is None else min(self.config.wait, longest)
        now = self.clock.monotonic()
        place = Place(self, self._generation, now, now + wait)
        self._do(self._arrive, place)
        return place

    def part_with(self, place: Place) -> None:
        """Take back what a place holds."""
        self._do(self._leave, place)

    def time_out(self, place: Place) -> None:
        """Refuse a place whose time in the queue is over, unless it was granted meanwhile."""
        self._do(self._expire, place)

    def _do(self, step: Callable[[Place], None], place: Place) -> None:
        self._due.append((step, place))
        # Once more after the lock was released, lest something is left that the garbage
        # collector added at the last moment.
        while self._due:
            with self._lock:
                if self._is_at_work:
                    return  # further up in this thread's own stack
                self._is_at_work = True
                try:
                    while self._due:
                        due, subject = self._due.popleft()
                        due(subject)
                finally:
                    self._is_at_work = False
        while self._woken:
            try:
                woken = self._woken.popleft()
            except IndexError:
                return  # another thread wakes it
            if not woken.wake():
                self.part_with(woken)

    # Below: called with the lock held.

    def _arrive(self, place: Place) -> None:
        concurrency = self.config.concurrency
        if concurrency is None or self._running < concurrency:
            self._grant(place)
        elif len(self._queue) >= self.config.queue or place.expires <= self.clock.monotonic():
            place.state = PlaceState.REFUSED
        else:
            self._queue[place] = None

    def _grant(self, place: Place) -> None:
        """Give a place its slot, unless its token would come too late."""
        tokens = self._tokens
        if tokens is not None:
            now = self.clock.monotonic()
            begins = tokens.next(now)
            if begins > now:
                is_full = tokens.waiting(now) >= self.config.queue
                if is_full or begins > place.expires:
                    place.retry_after = begins - now
                    place.state = PlaceState.REFUSED
                    return
            place.begins, place.token = begins, tokens.take(now)
        self._running += 1
        place.state = PlaceState.HELD

    def _leave(self, place: Place) -> None:
        state, place.state = place.state, PlaceState.GIVEN_BACK
        if place.generation != self._generation:
            return  # of the parent process
        if state is PlaceState.WAITING:
            self._queue.pop(place, None)
        elif state is PlaceState.HELD:
            if self._tokens is not None and not place.has_begun:
                self._tokens.put_back(place.token, place.begins, self.clock.monotonic())
            self._running -= 1
            self._advance()

    def _expire(self, place: Place) -> None:
        if place.state is PlaceState.WAITING:
            self._queue.pop(place, None)
            place.state = PlaceState.REFUSED

    def _advance(self) -> None:
        """Let the queue move up."""
        concurrency = self.config.concurrency
        now = self.clock.monotonic()
        while self._queue and (concurrency is None or self._running < concurrency):
            place, _ = self._queue.popitem(last=False)
            if place.expires <= now:
                place.state = PlaceState.REFUSED
            else:
                self._grant(place)
            self._woken.append(place)


class Tokens:
    """A token bucket, kept as the time at which it would be full; not thread-safe.

    The "virtual scheduling" form of the generic cell rate algorithm (ITU-T I.371): no refill,
    one number, and the n-th who waits knows at once when its turn comes.
    """

    __slots__ = ("_free", "_full_at", "_given", "_interval", "_slack")

    def __init__(self, rate: float, burst: int) -> None:
        """Make a full bucket."""
        self._interval = 1.0 / rate
        self._slack = (burst - 1) * self._interval
        self._full_at = float("-inf")
        self._given = 0
        # Turns yet to come that somebody gave back, while others had later ones.
        self._free: list[float] = []

    def next(self, now: float) -> float:
        """Return when the next attempt may begin, monotonic seconds, ``now`` at the earliest."""
        free = self._free
        while free and free[0] < now:
            heapq.heappop(free)
        return free[0] if free else max(now, self._full_at - self._slack)

    def waiting(self, now: float) -> int:
        """Return how many attempts hold a token of the future."""
        late = self._full_at - self._slack - now - self._interval
        return ceil(late / self._interval - 1e-9) - len(self._free) if late > 0 else 0

    def take(self, now: float) -> int:
        """Use the token that ``next`` spoke of; return its number."""
        if self._free:
            heapq.heappop(self._free)
            return 0
        self._full_at = max(self._full_at, now) + self._interval
        self._given += 1
        return self._given

    def put_back(self, token: int, begins: float, now: float) -> None:
        """Take a token back that was not used.

        Only as far as nobody's turn comes too close to another's: the last one is as if it had
        not been given, an earlier one is given again if its time is yet to come.
        """
        if token == self._given:
            self._given -= 1
            self._full_at -= self._interval
        elif begins > now:
            heapq.heappush(self._free, begins)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
