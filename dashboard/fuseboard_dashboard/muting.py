"""The form that mutes an alert, and the list of mutes with the way to end each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pandas as pd
import streamlit as st

from fuseboard_alerts.catalogue import rule_names
from fuseboard_alerts.mutes import LONGEST_AUTHOR, LONGEST_REASON, Mute, MuteError, draft
from fuseboard_collector.errors import StoreError
from fuseboard_dashboard import alerting, markup, muted, sidebar, theme, visitor
from fuseboard_dashboard.language import t
from fuseboard_dashboard.view import View

MOST: Final = 50
"""Mutes that are listed, the next to end first."""
UNTIL: Final = "until"
LENGTHS: Final = {
    "30m": timedelta(minutes=30), "2h": timedelta(hours=2), "8h": timedelta(hours=8),
}  # fmt: skip

_SAID: Final = "fb_mute_said"
"""What came of the last click, in the session: whether it worked, and the words."""


def draw(view: View, active: pd.DataFrame) -> None:
    """Draw the mutes in force and the form.

    Args:
        view: For the store, the moment and the zone.
        active: Rows of ``page_alerts_now``: the first is what the form begins with.
    """
    _say()
    # What is listed can be ended, and what is set is set now, however the window is pinned.
    mutes = muted.in_force(view, view.source.clock())
    for mute in mutes[:MOST]:
        _listed(view, mute)
    if len(mutes) > MOST:
        st.caption(t("{number} more; `fuseboard alerts mutes` lists all.",
                     number=len(mutes) - MOST))  # fmt: skip
    if not mutes:
        st.html(f'<div class="fb fb-quiet">{markup.esc(t("No alert is muted."))}</div>')
    if view.source.mutes is None:
        words = t(
            "This dashboard can only read. Start it with the collector's token for sending "
            "(fuseboard dashboard --token …) to mute here, or use fuseboard alerts mute."
        )
        st.html(markup.notice(words, theme.MUTED, "fb-mute-read-only"))
        return
    with st.expander(t("Mute an alert"), icon=":material/notifications_off:"):
        _form(view, active)


def _say() -> None:
    said = st.session_state.pop(_SAID, None)
    if said is not None:
        is_done, words = said
        mark = theme.ALERT_STATE_MARKS["resolved"] if is_done else theme.SEVERITY_MARKS["warning"]
        st.html(markup.notice(words, mark, "fb-mute-done" if is_done else "fb-mute-problem"))


def _listed(view: View, mute: Mute) -> None:
    line, button = st.columns([6, 1], vertical_alignment="center")
    line.html(muted.row(view, mute))
    if view.source.mutes is not None:
        button.button(t("Unmute"), key=f"fb_unmute_{mute.id}", on_click=_unmute, args=(view, mute))


def _form(view: View, active: pd.DataFrame) -> None:
    first = active.iloc[0] if len(active) else None
    tool, region = alerting.place_of(str(first["labels"])) if first is not None else (None, None)
    known = sidebar.known_values()
    names = list(rule_names())
    with st.form("fb_mute_form", border=False):
        left, middle, right = st.columns(3)
        left.selectbox(t("Alert"), names, key="fb_mute_alert",
                       index=names.index(first["alert"]) if first is not None
                       and first["alert"] in names else 0)  # fmt: skip
        _choice(middle, t("Tool"), "fb_mute_tool", known.tools, tool, t("any tool"))
        _choice(right, t("Region"), "fb_mute_region", known.regions, region, t("any region"))
        lengths = {"30m": t("30 minutes"), "2h": t("2 hours"), "8h": t("8 hours"),
                   UNTIL: t("until the time below")}  # fmt: skip
        st.radio(t("For"), list(lengths), key="fb_mute_for", horizontal=True,
                 format_func=lambda key: lengths[key])  # fmt: skip
        later = (view.source.clock() + LENGTHS["8h"]).astimezone(view.zone).replace(tzinfo=None)
        st.datetime_input(t("Until ({zone})", zone=view.zone_name), value=later.replace(second=0),
                          key="fb_mute_until")  # fmt: skip
        st.text_area(t("Reason"), key="fb_mute_reason", max_chars=LONGEST_REASON, height=68,
                     placeholder=t("Why: whoever looks next must know"))  # fmt: skip
        if not visitor.who():
            st.text_input(t("By (not needed)"), key="fb_mute_author", max_chars=LONGEST_AUTHOR)
        st.form_submit_button(t("Mute"), on_click=_mute, args=(view,), type="primary")


def _choice(
    column: Any, label: str, key: str, known: Any, first: str | None, anything: str
) -> None:
    values = list(dict.fromkeys([*([first] if first else []), *(known or ())]))
    column.selectbox(
        label, [None, *values], key=key, index=1 if first else 0,
        format_func=lambda value: anything if value is None else markup.shorten(value, 60),
    )  # fmt: skip


def _mute(view: View) -> None:
    def act() -> str:
        given = st.session_state
        now = view.source.clock()
        mute = draft(
            str(given["fb_mute_alert"]), str(given["fb_mute_reason"] or ""), _end(view, now), now,
            tool=given["fb_mute_tool"], region=given["fb_mute_region"],
            author=visitor.who() or str(given.get("fb_mute_author") or ""),
        )  # fmt: skip
        if view.source.mutes is None:
            raise MuteError(t("This dashboard can only read."))
        view.source.mutes.add(mute)
        given["fb_mute_reason"] = ""
        return t("Muted: {what}, until {time}.", what=muted.about(mute),
                 time=view.clock(mute.ends))  # fmt: skip

    _try(act)


def _unmute(view: View, mute: Mute) -> None:
    def act() -> str:
        if view.source.mutes is not None and view.source.mutes.end(mute.id, visitor.who() or None):
            return t("Not muted any more: {what}.", what=muted.about(mute))
        return t("It was not muted any more.")

    _try(act)


def _try(act: Callable[[], str]) -> None:
    try:
        st.session_state[_SAID] = (True, act())
    except MuteError as error:
        st.session_state[_SAID] = (False, t("Not muted: {why}.", why=error))
    except StoreError as error:
        st.session_state[_SAID] = (False, t("The store did not take it: {why}.", why=error))


def _end(view: View, now: datetime) -> datetime:
    chosen = st.session_state["fb_mute_for"]
    if chosen in LENGTHS:
        return now + LENGTHS[chosen]
    until = st.session_state["fb_mute_until"]
    if until is None:
        raise MuteError(t("choose until when"))
    ends: datetime = until.replace(tzinfo=view.zone).astimezone(UTC)
    return ends
