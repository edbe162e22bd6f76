"""Every instant of a window is taken from exactly one place, and from nothing dirty."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseboard_collector.store.rollups.plan import DAY as ONE_DAY
from fuseboard_collector.store.rollups.plan import HOUR, SIX_HOURS, Lengths, Stock, plan

DAY = datetime(2026, 3, 1)
BOTH = Lengths(hours=True, sixes=True, days=False)
ALL = Lengths(hours=True, sixes=True, days=True)


def spans(planned: dict[str, Any], name: str, length: timedelta) -> list[datetime]:
    """Return the rollups of one length that a plan takes."""
    first = planned[f"{name}_since"]
    number = (planned[f"{name}_until"] - first) // length
    every = [first + n * length for n in range(number)]
    hole_since, hole_until = planned[f"{name}_hole_since"], planned[f"{name}_hole_until"]
    outside = [span for span in every if span < hole_since or span >= hole_until]
    return [span for span in outside if span not in planned[f"{name}_gaps"]]


def pieces(planned: dict[str, Any], since: datetime, until: datetime) -> list[Any]:
    """Return where each stretch of the window comes from: (from, to, source)."""
    found = [(day, day + ONE_DAY, "day") for day in spans(planned, "day", ONE_DAY)]
    found += [(six, six + SIX_HOURS, "six") for six in spans(planned, "six", SIX_HOURS)]
    found += [(hour, hour + HOUR, "hour") for hour in spans(planned, "hour", HOUR)]
    found += [(hour, hour + HOUR, "raw") for hour in planned["dirty_hours"]]
    found += [(since, planned["head_until"], "raw"), (planned["tail_since"], until, "raw")]
    return sorted((first, end, source) for first, end, source in found if first < end)


def stock(dirty_hours: list[datetime], first: datetime, last: datetime) -> Stock:
    sixes = {hour - (hour - DAY) % SIX_HOURS for hour in dirty_hours}
    days = {hour - (hour - DAY) % ONE_DAY for hour in dirty_hours}
    return Stock(first, last, set(dirty_hours), sixes, days)


minutes = st.integers(0, 4 * 24 * 60).map(lambda number: DAY + timedelta(minutes=number))
hours = st.integers(0, 4 * 24 - 1).map(lambda number: DAY + number * HOUR)


@settings(max_examples=300, deadline=None)
@given(
    window=st.tuples(minutes, minutes).map(sorted).filter(lambda both: both[0] < both[1]),
    dirty=st.lists(hours, max_size=12, unique=True),
    rolled=st.tuples(hours, hours).map(sorted),
    lengths=st.sampled_from([Lengths(hours, sixes, days) for hours in (True, False)
                             for sixes in (True, False) for days in (True, False)
                             if hours or sixes]),
)  # fmt: skip
def test_a_window_is_covered_once_and_dirty_hours_only_by_raw_rows(
    window: list[datetime], dirty: list[datetime], rolled: list[datetime], lengths: Lengths
) -> None:
    since, until = window
    planned = plan(since, until, stock(dirty, *rolled), lengths)
    found = pieces(planned, since, until)
    assert (found[0][0], found[-1][1]) == (since, until)
    assert all(one[1] == other[0] for one, other in pairwise(found))
    for first, end, source in found:
        if source != "raw":
            assert not any(first <= hour < end for hour in dirty)
    used = {source for _, _, source in found}
    assert lengths.hours or "hour" not in used
    assert lengths.sixes or "six" not in used
    assert lengths.days or "day" not in used


def test_the_coarsest_rollup_that_lies_whole_in_the_window_is_taken() -> None:
    everything = stock([], DAY - timedelta(days=9), DAY + timedelta(days=9))
    since, until = DAY + timedelta(hours=4, minutes=30), DAY + timedelta(hours=26, minutes=15)
    assert pieces(plan(since, until, everything, BOTH), since, until) == [
        (since, DAY + 5 * HOUR, "raw"),
        (DAY + 5 * HOUR, DAY + 6 * HOUR, "hour"),
        *((DAY + n * HOUR, DAY + (n + 6) * HOUR, "six") for n in (6, 12, 18)),
        (DAY + 24 * HOUR, DAY + 25 * HOUR, "hour"),
        (DAY + 25 * HOUR, DAY + 26 * HOUR, "hour"),
        (DAY + 26 * HOUR, until, "raw"),
    ]


def test_whole_days_are_taken_as_such_but_for_dirty_ones() -> None:
    everything = stock([DAY + 30 * HOUR], DAY - 9 * ONE_DAY, DAY + 9 * ONE_DAY)
    since, until = DAY, DAY + 3 * ONE_DAY
    assert pieces(plan(since, until, everything, ALL), since, until) == [
        (DAY, DAY + ONE_DAY, "day"),
        (DAY + 24 * HOUR, DAY + 30 * HOUR, "six"),
        (DAY + 30 * HOUR, DAY + 31 * HOUR, "raw"),
        *((DAY + n * HOUR, DAY + (n + 1) * HOUR, "hour") for n in range(31, 36)),
        *((DAY + n * HOUR, DAY + (n + 6) * HOUR, "six") for n in (36, 42)),
        (DAY + 2 * ONE_DAY, until, "day"),
    ]


def test_dirty_hours_at_the_ends_make_no_range_of_their_own() -> None:
    dirty = [DAY, DAY + HOUR, DAY + 8 * HOUR, DAY + 23 * HOUR]
    everything = stock(dirty, DAY, DAY + 30 * HOUR)
    planned = plan(DAY, DAY + 24 * HOUR, everything, BOTH)
    assert planned["head_until"] == DAY + 2 * HOUR
    assert planned["tail_since"] == DAY + 23 * HOUR
    assert planned["dirty_hours"] == [DAY + 8 * HOUR]
    assert (planned["dirty_since"], planned["dirty_until"]) == (DAY + 8 * HOUR, DAY + 9 * HOUR)


@pytest.mark.parametrize("first", [None, DAY + timedelta(days=50)])
def test_without_rollups_all_is_raw(first: datetime | None) -> None:
    planned = plan(DAY, DAY + 48 * HOUR, Stock(first, first, set(), set(), set()), ALL)
    assert not spans(planned, "day", ONE_DAY)
    assert not spans(planned, "six", SIX_HOURS)
    assert not spans(planned, "hour", HOUR)
    assert not planned["dirty_hours"]
    assert planned["head_until"] == planned["tail_since"] == DAY + 48 * HOUR


def test_a_window_of_ages_lists_no_more_hours_than_there_are_rollups() -> None:
    ages = plan(datetime(1, 1, 1), datetime(9000, 1, 1), stock([], DAY, DAY + 9 * HOUR), BOTH)
    hours, sixes = spans(ages, "hour", HOUR), spans(ages, "six", SIX_HOURS)
    assert len(hours) + 6 * len(sixes) == 10


def test_what_coarser_rollups_fill_is_named_by_its_bounds_not_span_by_span() -> None:
    """Every row would be compared with every one of hundreds of hours."""
    since, until = DAY + 10 * HOUR, DAY + 30 * ONE_DAY + 10 * HOUR
    planned = plan(since, until, stock([DAY + 12 * HOUR], DAY, DAY + 60 * ONE_DAY), ALL)
    assert len(spans(planned, "hour", HOUR)) == 2 + 5 + 4
    assert planned["hour_gaps"] == [DAY + 12 * HOUR]
    assert planned["day_gaps"] == planned["six_gaps"] == []
