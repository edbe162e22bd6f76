"""Nanoseconds on the wire → microseconds in the store, in whole numbers throughout."""

from __future__ import annotations

from typing import NamedTuple

_LAST_NS = 2**63 - 1


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
    """Return the period of a span; a missing time is taken from the other, or from arrival.

    Args:
        start_ns: Nanoseconds since the epoch; 0 if unknown.
        end_ns: Nanoseconds since the epoch; 0 if unknown.
        received_us: Microseconds since the epoch at which it arrived.
    """
    if 0 < start_ns <= end_ns <= _LAST_NS:
        return Period(start_ns // 1000, end_ns // 1000, (end_ns - start_ns) / 1e9)
    known = [value for value in (start_ns, end_ns) if 0 < value <= _LAST_NS]
    if len(known) == 2:
        return Period(start_ns // 1000, start_ns // 1000, 0.0, ("negative duration",))
    instant = known[0] // 1000 if known else received_us
    return Period(instant, instant, 0.0, ("time missing",))


def instant(ns: int, received_us: int) -> int:
    """Return a log record's time in microseconds; its arrival if it carries none."""
    return ns // 1000 if 0 < ns <= _LAST_NS else received_us
