"""The circuit breaker: a state machine that decides by health counts and reports what it did.

closed --(failures over threshold)--> open --(break over)--> half open --(probes succeed)--> closed
                                       ^------------(a probe fails)------------'

One lock, held for a few assignments only; telemetry hears of transitions after it is released,
in the order in which they happened.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final

from fuseboard.clock import Clock
from fuseboard.conventions import BreakerState, ErrorClass
from fuseboard.policy.config import Breaker
from fuseboard.policy.window import Window
from fuseboard.record import BreakerStatus, BreakerTransition, CallRecord
from fuseboard.waiting import take_waiting

_UNCOUNTED: Final = 64
"""Most successes that wait to be counted, all at once."""
_GENERATIONS: Final = count(1)


@dataclass(frozen=True, slots=True)
class BreakerKey:
    """What a breaker guards.

    Attributes:
        instance: What ``Breaker(key=...)`` returned.
    """

    tool: str
    region: str | None = None
    upstream: str | None = None
    instance: str | None = None

    @property
    def name(self) -> str:
        """``tool/region/upstream/instance`` without the absent parts."""
        parts = (self.tool, self.region, self.upstream, self.instance)
        return "/".join(part for part in parts if part)


@dataclass(slots=True, eq=False)
class Permit:
    """Leave to make one attempt; each must be settled once.

    Attributes:
        state: The breaker's state when it was given.
        generation: Numbers the states of all breakers; a result from an earlier one is stale, and
            so is one from the breaker that this one has replaced.
        expires: When a probe stops blocking the next one, monotonic seconds.
    """

    state: BreakerState
    generation: int
    expires: float = 0.0
    is_settled: bool = False


@dataclass(frozen=True, slots=True)
class Rejection:
    """No leave.

    Attributes:
        state: The breaker's state.
        retry_after: Seconds until asking again may help; None while held open by hand.
        error_class: The class of fault that opened the breaker.
    """

    state: BreakerState
    retry_after: float | None
    error_class: ErrorClass


def tell_nobody(transition: BreakerTransition) -> None:
    """Take the report of a breaker that is in use no more."""


class CircuitBreaker:
    """One breaker, shared by threads and event loops.

    Attributes:
        key: What it guards.
        config: Its thresholds.
        closed_permit: The permit of a closed breaker; None in any other state.
    """

    def __init__(
        self,
        key: BreakerKey,
        config: Breaker,
        clock: Clock,
        report: Callable[[BreakerTransition], None],
    ) -> None:
        """Make a closed breaker.

        Args:
            key: What it guards.
            config: Its thresholds.
            clock: Source of time.
            report: Told of every transition, outside the lock.
        """
        self.key = key
        self.config = config
        self._name = key.name
        self._clock = clock
        self._report_one = report
        self._window = Window(config.sampling_duration)
        self._state = BreakerState.CLOSED
        self._generation = next(_GENERATIONS)
        self._closed_permit = Permit(BreakerState.CLOSED, self._generation)
        self.closed_permit: Permit | None = self._closed_permit
        self._successes: deque[float] = deque()
        self._since_unix_ns = clock.time_ns()
        self._reopens = 0.0
        self._opened_by = ErrorClass.UNCLASSIFIED
        self._probes: list[Permit] = []
        self._probes_passed = self._probes_slow = 0
        self._unreported: deque[BreakerTransition] = deque()
        self.renew_locks()

    def renew_locks(self) -> None:
        """Make new locks, as a forked child must: another thread may have held the old ones."""
        # Reentrant: a stream that the garbage collector ends, wherever it happens to run, settles
        # its permit in the thread that holds the lock.
        self._lock = threading.RLock()
        self._reporting = threading.Lock()

    @property
    def state(self) -> BreakerState:
        """The present state; an open breaker stays open until somebody asks for a permit."""
        return self._state

    def is_current(self, permit: Permit) -> bool:
        """Tell whether the breaker is still in the state in which it gave a permit."""
        return permit.generation == self._generation

    def status(self) -> BreakerStatus:
        """Return the present state for heartbeats and gauges."""
        with self._lock:
            return BreakerStatus(
                self._name,
                self.key.tool,
                self.key.region,
                self.key.upstream,
                self._state,
                self._since_unix_ns,
            )

    def acquire(self, call: CallRecord | None = None) -> Permit | Rejection:
        """Ask for leave to make an attempt.

        Args:
            call: The call that asks, for the report of a transition.

        Returns:
            A permit, which must be settled on every path, or a rejection.
        """
        if self._state is BreakerState.CLOSED:
            # Read without the lock: whoever comes while the breaker opens was there before.
            return self._closed_permit
        with self._lock:
            answer = self._decide(self._clock.monotonic(), call)
        self._report()
        return answer

    def seconds_closed_to_all(self) -> float:
        """Return for how long every attempt will surely be rejected, seconds."""
        with self._lock:
            if self._state is BreakerState.ISOLATED:
                return float("inf")
            if self._state is not BreakerState.OPEN:
                return 0.0
            return max(0.0, self._reopens - self._clock.monotonic())

    def succeed(self, permit: Permit, call: CallRecord | None = None, seconds: float = 0.0) -> None:
        """Settle a permit whose attempt succeeded after so many seconds."""
        with self._lock:
            if self._settle(permit):
                now, is_slow = self._clock.monotonic(), self._is_slow(seconds)
                if self._state is BreakerState.CLOSED:
                    if is_slow:
                        self._count_successes()
                    self._window.add(now, None, is_slow=is_slow)
                    if is_slow:
                        self._open_if_over(now, call)
                elif self._state is BreakerState.HALF_OPEN:
                    self._probes_passed += 1
                    self._probes_slow += is_slow
                    self._judge_probes(now, call)
        self._report()

    def succeed_while_closed(self, permit: Permit, now: float) -> None:
        """Settle a permit of the closed state whose attempt succeeded, at monotonic ``now``.

        A success changes nothing by itself, so it waits without a lock until a failure has to
        be weighed against it.
        """
        # Each transition begins a generation, so an equal one means that it is still closed.
        if permit.generation == self._generation:
            successes = self._successes
            successes.append(now)
            if len(successes) >= _UNCOUNTED:
                with self._lock:
                    self._count_successes()

    def fail(
        self,
        permit: Permit,
        error_class: ErrorClass,
        call: CallRecord | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Settle a permit whose attempt failed, after so many seconds, in a way that counts."""
        with self._lock:
            if self._settle(permit):
                now = self._clock.monotonic()
                if self._state is BreakerState.HALF_OPEN:
                    self._opened_by = error_class
                    self._open("probe_failed", now, call, with_counts=False)
                elif self._state is BreakerState.CLOSED:
                    self._count_successes()
                    self._window.add(now, error_class, is_slow=self._is_slow(seconds))
                    self._open_if_over(now, call)
        self._report()

    def ignore(self, permit: Permit) -> None:
        """Give a permit back whose attempt says nothing: cancelled, or the caller's mistake."""
        with self._lock:
            self._settle(permit)

    def isolate(self) -> None:
        """Hold the breaker open by hand until :meth:`reset`."""
        with self._lock:
            if self._state is not BreakerState.ISOLATED:
                self._move(BreakerState.ISOLATED, "isolated_by_hand", None)
        self._report()

    def reset(self) -> None:
        """Close the breaker by hand and forget what it counted."""
        with self._lock:
            if self._state is not BreakerState.CLOSED:
                self._close("closed_by_hand", None)
            self._successes.clear()
            self._window.clear()
        self._report()

    def retire(self) -> None:
        """Close for good: another breaker takes this one's place, and its metrics with it."""
        with self._lock:
            if self._state is not BreakerState.CLOSED:
                self._close("reconfigured", None)
        self._report()
        with self._lock:
            # Calls that still hold a permit may settle it; nobody hears of what comes of that.
            self._report_one = tell_nobody

    # Below: called with the lock held.

    def _decide(self, now: float, call: CallRecord | None) -> Permit | Rejection:
        if self._state is BreakerState.CLOSED:
            return self._closed_permit
        if self._state is BreakerState.ISOLATED:
            return Rejection(self._state, None, self._opened_by)
        if self._state is BreakerState.OPEN:
            if now < self._reopens:
                return Rejection(self._state, self._reopens - now, self._opened_by)
            self._move(BreakerState.HALF_OPEN, "break_over", call)
        return self._admit_probe(now)

    def _count_successes(self) -> None:
        times = take_waiting(self._successes)
        if times:
            times.sort()
            self._window.add_successes(times)

    def _admit_probe(self, now: float) -> Permit | Rejection:
        self._probes = [p for p in self._probes if p.expires > now and not p.is_settled]
        if len(self._probes) + self._probes_passed >= self.config.half_open_probes:
            free = min((probe.expires for probe in self._probes), default=now)
            return Rejection(self._state, free - now, self._opened_by)
        lease = self.config.probe_lease or self.config.break_duration
        permit = Permit(self._state, self._generation, now + lease)
        self._probes.append(permit)
        return permit

    def _settle(self, permit: Permit) -> bool:
        """Take a permit back; tell whether its result still counts."""
        if permit.generation != self._generation:
            return False
        if permit is self._closed_permit:
            return True
        if permit.is_settled:
            return False
        permit.is_settled = True
        # A probe that outlived its lease is no longer listed, yet what it found still counts.
        self._probes = [probe for probe in self._probes if probe is not permit]
        return True

    def _is_slow(self, seconds: float) -> bool:
        bound = self.config.slow_call_seconds
        return bound is not None and seconds > bound

    def _open_if_over(self, now: float, call: CallRecord | None) -> None:
        window, config = self._window, self.config
        if window.calls < config.minimum_throughput:
            return
        if window.failures >= config.failure_ratio * window.calls:
            self._opened_by = window.dominant_class() or ErrorClass.UNCLASSIFIED
            self._open("failure_ratio", now, call)
        elif window.slow >= config.slow_call_ratio * window.calls and window.slow:
            self._opened_by = ErrorClass.L3_TRANSIENT  # slowness is expected to pass
            self._open("slow_call_ratio", now, call)

    def _judge_probes(self, now: float, call: CallRecord | None) -> None:
        """Close once enough probes have passed, unless too many of them were slow."""
        probes = self.config.half_open_probes
        if self._probes_passed < probes:
            return
        if self._probes_slow and self._probes_slow >= self.config.slow_call_ratio * probes:
            self._opened_by = ErrorClass.L3_TRANSIENT
            self._open("slow_call_ratio", now, call, with_counts=False)
        else:
            self._close("probe_succeeded", call)

    def _open(
        self, reason: str, now: float, call: CallRecord | None, *, with_counts: bool = True
    ) -> None:
        self._reopens = now + self.config.break_duration
        self._move(BreakerState.OPEN, reason, call, with_counts=with_counts)

    def _close(self, reason: str, call: CallRecord | None) -> None:
        self._window.clear()
        self._move(BreakerState.CLOSED, reason, call)

    def _move(
        self, to: BreakerState, reason: str, call: CallRecord | None, *, with_counts: bool = False
    ) -> None:
        window = self._window
        has_counts = with_counts and window.calls > 0
        at = self._clock.time_ns()
        self._unreported.append(
            BreakerTransition(
                name=self._name,
                tool=self.key.tool,
                region=self.key.region,
                upstream=self.key.upstream,
                from_state=self._state,
                to_state=to,
                reason=reason,
                failure_ratio=window.failures / window.calls if has_counts else None,
                calls=window.calls if has_counts else 0,
                failures=window.failures if has_counts else 0,
                error_class=self._opened_by if to is BreakerState.OPEN else None,
                at_unix_ns=at,
                call=call,
            )
        )
        self._state = to
        self._since_unix_ns = at
        self._generation = next(_GENERATIONS)
        self._probes = []
        self._probes_passed = self._probes_slow = 0
        self._successes.clear()
        self.closed_permit = None
        if to is BreakerState.CLOSED:
            self.closed_permit = self._closed_permit = Permit(to, self._generation)

    # Below: called without the lock.

    def _report(self) -> None:
        # One thread reports at a time and takes what others leave, so that telemetry hears of
        # transitions in their order; asked again after releasing, lest one is left behind.
        while self._unreported and self._reporting.acquire(blocking=False):
            try:
                while self._unreported:
                    self._report_one(self._unreported.popleft())
            finally:
                self._reporting.release()
