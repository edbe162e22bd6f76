"""Latency: how slow, and where does the time go?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from fuseboard_dashboard import headline, markup, tables, theme, thresholds
from fuseboard_dashboard.charts import latency
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel


def page() -> None:
    """Draw the page."""
    show(PageFrame(t("Latency"), t("How slow, for whom, and where does the time go?"), _body))


def _body(view: View) -> None:
    axis = view.axis()
    with panel():
        row = view.totals()
        st.html(markup.stats(_headline(view, row)))
    series = view.buckets("page_latency_series", axis)
    if not len(series):
        words = t("No call of the chosen error classes in this window.")
        st.html(markup.notice(words, theme.SEVERITY_MARKS["info"], "fb-no-latency"))
        return
    left, right = st.columns(2, gap="medium")
    with (
        left,
        panel(
            t("Quantiles of calls"),
            t("Per bucket, exact up to 25 hours; the slowest call is always there."),
        ),
    ):
        figure = latency.quantiles_over_time(series, axis, thresholds.SLOW_SECONDS)
        time_chart(view, figure, "latency_quantiles")
    with (
        right,
        panel(
            t("Every call"),
            t("Faint = few, orange = most calls. Two bands mean two kinds of calls."),
        ),
    ):
        cells = view.buckets("page_latency_heatmap", axis)
        time_chart(view, latency.heatmap(cells, axis, 300), "latency_heatmap")
    attempts = view.ask("page_attempt_latency")
    frame = view.ask("page_latency").merge(attempts, on="tool", how="left")
    words = t(
        "Calls include back-off, attempts do not. A call that a breaker stopped is short and made "
        "no attempt."
    )
    with panel(t("Tools: calls against attempts"), words):
        figure = latency.quantiles_by_tool(frame, thresholds.SLOW_SECONDS)
        st.plotly_chart(figure, key="latency_tools")
    with panel(t("Where a mean call's time goes"), t("Back-off is waiting between attempts.")):
        time_chart(view, latency.split_over_time(series, axis), "latency_split")
    with panel(t("By tool"), t("Quantiles, exact up to 25 hours; ▲ = p99 slower than the line.")):
        _table(view, frame)
    with panel(t("Slowest calls")):
        calls = view.ask("page_calls", kind="slow", args_hash=None, row_limit=25)
        tables.sample_calls(view, calls, "latency_calls")


def _headline(view: View, row: dict[str, float]) -> list[markup.Stat]:
    before = view.before().totals()
    mean = theme.ratio(row["duration_total"], row["calls"])
    attempt = theme.ratio(row["attempt_total"], row["calls"])
    backoff = theme.ratio(row["backoff_total"], row["calls"])
    return [
        headline.calls(row, before),
        *(headline.quantile(row, before, name, view.filters) for name in ("p50", "p95", "p99")),
        markup.Stat("slowest", t("Slowest"), theme.seconds(row["slowest"]),
                    None if theme.is_missing(row["slowest"]) else row["slowest"], t("one call")),
        markup.Stat("mean", t("Mean call"), theme.seconds(mean), mean, t("back-off included")),
        markup.Stat("mean-attempt", t("Mean in attempts"), theme.seconds(attempt), attempt,
                    t("per call")),
        markup.Stat("mean-backoff", t("Mean in back-off"), theme.seconds(backoff), backoff,
                    t("per call")),
    ]  # fmt: skip


def _table(view: View, frame: pd.DataFrame) -> None:
    headers = (
        (t("Tool"), False),
        (t("Calls"), True),
        ("p50", True),
        ("p95", True),
        ("p99", True),
        (t("Slowest"), True),
        (t("Attempts"), True),
        (t("Attempt p50"), True),
        (t("Attempt p95"), True),
        (t("Attempt p99"), True),
        (t("Mean back-off"), True),
    )
    rows = []
    for r in rows_of(frame.head(100)):
        own = view.filters.narrowed(tool=r.tool)
        slow = r.p99 > thresholds.SLOW_SECONDS
        flag = f'<span style="color:{theme.RETRY_COLOUR}">▲</span> ' if slow else ""
        rows.append(
            [
                markup.link(markup.name(r.tool), own.link("tool")),
                theme.count(r.calls),
                theme.seconds(r.p50),
                theme.seconds(r.p95),
                flag + theme.seconds(r.p99),
                theme.seconds(r.slowest),
                theme.count(r.attempts_made),
                theme.seconds(r.attempt_p50),
                theme.seconds(r.attempt_p95),
                theme.seconds(r.attempt_p99),
                theme.seconds(r.mean_backoff),
            ]
        )
    st.html(markup.table(headers, rows))
    download(view, frame.head(100), "latency", "tools")
