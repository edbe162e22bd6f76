"""The sidebar: pages and filters, kept equal to the URL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import streamlit as st
from streamlit.navigation.page import Page

from fuseboard.conventions import ErrorClass
from fuseboard_dashboard import filters, language, markup, source, theme, visitor
from fuseboard_dashboard.data import CACHE
from fuseboard_dashboard.filters import DEFAULT_RANGE, PRESETS, Filters, Known, rfc3339
from fuseboard_dashboard.language import t
from fuseboard_dashboard.windows import LONGEST, Window, judge
from fuseboard_dashboard.zones import viewer_zone

FACET_DAYS: Final = 30
MOST_OFFERED: Final = 1000
"""Rows of ``page_facets`` for each filter at most: the most used. With so many, others exist."""
_CUSTOM: Final = "custom"
_RANGE, _LIVE, _TO, _FROM = "fb_range", "fb_live", "fb_to", "fb_from"
_BACK: Final = "fb_back"
"""The preset that was chosen last: the time's menu itself says Custom meanwhile."""
_ENDS: Final = {_FROM: "fb_from_input", _TO: "fb_to_input"}
_MOVED: Final = "fb_window_moved"
_TOOLS, _CLASSES, _REGIONS = "fb_tools", "fb_classes", "fb_regions"
_PICK: Final = "fb_language_pick"
_WRITTEN, _NOTICES = "fb_written", "fb_notices"


def chosen() -> Filters:
    """Return the filters of this session, also from inside a fragment."""
    state = st.session_state
    return Filters(
        range=_preset(),
        to=state.get(_TO),
        since=state.get(_FROM),
        tools=tuple(state.get(_TOOLS, ())),
        classes=tuple(state.get(_CLASSES, ())),
        regions=tuple(state.get(_REGIONS, ())),
    )


def _preset() -> str:
    shown = st.session_state.get(_RANGE)
    return shown if shown in PRESETS else st.session_state.get(_BACK) or DEFAULT_RANGE


def zoom(window: Window) -> None:
    """Show exactly this window, paused, on this page and all others; for callbacks."""
    fitting = window.outward(source.current().clock())
    if fitting is not None:
        _store(chosen().zoomed(fitting))
        st.session_state[_MOVED] = True


def follow_zoom() -> None:
    """Run the whole page again if a callback inside its fragment chose another window."""
    if st.session_state.pop(_MOVED, False):
        st.rerun()


def choose_tool(key: str) -> None:
    """Make the value of the widget ``key`` the only chosen tool; for callbacks."""
    st.session_state[_TOOLS] = [st.session_state[key]]


def reset() -> None:
    """Forget every filter; for callbacks."""
    _store(Filters())


def known_values() -> Known:
    """Return the tools and regions of the last 30 days; anything goes if the store is away."""
    now = source.current().clock()
    until = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    since = (until - timedelta(days=FACET_DAYS - 1)).replace(hour=0, minute=0)
    window = {"since": rfc3339(since), "until": rfc3339(until)}
    try:
        answer = CACHE.ask(source.current().reader, "page_facets", window, source.current().clock)
    except Exception:  # filters must not take the page down; its panels say what is wrong
        return Known()
    rows = answer.table.to_pylist()
    return Known(
        tools=tuple(row["value"] for row in rows if row["facet"] == "tool"),
        regions=tuple(row["value"] for row in rows if row["facet"] == "region"),
    )


def draw(pages: Sequence[Page]) -> None:
    """Draw pages and filters, and bring the URL up to date.

    Args:
        pages: In the order of the menu.
    """
    known = known_values()
    _read_url(known)
    with st.sidebar:
        st.html(markup.brand())
        menu = st.container(gap="xxsmall")
        _draw_filters(known)
        _draw_language()
        visitor.draw()
    now = chosen()
    _write_url(now)
    with menu:
        for page in pages:
            st.page_link(page, query_params=[*now.pairs(), *language.pairs()] or None)
    for words in st.session_state.get(_NOTICES, ()):
        shown = t("Ignored in the address: {words}", words=words)
        st.html(markup.notice(shown, theme.SEVERITY_MARKS["info"], "fb-notice"))


def _draw_filters(known: Known) -> None:
    st.selectbox(
        t("Time"), [*PRESETS, _CUSTOM], key=_RANGE, on_change=_range_changed,
        format_func=lambda key: PRESETS[key][0]() if key in PRESETS else t("Custom"),
    )  # fmt: skip
    if chosen().is_custom:
        _draw_ends()
    _draw_steps()
    st.toggle(
        t("Live"), key=_LIVE, on_change=_live_changed,
        help=t("On: follows the clock and refreshes itself. Off: the window stays where it is, "
        "and a link to this page shows exactly the same numbers."),
    )  # fmt: skip
    tools, regions = known.tools or (), known.regions or ()
    picks = (
        (_TOOLS, t("Tool"), t("All tools"), tools),
        (_CLASSES, t("Error class"), t("All classes"), tuple(c.value for c in ErrorClass)),
        (_REGIONS, t("Region"), t("All regions"), regions),
    )
    for key, title, placeholder, options in picks:
        st.multiselect(
            title, list(dict.fromkeys([*options, *st.session_state.get(key, ())])), key=key,
            placeholder=placeholder, format_func=_option, on_change=_touched,
            max_selections=filters.MAX_CHOICES, accept_new_options=len(options) >= MOST_OFFERED,
        )  # fmt: skip
    if st.session_state[_CLASSES]:
        st.caption(t("Rates count only faults of these classes, out of all calls."))
    st.button(
        t("Reset filters"), key="fb_reset", on_click=reset, disabled=chosen() == Filters(),
        width="stretch", icon=":material/filter_alt_off:",
    )  # fmt: skip


