"""What a breaker should do, for calls that come one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fault_scripts import L3, L4, UNKNOWN, Kind

from fuseboard import Breaker
from fuseboard.conventions import ErrorClass


class TieError(Exception):
    """Two answers are right: an attempt ends in the very moment in which its time is up, say."""


class ReferenceBreaker:
    """A breaker for calls that come one after the other, in a window without end.

    Attributes:
        opened_by: The class of fault that opened it last.
    """

    def __init__(self, config: Breaker) -> None:
        self.config = config
        self.state = "closed"
        self.opened_by = UNKNOWN
        self.transitions: list[tuple[str, str]] = []
        self._results: list[tuple[ErrorClass | None, bool]] = []
        self._reopens = 0.0
        self._successes = self._slow_successes = 0

    def admits(self, now: float) -> bool:
        """Tell whether an attempt may be made; the first one after the break is a probe."""
        if self.state == "open" and now >= self._reopens:
            self._move("half_open")
        return self.state != "open"

    def seconds_closed(self, now: float) -> float:
        """Return how long it will surely admit nothing."""
        return max(0.0, self._reopens - now) if self.state == "open" else 0.0

    def settle(
        self, fault: Kind | None, now: float, seconds: float, *, is_ours: bool = False
    ) -> None:
        """Count an attempt or a call that took so long: a success, or a fault of the tool's."""
        bound = self.config.slow_call_seconds
        is_slow = bound is not None and seconds > bound
        if fault is None:
            self._succeed(now, is_slow)
        elif not is_ours and fault.error_class in (L3, L4, UNKNOWN, *self.config.also_counts):
            self._fail(fault.error_class, now, is_slow)

    def _succeed(self, now: float, is_slow: bool) -> None:
        if self.state == "closed":
            self._results.append((None, is_slow))
            if is_slow:
                self._weigh(now)
        elif self.state == "half_open":
            self._successes += 1
            self._slow_successes += is_slow
            if self._successes < self.config.half_open_probes:
                return
            self._results = []
            if self._is_too_slow(self._slow_successes, self._successes):
                self._open([L3], now)
            else:
                self._move("closed")

    def _fail(self, error_class: ErrorClass | None, now: float, is_slow: bool) -> None:
        if self.state == "half_open":
            self._open([error_class], now)
        elif self.state == "closed":
            self._results.append((error_class, is_slow))
            self._weigh(now)

    def _weigh(self, now: float) -> None:
        """Open if too many attempts failed, or else if too many were slow."""
        faults = [fault for fault, _ in self._results if fault is not None]
        calls, slow = len(self._results), sum(is_slow for _, is_slow in self._results)
        if calls < self.config.minimum_throughput:
            return
        if len(faults) / calls >= self.config.failure_ratio:
            self._open(faults, now)
        elif self._is_too_slow(slow, calls):
            self._open([L3], now)

    def _is_too_slow(self, slow: int, calls: int) -> bool:
        return slow > 0 and slow / calls >= self.config.slow_call_ratio

    def _open(self, faults: Sequence[ErrorClass | None], now: float) -> None:
        counts = Counter(faults).most_common(2)
        if len(counts) == 2 and counts[0][1] == counts[1][1]:
            raise TieError
        self.opened_by = counts[0][0] or UNKNOWN
        self._reopens = now + self.config.break_duration
        self._move("open")

    def _move(self, to: str) -> None:
        self.transitions.append((self.state, to))
        self.state = to
        self._successes = self._slow_successes = 0
