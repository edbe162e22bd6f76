"""Breakers: which are open, since when, and what drove them there?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pandas as pd
import streamlit as st

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import blasted, markup, tables, theme
from fuseboard_dashboard.blast import blasts, to_frame
from fuseboard_dashboard.bounded import bounded
from fuseboard_dashboard.charts import breakers
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.screens.tool import RETRY_LINE
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel
from fuseboard_dashboard.vocabulary import reason_words

_NO_WINDOW: Final = "In the breaker's window; – where a probe or the clock decided"
_CALM: Final = (BreakerState.CLOSED, theme.UNKNOWN_STATE)
MOST_TRANSITIONS: Final = 1000
"""As many as the store tells of at once."""
_COUNTS: Final = ("calls", "judged", "errors", "attempted", "retried")


def page() -> None:
    """Draw the page; breakers may have changed in a window without calls."""
    question = "Which breakers are open, since when, and what drove them there?"
    show(PageFrame("Breakers", question, _body, needs_calls=True))


def _body(view: View) -> None:
    with panel():
        states = view.ask("page_breaker_states")
        if not len(states):
            words = (
                "No breaker is known here: no call of this window passed one. A tool has a "
                "breaker if its policy gives it one: "
                "fuseboard.tool(policy=Policy(breaker=Breaker()))."
            )
            st.html(markup.notice(words, theme.NO_BREAKER, "fb-no-breakers"))
            return
        transitions = view.ask("page_breaker_transitions")
        st.html(markup.stats(_headline(states, transitions)))
        _timeline(view, states)
    hint = t("What breakers did in the window, the most damaging first.")
    with panel(t("Blast radius"), hint):
        _blast_radius(view, states)
    with panel("Now", "The worst state over all processes that have this breaker."):
        st.html(_states(view, states))
        download(view, states.head(100), "breakers", "states")
    with panel("Transitions in the window", "Newest first."):
        _transitions(view, transitions)


def _headline(states: pd.DataFrame, transitions: pd.DataFrame) -> list[markup.Stat]:
    def number(*wanted: str) -> int:
        return int(states["state"].isin(wanted).sum())

    not_closed = number(BreakerState.OPEN, BreakerState.ISOLATED)
    openings = int((transitions["to_state"] == BreakerState.OPEN).sum())
    is_cut = len(transitions) >= MOST_TRANSITIONS
    note = f"in the newest {MOST_TRANSITIONS:,} transitions" if is_cut else "in the window"
    half, closed = number(BreakerState.HALF_OPEN), number(BreakerState.CLOSED)
    unknown = number(theme.UNKNOWN_STATE)
    return [
        markup.Stat("open-breakers", "Open", str(not_closed), not_closed, "in any process",
                    "bad" if not_closed else ""),
        markup.Stat("half-open-breakers", "Half-open", str(half), half, "probing",
                    "warn" if half else ""),
        markup.Stat("closed-breakers", "Closed", str(closed), closed, "in every process"),
        markup.Stat("unknown-breakers", "Unknown", str(unknown), unknown, "process fell silent"),
        markup.Stat("openings", "Openings", f"{openings:,}", openings, note),
        markup.Stat("transitions", "Transitions", f"{len(transitions):,}{'+' * is_cut}",
                    len(transitions), "in the window"),
    ]  # fmt: skip


def _timeline(view: View, states: pd.DataFrame) -> None:
    axis = view.axis(60)
    drawn = worth_drawing(states, view.window.since)
    timeline = view.ask("page_breaker_timeline", breakers=drawn)
    worst_first = {name: place for place, name in enumerate(states["breaker"])}
    busy = timeline.loc[~timeline["state"].isin(_CALM), "breaker"].unique()
    order = timeline.assign(
        place=timeline["breaker"].map(worst_first), quiet=~timeline["breaker"].isin(busy)
    )
    timeline = order.sort_values(["quiet", "place", "breaker", "began"], kind="stable")
    trend = view.buckets("page_trend", axis)
    places = timeline[["tool", "region"]].drop_duplicates()
    mine = trend.merge(places, on=["tool", "region"])
    series = mine.groupby("bucket", as_index=False)[list(_COUNTS)].sum()
    words = "Above: the state of each breaker. Below, on the same time axis: error and retry rate "
    words += "of the tools behind them. Shaded: no calls. "
    words += "Unknown: before the first sign of a process and after three missed heartbeats."
    with panel("States over what drove them", words):
        figure = breakers.states_above_rates(timeline, series, axis, RETRY_LINE)
        time_chart(view, figure, "breaker_states")
        if hidden := len(states) - len(drawn):
            st.caption(f"{hidden} calmer breakers are not drawn; filter by tool or region.")


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
    headers = (("Breaker", False), ("State", False), ("For", True), ("Why", False),
               ("Failure ratio", True), ("Class", False),
               ("Processes not closed", True))  # fmt: skip
    never = '<span class="fb-mute">never changed</span>'
    rows = []
    for r in rows_of(states.head(100)):
        mark = theme.mark(theme.STATE_MARKS, r.state)
        own = view.filters.narrowed(tool=r.tool, region=r.region)
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
                f"{int(r.processes_not_closed)} of {int(r.processes)}",
            ]
        )
    return markup.table(headers, rows)


def _before(row: Any) -> str:
    """Return what was heard last of a breaker whose state nobody knows."""
    if row.state != theme.UNKNOWN_STATE:
        return ""
    words = theme.mark(theme.STATE_MARKS, row.last_state).label.lower()
    return f' <span class="fb-quiet">was {markup.esc(words)}</span>'


def _counted(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return the counts of the window that decided; a probe or the end of a break has none."""
    return frame[column].where(frame["calls"] > 0).map(theme.count)


