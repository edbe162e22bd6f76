"""Sessions, the runs of agents: links to one, where it is read, and calls that go in circles.

URL parameters of the page: ``session`` and ``at`` (RFC 3339, the end of a call of it).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import pandas as pd

from fuseboard_dashboard.filters import AT, SESSION, Filters
from fuseboard_dashboard.windows import Window, rfc3339, zoned

AROUND: Final = timedelta(days=1)
"""A session is read this far before and after a moment that is known of it."""
MANY: Final = 3
"""So many calls with the same tool and arguments are repeated calls."""
MAX_CALLS: Final = 1000


@dataclass(frozen=True, slots=True)
class Circle:
    """Calls of a session that were all the same.

    Attributes:
        tool: What was called.
        args_hash: With which arguments.
        calls: Their rows of ``page_session_calls``, in time.
        longest: How many of them came in a row, at most.
    """

    tool: str
    args_hash: str
    calls: pd.DataFrame
    longest: int


def link(filters: Filters, session: str, moment: datetime) -> str:
    """Return the relative URL of a session.

    Args:
        filters: What the viewer chose, kept for the way back.
        session: Its id.
        moment: The end of a call of it, or another moment near, in UTC.
    """
    return filters.link("sessions", [(SESSION, session), (AT, rfc3339(zoned(moment)))])


def around(moment: datetime) -> Window:
    """Return the window in which a session is read whose moment is known."""
    return Window(zoned(moment) - AROUND, zoned(moment) + AROUND)


def circles(calls: pd.DataFrame) -> list[Circle]:
    """Return the calls that were made at least ``MANY`` times, the most frequent first.

    Args:
        calls: Rows of ``page_session_calls``, in time.
    """
    named = calls[calls["args_hash"].notna()]
    found = [
        Circle(str(tool), str(hash_), rows, _longest(calls, str(tool), str(hash_)))
        for (tool, hash_), rows in named.groupby(["tool", "args_hash"], sort=False)
        if len(rows) >= MANY
    ]
    return sorted(found, key=lambda circle: -len(circle.calls))


def _longest(calls: pd.DataFrame, tool: str, args_hash: str) -> int:
    """Return how many such calls follow one another without any other call between."""
    longest = current = 0
    for is_such in (calls["tool"] == tool) & (calls["args_hash"] == args_hash):
        current = current + 1 if is_such else 0
        longest = max(longest, current)
    return longest


def is_repeated(calls: pd.DataFrame) -> pd.Series:
    """Tell of each call whether it is one of ``MANY`` that are the same."""
    named = calls["args_hash"].notna()
    times = calls.groupby(["tool", "args_hash"], dropna=False)["tool"].transform("size")
    marked: pd.Series = named & (times >= MANY)
    return marked
