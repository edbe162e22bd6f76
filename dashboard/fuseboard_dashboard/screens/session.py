"""One session of the Sessions page: its steps in time, its circles, its context."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pandas as pd
import streamlit as st

from fuseboard_dashboard import contexts, filters, markup, sessions, theme, tracing
from fuseboard_dashboard.charts import sessions as charts
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.data import record
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.screens import session_steps
from fuseboard_dashboard.view import View, panel
from fuseboard_dashboard.waiting import progress
from fuseboard_dashboard.windows import Window, parse_moment, rfc3339

_MISSING: Final = "fb_session_missing"
"""The session that was searched for in vain: once is enough."""
_MAX_TRACES: Final = 200


def page() -> None:
    """Draw the page."""
    words = t("What did this run do, step by step?")
    show(PageFrame(t("Session"), words, _body, needs_calls=False, stamp=View.reading_stamp))


def _body(view: View) -> None:
    name = st.query_params.get(filters.SESSION, "")
    with panel():
        found = _find(view, name)
        if found is None:
            _say_unknown(view, name)
        else:
            _draw(view, *found, name)


def _find(view: View, name: str) -> tuple[View, pd.DataFrame] | None:
    """Return the view of the session's time and its calls in time."""
    moment = parse_moment(st.query_params.get(filters.AT, ""))
    if moment is not None:
        found = _read(view, name, moment)
        if len(found[1]):
            return found
    if st.session_state.get(_MISSING) == name:
        return None
    with progress(t("Looking for the session, newest calls first")) as tell:
        moment = tracing.search(view, "page_session_found", tell, session=name)
    if moment is None:
        st.session_state[_MISSING] = name
        return None
    st.query_params[filters.AT] = rfc3339(moment)
    return _read(view, name, moment)


def _read(view: View, name: str, moment: datetime) -> tuple[View, pd.DataFrame]:
    own = replace(view, window=sessions.around(moment))
    calls = own.ask("page_session_calls", session=name)
    return own, calls.sort_values(["start", "end"], kind="stable", ignore_index=True)


def _say_unknown(view: View, name: str) -> None:
    first = view.clock(view.ask("page_store")["first_start"][0])
    words = t(
        "Its calls may have expired (the oldest call that is kept began {first} {zone}), may be on "
        "their way, or name another session.", first=first, zone=view.zone_name,
    )  # fmt: skip
    st.html(
        '<div class="fb fb-empty" data-testid="fb-session-unknown">'
        f"<h2>{markup.esc(t('No call of this session is stored'))}</h2>"
        f'<p class="fb-mono fb-break">{markup.esc(markup.shorten(name, 200))}</p>'
        f"<p>{markup.esc(words)} "
        f"{markup.link(markup.esc(t('All sessions')), view.filters.link('sessions'))}</p></div>"
    )
    st.button(t("Look again"), key="fb_session_again", on_click=_look_again, type="primary")


def _look_again() -> None:
    st.session_state.pop(_MISSING, None)


def _draw(view: View, own: View, calls: pd.DataFrame, name: str) -> None:
    spans = _spans(own, calls, name)
    circles = sessions.circles(calls)
    _head(view, calls, name)
    st.html(markup.stats(session_steps.numbers(calls, spans, circles)))
    _notices(own, calls, name)
    axis = _axis(view, calls, spans)
    if circles:
        words = t("The same tool with the same arguments, {count} times or more.",
                  count=sessions.MANY)  # fmt: skip
        with panel(t("Calls in circles"), words):
            session_steps.circles(view, circles)
    with panel(t("Steps"), t("Each call at its start; ringed: repeated calls.")):
        figure = charts.steps(calls, sessions.is_repeated(calls), axis)
        st.plotly_chart(figure, key="session_steps")
    with panel(t("Context"), t("What each call of a model read and wrote, as its span tells.")):
        if len(spans):
            st.plotly_chart(charts.context(spans, axis), key="session_context")
        else:
            words = t("No span of a model in this session tells its tokens "
                      "(gen_ai.usage.input_tokens).")  # fmt: skip
            st.html(f'<div class="fb fb-quiet">{markup.esc(words)}</div>')
    with panel(t("Calls"), t("In their order; each leads to its trace.")):
        session_steps.table(view, calls)


def _spans(view: View, calls: pd.DataFrame, name: str) -> pd.DataFrame:
    traces = list(dict.fromkeys(calls["trace_id"]))[-_MAX_TRACES:]
    return contexts.of_models(view.ask("page_session_spans", session=name, traces=traces))


def _head(view: View, calls: pd.DataFrame, name: str) -> None:
    facts = [(t("Began"), f"{view.clock(calls['start'].min())} {view.zone_name}")]
    for title, column in ((t("Agent"), "agent"), (t("Service"), "service"),
                          (t("Environment"), "environment")):  # fmt: skip
        values = list(dict.fromkeys(calls[column].dropna()))
        if values:
            facts.append((title, ", ".join(markup.shorten(str(v), 40) for v in values[:3])))
    st.html(
        f'<div class="fb fb-trace" data-testid="fb-session-head" data-session="{markup.esc(name)}">'
        f'<span class="fb-mono fb-break">{markup.esc(markup.shorten(name, 120))}</span>'
        + "".join(f"<span>{markup.esc(k)} <b>{markup.esc(v)}</b></span>" for k, v in facts)
        + markup.link(f"<u>{markup.esc(t('All sessions'))}</u>", view.filters.link("sessions"))
        + "</div>"
    )


def _notices(view: View, calls: pd.DataFrame, name: str) -> None:
    if len(calls) < sessions.MAX_CALLS:
        return
    found = record(view.ask("page_session_found", session=name))
    total = int(found["calls"])
    if total > len(calls):
        words = n("Shown is the newest call of {total}.", "Shown are the newest {count} calls of "
                  "{total}.", len(calls), total=theme.count(total))  # fmt: skip
        st.html(markup.notice(words, theme.SEVERITY_MARKS["info"], "fb-session-note"))


def _axis(view: View, calls: pd.DataFrame, spans: pd.DataFrame) -> TimeAxis:
    """Return the time of the session, with a little room at both ends."""
    begin, end = calls["start"].min(), calls["end"].max()
    if len(spans):
        # A span of another machine's clock may not stretch the axis beyond what was read.
        begin, end = min(begin, spans["start"].min()), max(end, spans["start"].max())
    room = max((end - begin) * 0.02, timedelta(milliseconds=20))
    ends = (edge.to_pydatetime().replace(tzinfo=UTC) for edge in (begin - room, end + room))
    return TimeAxis(Window(*ends), 1, view.zone, view.zone_name)