def _class(value: object) -> str:
    if value is None or value != value:
        return '<span class="fb-mute">–</span>'
    return markup.badge(theme.mark(theme.CLASS_MARKS, value))


def _transitions(view: View, frame: pd.DataFrame) -> None:
    if not len(frame):
        st.html('<div class="fb fb-quiet">No breaker changed its state in this window.</div>')
        return
    shown = tables.cut(frame)
    st.dataframe(
        pd.DataFrame(
            {
                "time": view.local(shown["time"]),
                "breaker": shown["breaker"],
                "from": tables.marked(shown["from_state"], theme.STATE_MARKS),
                "to": tables.marked(shown["to_state"], theme.STATE_MARKS),
                "reason": shown["reason"].map(reason_words),
                "ratio": shown["failure_ratio"].where(shown["calls"] > 0).map(theme.percent),
                "failures": _counted(shown, "failures"),
                "calls": _counted(shown, "calls"),
                "class": tables.marked(shown["error_class"], theme.CLASS_MARKS),
                "service": tables.blank(shown["service"]),
                "trace": tables.blank(shown["trace_id"]),
            }
        ),
        hide_index=True, height=tables.height(shown), key="breaker_transitions",
        column_config={
            "time": st.column_config.DatetimeColumn(
                "Time", format="HH:mm:ss.SSS", pinned=True, width=110, help=view.zone_name),
            "breaker": st.column_config.TextColumn("Breaker", width=260),
            "from": st.column_config.TextColumn("From", width=105),
            "to": st.column_config.TextColumn("To", width=105),
            "reason": st.column_config.TextColumn("Reason", width=170),
            "ratio": st.column_config.TextColumn("Failure ratio", width=105),
            "failures": st.column_config.TextColumn("Failures", width=80, help=_NO_WINDOW),
            "calls": st.column_config.TextColumn("Calls", width=70, help=_NO_WINDOW),
            "class": st.column_config.TextColumn("Class", width=130),
            "service": st.column_config.TextColumn("Service", width=120),
            "trace": st.column_config.TextColumn("Trace id", width=270),
        },
    )  # fmt: skip
    download(view, shown, "breakers", "transitions")
