"""The calls that are running now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fuseboard.record import CallRecord

ELSEWHERE: Final = object()
"""Takes the place of a call's span in a process that was forked while the call ran."""


class InFlight:
    """A set of running calls. Adding and removing are single dict operations, hence atomic.

    Attributes:
        calls: The running calls by their id; the hot path adds and removes here by itself.

    Args:
        monotonic: Source of time, seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.calls: dict[int, CallRecord] = {}

    def add(self, call: CallRecord) -> None:
        """Note that a call runs."""
        self.calls[id(call)] = call

    def remove(self, call: CallRecord) -> None:
        """Note that a call ended."""
        self.calls.pop(id(call), None)

    def give_up(self) -> None:
        """Let go of calls that will end under another telemetry."""
        for key in tuple(self.calls):
            self.calls.pop(key, None)

    def after_fork(self) -> None:
        """Give the parent's calls up: the parent records them, also those that return here."""
        for call in self.calls.values():
            call.telemetry = ELSEWHERE
        self.calls = {}

    def ages(self) -> Iterator[tuple[CallRecord, float]]:
        """Yield each running call and its age in seconds."""
        now = self._monotonic()
        for call in list(self.calls.values()):
            yield call, max(0.0, now - call.started)

    def older_than(self, seconds: float, limit: int) -> list[CallRecord]:
        """Return the oldest calls that have run for longer than ``seconds``, oldest first."""
        old = [(age, call) for call, age in self.ages() if age > seconds]
        old.sort(key=lambda pair: pair[0], reverse=True)
        return [call for _, call in old[:limit]]
