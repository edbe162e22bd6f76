"""Health counts over a sliding time window, in constant time and space."""

from __future__ import annotations

from collections.abc import Sequence

from fuseboard.conventions import ErrorClass

_SLICES = 10


class Window:
    """Counts results of the last ``duration`` seconds, in ten slices; not thread-safe.

    A result leaves the window between 0.9 and 1 times ``duration`` after it came.
    """

    __slots__ = ("_calls", "_classes", "_epoch", "_failures", "_slice", "_slow", "calls",
                 "failures", "slow")  # fmt: skip

    def __init__(self, duration: float) -> None:
        """Make an empty window.

        Args:
            duration: Its length in seconds.
        """
        self._slice = duration / _SLICES
        self.clear()

    def clear(self) -> None:
        """Forget every result."""
        self._epoch = 0
        self._calls = [0] * _SLICES
        self._failures = [0] * _SLICES
        self._slow = [0] * _SLICES
        self._classes: list[dict[ErrorClass, int]] = [{} for _ in range(_SLICES)]
        self.calls = 0
        self.failures = 0
        self.slow = 0

    def add(self, now: float, failure: ErrorClass | None, *, is_slow: bool = False) -> None:
        """Count one result.

        Args:
            now: Monotonic seconds.
            failure: The class of the failure, or None for a success.
            is_slow: Whether it took too long to come.
        """
        self.advance(now)
        index = self._epoch % _SLICES
        self._calls[index] += 1
        self.calls += 1
        if is_slow:
            self._slow[index] += 1
            self.slow += 1
        if failure is not None:
            self._failures[index] += 1
            self.failures += 1
            classes = self._classes[index]
            classes[failure] = classes.get(failure, 0) + 1

    def add_successes(self, times: Sequence[float]) -> None:
        """Count successes that came a while ago, and not slowly.

        Args:
            times: When they came, monotonic seconds, oldest first; at least one.
        """
        self.advance(times[-1])
        calls, length = self._calls, self._slice
        first, last = int(times[0] // length), int(times[-1] // length)
        if first == last == self._epoch:
            calls[last % _SLICES] += len(times)
            self.calls += len(times)
            return
        oldest = self._epoch - _SLICES
        for epoch in [int(time // length) for time in times]:
            if epoch > oldest:
                calls[min(epoch, self._epoch) % _SLICES] += 1
                self.calls += 1

    def advance(self, now: float) -> None:
        """Drop what is older than the window."""
        epoch = int(now // self._slice)
        passed = epoch - self._epoch
        if passed <= 0:
            return
        for step in range(1, min(passed, _SLICES) + 1):
            index = (self._epoch + step) % _SLICES
            self.calls -= self._calls[index]
            self.failures -= self._failures[index]
            self.slow -= self._slow[index]
            self._calls[index] = self._failures[index] = self._slow[index] = 0
            self._classes[index] = {}
        self._epoch = epoch

    def dominant_class(self) -> ErrorClass | None:
        """Return the most frequent class among the failures in the window."""
        totals: dict[ErrorClass, int] = {}
        for classes in self._classes:
            for error_class, count in classes.items():
                totals[error_class] = totals.get(error_class, 0) + count
        return max(totals, key=totals.__getitem__, default=None)