def _draw_language() -> None:
    st.session_state[_PICK] = language.current()
    st.selectbox(
        # Whoever can't read the page must find it.
        "Language · 语言", list(language.LANGUAGES), key=_PICK, on_change=_language_picked,
        format_func=language.LANGUAGES.__getitem__,
    )  # fmt: skip


def _language_picked() -> None:
    st.session_state[language.CHOSEN] = st.session_state[_PICK]
    # A browser tells a choice by its words, and these are others now: it must hear them anew.
    _store(chosen())


def _draw_ends() -> None:
    """Draw both ends of a custom window in the viewer's zone, to the minute."""
    zone, zone_name = viewer_zone()
    for end, title in ((_FROM, t("From")), (_TO, t("To"))):
        wall = st.session_state[end].astimezone(zone).replace(tzinfo=None)
        st.session_state[_ENDS[end]] = wall.replace(second=0, microsecond=0)
        st.datetime_input(
            t("{title} ({zone})", title=title, zone=zone_name),
            key=_ENDS[end],
            step=60,
            on_change=_end_changed,
            args=(end,),
        )
    back = t("Back to {range}", range=PRESETS[_preset()][0]().lower())
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
        _store(view.as_range())
    elif name == "out":
        _store(view.zoomed(view.window(now).doubled(now)))
    else:
        _store(view.moved(1 if name == "later" else -1, now))


def _range_changed() -> None:
    view, key = chosen(), st.session_state[_RANGE]
    if key != _CUSTOM:
        _store(view.as_range(key))
    elif not view.is_custom:
        now = source.current().clock()
        _store(view.zoomed(view.window(now)))


def _end_changed(end: str) -> None:
    """Take one end from its input; a window that can't be is refused in words, the old one kept."""
    _touched()
    wall = st.session_state[_ENDS[end]]
    if not isinstance(wall, datetime):
        return
    moment = wall.replace(tzinfo=viewer_zone()[0]).astimezone(UTC)
    view = chosen()
    since, until = (moment, view.to) if end == _FROM else (view.since, moment)
    if since is None or until is None:
        return
    kept, words = judge(since, until, source.current().clock())
    if kept is not None:
        _store(view.zoomed(Window(*kept)))
    st.session_state[_NOTICES] = [words] if words else []


def _option(value: str) -> str:
    mark = theme.CLASS_MARKS.get(value)
    return f"{mark.symbol} {mark.label}" if mark else markup.shorten(value, 48)


def _touched() -> None:
    st.session_state[_NOTICES] = []


def _live_changed() -> None:
    _touched()
    if st.session_state[_LIVE]:
        st.session_state[_TO] = st.session_state[_FROM] = None
        st.session_state[_RANGE] = _preset()
    else:
        live = chosen()
        st.session_state[_TO] = live.window(source.current().clock()).until.astimezone(UTC)


def _store(now: Filters) -> None:
    state = st.session_state
    state[_RANGE] = _CUSTOM if now.is_custom else now.range
    state[_BACK], state[_LIVE] = now.range, now.is_live
    state[_FROM], state[_TO] = now.since, now.to
    state[_TOOLS], state[_CLASSES] = list(now.tools), list(now.classes)
    state[_REGIONS] = list(now.regions)
    state[_NOTICES] = []


def _raw() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def _own(raw: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return the parameters that aren't a page's own, as pairs in a fixed order."""
    order = (filters.RANGE, filters.FROM, filters.TO, filters.TOOL, filters.CLASS, filters.REGION)
    names = [
        *(n for n in order if n in raw),
        *sorted(set(raw) - {*order, language.LANGUAGE, *filters.PAGE_PARAMETERS}),
    ]
    return [(name, value) for name in names for value in raw[name]]


def _read_url(known: Known) -> None:
    """Take filters from the URL where it isn't what this session wrote there itself.

    A URL without any filter on a session that has some comes from a bare link: filters stay.
    """
    in_url = _own(_raw())
    written = st.session_state.get(_WRITTEN)
    if written is None or (in_url and in_url != written):
        now, notices = filters.parse(_raw(), _accepted(known), source.current().clock())
        _store(now)
        st.session_state[_NOTICES] = notices


def _accepted(known: Known) -> Known:
    """Return the values that a link may name: anything where the list of known ones is cut."""

    def whole(values: Collection[str] | None) -> Collection[str] | None:
        return values if values is not None and len(values) < MOST_OFFERED else None

    return Known(tools=whole(known.tools), regions=whole(known.regions))


def _write_url(now: Filters) -> None:
    raw = _raw()
    wanted = now.pairs()
    spoken = language.pairs()
    if _own(raw) != wanted or raw.get(language.LANGUAGE, []) != [value for _, value in spoken]:
        grouped: dict[str, list[str]] = {}
        for name, value in [*wanted, *spoken]:
            grouped.setdefault(name, []).append(value)
        grouped |= {name: raw[name] for name in filters.PAGE_PARAMETERS if name in raw}
        st.query_params.from_dict(grouped)
    st.session_state[_WRITTEN] = wanted
