"""What did not reach the collector, counted by signal and reason."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Final

logger = logging.getLogger("fuseboard")

SECONDS_BETWEEN_LINES: Final = 60.0


class Signal(StrEnum):
    """What kind of record was lost."""

    SPANS = "spans"
    LOGS = "logs"


class Reason(StrEnum):
    """Why it was lost."""

    QUEUE_FULL = "queue_full"
    BUFFER_FULL = "buffer_full"
    EXPIRED = "expired"
    REJECTED = "rejected"
    TOO_LARGE = "too_large"
    ENCODING = "encoding"
    SHUTDOWN = "shutdown"
    INTERNAL = "internal"


_MEANING: Final = {
    Reason.QUEUE_FULL: "calls came faster than they could be encoded",
    Reason.BUFFER_FULL: "the collector was away and the waiting room is full",
    Reason.EXPIRED: "the collector was away for too long",
    Reason.REJECTED: "the collector refused them",
    Reason.TOO_LARGE: "the collector found the request too large",
    Reason.ENCODING: "they could not be encoded",
    Reason.SHUTDOWN: "the process ended before the collector confirmed them",
    Reason.INTERNAL: "fuseboard itself failed",
}
# The end of the process and each kind of own fault have lines of their own.
_SAID_ELSEWHERE: Final = frozenset({Reason.SHUTDOWN, Reason.INTERNAL})


class Losses:
    """Counts losses and says so in the log, at most once a minute per reason."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.reset()

    def reset(self) -> None:
        """Forget everything, as a forked child must; also replaces the lock."""
        self._lock = threading.RLock()
        self._counts = {(signal, reason): 0 for signal in Signal for reason in Reason}
        self._said: dict[Reason, float] = {}
        self._unsaid = dict.fromkeys(Reason, 0)

    def add(self, signal: Signal, reason: Reason, count: int = 1, detail: str = "") -> None:
        """Count lost records.

        Args:
            signal: What was lost.
            reason: Why.
            count: How many records.
            detail: Words for the log line, already redacted.
        """
        if count <= 0:
            return
        with self._lock:
            self._counts[signal, reason] += count
            self._unsaid[reason] += count
            lost = self._unsaid[reason]
            if not self._may_speak(reason):
                return
            self._unsaid[reason] = 0
        logger.warning(
            "%d telemetry records were lost (%s): %s%s",
            lost,
            reason.value,
            _MEANING[reason],
            f" ({detail})" if detail else "",
        )

    def _may_speak(self, reason: Reason) -> bool:
        now = self._monotonic()
        last = self._said.get(reason)
        if reason in _SAID_ELSEWHERE or (last is not None and now - last < SECONDS_BETWEEN_LINES):
            return False
        self._said[reason] = now
        return True

    def counts(self) -> dict[tuple[Signal, Reason], int]:
        """Return a copy of all counts, zeros included."""
        with self._lock:
            return dict(self._counts)

    def accepted(self) -> int:
        """Return how many records were lost after a queue had taken them."""
        return sum(n for (_, why), n in self.counts().items() if why is not Reason.QUEUE_FULL)
