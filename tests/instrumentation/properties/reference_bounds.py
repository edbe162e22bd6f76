"""What limits and sessions should do, for calls that come one after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reference_breaker import TieError

from fuseboard import Budget, Limit


class ReferenceLimit:
    """A bucket of tokens, and slots that only threads left behind can hold for longer.

    Attributes:
        held: Slots that are held for good.
    """

    def __init__(self, config: Limit, now: float) -> None:
        self.config = config
        self.held = 0
        self._size = float(config.burst or max(1, math.ceil(config.rate or 0)))
        self._tokens, self._at = self._size, now

    def wait(self, now: float, longest: float) -> tuple[float, bool]:
        """Return how long an attempt waits that comes now, and whether it then begins.

        Args:
            now: Seconds.
            longest: Seconds that its call has left.
        """
        patience = min(self.config.wait, longest)
        may_queue = self.config.queue > 0 and patience > 0
        if self.config.concurrency is not None and self.held >= self.config.concurrency:
            if may_queue and self.config.wait == longest:
                raise TieError
            return (patience if may_queue else 0.0), False
        wait = self._seconds_to_token(now)
        if wait > 0 and wait == longest:
            raise TieError
        is_in_time = wait <= patience and may_queue
        return (wait, True) if wait == 0 or is_in_time else (0.0, False)

    def begin(self, now: float) -> None:
        """Let an attempt begin."""
        if self.config.rate is not None:
            self._refill(now)
            self._tokens -= 1

    def _seconds_to_token(self, now: float) -> float:
        if self.config.rate is None:
            return 0.0
        self._refill(now)
        return max(0.0, (1 - self._tokens) / self.config.rate)

    def _refill(self, now: float) -> None:
        gained = (now - self._at) * (self.config.rate or 0.0)
        self._tokens, self._at = min(self._size, self._tokens + gained), now


@dataclass(frozen=True)
class Bounds:
    """What a session is given.

    Attributes:
        budget: Of all calls.
        timeout: Seconds from the first call.
        turn_timeout: Seconds for each call's turn.
    """

    budget: Budget | None = None
    timeout: float | None = None
    turn_timeout: float | None = None


class ReferenceSession:
    """A session whose calls each have a turn of their own.

    Attributes:
        retries: How many were made.
        requests: How many attempts were made.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._ends: float | None = None
        self._turn_ends = math.inf
        self.retries = self.requests = 0

    def enter(self, now: float) -> None:
        """Begin a turn."""
        if self._ends is None:
            self._ends = now + (self._bounds.timeout or math.inf)
        self._turn_ends = now + (self._bounds.turn_timeout or math.inf)

    def left(self, now: float) -> float:
        """Return the seconds that are left."""
        return min(self._ends or math.inf, self._turn_ends) - now

    def admits(self, *, is_retry: bool) -> bool:
        """Tell whether the budget allows one more attempt."""
        budget = self._bounds.budget
        if budget is None:
            return True
        is_poor = is_retry and budget.retries is not None and self.retries >= budget.retries
        is_out = budget.requests is not None and self.requests >= budget.requests
        return not (is_poor or is_out)

    def take(self, *, is_retry: bool) -> None:
        """Spend an attempt."""
        self.requests += 1
        self.retries += is_retry
