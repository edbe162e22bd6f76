"""Counters of what the collector itself did, for the server to show."""

from __future__ import annotations

import threading
from collections import Counter


class Stats:
    """Thread-safe named counters; a name may carry one label, as in ``rejected{bad_span_id}``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

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

    def get(self, name: str, label: str | None = None) -> int:
        """Return a counter; 0 if it was never raised."""
        with self._lock:
            return self._counts[name if label is None else f"{name}{{{label}}}"]

    def snapshot(self) -> dict[str, int]:
        """Return every counter by name, sorted."""
        with self._lock:
            return dict(sorted(self._counts.items()))
