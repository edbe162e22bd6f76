"""The sidebar: pages and filters, kept equal to the URL."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

import streamlit as st
from streamlit.navigation.page import Page

from fuseboard.conventions import ErrorClass
from fuseboard_dashboard import (
    choices,
    filters,
    language,
    markup,
    source,
    theme,
    time_controls,
    visitor,
)
from fuseboard_dashboard.addresses import Known, parse
from fuseboard_dashboard.choices import choose_tool, chosen, follow_zoom, reset, zoom
from fuseboard_dashboard.data import CACHE
from fuseboard_dashboard.filters import Filters, rfc3339
from fuseboard_dashboard.language import t

__all__ = ["FACET_DAYS", "MOST_OFFERED", "choose_tool", "chosen", "draw", "follow_zoom",
           "known_values", "reset", "zoom"]  # fmt: skip

FACET_DAYS: Final = 30
MOST_OFFERED: Final = 1000
"""Rows of ``page_facets`` for each filter at most: the most used. With so many, others exist."""
_PICK: Final = "fb_language_pick"
_WRITTEN: Final = "fb_written"


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
        tag = language.TAGS[language.current()]
        st.html(markup.brand() + markup.language_of_page(tag), unsafe_allow_javascript=True)
        menu = st.container(gap="xxsmall")
        _draw_filters(known)
        _draw_language()
        visitor.draw()
    now = chosen()
    _write_url(now)
    with menu:
        for page in pages:
            st.page_link(page, query_params=[*now.pairs(), *language.pairs()] or None)
    for words in st.session_state.get(choices.NOTICES, ()):
        shown = t("Ignored in the address: {words}", words=words)
        st.html(markup.notice(shown, theme.SEVERITY_MARKS["info"], "fb-notice"))


def _draw_filters(known: Known) -> None:
    time_controls.draw()
    tools, regions = known.tools or (), known.regions or ()
    picks = (
        (choices.TOOLS, t("Tool"), t("All tools"), tools),
        (choices.CLASSES, t("Error class"), t("All classes"), tuple(c.value for c in ErrorClass)),
        (choices.REGIONS, t("Region"), t("All regions"), regions),
    )
    for key, title, placeholder, options in picks:
        st.multiselect(
            title, list(dict.fromkeys([*options, *st.session_state.get(key, ())])), key=key,
            placeholder=placeholder, format_func=_option, on_change=choices.touched,
            max_selections=filters.MAX_CHOICES, accept_new_options=len(options) >= MOST_OFFERED,
        )  # fmt: skip
    if st.session_state[choices.CLASSES]:
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
    choices.store(chosen())


def _option(value: str) -> str:
    mark = theme.CLASS_MARKS.get(value)
    return f"{mark.symbol} {mark.label}" if mark else markup.shorten(value, 48)


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
        now, notices = parse(_raw(), _accepted(known), source.current().clock())
        choices.store(now)
        st.session_state[choices.NOTICES] = notices


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
