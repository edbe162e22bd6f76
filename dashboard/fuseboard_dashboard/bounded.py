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
        view: Under its filters; they do not make reading the rows faster, so all calls count.
        most: How many calls the window may have.

    Returns:
        The view, its filters pinned to what is left of the window so that links show the same,
        and the sentence, empty if all of it is left.
    """
    calls = calls_to_read(view)
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
    window = Window(view.window.until - span, view.window.until)
    return replace(view, window=window, filters=view.filters.zoomed(window)), words


def calls_to_read(view: View) -> float:
    """Return how many calls the window has whatever is filtered: a scan passes over all of them."""
    free = replace(view.filters, tools=(), regions=(), classes=())
    return view.with_filters(free).totals()["calls"]
