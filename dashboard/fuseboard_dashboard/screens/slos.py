"""SLOs: what is left of the error budgets, how fast do they burn, and which layer failed?"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pandas as pd
import streamlit as st

from fuseboard_dashboard import budget_table, empty, layers, markup, tables, theme
from fuseboard_dashboard.bounded import bounded
from fuseboard_dashboard.budgeted import Budgeted, budgeted
from fuseboard_dashboard.budgets import KINDS, STATES, burn_down
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.charts.budgets import budgets_over_time
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.filters import LAYER, rfc3339
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel

SHOWN: Final = 45
UNSEEN: Final = 5
FOLDED: Final = 255
"""More rows are in the download, or found by choosing a tool."""


def page() -> None:
    """Draw the page."""
    show(PageFrame(t("SLOs"), t("How much may still fail, and what used it up?"), _body,
                   needs_calls=False))  # fmt: skip


def _body(view: View) -> None:
    if view.ask("page_store")["calls"][0] == 0:
        empty.first_run(view.source)
        return
    found = budgeted(view)
    if not len(found.rows):
        empty.no_match(view)
        return
    with panel():
        st.html(markup.stats(_headline(found.rows)))
        st.html(f'<div class="fb fb-quiet">{markup.esc(_scope(view, found))}</div>')
    words = t("One row per tool and objective, the worst first. Burn rate 1 spends the budget "
              "exactly by the end of the period.")  # fmt: skip
    with panel(t("Budgets"), words):
        _table(view, found)
    tool = str(found.rows["tool"].iloc[0])
    with panel(t("What is left of the budgets of {tool}", tool=markup.shorten(tool, 60)),
               t("From the first call of the period on: every bad call takes its part of what the "
                 "calls of the period allow.")):  # fmt: skip
        _chart(view, found, tool)
    shorter, note = bounded(view)
    with panel(t("Which layer failed"), _layer_scope(view)):
        if note:
            words = t("Counted in the last {span} only: there are too many calls in the window.",
                      span=theme.span(shorter.window.length))  # fmt: skip
            st.html(markup.notice(words, theme.SEVERITY_MARKS["info"], "fb-bounded"))
        _layers(shorter)
    with panel(t("Calls behind it"), t("Newest first, of the window chosen at the left.")):
        _calls(shorter)
    with panel(t("How it is counted")):
        st.html(_definitions())


def _headline(rows: pd.DataFrame) -> list[markup.Stat]:
    hints = {
        "fast": t("the last hour and 5 minutes, or 6 hours and 30 minutes, burn so fast that "
                  "somebody should look now"),
        "gone": t("more bad calls than the period allows"),
        "slow": t("the last 3 days and 6 hours spend more than the period allows"),
        "fine": t("some budget is left, and it is not burning"),
        "few": t("the calls of the period allow less than one bad call"),
    }  # fmt: skip
    counts = rows["state"].value_counts()
    stats = []
    for state in STATES:
        number = int(counts.get(state, 0))
        tone = {"fast": "bad", "gone": "bad", "slow": "warn"}.get(state, "") if number else ""
        label = budget_table.state_words(state)
        note = n("objective", "objectives", number)
        stats.append(
            markup.Stat(
                f"budgets-{state}", label, str(number), number, note, tone, hint=hints[state]
            )
        )
    return stats


def _scope(view: View, found: Budgeted) -> str:
    period = found.period
    words = [t("Period: {since} to {until} ({zone}), {days} days.", since=_day(view, period.since),
               until=view.clock(period.until), zone=view.zone_name,
               days=f"{period.length.total_seconds() / 86400:.1f}")]  # fmt: skip
    if found.kept_since is not None:
        words.append(t("The oldest call that is kept began {moment}: budgets are those of the time "
                       "since.", moment=_day(view, found.kept_since)))  # fmt: skip
    unseen = sorted(set(view.source.objectives.tools) - set(found.rows["tool"]))
    if unseen and not view.filters.is_narrowed:
        words.append(n("{count} tool has objectives and no calls: {names}.",
                       "{count} tools have objectives and no calls: {names}.", len(unseen),
                       names=", ".join(map(markup.shorten, unseen[:UNSEEN]))))  # fmt: skip
    if view.filters.regions:
        words.append(t("Only calls in the chosen regions count."))
    if view.filters.classes:
        words.append(t("The filter of error classes does not apply here."))
    return " ".join(words)


def _day(view: View, moment: object) -> str:
    local = pd.Timestamp(moment).tz_convert(view.zone)  # type: ignore[arg-type]
    return local.strftime(t("%d %b %Y %H:%M"))


def _table(view: View, found: Budgeted) -> None:
    rows = found.rows
    st.html(budget_table.table(view, found.period, rows_of(rows.head(SHOWN))))
    rest = rows.iloc[SHOWN : SHOWN + FOLDED]
    if len(rest):
        words = n("{count} more row", "{count} more rows", len(rows) - SHOWN)
        with st.expander(words):
            st.html(budget_table.table(view, found.period, rows_of(rest)))
            if len(rows) > SHOWN + FOLDED:
                st.caption(t("The worst {shown} of {all}; choose a tool at the left for others.",
                             shown=SHOWN + FOLDED, all=f"{len(rows):,}"))  # fmt: skip
    download(view, tables.cut(rows.drop(columns="rank")), "slos", "budgets")


def _chart(view: View, found: Budgeted, tool: str) -> None:
    book = view.source.objectives
    width = found.period.bucket_seconds(120)
    axis = TimeAxis(found.period, width, view.zone, view.zone_name)
    own = view.with_filters(replace(view.filters, tools=(tool,)))
    series = own.ask(
        "page_slo_series", since=rfc3339(found.period.since), until=rfc3339(found.period.until),
        bucket_us=width * 1_000_000, **book.bounds(),
    )  # fmt: skip
    counts = ["calls", "judged", "errors", "answered", "unsound", "slow"]
    filled = axis.fill(series, counts)
    lines = {}
    for kind in KINDS:
        target = book.of(tool).target(kind)
        if target is not None and (found.rows["tool"] == tool).any():
            label = f"{budget_table.kind_words(kind)} ≥ {theme.share(target)}"
            lines[kind] = (label, burn_down(filled, kind, target))
    time_chart(view, budgets_over_time(lines, filled["calls"], axis), "slo_budgets")


def _layer_scope(view: View) -> str:
    if len(view.filters.tools) == 1:
        return t("Calls of {tool} that spent a budget in {window}; the first rule that holds "
                 "decides.", tool=markup.shorten(view.filters.tools[0], 60),
                 window=view.ends())  # fmt: skip
    return t("Calls that spent a budget of availability or correctness in {window}; the first rule "
             "that holds decides.", window=view.ends())  # fmt: skip


def _layers(view: View) -> None:
    frame = view.ask("page_failed_layers")
    if not len(frame):
        words = t("No call spent a budget of availability or correctness in this window.")
        st.html(markup.notice(words, theme.OUTCOME_MARKS["ok"], "fb-all-good"))
        return
    total = float(frame["calls"].sum())
    by_layer = frame.pivot_table(index="failed_layer", columns="outcome", values="calls",
                                 aggfunc="sum", fill_value=0.0, observed=True)  # fmt: skip
    order = by_layer.sum(axis=1).sort_values(ascending=False, kind="stable")
    outcomes = [o for o in theme.OUTCOME_MARKS if o in by_layer.columns]
    headers = [(t("Layer"), False), (t("What it says"), False), (t("Calls"), True),
               (t("Share"), True)]  # fmt: skip
    headers += [(f"{theme.OUTCOME_MARKS[o].symbol} {theme.OUTCOME_MARKS[o].label}", True)
                for o in outcomes]  # fmt: skip
    rows = []
    for key, calls in order.items():
        layer = str(key)
        name, words = layers.words(layer)
        href = view.filters.link("slos", [(LAYER, layer)])
        number = (
            f'<span data-testid="fb-layer" data-layer="{markup.esc(layer)}" '
            f'data-value="{float(calls)!r}">{theme.count(calls)}</span>'
        )
        rows.append(
            [
                markup.link(f"<b>{markup.esc(name)}</b>", href),
                markup.esc(words),
                markup.link(number, href),
                theme.percent(calls / total),
                *(_or_dot(float(by_layer[o][layer])) for o in outcomes),
            ]
        )  # fmt: skip
    st.html(markup.table(headers, rows))
    download(view, frame, "slos", "layers")


def _or_dot(calls: float) -> str:
    return theme.count(calls) if calls else '<span class="fb-mute">·</span>'


def _calls(view: View) -> None:
    wanted = st.query_params.get(LAYER)
    if wanted is not None:
        name = layers.words(wanted)[0]
        note = t("Only calls that failed in the layer {layer}.", layer=markup.shorten(name, 40))
        everything = markup.link(f"<u>{markup.esc(t('Show all'))}</u>", view.filters.link("slos"))
        st.html(f'<div class="fb">{markup.esc(note)} {everything}</div>')
    frame = view.ask("page_layer_calls", failed_layer=wanted, row_limit=tables.SAMPLE_ROWS)
    if len(frame):
        tables.sample_calls(view, frame, "slos_calls")
    else:
        st.html(f'<div class="fb fb-quiet">{markup.esc(t("No such call in this window."))}</div>')


def _definitions() -> str:
    lines = (
        (t("Availability"), t("1 − (error + rejected, without L1 input) / (all − cancelled − "
                              "abandoned − interrupted).")),
        (t("Latency"), t("Calls within the bound / all calls, back-off included. Beyond 25 hours "
                         "it comes from histograms of 9 % wide steps: within the step that the "
                         "bound is in it is estimated (≈).")),
        (t("Correctness"), t("1 − (partial, degraded, and answered with L5) / (ok + partial + "
                             "degraded + error with L5): an answer that was neither live nor "
                             "fresh, or unusable.")),
        (t("Budget left"), t("1 − bad calls / ((1 − target) × calls) over the period.")),
        (t("Burn rate"), t("share of bad calls in the window / (1 − target).")),
        (t("Burning fast"), t("over 14.4× in 1 hour and 5 minutes, or 6× in 6 hours and 30 minutes "
                              "(2 % and 5 % of a budget of 30 days), with 3 bad calls or more. "
                              "Burning: over 1× in 3 days and 6 hours. From the Google SRE "
                              "workbook, “Alerting on SLOs”.")),
    )  # fmt: skip
    items = "".join(f"<p><b>{markup.esc(a)}</b> {markup.esc(b)}</p>" for a, b in lines)
    return f'<div class="fb fb-defined">{items}</div>'
