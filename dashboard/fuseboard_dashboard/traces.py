"""Traces: their ids, where they are looked for, and the links that lead to and from them.

URL parameters of the page: ``trace`` (32 hexadecimal digits) and ``at`` (RFC 3339, the end of a
call of it). Trace ids have no index in the store: ``at`` is what spares it from reading all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import pandas as pd

from fuseboard_dashboard import sessions
from fuseboard_dashboard.filters import AT, HASH, TRACE, Filters
from fuseboard_dashboard.language import t
from fuseboard_dashboard.windows import Window, rfc3339, zoned

AROUND: Final = timedelta(hours=6)
"""A trace is read this far before and after a moment that is known of it."""
LINK_SHOWS: Final = rf"[?&]{TRACE}=([0-9a-f]{{8}})"
"""What a table shows of a link to a trace: the first digits of its id."""

_AHEAD: Final = timedelta(hours=1)
"""Clocks of agents may be this far ahead of ours."""
_STRIDES: Final = (timedelta(days=1), timedelta(days=7))
_NEAR: Final = timedelta(minutes=30)
_HEX: Final = re.compile(r"[0-9a-f]{32}\Z")
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}\Z")


def parse_id(text: str) -> str | None:
    """Return the trace id in a text that somebody pasted, None where there is none.

    Args:
        text: 32 hexadecimal digits, in any case and with dashes or not, or a ``traceparent``.
    """
    given = text.strip().strip("\"'").lower()
    parent = _TRACEPARENT.match(given)
    digits = parent[1] if parent else given.replace("-", "")
    return digits if _HEX.match(digits) and digits.strip("0") else None


def link(filters: Filters, trace_id: str, moment: datetime) -> str:
    """Return the relative URL of a trace.

    Args:
        filters: What the viewer chose, kept for the way back.
        trace_id: The trace.
        moment: The end of a call of it, or another moment near, in UTC.
    """
    return filters.link(TRACE, [(TRACE, trace_id), (AT, rfc3339(zoned(moment)))])


def links(filters: Filters, trace_ids: pd.Series, moments: pd.Series) -> pd.Series:
    """Return the URL of each row's trace; None where a row has none."""
    found = [
        link(filters, trace_id, moment) if isinstance(trace_id, str) else None
        for trace_id, moment in zip(trace_ids, moments, strict=True)
    ]
    return pd.Series(found, index=trace_ids.index, dtype=object)


def around(moment: datetime) -> Window:
    """Return the window in which a trace is read whose moment is known."""
    return Window(zoned(moment) - AROUND, zoned(moment) + AROUND)


def strides(now: datetime, first: datetime) -> Iterator[Window]:
    """Yield the windows in which to look for a trace of no known moment, newest first.

    Args:
        now: The present.
        first: The start of the oldest call that is kept.
    """
    until = now + _AHEAD
    for back in _STRIDES:
        since = now - back
        yield Window(since, until)
        if first >= since:
            return
        until = since
    yield Window(first - timedelta(seconds=1), until)


def filters_near(filters: Filters, window: Window, moment: datetime, now: datetime) -> Filters:
    """Return filters under which other pages show a call of a trace, whatever the viewer chose.

    Args:
        filters: What the viewer chose. Classes are let go: a trace has calls of any.
        window: The window of these filters.
        moment: The end of the call.
        now: No window ends later.
    """
    free = Filters(filters.range, filters.to, since=filters.since)
    if window.since < zoned(moment) <= window.until:
        return free
    fitting = Window(zoned(moment) - _NEAR, zoned(moment) + _NEAR).outward(now)
    return free if fitting is None else free.zoomed(fitting)


def ways(filters: Filters, window: Window, call: Any, now: datetime) -> list[tuple[str, str]]:
    """Return the links from a call of a trace to the pages that show more of its like.

    Args:
        filters: What the viewer chose.
        window: The window of these filters.
        call: A row of ``page_trace_calls``.
        now: No window ends later.

    Returns:
        Words and relative URL of each.
    """
    near = filters_near(filters, window, call.end, now)
    here = near.narrowed(tool=call.tool, region=call.region)
    found = [(t("This tool here"), here.link("tool"))]
    if call.error_class is not None:
        own = here.narrowed(error_class=call.error_class).link("errors")
        found.append((t("Faults of this class"), own))
    if call.args_hash is not None:
        own = near.narrowed(tool=call.tool).link("errors", [(HASH, call.args_hash)])
        found.append((t("Faults with these arguments"), own))
    if call.attempts > 1:
        found.append((t("Retries"), here.link("retries")))
    if call.session is not None:
        found.append((t("Its session"), sessions.link(filters, call.session, call.end)))
    if call.breaker_state is not None:
        found.append((t("Its breaker"), here.link("breakers")))
    return found
