"""What this session chose: its filters, kept beside the widgets that show them."""

from __future__ import annotations

from typing import Final

import streamlit as st

from fuseboard_dashboard import source
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.ranges import DEFAULT_RANGE, PRESETS
from fuseboard_dashboard.windows import Window

CUSTOM: Final = "custom"
"""What the time's menu says of a window that is no preset."""
RANGE, LIVE, TO, FROM = "fb_range", "fb_live", "fb_to", "fb_from"
TOOLS, CLASSES, REGIONS = "fb_tools", "fb_classes", "fb_regions"
NOTICES: Final = "fb_notices"
"""Keys of the session: of the widgets, or beside them."""
_BACK: Final = "fb_back"
"""The preset that was chosen last: the time's menu itself says Custom meanwhile."""
_MOVED: Final = "fb_window_moved"


def chosen() -> Filters:
    """Return the filters of this session, also from inside a fragment."""
    state = st.session_state
    return Filters(
        range=preset(),
        to=state.get(TO),
        since=state.get(FROM),
        tools=tuple(state.get(TOOLS, ())),
        classes=tuple(state.get(CLASSES, ())),
        regions=tuple(state.get(REGIONS, ())),
    )


def preset() -> str:
    """Return the range that was chosen last, also of a custom window."""
    shown = st.session_state.get(RANGE)
    return shown if shown in PRESETS else st.session_state.get(_BACK) or DEFAULT_RANGE


def zoom(window: Window) -> None:
    """Show exactly this window, paused, on this page and all others; for callbacks."""
    fitting = window.outward(source.current().clock())
    if fitting is not None:
        store(chosen().zoomed(fitting))
        st.session_state[_MOVED] = True


def follow_zoom() -> None:
    """Run the whole page again if a callback inside its fragment chose another window."""
    if st.session_state.pop(_MOVED, False):
        st.rerun()


def choose_tool(key: str) -> None:
    """Make the value of the widget ``key`` the only chosen tool; for callbacks."""
    st.session_state[TOOLS] = [st.session_state[key]]


def reset() -> None:
    """Forget every filter; for callbacks."""
    store(Filters())


def touched() -> None:
    """Forget what was wrong with an earlier choice; for callbacks."""
    st.session_state[NOTICES] = []


def store(now: Filters) -> None:
    """Choose filters; for callbacks, and before their widgets are drawn."""
    state = st.session_state
    state[RANGE] = CUSTOM if now.is_custom else now.range
    state[_BACK], state[LIVE] = now.range, now.is_live
    state[FROM], state[TO] = now.since, now.to
    state[TOOLS], state[CLASSES] = list(now.tools), list(now.classes)
    state[REGIONS] = list(now.regions)
    state[NOTICES] = []
