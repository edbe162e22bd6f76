"""When to delete old rows. They are deleted by arrival, on the writer's thread."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fuseboard.clock import Clock

INTERVAL_SECONDS = 3600.0
FIRST_AFTER_SECONDS = 60.0


class Retention:
    """Says which rows are due for deletion, once an hour.

    The file does not shrink; the freed blocks are used by the next inserts.
    """

    def __init__(self, days: float | None, clock: Clock) -> None:
        """Start with a first deletion due after a minute.

        Args:
            days: Age at which rows are deleted; None keeps them for good.
            clock: Source of time.
        """
        self._days = days
        self._clock = clock
        self._next = clock.monotonic() + FIRST_AFTER_SECONDS

    def cutoff(self) -> datetime | None:
        """Return the arrival time before which rows have expired, naive UTC."""
        if self._days is None:
            return None
        now = datetime.fromtimestamp(self._clock.time_ns() / 1e9, UTC).replace(tzinfo=None)
        try:
            return now - timedelta(days=self._days)
        except OverflowError:
            return None  # before the calendar's first day there is nothing to delete

    def due(self) -> datetime | None:
        """Return the cut-off if a deletion is due now, and put off the next one by an hour."""
        now = self._clock.monotonic()
        if self._days is None or now < self._next:
            return None
        self._next = now + INTERVAL_SECONDS
        return self.cutoff()
