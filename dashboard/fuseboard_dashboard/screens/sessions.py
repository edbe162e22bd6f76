"""Sessions: which runs of agents go wrong?"""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import streamlit as st

from fuseboard_dashboard import contexts, filters, markup, sessions, theme
from fuseboard_dashboard.bounded import bounded, calls_to_read
from fuseboard_dashboard.charts import sessions as charts
from fuseboard_dashboard.data import record
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.screens import session
from fuseboard_dashboard.theme import ratio
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel

MOST_CALLS: Final = 1_000_000
"""So many are told apart by session and arguments in 0.6 s; three times as many take nine times."""
SHOWN: Final = 50
_AGENT: Final = "fb_session_agent"


def page() -> None:
    """Draw the page, or one session of it."""
    if filters.SESSION in st.query_params:
        session.page()
        return
    show(PageFrame(t("Sessions"), t("Which runs of agents go wrong?"), _body))


def _body(whole: View) -> None:
    view, note = bounded(whole, MOST_CALLS)
    if note:
        words = t(
            "Sessions are told from single calls, and there are {calls} in this window: what "
            "follows is about its last {span}.",
            calls=theme.count(calls_to_read(whole)), span=theme.span(view.window.length),
        )  # fmt: skip
        st.html(markup.notice(words, theme.SEVERITY_MARKS["info"], "fb-bounded"))
    agent = _pick_agent(view)
    frame = view.ask("page_sessions", agents=None if agent is None else [agent])
    if not len(frame):
        _explain(view, agent)
        return
    with panel():
        st.html(markup.stats(_numbers(view, frame, agent)))
    words = t("Each at its last call; the {count} with most trouble.", count=len(frame))
    with panel(t("Sessions over time"), words):
        time_chart(view, charts.troubled(frame, view.axis()), "sessions_troubled")
    words = t("Most trouble first: faulty calls, retries, and repeats of the same call.")
    with panel(t("Sessions with most trouble"), words):
        _table(view, frame.head(SHOWN))
    _say_unnamed(view, frame, agent)


def _pick_agent(view: View) -> str | None:
    """Let the viewer choose an agent; the choice is in the URL."""
    known = list(view.ask("page_session_agents")["agent"])
    given = st.query_params.get(filters.AGENT)
    if given is not None and given not in known:
        known.insert(0, given)
    if not known:
        return None
    st.session_state[_AGENT] = given
    chosen: str | None = st.selectbox(
        t("Agent"), known, key=_AGENT, placeholder=t("All agents"), on_change=_agent_chosen,
        index=None, format_func=lambda name: markup.shorten(name, 80),
    )  # fmt: skip
    return chosen


def _agent_chosen() -> None:
    chosen = st.session_state[_AGENT]
    if chosen is not None:
        st.query_params[filters.AGENT] = chosen
    elif filters.AGENT in st.query_params:
        del st.query_params[filters.AGENT]


def _numbers(view: View, frame: pd.DataFrame, agent: str | None) -> list[markup.Stat]:
    first = record(frame)
    count, troubled = int(first["all_sessions"]), int(first["all_troubled"])
    repeating, calls = int(first["all_repeating"]), float(first["all_calls"])
    numbers = [
        markup.Stat("sessions", t("Sessions"), theme.count(count), count,
                    t("{calls} calls", calls=theme.count(calls)),
                    hint=t("sessions with a call that ended in the window")),
        markup.Stat("sessions-troubled", t("With trouble"), theme.count(troubled), troubled,
                    t("{share} of sessions", share=theme.percent(ratio(troubled, count))),
                    hint=t("with a faulty call, a retry, or repeated calls")),
        markup.Stat("sessions-repeating", t("In circles"), theme.count(repeating), repeating,
                    t("{count} or more equal calls", count=sessions.MANY),
                    "warn" if repeating else "",
                    hint=t("the same tool with the same arguments, by their hash")),
        markup.Stat("session-calls", t("Calls per session"), f"{calls / count:.1f}",
                    calls / count, t("on average")),
    ]  # fmt: skip
    if agent is None:
        unnamed = max(view.totals()["calls"] - calls, 0.0)
        share = theme.percent(ratio(unnamed, unnamed + calls))
        numbers.append(
            markup.Stat("calls-unnamed", t("Without session"), theme.count(unnamed), unnamed,
                        t("{share} of calls", share=share),
                        hint=t("calls that name no session are on no line of this page"))
        )  # fmt: skip
    return numbers


