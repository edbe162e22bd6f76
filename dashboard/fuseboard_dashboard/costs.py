"""What retries and failures cost, where tools report a cost."""

from __future__ import annotations

from typing import Final

import pandas as pd
import streamlit as st

from fuseboard_dashboard import markup, theme
from fuseboard_dashboard.bounded import bounded
from fuseboard_dashboard.charts import costs as charts
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.theme import ratio
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel

MOST_TOOLS: Final = 100
_SUMS: Final = ["priced_successes", "cost", "failed_cost", "degraded_cost", "error_cost"]


def draw(whole: View) -> None:
    """Draw the costs of tools that report one; where none does, say in one line what makes it."""
    with panel(t("Cost"), t("In the unit in which tools report it; fuseboard knows no currency.")):
        view, note = bounded(whole)
        if note:
            st.html(markup.notice(note, theme.SEVERITY_MARKS["info"], "fb-bounded"))
        frame = view.ask("page_costs")
        if not len(frame):
            words = t(
                "No tool reports a cost here. With fuseboard.current_call().set_cost(0.01) in a "
                "tool, this says what retries and failures waste."
            )
            st.html(f'<div data-testid="fb-no-cost">{markup.quiet(words)}</div>')
            return
        st.html(markup.stats(_headline(frame[_SUMS].sum())))
        axis = view.axis(60)
        figure = charts.costs_over_time(view.buckets("page_cost_series", axis), axis)
        time_chart(view, figure, "retry_costs")
        _table(view, frame)


def _headline(total: pd.Series) -> list[markup.Stat]:
    each = ratio(total["cost"], total["priced_successes"])
    parts = (
        ("cost-failed", t("Failed attempts"), total["failed_cost"],
         t("cost of attempts that failed, whatever became of their calls")),
        ("cost-degraded", t("Degraded calls"), total["degraded_cost"],
         t("cost of calls answered by something else in the end, their failed attempts included")),
        ("cost-errors", t("Failed calls"), total["error_cost"],
         t("cost of calls that ended in error, their failed attempts included")),
    )  # fmt: skip
    return [
        markup.Stat("cost", t("Cost in all"), theme.amount(total["cost"]), total["cost"],
                    t("of tools that report it"), hint=t("cost of all their calls")),
        *(_part(name, label, value, total["cost"], hint) for name, label, value, hint in parts),
        markup.Stat("cost-per-success", t("Per successful call"), theme.amount(each), each,
                    t("all cost included"),
                    hint=t("cost in all / calls that ended ok or partial and tell what they cost")),
    ]  # fmt: skip


def _part(name: str, label: str, value: float, whole: float, hint: str) -> markup.Stat:
    share = t("{share} of all", share=theme.percent(ratio(value, whole)))
    return markup.Stat(name, label, theme.amount(value), float(value), share, hint=hint)


def _table(view: View, frame: pd.DataFrame) -> None:
    headers = ((t("Tool"), False), (t("Calls"), True), (t("Successful"), True),
               (t("Cost in all"), True), (t("Failed attempts"), True), (t("Share"), True),
               (t("Degraded calls"), True), (t("Failed calls"), True),
               (t("Per successful call"), True))  # fmt: skip
    rows = []
    for r in rows_of(frame.head(MOST_TOOLS)):
        own = view.filters.narrowed(tool=r.tool)
        rows.append(
            [
                markup.link(markup.name(r.tool), own.link("tool")),
                theme.count(r.calls),
                theme.count(r.successful),
                theme.amount(r.cost),
                markup.link(f"<u>{theme.amount(r.failed_cost)}</u>", own.link("retries")),
                theme.percent(ratio(r.failed_cost, r.cost)),
                markup.link(f"<u>{theme.amount(r.degraded_cost)}</u>", own.link("degradation")),
                markup.link(f"<u>{theme.amount(r.error_cost)}</u>", own.link("errors")),
                theme.amount(r.cost_per_success),
            ]
        )
    st.html(markup.table(headers, rows))
    if len(frame) > MOST_TOOLS:
        st.caption(t("The {shown} that waste most of {all}.", shown=MOST_TOOLS, all=len(frame)))
    download(view, frame.head(MOST_TOOLS), "retries", "costs")
