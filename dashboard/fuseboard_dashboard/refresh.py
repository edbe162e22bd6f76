"""The frame of every page: heading, empty states, and the refresh that keeps it alive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from fuseboard_dashboard import empty, language, markup, sidebar
from fuseboard_dashboard.view import View, panel
from fuseboard_dashboard.waiting import waiting


@dataclass(frozen=True, slots=True)
class PageFrame:
    """What a page says of itself.

    Attributes:
        title: Heading.
        question: The question it answers, in the on-call's words.
        body: Draws everything below.
        needs_calls: Whether it is pointless without calls in the window.
        stamp: Returns the markup that says of when and what its numbers are, once it is drawn.
    """

    title: str
    question: str
    body: Callable[[View], None]
    needs_calls: bool = True
    stamp: Callable[[View], str] = View.stamp


def show(frame: PageFrame) -> None:
    """Draw a page now and again at every refresh; a paused page is drawn once.

    Streamlit folds refreshes that come while one is running into one, so none pile up.
    """
    now = sidebar.chosen()
    every = now.refresh_seconds if now.is_live else None
    st.fragment(_refresh, run_every=every)(frame)


def _refresh(frame: PageFrame) -> None:
    language.remember()
    sidebar.follow_zoom()
    head = st.empty()
    view = View.now(sidebar.chosen())

    def say(as_of: str) -> None:
        head.html(markup.heading(frame.title, frame.question, as_of))

    with panel(), waiting(say, lambda: len(view.read_times)):
        if not frame.needs_calls or has_calls(view):
            frame.body(view)
    say(frame.stamp(view))


def has_calls(view: View) -> bool:
    """Tell whether there are calls in the window; draw what to do next where there are none."""
    if view.ask("page_totals")["calls"][0] > 0:
        empty.greet(view)
        return True
    if view.ask("page_store")["calls"][0] == 0:
        empty.first_run(view.source)
        return False
    empty.no_match(view)
    return False
