"""The scale of time that a waterfall is drawn on: where a moment lies, and where grid lines are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fuseboard_dashboard.waterfall import CALL, Row

_FAR: Final = timedelta(hours=1)
"""What is further than this from all calls is drawn at the edge: else calls would be hairlines."""
_SHORTEST: Final = timedelta(milliseconds=1)
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
_MOST_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class Scale:
    """The time that the waterfall covers, from 0 to 100 per cent of its width."""

    start: datetime
    length: timedelta

    def place(self, moment: datetime) -> float:
        """Return where a moment is; what lies outside is at an edge."""
        return min(100.0, max(0.0, 100.0 * ((moment - self.start) / self.length)))

    def bar(self, start: datetime, end: datetime) -> tuple[float, float]:
        """Return the left edge and the width of a time."""
        left = self.place(start)
        return left, max(0.0, self.place(end) - left)

    def leaves(self, start: datetime, end: datetime) -> bool:
        """Tell whether a time is partly outside, and so drawn shorter than it is."""
        return start < self.start or end > self.start + self.length

    def step(self) -> float:
        """Return the seconds between two lines of the grid: round ones, at most six."""
        length = self.length.total_seconds()
        for power in range(-6, 0):
            for digit in (1, 2, 5):
                if length / (digit * 10.0**power) <= _MOST_TICKS:
                    return float(digit * 10.0**power)
        return next((float(step) for step in _STEPS if length / step <= _MOST_TICKS), 86400.0)

    def ticks(self) -> list[tuple[float, float]]:
        """Return the lines of the grid: seconds since the start, and place."""
        step, length = self.step(), self.length.total_seconds()
        return [(n * step, 100.0 * n * step / length) for n in range(int(length / step) + 1)]


def scale(found: Iterable[Row]) -> Scale:
    """Return the time that shows all calls, and what is around them as far as it is near."""
    drawn = list(found)
    calls = [row for row in drawn if row.kind == CALL] or drawn
    first = begin = min(row.start for row in calls)
    last = end = max(row.end for row in calls)
    for row in drawn:
        begin = min(begin, max(row.start, first - _FAR))
        end = max(end, min(row.end, last + _FAR))
        # An attempt that is far from its call has another clock: it may not decide about the scale.
        slack = max(row.end - row.start, timedelta(seconds=1))
        for attempt in row.attempts:
            begin = min(begin, max(attempt.start, row.start - slack))
            end = max(end, min(attempt.end, row.end + slack))
    return Scale(begin, max(end - begin, _SHORTEST))


def of_call(row: Row) -> Scale:
    """Return the time of one call and its attempts alone."""
    return scale([row])
