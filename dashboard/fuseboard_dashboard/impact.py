"""What depends on one upstream, and how much of the trouble it explains."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from fuseboard_dashboard import markup, tables, theme, thresholds
from fuseboard_dashboard.charts import dependencies as charts
from fuseboard_dashboard.data import record
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.theme import ratio
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel

_PICK: Final = "fb_pick_upstream"
MOST_CHOICES: Final = 1000
MOST_TOOLS: Final = 100


def draw(view: View, upstream: str, frame: pd.DataFrame, states: pd.DataFrame) -> None:
    """Draw what depends on one upstream.

    Args:
        view: For the window and filters.
        upstream: Its name.
        frame: Rows of ``page_dependencies``, for the choice of another.
        states: Rows of ``page_breaker_states``.
    """
    words = t("What its trouble reaches. Choose another here, or in the picture.")
    with panel(t("Impact of one upstream"), words):
        _pick(upstream, frame)
        reach = record(view.ask("page_upstream_reach", upstream=upstream))
        st.html(markup.stats(_headline(view, reach)))
    left, right = st.columns(2, gap="medium")
    with left, panel(t("Errors of its tools over time"), t("The five with the most errors.")):
        axis = view.axis(60)
        series = view.buckets("page_upstream_series", axis, upstream=upstream)
        if len(series):
            time_chart(view, charts.errors_over_time(series, axis), "dependencies_errors")
        else:
            st.html(markup.quiet(t("No call at this upstream failed in this window.")))
    with right, panel(t("Breakers that guard it"), t("Of all processes, the worst state each.")):
        _breakers(view, states[states["upstream"] == upstream])
    with panel(t("Tools at this upstream"), t("A tool leads to its page, errors to their calls.")):
        _tools(view, view.ask("page_upstream_tools", upstream=upstream))
    with panel(t("Sample calls"), t("Newest failed calls at this upstream; any if none failed.")):
        calls = _calls(view, upstream)
        if len(calls):
            tables.sample_calls(view, calls, "dependencies_calls")
        else:
            st.html(markup.quiet(t("No such call in this window.")))


def _calls(view: View, upstream: str) -> pd.DataFrame:
    asked = {"upstream": upstream, "row_limit": tables.SAMPLE_ROWS}
    failed = view.ask("page_upstream_calls", kind="faults", **asked)
    return failed if len(failed) else view.ask("page_upstream_calls", kind="all", **asked)


def _pick(upstream: str, frame: pd.DataFrame) -> None:
    sums = frame[frame["upstream"].notna()].groupby("upstream")[["errors", "calls"]].sum()
    order = sums.sort_values(["errors", "calls"], ascending=False, kind="stable")
    options = list(order.index[:MOST_CHOICES])
    if upstream not in options:
        options.insert(0, upstream)
    st.session_state[_PICK] = upstream
    st.selectbox(
        t("Upstream"), options, key=_PICK, on_change=_choose,
        format_func=lambda name: markup.shorten(name, 80),
    )  # fmt: skip


def _choose() -> None:
    st.query_params["upstream"] = st.session_state[_PICK]


def _headline(view: View, reach: dict[str, float]) -> list[markup.Stat]:
    every = view.totals()
    share = ratio(reach["calls"], every["calls"])
    failing = ratio(reach["errors"], reach["judged"])
    explains = ratio(reach["errors"], every["errors"])
    is_bad = failing is not None and failing > thresholds.ERROR_RATIO
    hint = t("(error + rejected, without L1 input faults) / (all − cancelled − abandoned − "
             "interrupted)")  # fmt: skip
    return [
        _number("impact-tools", t("Tools"), reach["tools"], t("depend on it")),
        _number("impact-callers", t("Agents and services"), reach["callers"], t("call them")),
        _number("impact-sessions", t("Sessions"), reach["sessions"],
                t("{count} with an error", count=theme.count(reach["failing_sessions"]))),
        _number("impact-calls", t("Calls"), reach["calls"],
                t("{share} of all", share=theme.percent(share))),
        markup.Stat("impact-error-ratio", t("Error rate"), theme.percent(failing), failing,
                    t("{count} errors", count=theme.count(reach["errors"])),
                    "bad" if is_bad else "", view.filters.link("errors"), hint),
        markup.Stat("impact-explains", t("Of all errors"), theme.percent(explains), explains,
                    t("of {count} in the window", count=theme.count(every["errors"])),
                    hint=t("errors of calls at this upstream / errors of all calls")),
    ]  # fmt: skip


def _number(name: str, label: str, value: float, note: str) -> markup.Stat:
    return markup.Stat(name, label, theme.count(value), float(value), note)


def _breakers(view: View, states: pd.DataFrame) -> None:
    if not len(states):
        words = t(
            "No breaker is known here. Policy(breaker=Breaker()) gives each tool one per region "
            "and upstream."
        )
        st.html(markup.quiet(words))
        return
    headers = ((t("Breaker"), False), (t("State"), False), (t("Since"), True),
               (t("Processes"), True))  # fmt: skip
    rows = [
        [
            markup.link(markup.name(r.breaker),
                        view.filters.narrowed(tool=r.tool, region=r.region).link("breakers")),
            markup.breaker(r.state, loud=r.state in ("open", "isolated")),
            view.clock(r.since_time),
            theme.count(r.processes),
        ]
        for r in rows_of(states.head(MOST_TOOLS))
    ]  # fmt: skip
    st.html(markup.table(headers, rows))


def _tools(view: View, frame: pd.DataFrame) -> None:
    headers = ((t("Tool"), False), (t("Region"), False), (t("Calls"), True), (t("Errors"), True),
               (t("Error rate"), True), (t("Degraded"), True), (t("Rejected"), True),
               (t("Sessions"), True), (t("Fallback seen"), False), (t("Last"), True))  # fmt: skip
    rows = []
    for r in rows_of(frame.head(MOST_TOOLS)):
        own = view.filters.narrowed(tool=r.tool, region=r.region)
        errors = theme.count(r.errors)
        seen = isinstance(r.fallbacks, str)
        rows.append(
            [
                markup.link(markup.name(r.tool), own.link("tool")),
                markup.name(r.region),
                theme.count(r.calls),
                markup.link(f"<u>{errors}</u>", own.link("errors")) if r.errors else errors,
                theme.percent(ratio(r.errors, r.judged)),
                theme.count(r.degraded),
                theme.count(r.rejected),
                theme.count(r.sessions),
                markup.link(markup.name(r.fallbacks), own.link("degradation")) if seen
                else f'<span class="fb-mute">{markup.esc(t("none seen"))}</span>',
                view.clock(r.last_end),
            ]
        )  # fmt: skip
    st.html(markup.table(headers, rows))
    if len(frame) > MOST_TOOLS:
        st.caption(t("The {shown} worst of {all}.", shown=MOST_TOOLS, all=len(frame)))
    download(view, frame.head(MOST_TOOLS), "dependencies", "tools")