def _table(view: View, frame: pd.DataFrame) -> None:
    told = contexts.by_session(
        view.ask("page_session_tokens", sessions=sorted(map(str, frame["session"])))
    )
    headers = ((t("Session"), False), (t("Agent"), False), (t("Service"), False),
               (t("Calls"), True), (t("Faulty"), True), (t("Retries"), True),
               (t("Repeated"), True), (t("In a row"), True), (t("Trouble"), True),
               (t("Context"), True), (t("Duration"), True), (t("Cost"), True),
               (t("Last call"), True))  # fmt: skip
    lines = [_line(view, row, told) for row in rows_of(frame)]
    st.html(markup.table(headers, lines))
    total = int(frame["all_sessions"].iloc[0])
    if total > len(frame):
        st.caption(
            t("The {shown} with most trouble of {total} sessions.", shown=len(frame),
              total=theme.count(total))
        )  # fmt: skip
    shown = frame.drop(columns=[name for name in frame.columns if name.startswith("all_")])
    download(view, shown.merge(told, how="left", left_on="session", right_index=True),
             "sessions", "sessions")  # fmt: skip


def _line(view: View, row: Any, told: pd.DataFrame) -> list[str]:
    href = sessions.link(view.filters, row.session, row.last_end)
    length = (row.last_end - row.first_start).total_seconds()
    flag = f'<span style="color:{theme.VIOLET}">⟳</span> ' if row.repeats else ""
    hooks = "".join(
        f' data-{key}="{markup.esc(value)}"'
        for key, value in (("session", row.session), ("calls", float(row.calls)),
                           ("faults", float(row.faults)), ("repeats", int(row.repeats)))
    )  # fmt: skip
    shown = f'<span data-testid="fb-session"{hooks}>{markup.name(row.session)}</span>'
    return [
        markup.link(shown, href),
        markup.name(row.agents or theme.NOTHING),
        markup.name(row.services or theme.NOTHING),
        theme.count(row.calls),
        theme.count(row.faults),
        theme.count(row.retries),
        f"{flag}{int(row.repeats)}",
        theme.NOTHING if pd.isna(row.longest_run) else str(int(row.longest_run)),
        theme.count(row.trouble),
        _context(told, row.session),
        theme.seconds(length),
        theme.NOTHING if pd.isna(row.cost) else f"{row.cost:,.4g}",
        markup.esc(view.clock(row.last_end)),
    ]


def _context(told: pd.DataFrame, name: str) -> str:
    """Return how many tokens its models read at most, and how many times the first reading."""
    if name not in told.index:
        return theme.NOTHING
    row = record(told.loc[[name]])
    most, times = row["most_read"], ratio(row["most_read"], row["first_read"])
    if pd.isna(most):
        return theme.NOTHING
    return f'{theme.count(most)} <span class="fb-quiet">{theme.factor(times)}</span>'


def _say_unnamed(view: View, frame: pd.DataFrame, agent: str | None) -> None:
    if agent is None and view.totals()["calls"] > float(frame["all_calls"].iloc[0]):
        with st.expander(t("What gives calls a session")):
            _how()


def _explain(view: View, agent: str | None) -> None:
    head = t("No call in this window names a session")
    if agent is not None:
        head = t("No call of this agent in this window")
    words = t(
        "{calls} calls are in this window. With a session on them, this page tells which runs of "
        "an agent fail, repeat themselves, or let their context grow.",
        calls=theme.count(view.totals()["calls"]),
    )  # fmt: skip
    st.html(
        f'<div class="fb fb-empty" data-testid="fb-no-sessions"><h2>{markup.esc(head)}</h2>'
        f"<p>{markup.esc(words)}</p></div>"
    )
    _how()


def _how() -> None:
    words = t(
        "Adapters of frameworks take the session from the framework; elsewhere a block around the "
        "agent's run names it. Spans of other instrumentation name it as gen_ai.conversation.id or "
        "session.id, on themselves or on a span above."
    )
    st.html(f'<div class="fb fb-quiet">{markup.esc(words)}</div>')
    st.code(
        'with fuseboard.session("conversation-42", agent="planner"):\n    run(agent)',
        language="python",
    )
