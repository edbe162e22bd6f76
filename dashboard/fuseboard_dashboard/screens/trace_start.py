"""The Trace page without a trace: a field for an id, and traces with trouble to begin with."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from fuseboard_dashboard import empty, filters, markup, tables, theme, traces
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.view import View, panel

_FIELD: Final = "fb_trace_field"
_WRONG: Final = "fb_trace_wrong"
_KIND: Final = "trace_kind"
KINDS: Final = ("faults", "retried", "slow")
MAX_TRACES: Final = 50


def field() -> None:
    """Draw the field for a trace id; one that is understood goes to the URL."""
    st.text_input(
        t("Trace id or traceparent"), key=_FIELD, on_change=_entered, max_chars=200,
        placeholder=t("Paste 32 hexadecimal digits, or a whole traceparent"),
    )  # fmt: skip
    wrong = st.session_state.get(_WRONG)
    if wrong:
        words = t("{given} is no trace id: 32 hexadecimal digits are, or a whole traceparent.",
                  given=repr(markup.shorten(wrong, 60)))  # fmt: skip
        st.html(markup.notice(words, theme.SEVERITY_MARKS["warning"], "fb-trace-wrong"))


def _entered() -> None:
    given = st.session_state[_FIELD]
    trace_id = traces.parse_id(given)
    st.session_state[_WRONG] = given.strip() if trace_id is None else ""
    if trace_id is None:
        return
    st.session_state[_FIELD] = ""
    st.query_params[filters.TRACE] = trace_id
    if filters.AT in st.query_params:
        del st.query_params[filters.AT]  # it was another trace's


def troubled(view: View) -> None:
    """Draw the newest traces with trouble in the window."""
    if view.ask("page_store")["calls"][0] == 0:
        empty.first_run(view.source)
        return
    words = t("The newest of the window, one line per trace; each opens its waterfall.")
    with panel(t("Traces with trouble"), words):
        names = {"faults": t("Faulty"), "retried": t("Retried"), "slow": t("Slowest")}
        kind = st.segmented_control(
            t("Which traces"), list(KINDS), default="faults", format_func=names.__getitem__,
            key=_KIND, label_visibility="collapsed",
        )  # fmt: skip
        calls = view.ask(
            "page_calls", kind=kind or "faults", args_hash=None, row_limit=tables.MAX_ROWS
        )
        _list(view, by_trace(calls))


def by_trace(calls: pd.DataFrame) -> pd.DataFrame:
    """Return one row per trace: its first call of those given, and how many there were.

    Args:
        calls: Rows of ``page_calls``.
    """
    known = calls[calls["trace_id"].notna()]
    found = known.groupby("trace_id", sort=False).size().rename("such_calls")
    first = known.drop_duplicates("trace_id").merge(found, left_on="trace_id", right_index=True)
    return first.head(MAX_TRACES)


def _list(view: View, found: pd.DataFrame) -> None:
    if not len(found):
        words = t("No trace of this kind in this window. Choose a longer time in the sidebar.")
        st.html(f'<div class="fb fb-quiet" data-testid="fb-no-traces">{markup.esc(words)}</div>')
        return
    headers = ((t("Ended"), True), (t("Trace"), False), (t("Tool"), False), (t("Region"), False),
               (t("Outcome"), False), (t("Class"), False), (t("Error type"), False),
               (t("Attempts"), True), (t("Duration"), True), (t("Such calls"), True))  # fmt: skip
    rows = []
    for row in rows_of(found):
        href = traces.link(view.filters, row.trace_id, row.end)
        error_type = tables.last_part(row.error_type) if isinstance(row.error_type, str) else ""
        fault = ""
        if isinstance(row.error_class, str):
            fault = markup.badge(theme.mark(theme.CLASS_MARKS, row.error_class))
        rows.append(
            [
                markup.esc(view.clock(row.end)),
                markup.link(f'<span class="fb-mono">{markup.esc(row.trace_id[:8])}…</span>', href),
                markup.link(markup.name(row.tool), href),
                markup.name(row.region),
                markup.badge(theme.mark(theme.OUTCOME_MARKS, row.outcome)),
                fault or theme.NOTHING,
                markup.name(error_type or theme.NOTHING),
                str(int(row.attempts)),
                theme.seconds(row.duration_seconds),
                theme.count(row.such_calls),
            ]
        )
    st.html(markup.table(headers, rows))
    st.caption(
        n("{count} trace, from at most {most} calls.", "{count} traces, from at most {most} calls.",
          len(found), most=theme.count(tables.MAX_ROWS))
    )  # fmt: skip
