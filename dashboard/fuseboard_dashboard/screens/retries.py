"""Retries: what do they cost, and do they help?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from fuseboard_dashboard import costs, markup, tables, theme, thresholds
from fuseboard_dashboard.charts import rates, retries
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.screens.tool import RETRY_LINE
from fuseboard_dashboard.theme import ratio
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel

_COUNTS = ("attempted", "retried", "attempts_made", "first_try", "succeeded", "recovered",
           "exhausted", "backoff_total")  # fmt: skip


def page() -> None:
    """Draw the page."""
    show(PageFrame(t("Retries"), t("What do retries cost, and do they help?"), _body))


def _body(view: View) -> None:
    frame = view.ask("page_retries")
    if not len(frame):
        words = t("No call in this window reached its tool, so there is nothing to retry.")
        st.html(markup.notice(words, theme.SEVERITY_MARKS["info"], "fb-no-attempts"))
        return
    with panel():
        st.html(markup.stats(_headline(frame[list(_COUNTS)].sum())))
    axis = view.axis(60)
    series = view.buckets("page_series", axis)
    left, right = st.columns(2, gap="medium")
    with (
        left,
        panel(t("Retry rate"), t("Calls with at least one retry, of those that made an attempt.")),
    ):
        figure = rates.rates_over_time(series, axis, (rates.RETRIES,), RETRY_LINE)
        time_chart(view, figure, "retry_rate")
    with (
        right,
        panel(t("Amplification"), t("Attempts per call: the load that retries add upstream.")),
    ):
        time_chart(view, retries.amplification_over_time(series, axis), "retry_amplification")
    by_tool = frame.groupby("tool", as_index=False)[list(_COUNTS)].sum()
    by_tool = by_tool.sort_values("retried", ascending=False, kind="stable")
    with left, panel(t("First try against final"), t("The line between is what retries won.")):
        st.plotly_chart(retries.first_and_final(by_tool.head(12)), key="retry_first_final")
    with right, panel(t("What failed attempts were"), t("By their number within the call.")):
        faults = view.ask("page_attempt_faults")
        if len(faults):
            st.plotly_chart(retries.failures_by_attempt(faults, 320), key="retry_faults")
        else:
            st.html(markup.quiet(t("No attempt failed in this window.")))
    _by_tool(view, by_tool)
    with panel(t("Who retries most"), t("Per tool and region.")):
        _table(view, frame)
    costs.draw(view)
    with panel(t("Sample calls"), t("Newest calls with a retry.")):
        calls = view.ask("page_calls", kind="retried", args_hash=None, row_limit=tables.SAMPLE_ROWS)
        if len(calls):
            tables.sample_calls(view, calls, "retries_calls")
        else:
            st.html(markup.quiet(t("No call was retried in this window.")))


def _headline(total: pd.Series) -> list[markup.Stat]:
    retry = ratio(total["retried"], total["attempted"])
    first = ratio(total["first_try"], total["attempted"])
    final = ratio(total["succeeded"], total["attempted"])
    won = ratio(total["recovered"], total["retried"])
    factor = ratio(total["attempts_made"], total["attempted"])
    over = retry is not None and retry > thresholds.RETRY_RATIO
    return [
        markup.Stat(
            "retry-ratio",
            t("Retry rate"),
            theme.percent(retry),
            retry,
            t("max {limit}", limit=theme.limit(thresholds.RETRY_RATIO)),
            "bad" if over else "",
            hint=t("calls with at least one retry / calls that made an attempt"),
        ),
        markup.Stat(
            "retried",
            t("Retried calls"),
            theme.count(total["retried"]),
            total["retried"],
            t("of {count} attempted", count=theme.count(total["attempted"])),
        ),
        markup.Stat(
            "amplification",
            t("Amplification"),
            theme.factor(factor),
            factor,
            t("attempts per call"),
            hint=t("attempts / calls that made an attempt"),
        ),
        markup.Stat(
            "first-try-ratio",
            t("First-try success"),
            theme.percent(first),
            first,
            t("before retries"),
            hint=t("calls whose first attempt succeeded / calls that made an attempt"),
        ),
        markup.Stat(
            "final-ratio",
            t("Final success"),
            theme.percent(final),
            final,
            t("after retries"),
            hint=t("calls that ended ok or partial / calls that made an attempt"),
        ),
        markup.Stat(
            "recovered",
            t("Recovered"),
            theme.count(total["recovered"]),
            total["recovered"],
            t("{share} of retried", share=theme.percent(won)),
        ),
        markup.Stat(
            "exhausted",
            t("Not recovered"),
            theme.count(total["exhausted"]),
            total["exhausted"],
            t("error or degraded"),
        ),
        markup.Stat(
            "backoff-seconds",
            t("Time in back-off"),
            theme.seconds(total["backoff_total"]),
            total["backoff_total"],
            t("waited in all"),
        ),
    ]


def _by_tool(view: View, by_tool: pd.DataFrame) -> None:
    axis = view.axis(30)
    trend = view.buckets("page_trend", axis)
    names = by_tool[by_tool["retried"] > 0]["tool"].head(6)
    if len(names) < 2:
        return
    frames = {
        name: trend[trend["tool"] == name]
        .groupby("bucket", as_index=False)[["attempted", "retried"]]
        .sum()
        for name in names
    }
    with panel(t("Retry rate by tool"), t("The six tools with the most retried calls.")):
        figure = rates.lines_by_name(frames, axis, rates.RETRIES, RETRY_LINE)
        time_chart(view, figure, "retry_by_tool")


def _table(view: View, frame: pd.DataFrame) -> None:
    headers = (
        (t("Tool"), False),
        (t("Region"), False),
        (t("Attempted"), True),
        (t("Retry rate"), True),
        (t("Amplification"), True),
        (t("First try"), True),
        (t("Final"), True),
        (t("Recovered"), True),
        (t("Not recovered"), True),
        (t("Back-off"), True),
    )
    rows = []
    for r in rows_of(frame.head(100)):
        own = view.filters.narrowed(tool=r.tool, region=r.region)
        is_over = r.retry_ratio > thresholds.RETRY_RATIO
        flag = f'<span style="color:{theme.RETRY_COLOUR}">▲</span> ' if is_over else ""
        rows.append(
            [
                markup.link(markup.name(r.tool), own.link("tool")),
                markup.name(r.region),
                theme.count(r.attempted),
                flag + theme.percent(r.retry_ratio),
                theme.factor(r.amplification),
                theme.percent(ratio(r.first_try, r.attempted)),
                theme.percent(ratio(r.succeeded, r.attempted)),
                theme.count(r.recovered),
                theme.count(r.exhausted),
                theme.seconds(r.backoff_total),
            ]
        )
    st.html(markup.table(headers, rows))
    download(view, frame.head(100), "retries", "tools")
