"""The stretch of time in which the worst tool failed more than it usually does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import pandas as pd

from fuseboard_dashboard.incidents.evidence import Evidence, naive
from fuseboard_dashboard.windows import Window

LEAST_BAD: Final = 2
"""Bad calls that make a bucket of time a bad one, at least."""
LEAST_RISE: Final = 0.05
"""How much higher its share must be than usual, and twice as high."""
NEAR_BUCKETS: Final = 3
"""So far from a bad bucket a lone bad call belongs to it."""
ENOUGH: Final = 20
"""Calls that a share is of: buckets with fewer are put together, as long as some are left."""
LEAST_GROUPS: Final = 12
CALM: Final = 2
"""An incident is over that was followed by calls for so many of these."""

Moments = Callable[[str, Window], pd.DataFrame]
"""Asks for the first and last bad calls of a tool in a part of the window."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The stretch in which the worst tool failed more than it usually does.

    Attributes:
        tool: The tool.
        began: Its first bad call, naive UTC; known to a bucket's width in long windows.
        last_bad: Its last one.
        first_degraded: The first answer that stood in; None if none did.
        is_over: Whether calls went well again for a while before the window's end.
    """

    tool: str
    began: datetime
    last_bad: datetime
    first_degraded: datetime | None
    is_over: bool


def find_trouble(evidence: Evidence, moments: Moments) -> Trouble | None:
    """Return when the worst tool failed more than it usually does, None where none did."""
    tool, usual = _worst(evidence)
    if tool is None:
        return None
    series = evidence.series[evidence.series["tool"] == tool].set_index("bucket").sort_index()
    bad = series["errors"] + series["degraded"]
    width = _wide_enough(evidence, float(series["calls"].sum()))
    grouped = pd.DataFrame({"bad": bad, "calls": series["calls"]}).resample(width).sum()
    share = grouped["bad"] / grouped["calls"].where(grouped["calls"] > 0)
    usual = float(share.quantile(0.25)) if usual is None else usual
    is_bad = (grouped["bad"] >= LEAST_BAD) & (share > max(2 * usual, usual + LEAST_RISE))
    if not is_bad.any():
        return None
    times = pd.DatetimeIndex(is_bad.index[is_bad])
    all_bad = pd.DatetimeIndex(bad.index[bad > 0])
    inside = all_bad[(all_bad >= times[0]) & (all_bad < times[-1] + width)]
    near = NEAR_BUCKETS * evidence.bucket
    first = _reached(inside[0], all_bad[all_bad < inside[0]][::-1], near)
    last = _reached(inside[-1], all_bad[all_bad > inside[-1]], near)
    zone = evidence.window.since.tzinfo
    stretch = Window(
        max(first.to_pydatetime().replace(tzinfo=zone), evidence.window.since),
        min((last + evidence.bucket).to_pydatetime().replace(tzinfo=zone), evidence.window.until),
    )
    found = moments(tool, stretch)
    is_over = bool((series.index >= last + CALM * width).any())
    if stretch.since < evidence.counted.since:
        return _roughly(tool, series, stretch, found, is_over)
    if not len(found):
        return None
    degraded = found["first_degraded"].min()
    return Trouble(
        tool,
        found["first_bad"].min().to_pydatetime(),
        found["last_bad"].max().to_pydatetime(),
        None if pd.isna(degraded) else degraded.to_pydatetime(),
        is_over,
    )


def _roughly(
    tool: str, series: pd.DataFrame, stretch: Window, found: pd.DataFrame, is_over: bool
) -> Trouble:
    """Return a stretch that begins before single calls are read: known to a bucket's width."""
    since, until = naive(stretch.since), naive(stretch.until)
    served = series.index[(series["degraded"] > 0) & (series.index < until)]
    served = served[served >= since]
    last_bad = found["last_bad"].max().to_pydatetime() if len(found) else until
    first_degraded = served[0].to_pydatetime() if len(served) else None
    return Trouble(tool, since, last_bad, first_degraded, is_over)


def _wide_enough(evidence: Evidence, calls: float) -> timedelta:
    """Return a multiple of a bucket's width in which a tool with so many calls can be judged."""
    buckets = max(1, evidence.window.length // evidence.bucket)
    needed = max(1, round(ENOUGH * buckets / max(calls, 1)))
    return evidence.bucket * min(needed, max(1, buckets // LEAST_GROUPS))


def _reached(start: pd.Timestamp, steps: pd.DatetimeIndex, near: timedelta) -> pd.Timestamp:
    """Return how far one gets from a bucket over others with bad calls, none far from the last.

    A trouble begins and ends with few bad calls: else narrower buckets would find it shorter.
    """
    for step in steps:
        if abs(step - start) > near:
            break
        start = step
    return start


def _worst(evidence: Evidence) -> tuple[str | None, float | None]:
    """Return the tool that it is about, and its usual share of bad calls where that is known."""
    for change in evidence.rises:
        if change.measure.id == "errors" and "tool" in change.where:
            return change.where["tool"], change.before
    if not len(evidence.series):
        return None, None
    bad = evidence.series[["errors", "degraded"]].sum(axis=1)
    by_tool = bad.groupby(evidence.series["tool"]).sum()
    return str(by_tool.idxmax()), None
