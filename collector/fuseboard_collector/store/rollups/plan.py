"""Which parts of a window are answered from which rollups, and which from the raw rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

HOUR: Final = timedelta(hours=1)
SIX_HOURS: Final = timedelta(hours=6)
DAY: Final = timedelta(days=1)
_EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Stock:
    """What rollups there are.

    Attributes:
        first: Start of the first hour that is rolled up; None if none is.
        last: Start of the last.
        dirty_hours: Starts of hours that have to be taken from the raw rows.
        dirty_sixes: Starts of six hours that have to be taken from anything finer.
        dirty_days: Starts of such days.
    """

    first: datetime | None
    last: datetime | None
    dirty_hours: Collection[datetime]
    dirty_sixes: Collection[datetime]
    dirty_days: Collection[datetime]


@dataclass(frozen=True, slots=True)
class Lengths:
    """Which lengths of rollups a query can use.

    Attributes:
        hours: Hours and quarters of them; without these, raw rows stand in.
        sixes: Six hours.
        days: Days.
    """

    hours: bool
    sixes: bool
    days: bool


def plan(since: datetime, until: datetime, stock: Stock, lengths: Lengths) -> dict[str, object]:
    """Return the parameters that tell a query where to take each part of its window from.

    Every instant of (since, until] is in exactly one part: days from ``day_since`` up to
    ``day_until`` but for those from ``day_hole_since`` up to ``day_hole_until`` and ``day_gaps``,
    six hours and hours named likewise, ``dirty_hours``, or raw up to ``head_until`` and after
    ``tail_since``. What else it has is for queries that look further back.

    Args:
        since: Start of the window, naive UTC.
        until: Its end.
        stock: What there is.
        lengths: What the query can use.
    """
    step = HOUR if lengths.hours else SIX_HOURS
    first, last = _whole(since, until, stock, step)
    days = _clean(first, last, DAY, stock.dirty_days) if lengths.days else []
    in_days = set(_parts(days, DAY, SIX_HOURS))
    sixes = _clean(first, last, SIX_HOURS, {*stock.dirty_sixes, *in_days}) if lengths.sixes else []
    done = {*_parts(days, DAY, HOUR), *_parts(sixes, SIX_HOURS, HOUR)}
    rest = [hour for hour in _range(first, last, HOUR) if hour not in done]
    hours = [hour for hour in rest if lengths.hours and hour not in stock.dirty_hours]
    first, last, dirty = _without_dirty_ends(first, last, sorted(set(rest) - set(hours)))
    return {
        **_gapped("day", days, DAY, until),
        **_gapped("six", sixes, SIX_HOURS, until),
        **_gapped("hour", hours, HOUR, until),
        "head_until": first,
        "tail_since": last,
        "dirty_hours": dirty,
        "dirty_since": dirty[0] if dirty else until,
        "dirty_until": dirty[-1] + HOUR if dirty else until,
        **_history(since, until, stock),
    }


def _history(since: datetime, until: datetime, stock: Stock) -> dict[str, object]:
    """Return the parameters of queries that look at all that came before the window's end.

    They take whole days up to ``last_day``, in the window those from ``kept_since``. Of breakers,
    raw rows stand in for ``stale_days``, and for the day that the window's start cuts in two, from
    ``cut_since`` up to ``cut_until``. Of heartbeats, hours up to ``last_hour`` stand in for
    ``dirty_days``, and raw rows for ``stale_hours``.
    """
    last_hour = _down(until, HOUR)
    last_day = _down(until, DAY)
    cut = _down(since, DAY)
    is_cut = cut < since and cut < last_day
    dirty_days = sorted(day for day in stock.dirty_days if day < last_day)
    stale = [day for day in dirty_days if not (is_cut and day == cut)]
    stale_hours = sorted(hour for hour in stock.dirty_hours if hour < last_hour)
    return {
        "last_hour": last_hour,
        "last_day": last_day,
        "kept_since": min(_up(since, DAY), last_day),
        "cut_since": cut if is_cut else until,
        "cut_until": cut + DAY if is_cut else until,
        "stale_days": stale,
        "stale_day_since": stale[0] if stale else until,
        "stale_day_until": stale[-1] + DAY if stale else until,
        "dirty_days": dirty_days,
        "dirty_day_since": min([last_day, *dirty_days]),
        "stale_hours": stale_hours,
        "stale_since": min(stale_hours, default=until),
    }


def _gapped(
    name: str, spans: list[datetime], length: timedelta, until: datetime
) -> dict[str, object]:
    """Return where spans begin and end, and which in between are not among them.

    Mostly these are one stretch, which coarser rollups fill: it is named by its bounds, since the
    engine compares every row with every item of a list.
    """
    first, end = (spans[0], spans[-1] + length) if spans else (until, until)
    ends = ((span + length, after) for span, after in pairwise(spans))
    hole_since, hole_until = max(ends, key=lambda hole: hole[1] - hole[0], default=(end, end))
    present = set(spans)
    rest = (*_range(first, hole_since, length), *_range(hole_until, end, length))
    return {
        f"{name}_since": first,
        f"{name}_until": end,
        f"{name}_hole_since": hole_since,
        f"{name}_hole_until": hole_until,
        f"{name}_gaps": [span for span in rest if span not in present],
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


def _clean(
    first: datetime, last: datetime, step: timedelta, dirty: Collection[datetime]
) -> list[datetime]:
    """Return the spans of a length that lie whole between two times and are not dirty."""
    return [span for span in _range(_up(first, step), _down(last, step), step) if span not in dirty]


def _parts(spans: list[datetime], length: timedelta, step: timedelta) -> Iterator[datetime]:
    """Yield the shorter spans that spans are made of."""
    return (part for span in spans for part in _range(span, span + length, step))


def _down(moment: datetime, step: timedelta) -> datetime:
    return moment - (moment - _EPOCH) % step


def _up(moment: datetime, step: timedelta) -> datetime:
    whole = _down(moment, step)
    return whole if whole == moment else whole + step


def _range(first: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    while first < end:
        yield first
        first += step
