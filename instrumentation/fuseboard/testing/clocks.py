"""Time that passes only when somebody waits."""

from __future__ import annotations

import asyncio
import threading
from typing import Final

_A_MORNING: Final = 1_767_258_000.0  # 2026-01-01 09:00 UTC


class FakeClock:
    """A clock that stands still until somebody sleeps on it or moves it.

    Back-off, breaks of breakers and ages then cost a test no time. A time-out of an attempt is
    not affected: it bounds real work, in real time.

    Attributes:
        slept: What was slept, in order, seconds.

    Since 0.1.
    """

    def __init__(self, unix_seconds: float = _A_MORNING) -> None:
        """Start at a time of day, in seconds since the Unix epoch."""
        self.slept: list[float] = []
        self._start = unix_seconds
        self._passed = 0.0
        self._lock = threading.Lock()

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""
        return int((self._start + self._passed) * 1e9)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return 1000.0 + self._passed

    def move(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: If it would run backwards.
        """
        if not seconds >= 0:
            raise ValueError(f"FakeClock.move({seconds!r}): time does not run backwards")
        with self._lock:
            self._passed += seconds

    def sleep(self, seconds: float) -> None:
        """Let time pass instead of waiting."""
        self.slept.append(seconds)
        self.move(max(0.0, seconds))

    async def async_sleep(self, seconds: float) -> None:
        """Let time pass instead of waiting; other tasks run meanwhile."""
        self.sleep(seconds)
        await asyncio.sleep(0)
