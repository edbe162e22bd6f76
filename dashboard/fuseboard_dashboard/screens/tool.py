"""Tool: one tool in depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pandas as pd
import streamlit as st

from fuseboard_dashboard import headline, markup, sidebar, tables, theme, thresholds
from fuseboard_dashboard.charts import calls, latency, rates
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import later, t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.trouble import Fuse, fuses
from fuseboard_dashboard.view import View, panel

_PICK: Final = "fb_pick"
KINDS: Final = {
    "all": later("Newest"), "faults": later("Faulty"), "retried": later("Retried"),
    "slow": later("Slowest"),
}  # fmt: skip
RETRY_LINE: Final = (
    thresholds.RETRY_RATIO,
    lambda: t("{limit} line", limit=theme.limit(thresholds.RETRY_RATIO)),
)


def page() -> None:
    """Draw the page; where not exactly one tool is filtered for, let the viewer pick one."""
    chosen = sidebar.chosen()
    options = list(chosen.tools or sidebar.known_values().tools or ())
    if len(chosen.tools) != 1 and options:
        st.selectbox(
            t("Tool"), options, index=None, key=_PICK, on_change=sidebar.choose_tool, args=(_PICK,),
            placeholder=t("Choose a tool"), format_func=lambda name: markup.shorten(name, 80),
        )  # fmt: skip
    show(PageFrame(t("Tool"), t("How is this one tool doing, where, and since when?"), _body))


def _body(view: View) -> None:
    tool = view.filters.tools[0] if len(view.filters.tools) == 1 else _most_troubled(view)
    if tool is None:
        st.html(markup.quiet(t("No tool has calls in this window.")))
        return
    if len(view.filters.tools) != 1:
        words = t(
            "Showing {tool}, the most troubled tool of this window.", tool=markup.shorten(tool)
        )
        st.html(markup.notice(words, theme.SEVERITY_MARKS["info"], "fb-auto-tool"))
    own = view.with_filters(replace(view.filters, tools=(tool,)))
    with panel():
        _head(own, tool)
    with panel():
        _charts(own)
    with panel(t("Regions and breakers"), t("The same tool, place by place.")):
        _regions(own)
    with panel(t("Sample calls")):
        _samples(own)


def _most_troubled(view: View) -> str | None:
    found = _fuses(view)
    return found[0].tool if found else None


def _fuses(view: View) -> list[Fuse]:
    asked = ("page_tools", "page_breaker_states", "page_alerts_now")
    return fuses(*(view.ask(name) for name in asked))


def _head(view: View, tool: str) -> None:
    row = view.totals()
    before = view.before().totals()
    st.html(f'<div class="fb fb-section"><h2 data-testid="fb-tool">{markup.name(tool)}</h2></div>')
    st.html(
        markup.stats(
            [
                headline.calls(row, before),
                headline.errors(row, before, view.filters),
                headline.retries(row, before, view.filters),
                headline.amplified(row, view.filters),
                headline.degraded(row, view.filters),
                *(headline.quantile(row, before, q, view.filters) for q in ("p50", "p95", "p99")),
            ]
        )
    )


def _charts(view: View) -> None:
    axis = view.axis(60)
    outcomes = view.buckets("page_outcomes", axis)
    series = view.buckets("page_series", axis)
    left, right = st.columns(2, gap="medium")
    with left:
        with panel(t("Calls by outcome")):
            time_chart(view, calls.outcomes_over_time(outcomes, axis), "tool_outcomes")
        with panel(
            t("Error and retry rate"), t("Shaded: no calls. A line at 0 %: calls, all good.")
        ):
            figure = rates.rates_over_time(series, axis, (rates.ERRORS, rates.RETRIES), RETRY_LINE)
            time_chart(view, figure, "tool_rates")
    with right:
        with panel(t("Faulty calls by class")):
            if outcomes["error_class"].notna().any():
                time_chart(view, calls.classes_over_time(outcomes, axis), "tool_classes")
            else:
                st.html(markup.quiet(t("No faulty call in this window.")))
        with panel(t("Latency of calls"), t("Quantiles, exact up to 25 hours; back-off included.")):
            figure = latency.quantiles_over_time(series, axis, thresholds.SLOW_SECONDS, 260)
            time_chart(view, figure, "tool_latency")


def _regions(view: View) -> None:
    found = _fuses(view)
    headers = (
        (t("Region"), False),
        (t("Breaker"), False),
        (t("Firing"), False),
        (t("Calls"), True),
        (t("Success"), True),
        (t("Error rate"), True),
        (t("Input faults"), True),
        (t("Retry rate"), True),
        (t("Degraded"), True),
        ("p99", True),
    )
    st.html(markup.table(headers, [_region_row(view, fuse) for fuse in found[: tables.MAX_ROWS]]))
    download(view, _as_rows(found[: tables.MAX_ROWS]), "tool", "regions")


def _as_rows(fuses: Sequence[Fuse]) -> pd.DataFrame:
    """Return fuses as rows to download: counts, and the names of alerts that fire."""
    names = [name for name in Fuse.__dataclass_fields__ if name != "alerts"]
    rows = [
        {name: getattr(fuse, name) for name in names}
        | {"alerts": ", ".join(firing.alert for firing in fuse.alerts)}
        for fuse in fuses
    ]
    return pd.DataFrame(rows, columns=[*names, "alerts"])


def _region_row(view: View, fuse: Fuse) -> list[str]:
    own = view.filters.narrowed(region=fuse.region)
    since = "" if fuse.since is None else f' <span class="fb-quiet">{view.ago(fuse.since)}</span>'
    state = markup.breaker(fuse.state)
    return [
        markup.link(markup.name(fuse.region), own.link("tool")),
        state if fuse.state is None else markup.link(state, own.link("breakers")) + since,
        markup.esc(", ".join(firing.alert for firing in fuse.alerts) or theme.NOTHING),
        theme.count(fuse.calls),
        theme.percent(fuse.success_ratio),
        markup.link(theme.percent(fuse.error_ratio), own.link("errors")),
        theme.count(fuse.input_faults),
        markup.link(theme.percent(fuse.retry_ratio), own.link("retries")),
        theme.percent(fuse.degraded_ratio),
        markup.link(theme.seconds(fuse.p99), own.link("latency")),
    ]


def _samples(view: View) -> None:
    kind = st.segmented_control(
        t("Which calls"),
        list(KINDS),
        default="all",
        format_func=lambda kind: KINDS[kind](),
        key="tool_kind",
        label_visibility="collapsed",
    )
    frame: pd.DataFrame = view.ask(
        "page_calls", kind=kind or "all", args_hash=None, row_limit=tables.SAMPLE_ROWS
    )
    if len(frame):
        tables.sample_calls(view, frame, "tool_calls")
    else:
        st.html(markup.quiet(t("No such call in this window.")))
