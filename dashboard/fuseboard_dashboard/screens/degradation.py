"""Degradation: which answers are not the real thing, how old are they, and why?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from fuseboard_dashboard import answer_tables, answers, headline, markup, theme
from fuseboard_dashboard.bounded import bounded
from fuseboard_dashboard.charts import answers as charts
from fuseboard_dashboard.charts import rates
from fuseboard_dashboard.data import record
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.theme import ratio
from fuseboard_dashboard.timecharts import time_chart
from fuseboard_dashboard.view import View, panel

WHOLE_WINDOW = 2**61
"""Microseconds: a bucket that holds everything."""


def page() -> None:
    """Draw the page."""
    words = t("Which answers are not the real thing, how old are they, and why?")
    show(PageFrame(t("Degradation"), words, _body))


def _body(whole: View) -> None:
    view, note = bounded(whole)
    if note:
        st.html(markup.notice(note, theme.SEVERITY_MARKS["info"], "fb-bounded"))
    axis = view.axis(60)
    series = answers.with_kinds(view.buckets("page_answer_series", axis))
    places = answers.with_kinds(view.ask("page_answers"))
    # A hit handles no fault: under a filter of classes there would be none.
    everywhere = answers.with_kinds(view.ask("page_answers", classes=None))
    with panel():
        st.html(markup.stats(_headline(view, series, everywhere)))
    unreal = series[series["kind"] != answers.LIVE]
    if not len(unreal):
        _all_live()
        if not len(everywhere):
            return
    left, right = st.columns(2, gap="medium")
    with (
        left,
        panel(t("Answers by source"), t("All that are not the tool's own, whole and of now.")),
    ):
        time_chart(view, charts.sources_over_time(unreal, axis), "degradation_sources")
    with (
        right,
        panel(t("Share of calls"), t("Of calls that were to be answered; cancelled ones are not.")),
    ):
        frame = view.buckets("page_series", axis)
        figure = rates.rates_over_time(frame, axis, (rates.DEGRADED, rates.PARTIAL), height=280)
        time_chart(view, figure, "degradation_rates")
    with left, panel(t("Age of answers"), t("Of those that tell it: from a cache, or as set.")):
        _ages(view)
    with right, panel(t("Confidence"), t("How far the caller was told to trust them.")):
        kinds = answers.with_kinds(view.ask("page_answer_kinds"))
        shown = kinds[kinds["kind"] != answers.LIVE]
        if len(shown):
            st.plotly_chart(charts.confidence(shown), key="degradation_confidence")
    answer_tables.draw(view, places, everywhere)


def _all_live() -> None:
    words = t(
        "Every answer in this window is the tool's own, whole and of that moment. A call is "
        "degraded when the live one fails and its policy has a fallback (Policy(fallback=…)) or a "
        "cache that may serve stale answers (Cache(stale=…)); it is partial when the answer lists "
        "partial_failures."
    )
    st.html(markup.notice(words, theme.OUTCOME_MARKS["ok"], "fb-all-live"))


def _ages(view: View) -> None:
    axis = view.axis(60)
    frame = view.buckets("page_answer_ages", axis)
    if len(frame):
        time_chart(view, charts.ages_over_time(frame, axis), "degradation_ages")
        return
    words = t(
        "No answer tells its age. Those of a cache do by themselves; a fallback says it with "
        "current_call().set_result_age(seconds)."
    )
    st.html(markup.quiet(words))


def _headline(view: View, series: pd.DataFrame, everywhere: pd.DataFrame) -> list[markup.Stat]:
    row, filters = view.totals(), view.filters
    counts = series.groupby("kind")["calls"].sum()
    items = [
        headline.calls(row, view.before().totals()),
        markup.Stat(
            "degraded-ratio", t("Degraded"), theme.percent(headline.degraded_ratio(row)),
            headline.degraded_ratio(row),
            n("{count} call", "{shown} calls", int(row["degraded"]),
              shown=theme.count(row["degraded"])),
            hint=t("calls answered with a stale entry, fallback or default / (all − cancelled − "
                   "abandoned − interrupted)"),
        ),
    ]  # fmt: skip
    for kind, mark in theme.ANSWER_MARKS.items():
        number = float(counts.get(kind, 0.0))
        if kind == "untold" and not number:
            continue
        items.append(
            markup.Stat(
                f"answers-{kind}", f"{mark.symbol} {mark.label}", theme.count(number), number,
                t("{share} of calls", share=theme.percent(ratio(number, row["judged"]))),
                href=filters.link("degradation", [("answer", kind)]), hint=_hint(kind),
            )
        )  # fmt: skip
    return [*items, _hits(everywhere), _age(view)]


def _hint(kind: str) -> str:
    return {
        "default": t("degraded: a constant value was served (Fallback(value=…))"),
        "fallback": t("degraded: another function or tool answered"),
        "stale": t("degraded: an entry of the cache past its time was served"),
        "untold": t("degraded, but nothing says what was served"),
        "partial": t("live answers of which some parts failed"),
        "cache": t("ok: an entry of the cache within its time; no attempt was made"),
    }[kind]


def _hits(places: pd.DataFrame) -> markup.Stat:
    hits = answers.cache_hit_ratio(places)
    note = t("of calls there") if hits is not None else t("no cache seen")
    return markup.Stat(
        "cache-hit-ratio", t("Cache hits"), theme.percent(hits), hits, note,
        hint=t("answers from a cache within their time / calls that were to be answered, of tools "
               "and regions where a cache was seen at work"),
    )  # fmt: skip


def _age(view: View) -> markup.Stat:
    frame = view.ask("page_answer_ages", bucket_us=WHOLE_WINDOW)
    row = record(frame) if len(frame) else {"p50": None, "p95": None, "oldest": None}
    oldest = t("oldest {oldest}", oldest=theme.seconds(row["oldest"]))
    hint = t(
        "age of answers that tell it, from a cache or as a tool sets it; p50 {p50}",
        p50=theme.seconds(row["p50"]),
    )
    return markup.Stat("answer-age-p95", t("Age p95"), theme.seconds(row["p95"]), row["p95"],
                       oldest if len(frame) else t("no age told"), hint=hint)  # fmt: skip
