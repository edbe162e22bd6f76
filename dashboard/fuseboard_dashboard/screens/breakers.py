"""Breakers: which are open, since when, and what drove them there?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pandas as pd
import streamlit as st

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import blasted, markup, theme, transitions
from fuseboard_dashboard.blast import blasts, to_frame
from fuseboard_dashboard.bounded import bounded
from fuseboard_dashboard.charts import breaker_shares, breakers
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.refresh import PageFrame, has_calls, show
from fuseboard_dashboard.screens.tool import RETRY_LINE
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel
from fuseboard_dashboard.vocabulary import reason_words

_CALM: Final = (BreakerState.CLOSED, theme.UNKNOWN_STATE)
MOST_STATES: Final = 100
MOST_TRANSITIONS: Final = 1000
"""As many as the store tells of at once."""
_COUNTS: Final = ("calls", "judged", "errors", "attempted", "retried")


def page() -> None:
    """Draw the page; breakers may have changed in a window without calls."""
    question = t("Which breakers are open, since when, and what drove them there?")
    show(PageFrame(t("Breakers"), question, _body, needs_calls=False))


def _body(view: View) -> None:
    with panel():
        states = view.ask("page_breaker_states")
        if not len(states):
            if not has_calls(view):
                return
            words = t(
                "No breaker is known here: no call of this window passed one. A tool has a "
                "breaker if its policy gives it one: "
                "fuseboard.tool(policy=Policy(breaker=Breaker()))."
            )
            st.html(markup.notice(words, theme.NO_BREAKER, "fb-no-breakers"))
            return
        moves = view.ask("page_breaker_transitions")
        st.html(markup.stats(_headline(states, moves)))
        _timeline(view, states)
    words = t("What breakers did in the window, the most damaging first.")
    with panel(t("Blast radius"), words):
        _blast_radius(view, states)
    with panel(t("Now"), t("The worst state over all processes that have this breaker.")):
        st.html(_states(view, states))
        download(view, states.head(MOST_STATES), "breakers", "states")
    with panel(t("Transitions in the window"), t("Newest first.")):
        transitions.draw(view, moves)
    has_calls(view)


def _headline(states: pd.DataFrame, moves: pd.DataFrame) -> list[markup.Stat]:
    def number(*wanted: str) -> int:
        return int(states["state"].isin(wanted).sum())

    not_closed = number(BreakerState.OPEN, BreakerState.ISOLATED)
    openings = int((moves["to_state"] == BreakerState.OPEN).sum())
    is_cut = len(moves) >= MOST_TRANSITIONS
    note = t("in the window")
    newest = t("in the newest {number} transitions", number=f"{MOST_TRANSITIONS:,}")
    half, closed = number(BreakerState.HALF_OPEN), number(BreakerState.CLOSED)
    unknown = number(theme.UNKNOWN_STATE)
    return [
        markup.Stat("open-breakers", t("Open"), str(not_closed), not_closed, t("in any process"),
                    "bad" if not_closed else ""),
        markup.Stat("half-open-breakers", t("Half-open"), str(half), half, t("probing"),
                    "warn" if half else ""),
        markup.Stat("closed-breakers", t("Closed"), str(closed), closed, t("in every process")),
        markup.Stat("unknown-breakers", t("Unknown"), str(unknown), unknown,
                    t("process fell silent")),
        markup.Stat("openings", t("Openings"), f"{openings:,}", openings,
                    newest if is_cut else note),
        markup.Stat("transitions", t("Transitions"), f"{len(moves):,}{'+' * is_cut}",
                    len(moves), note),
    ]  # fmt: skip


def _timeline(view: View, states: pd.DataFrame) -> None:
    axis = view.axis(60)
    drawn = worth_drawing(states, view.window.since)
    places = states.loc[states["breaker"].isin(drawn), ["tool", "region"]].drop_duplicates()
    mine = view.buckets("page_trend", axis).merge(places, on=["tool", "region"])
    series = mine.groupby("bucket", as_index=False)[list(_COUNTS)].sum()
    is_exact = view.window.length <= breakers.LONGEST_EXACT
    with panel(t("States over what drove them"), _words(is_exact)):
        if is_exact:
            timeline = _in_order(view.ask("page_breaker_timeline", breakers=drawn), states)
            figure = breakers.states_above_rates(timeline, series, axis, RETRY_LINE)
        else:
            bars = view.axis(120)
            shares = view.buckets("page_breaker_shares", bars, breakers=drawn)
            figure = breaker_shares.shares_above_rates(
                shares, drawn, bars, series, axis, RETRY_LINE
            )
        time_chart(view, figure, "breaker_states")
        if hidden := len(states) - len(drawn):
            st.caption(n("{count} calmer breaker is not drawn; filter by tool or region.",
                         "{count} calmer breakers are not drawn; filter by tool or region.",
                         hidden))  # fmt: skip


def _words(is_exact: bool) -> str:
    above = (
        t("Above: the state of each breaker.")
        if is_exact
        else t("Above: of each bar's time, the share in which each breaker was not closed; a full "
               "bar was so all the time, a symbol alone for less than can be drawn.")
    )  # fmt: skip
    below = t("Below, on the same time axis: error and retry rate of the tools behind them. "
              "Shaded: no calls. Unknown: before the first sign of a process and after three "
              "missed heartbeats. Drag across either to zoom both.")  # fmt: skip
    return f"{above} {below}"


def _in_order(timeline: pd.DataFrame, states: pd.DataFrame) -> pd.DataFrame:
    """Return stretches with the worst breakers first, those that stayed calm last."""
    worst_first = {name: place for place, name in enumerate(states["breaker"])}
    busy = timeline.loc[~timeline["state"].isin(_CALM), "breaker"].unique()
    order = timeline.assign(
        place=timeline["breaker"].map(worst_first), quiet=~timeline["breaker"].isin(busy)
    )
    return order.sort_values(["quiet", "place", "breaker", "began"], kind="stable")


def _blast_radius(view: View, states: pd.DataFrame) -> None:
    shorter, note = bounded(view)
    if note:
        words = t("Calls that were turned away are counted in the last {span} only: there are too "
                  "many calls in the window.", span=theme.span(shorter.window.length))  # fmt: skip
        st.html(markup.notice(words, theme.SEVERITY_MARKS["info"], "fb-bounded"))
    whole = view.window.length // timedelta(microseconds=1)
    shares = view.ask("page_breaker_shares", breakers=None, bucket_us=whole)
    damage = shorter.ask("page_breaker_damage")
    found = blasts(states, shares, damage)
    if not found:
        words = t("No breaker opened in this window and none turned a call away.")
        st.html(markup.notice(words, theme.STATE_MARKS[BreakerState.CLOSED], "fb-no-blast"))
        return
    st.html(blasted.draw(view, found))
    if len(found) > blasted.MOST:
        st.caption(t("{number} more did less; filter by tool or region.",
                     number=len(found) - blasted.MOST))  # fmt: skip
    download(view, to_frame(found[: blasted.MOST]), "breakers", "blast")


def worth_drawing(states: pd.DataFrame, since: datetime) -> list[str]:
    """Return the names of the breakers to draw, at most ``MAX_BREAKERS``.

    Those that are not closed and those that changed in the window come before those of which there
    is nothing to see.

    Args:
        states: Rows of ``page_breaker_states``, worst first and of equals what changed last.
        since: Start of the window.
    """
    began = since.astimezone(UTC).replace(tzinfo=None)
    is_calm = states["state"].isin(_CALM) & ~(states["since_time"] > began)
    ordered = states.assign(is_calm=is_calm).sort_values("is_calm", kind="stable")
    return list(ordered["breaker"].head(breakers.MAX_BREAKERS))


def _states(view: View, states: pd.DataFrame) -> str:
    headers = ((t("Breaker"), False), (t("State"), False), (t("For"), True), (t("Why"), False),
               (t("Failure ratio"), True), (t("Class"), False),
               (t("Processes not closed"), True))  # fmt: skip
    never = f'<span class="fb-mute">{markup.esc(t("never changed"))}</span>'
    rows = []
    for r in rows_of(states.head(MOST_STATES)):
        mark = theme.mark(theme.STATE_MARKS, r.state)
        own = view.filters.narrowed(tool=r.tool, region=r.region)
        of = t("{some} of {all}", some=int(r.processes_not_closed), all=int(r.processes))
        rows.append(
            [
                markup.link(markup.name(r.breaker), own.link("tool")),
                markup.badge(mark) + _before(r),
                view.ago(r.since_time),
                markup.name(reason_words(r.reason) or theme.NOTHING)
                if pd.notna(r.since_time)
                else never,
                theme.percent(r.failure_ratio),
                _class(r.error_class),
                markup.esc(of),
            ]
        )
    return markup.table(headers, rows)


def _before(row: Any) -> str:
    """Return what was heard last of a breaker whose state nobody knows."""
    if row.state != theme.UNKNOWN_STATE:
        return ""
    words = t("was {state}", state=theme.mark(theme.STATE_MARKS, row.last_state).label.lower())
    return f' <span class="fb-quiet">{markup.esc(words)}</span>'


def _class(value: object) -> str:
    if value is None or value != value:
        return '<span class="fb-mute">–</span>'
    return markup.badge(theme.mark(theme.CLASS_MARKS, value))
