"""Counters and timings of what the collector itself did, for the server to show."""

from __future__ import annotations

import bisect
import threading
from collections import Counter
from dataclasses import dataclass, field

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of every timing, in seconds; the last bucket has none."""


@dataclass(slots=True)
class Timing:
    """How long something took, again and again.

    Attributes:
        counts: One count per bucket, not cumulated; the last is of what took longer than all.
        total: Sum, in seconds.
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0


class Stats:
    """Thread-safe named counters; a name may carry one label, as in ``rejected{bad_span_id}``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._timings: dict[str, Timing] = {}

    def add(self, name: str, amount: int = 1, label: str | None = None) -> None:
        """Raise a counter.

        Args:
            name: What is counted, plural: ``requests``, ``accepted_spans``, ``rejected``.
            amount: By how much; 0 does nothing.
            label: The kind within the name, for example a reason.
        """
        if amount:
            with self._lock:
                self._counts[name if label is None else f"{name}{{{label}}}"] += amount

    def observe(self, name: str, seconds: float) -> None:
        """Count one more duration.

        Args:
            name: What took so long, for example ``commit``.
            seconds: How long.
        """
        with self._lock:
            timing = self._timings.setdefault(name, Timing())
            timing.counts[bisect.bisect_left(BUCKETS, seconds)] += 1
            timing.total += seconds

    def get(self, name: str, label: str | None = None) -> int:
        """Return a counter; 0 if it was never raised."""
        with self._lock:
            return self._counts[name if label is None else f"{name}{{{label}}}"]

    def snapshot(self) -> dict[str, int]:
        """Return every counter by name, sorted."""
        with self._lock:
            return dict(sorted(self._counts.items()))

    def timing(self, name: str) -> Timing:
        """Return a copy of a timing; an empty one if nothing was observed."""
        with self._lock:
            found = self._timings.get(name, Timing())
            return Timing(list(found.counts), found.total)
