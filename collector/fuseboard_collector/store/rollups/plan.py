"""Which parts of a window are answered from which rollups, and which from the raw rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

HOUR: Final = timedelta(hours=1)
QUARTER: Final = timedelta(minutes=15)
SIX_HOURS: Final = timedelta(hours=6)
_EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Stock:
    """What rollups there are.

    Attributes:
        first: Start of the first hour that is rolled up; None if none is.
        last: Start of the last.
        dirty_hours: Starts of hours that have to be taken from the raw rows.
        dirty_sixes: Starts of six hours that have to be taken from anything finer.
    """

    first: datetime | None
    last: datetime | None
    dirty_hours: Collection[datetime]
    dirty_sixes: Collection[datetime]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Which lengths of rollups a query can use.

    Attributes:
        hours: Hours and quarters of them; without these, raw rows stand in.
        sixes: Six hours.
    """

    hours: bool
    sixes: bool


def plan(since: datetime, until: datetime, stock: Stock, lengths: Lengths) -> dict[str, object]:
    """Return the parameters that tell a query where to take each part of its window from.

    Every instant of (since, until] is in exactly one part: six hours from ``six_since`` up to
    ``six_until`` but for ``six_gaps``, ``hours`` (the same as ``quarters``), ``dirty_hours``, or
    raw up to ``head_until`` and after ``tail_since``.

    Args:
        since: Start of the window, naive UTC.
        until: Its end.
        stock: What there is.
        lengths: What the query can use.
    """
    step = HOUR if lengths.hours else SIX_HOURS
    first, last = _whole(since, until, stock, step)
    sixes = [
        six
        for six in _range(_up(first, SIX_HOURS), _down(last, SIX_HOURS), SIX_HOURS)
        if lengths.sixes and six not in stock.dirty_sixes
    ]
    in_sixes = {hour for six in sixes for hour in _range(six, six + SIX_HOURS, HOUR)}
    rest = [hour for hour in _range(first, last, HOUR) if hour not in in_sixes]
    hours = [hour for hour in rest if lengths.hours and hour not in stock.dirty_hours]
    first, last, dirty = _without_dirty_ends(first, last, sorted(set(rest) - set(hours)))
    six_since, six_until = (sixes[0], sixes[-1] + SIX_HOURS) if sixes else (until, until)
    present = set(sixes)
    last_hour = _down(until, HOUR)
    return {
        "six_since": six_since,
        "six_until": six_until,
        "six_gaps": [six for six in _range(six_since, six_until, SIX_HOURS) if six not in present],
        "hours": hours,
        "quarters": [hour + n * QUARTER for hour in hours for n in range(4)],
        "fine_since": hours[0] if hours else until,
        "fine_until": hours[-1] + HOUR if hours else until,
        "head_until": first,
        "tail_since": last,
        "dirty_hours": dirty,
        "dirty_since": dirty[0] if dirty else until,
        "dirty_until": dirty[-1] + HOUR if dirty else until,
        "last_hour": last_hour,
        "stale_since": min((hour for hour in stock.dirty_hours if hour < last_hour), default=until),
    }


def _whole(
    since: datetime, until: datetime, stock: Stock, step: timedelta
) -> tuple[datetime, datetime]:
    """Return the bounds of the part of the window that may be rolled up; equal if there is none.

    Before the first and after the last rollup hardly a row is: raw rows stand in.
    """
    if stock.first is None or stock.last is None:
        return until, until
    first = _up(max(since, stock.first), step)
    last = _down(min(until, stock.last + HOUR), step)
    return (first, last) if first < last else (until, until)


def _without_dirty_ends(
    first: datetime, last: datetime, dirty: list[datetime]
) -> tuple[datetime, datetime, list[datetime]]:
    """Let the raw rows at both ends take in dirty hours next to them: one range less to read."""
    while dirty and dirty[-1] == last - HOUR:
        last = dirty.pop()
    while dirty and dirty[0] == first:
        first = dirty.pop(0) + HOUR
    return first, last, dirty


def _down(moment: datetime, step: timedelta) -> datetime:
    return moment - (moment - _EPOCH) % step


def _up(moment: datetime, step: timedelta) -> datetime:
    whole = _down(moment, step)
    return whole if whole == moment else whole + step


def _range(first: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    while first < end:
        yield first
        first += step
