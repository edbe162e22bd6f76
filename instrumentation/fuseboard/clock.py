"""The one source of time, so that tests can own it."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for timestamps, monotonic time for durations, and waiting."""

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""

    def sleep(self, seconds: float) -> None:
        """Block the calling thread."""

    async def async_sleep(self, seconds: float) -> None:
        """Suspend the calling task."""


class SystemClock:
    """The machine's clocks."""

    time_ns = staticmethod(time.time_ns)
    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)
    async_sleep = staticmethod(asyncio.sleep)
