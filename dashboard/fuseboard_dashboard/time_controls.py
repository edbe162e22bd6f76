"""The controls of time in the sidebar: both ends of a window, steps, and back to a preset."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import streamlit as st

from fuseboard_dashboard import choices, source
from fuseboard_dashboard.choices import CUSTOM, FROM, LIVE, NOTICES, RANGE, TO, chosen, store
from fuseboard_dashboard.language import t
from fuseboard_dashboard.ranges import PRESETS
from fuseboard_dashboard.windows import LONGEST, Window, judge
from fuseboard_dashboard.zones import viewer_zone

_ENDS: Final = {FROM: "fb_from_input", TO: "fb_to_input"}


def draw() -> None:
    """Draw them."""
    st.selectbox(
        t("Time"), [*PRESETS, CUSTOM], key=RANGE, on_change=_range_changed,
        format_func=lambda key: PRESETS[key][0]() if key in PRESETS else t("Custom"),
    )  # fmt: skip
    if chosen().is_custom:
        _draw_ends()
    _draw_steps()
    st.toggle(
        t("Live"), key=LIVE, on_change=_live_changed,
        help=t("On: follows the clock and refreshes itself. Off: the window stays where it is, "
               "and a link to this page shows exactly the same numbers."),
    )  # fmt: skip


def _draw_ends() -> None:
    """Draw both ends of a custom window in the viewer's zone, to the minute."""
    zone, zone_name = viewer_zone()
    for end, title in ((FROM, t("From")), (TO, t("To"))):
        wall = st.session_state[end].astimezone(zone).replace(tzinfo=None)
        st.session_state[_ENDS[end]] = wall.replace(second=0, microsecond=0)
        st.datetime_input(
            t("{title} ({zone})", title=title, zone=zone_name),
            key=_ENDS[end],
            step=60,
            on_change=_end_changed,
            args=(end,),
        )
    back = t("Back to {range}", range=PRESETS[choices.preset()][0]().lower())
    st.button(back, key="fb_presets", on_click=_step, args=("back",),
              icon=":material/undo:", width="stretch")  # fmt: skip


def _draw_steps() -> None:
    now = source.current().clock()
    view = chosen()
    window = view.window(now)
    steps = (
        ("earlier", "‹", t("The window before"), False),
        ("later", "›", t("The window after"), view.is_live or window.until >= now),
        ("out", t("Zoom out"), t("A window twice as long"), window.length >= LONGEST),
    )
    with st.container(horizontal=True, gap="xsmall"):
        for name, label, words, is_off in steps:
            st.button(label, key=f"fb_{name}", help=words, on_click=_step, args=(name,),
                      disabled=is_off)  # fmt: skip


def _step(name: str) -> None:
    """Move the window; for callbacks."""
    now, view = source.current().clock(), chosen()
    if name == "back":
        store(view.as_range())
    elif name == "out":
        store(view.zoomed(view.window(now).doubled(now)))
    else:
        store(view.moved(1 if name == "later" else -1, now))


def _range_changed() -> None:
    view, key = chosen(), st.session_state[RANGE]
    if key != CUSTOM:
        store(view.as_range(key))
    elif not view.is_custom:
        now = source.current().clock()
        store(view.zoomed(view.window(now)))


def _end_changed(end: str) -> None:
    """Take one end from its input; a window that can't be is refused in words, the old one kept."""
    choices.touched()
    wall = st.session_state[_ENDS[end]]
    if not isinstance(wall, datetime):
        return
    moment = wall.replace(tzinfo=viewer_zone()[0]).astimezone(UTC)
    view = chosen()
    since, until = (moment, view.to) if end == FROM else (view.since, moment)
    if since is None or until is None:
        return
    kept, words = judge(since, until, source.current().clock())
    if kept is not None:
        store(view.zoomed(Window(*kept)))
    st.session_state[NOTICES] = [words] if words else []


def _live_changed() -> None:
    choices.touched()
    if st.session_state[LIVE]:
        st.session_state[TO] = st.session_state[FROM] = None
        st.session_state[RANGE] = choices.preset()
    else:
        live = chosen()
        st.session_state[TO] = live.window(source.current().clock()).until.astimezone(UTC)
