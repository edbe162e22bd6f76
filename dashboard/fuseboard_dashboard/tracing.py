"""One trace as the store has it, and the search for one of which no moment is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import pandas as pd

from fuseboard_dashboard import traces
from fuseboard_dashboard.data import record
from fuseboard_dashboard.view import View
from fuseboard_dashboard.waterfall import Row, rows
from fuseboard_dashboard.windows import Window, zoned

MAX_CALLS: Final = 1000
"""Rows that the queries of a trace return of calls, spans and transitions each."""
MAX_ATTEMPTS: Final = 5000
_MOMENTS: Final = ("last_end", "last_start")


@dataclass(frozen=True)
class Trace:
    """A trace.

    Attributes:
        id: 32 hexadecimal digits.
        window: What was read.
        calls: Rows of ``page_trace_calls``, by their start.
        attempts: Rows of ``page_trace_attempts``.
        spans: Rows of ``page_trace_spans``.
        changes: Rows of ``page_trace_transitions``.
        rows: All of it as a tree.
        all_calls: How many calls it has; more than were read if it is cut off.
        all_spans: How many other spans it has.
    """

    id: str
    window: Window
    calls: pd.DataFrame
    attempts: pd.DataFrame
    spans: pd.DataFrame
    changes: pd.DataFrame
    rows: list[Row]
    all_calls: int
    all_spans: int

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing of it was found."""
        return not self.rows

    @property
    def is_cut_off(self) -> bool:
        """Tell whether it has more than is read of any trace."""
        return (
            self.all_calls > len(self.calls)
            or self.all_spans > len(self.spans)
            or len(self.attempts) >= MAX_ATTEMPTS
        )


def read(view: View, trace_id: str, moment: datetime) -> Trace:
    """Return what the store has of a trace around a moment.

    Args:
        view: Where to ask.
        trace_id: The trace.
        moment: The end of a call of it, or another moment near.
    """
    window = traces.around(moment)
    own = replace(view, window=window)
    calls, attempts, spans, changes = (
        own.ask(f"page_trace_{name}", trace_id=trace_id)
        for name in ("calls", "attempts", "spans", "transitions")
    )
    all_calls, all_spans = len(calls), len(spans)
    if MAX_CALLS in (all_calls, all_spans):
        found = record(own.ask("page_trace_found", trace_id=trace_id))
        all_calls, all_spans = int(found["calls"]), int(found["context"])
    in_order = calls.sort_values(["start", "end"], kind="stable", ignore_index=True)
    tree = rows(in_order, attempts, spans, changes)
    return Trace(trace_id, window, in_order, attempts, spans, changes, tree, all_calls, all_spans)


def search(
    view: View, query: str, tell: Callable[[float], object], **wanted: str
) -> datetime | None:
    """Return the end of the newest call (or the start of the newest span) of something.

    All that is kept is looked through, newest first, since nothing says when it was.

    Args:
        view: Where to ask.
        query: Finds it in a window: ``page_trace_found`` or ``page_session_found``.
        tell: Is told the share that has been looked through before each step.
        wanted: The query's parameter that names it.
    """
    kept = view.ask("page_store")
    first, now = kept["first_start"][0], view.source.clock()
    if pd.isna(first):
        return None
    steps = list(traces.strides(now, first.to_pydatetime().replace(tzinfo=UTC)))
    for number, window in enumerate(steps):
        tell(number / len(steps))
        found = record(replace(view, window=window).ask(query, **wanted))
        moments = [found[name] for name in _MOMENTS if pd.notna(found.get(name))]
        if moments:
            return zoned(max(moments).to_pydatetime())
    return None
