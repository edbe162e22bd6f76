"""Windows that pages count raw rows of: bounded, so that no page keeps the viewer waiting."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from fuseboard_dashboard import theme
from fuseboard_dashboard.filters import PRESETS
from fuseboard_dashboard.language import t
from fuseboard_dashboard.view import View
from fuseboard_dashboard.windows import Window

MOST_CALLS: Final = 10_000_000
"""Calls in a window that are still counted in well under a second."""


def bounded(view: View, most: float = MOST_CALLS) -> tuple[View, str]:
    """Return the view of as much of the window as can be counted, and a sentence if it is less.

    Args:
        view: Under its filters; they do not make reading the rows faster.
        most: How many calls the window may have.
    """
    calls = view.totals()["calls"]
    length = view.window.length
    if calls <= most:
        return view, ""
    fitting = [span for _, span in PRESETS.values() if span < length and
               calls * (span / length) <= most]  # fmt: skip
    span = max(fitting, default=min(length, timedelta(minutes=5)))
    words = t(
        "Sources, ages and upstreams are counted from single calls, and there are {calls} in this "
        "window: what follows is about its last {span}.",
        calls=theme.count(calls), span=theme.span(span),
    )  # fmt: skip
    return replace(view, window=Window(view.window.until - span, view.window.until)), words
