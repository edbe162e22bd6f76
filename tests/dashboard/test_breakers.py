"""Which breakers are drawn where there are more than fit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd

from fuseboard_dashboard.charts.breakers import MAX_BREAKERS
from fuseboard_dashboard.screens.breakers import worth_drawing

SINCE = datetime(2026, 1, 5, 12, tzinfo=UTC)


def frame(*rows: tuple[str, str, timedelta | None]) -> pd.DataFrame:
    """Make rows of ``page_breaker_states``; times are told from the window's start."""
    start = SINCE.replace(tzinfo=None)
    times = [start + after if after else None for *_, after in rows]
    return pd.DataFrame(
        {"breaker": [name for name, *_ in rows], "state": [row[1] for row in rows],
         "since_time": pd.Series(times, dtype="datetime64[us]")}
    )  # fmt: skip


def test_breakers_with_something_to_see_are_drawn_before_those_that_fell_silent_or_stayed() -> None:
    minute = timedelta(minutes=1)
    silent = [(f"silent-{number}", "unknown", -minute) for number in range(MAX_BREAKERS)]
    moved, still = ("reopened", "closed", minute), ("never", "closed", None)
    states = frame(("open", "open", -minute), *silent, moved, still)
    drawn = worth_drawing(states, SINCE)
    assert drawn[:2] == ["open", "reopened"]
    assert drawn[2:] == [name for name, *_ in silent][: MAX_BREAKERS - 2]


def test_all_are_drawn_where_they_fit() -> None:
    states = frame(("b", "closed", None), ("a", "closed", None))
    assert worth_drawing(states, SINCE) == ["b", "a"]
