"""Nanoseconds on the wire → microseconds in the store, in whole numbers throughout."""

from __future__ import annotations

from typing import Final, NamedTuple

NEGATIVE_DURATION: Final = "negative duration"
TIME_MISSING: Final = "time missing"
CLOCK_AHEAD: Final = "clock ahead"
CLOCK_NOT_SET: Final = "clock not set"

_EARLIEST_NS: Final = 946_684_800 * 10**9  # the year 2000
_DAY_NS: Final = 86_400 * 10**9
_AHEAD_NS: Final = 300 * 10**9


class Period(NamedTuple):
    """When something happened.

    Attributes:
        start: Microseconds since the epoch.
        end: Microseconds since the epoch; never before ``start``.
        duration_seconds: From the nanoseconds, so that it keeps more than ``end - start``.
        marks: What had to be put right.
    """

    start: int
    end: int
    duration_seconds: float
    marks: tuple[str, ...] = ()


def period(start_ns: int, end_ns: int, received_us: int) -> Period:
    """Return the period of a span, put right where it can't be true.

    A missing time is taken from the other, or from arrival. Times before the year 2000 or more
    than a day ahead of ours are those of a clock that is not set: kept as they are they would be
    deleted at once, or never; the span is taken to have ended when it arrived.

    Args:
        start_ns: Nanoseconds since the epoch; 0 if unknown.
        end_ns: Nanoseconds since the epoch; 0 if unknown.
        received_us: Microseconds since the epoch at which it arrived.
    """
    received_ns = received_us * 1000
    if _EARLIEST_NS <= start_ns <= end_ns <= received_ns + _AHEAD_NS:
        return Period(start_ns // 1000, end_ns // 1000, (end_ns - start_ns) / 1e9)
    return _put_right(start_ns, end_ns, received_ns)


def _put_right(start_ns: int, end_ns: int, received_ns: int) -> Period:
    latest = received_ns + _DAY_NS
    true = [value for value in (start_ns, end_ns) if _EARLIEST_NS <= value <= latest]
    if len(true) == 2:
        if start_ns > end_ns:
            return _at(start_ns, NEGATIVE_DURATION)
        return Period(start_ns // 1000, end_ns // 1000, (end_ns - start_ns) / 1e9, (CLOCK_AHEAD,))
    if true:
        return _at(true[0], CLOCK_NOT_SET if start_ns and end_ns else TIME_MISSING)
    if not start_ns and not end_ns:
        return _at(received_ns, TIME_MISSING)
    length = end_ns - start_ns if start_ns and end_ns else 0
    if not 0 <= length <= _DAY_NS:
        return _at(received_ns, CLOCK_NOT_SET)
    start = (received_ns - length) // 1000
    return Period(start, received_ns // 1000, length / 1e9, (CLOCK_NOT_SET,))


def _at(ns: int, mark: str) -> Period:
    return Period(ns // 1000, ns // 1000, 0.0, (mark,))


def instant(ns: int, received_us: int) -> int:
    """Return a log record's time in microseconds; its arrival if it carries none that is true."""
    is_true = _EARLIEST_NS <= ns <= received_us * 1000 + _DAY_NS
    return ns // 1000 if is_true else received_us
