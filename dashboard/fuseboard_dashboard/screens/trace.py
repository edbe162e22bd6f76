"""Trace: what happened in one run, call by call and attempt by attempt."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import streamlit as st

from fuseboard_dashboard import filters, markup, scales, theme, traces, tracing, waterfall
from fuseboard_dashboard.charts import lanes
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.screens import trace_call, trace_start
from fuseboard_dashboard.tracing import Trace
from fuseboard_dashboard.view import View, panel
from fuseboard_dashboard.waiting import progress
from fuseboard_dashboard.windows import parse_moment, rfc3339

_MISSING: Final = "fb_trace_missing"
"""The trace that was searched for in vain: a search reads all that is kept, so once is enough."""


def page() -> None:
    """Draw the page."""
    question = t("What happened in this run, call by call?")
    show(PageFrame(t("Trace"), question, _body, needs_calls=False, stamp=_stamp))


def _stamp(view: View) -> str:
    return view.stamp() if filters.TRACE not in st.query_params else view.reading_stamp()


def _body(view: View) -> None:
    trace_start.field()
    given = st.query_params.get(filters.TRACE)
    if given is None:
        trace_start.troubled(view)
        return
    trace_id = traces.parse_id(given)
    if trace_id is None:
        _say_malformed(view, given)
        return
    with panel():
        found = _find(view, trace_id)
        if found is None:
            _say_unknown(view, trace_id)
        else:
            _draw(view, found)


def _find(view: View, trace_id: str) -> Trace | None:
    moment = parse_moment(st.query_params.get(filters.AT, ""))
    if moment is not None:
        found = tracing.read(view, trace_id, moment)
        if not found.is_empty:
            return found
    if st.session_state.get(_MISSING) == trace_id:
        return None
    moment = _search(view, trace_id)
    if moment is None:
        st.session_state[_MISSING] = trace_id
        return None
    st.query_params[filters.AT] = rfc3339(moment)
    return tracing.read(view, trace_id, moment)


def _search(view: View, trace_id: str) -> datetime | None:
    with progress(t("Looking for the trace, newest calls first")) as tell:
        return tracing.search(view, "page_trace_found", tell, trace_id=trace_id)


def _say_malformed(view: View, given: str) -> None:
    shown = markup.shorten(given, 60)
    words = t("{given} is no trace id: 32 hexadecimal digits are, or a whole traceparent.",
              given=repr(shown))  # fmt: skip
    st.html(markup.notice(words, theme.SEVERITY_MARKS["warning"], "fb-trace-malformed"))
    trace_start.troubled(view)


def _say_unknown(view: View, trace_id: str) -> None:
    kept = view.ask("page_store")
    first = view.clock(kept["first_start"][0])
    st.html(
        f'<div class="fb fb-empty" data-testid="fb-trace-unknown">'
        f"<h2>{markup.esc(t('No call of this trace is stored'))}</h2>"
        f'<p class="fb-mono fb-break">{markup.esc(trace_id)}</p>'
        f"<p>{markup.esc(_reasons(first, view.zone_name))}</p></div>"
    )
    st.button(t("Look again"), key="fb_trace_again", on_click=_look_again, type="primary")
    trace_start.troubled(view)


def _reasons(first: str, zone: str) -> str:
    return t(
        "It may have expired (the oldest call that is kept began {first} {zone}), its calls may be "
        "on their way (they arrive seconds after they end), its process may report to another "
        "server, or nothing of it called a tool.",
        first=first, zone=zone,
    )  # fmt: skip


def _look_again() -> None:
    st.session_state.pop(_MISSING, None)


def _draw(view: View, trace: Trace) -> None:
    trace_call.head(view, trace)
    drawn = waterfall.worth_drawing(trace.rows)
    words = t("Time from the first call to the last. Open a call for its story.")
    with panel(t("Waterfall"), words):
        _notices(trace, len(drawn))
        scale = scales.scale(trace.rows)
        opened = trace_call.opened(trace)
        st.html(lanes.waterfall(drawn, scale, trace_call.inside(view, trace), opened))
        st.html(lanes.legend(drawn))
    if len(trace.calls):
        with panel(t("Calls"), t("All calls of this trace that were read, in their order.")):
            trace_call.table(view, trace)
            download(view, trace.calls, "trace", "calls")


def _notices(trace: Trace, drawn: int) -> None:
    """Say what is left out, and what can't be right."""
    words = []
    if drawn < len(trace.rows):
        words.append(
            t("Drawn are {drawn} of {all} rows: faults, retries and breakers first, then the "
              "longest.", drawn=drawn, all=len(trace.rows))
        )  # fmt: skip
    if trace.is_cut_off:
        words.append(
            t("This trace has {calls} calls and {spans} other spans; what is more than {most} of "
              "either is not read: those with faults or retries come first.",
              calls=theme.count(trace.all_calls), spans=theme.count(trace.all_spans),
              most=theme.count(tracing.MAX_CALLS))
        )  # fmt: skip
    lost = waterfall.orphans(trace.rows)
    if lost:
        words.append(
            n("{count} row lies below a span that is not stored; it stands at the left edge.",
              "{count} rows lie below spans that are not stored; they stand at the left edge.",
              lost)
        )  # fmt: skip
    skewed = sum(bool(waterfall.is_skewed(row)) for row in trace.rows)
    if skewed:
        words.append(
            n("{count} call has attempts outside its time: clocks of two machines differ.",
              "{count} calls have attempts outside their time: clocks of two machines differ.",
              skewed)
        )  # fmt: skip
    for sentence in words:
        st.html(markup.notice(sentence, theme.SEVERITY_MARKS["info"], "fb-trace-note"))
