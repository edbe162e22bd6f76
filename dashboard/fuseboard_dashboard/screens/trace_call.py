"""Parts of the Trace page: its numbers, what a call's line opens to, and the table of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from fuseboard_dashboard import (
    contexts,
    markup,
    scales,
    sessions,
    story,
    tables,
    theme,
    traces,
    waterfall,
)
from fuseboard_dashboard.charts import lanes
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.tracing import Trace
from fuseboard_dashboard.view import View
from fuseboard_dashboard.waterfall import CALL, Row


def head(view: View, trace: Trace) -> None:
    """Draw which trace it is, and its numbers."""
    calls = trace.calls
    begin = min((row.start for row in trace.rows), default=None)
    facts = [(t("Began"), f"{view.clock(begin)} {view.zone_name}")]
    for title, column in ((t("Agent"), "agent"), (t("Service"), "service"),
                          (t("Environment"), "environment")):  # fmt: skip
        values = list(dict.fromkeys(calls[column].dropna()))
        if values:
            more = f" +{len(values) - 1}" if len(values) > 1 else ""
            facts.append((title, markup.shorten(str(values[0])) + more))
    st.html(
        f'<div class="fb fb-trace" data-testid="fb-trace" data-trace="{markup.esc(trace.id)}">'
        f'<span class="fb-mono">{markup.esc(trace.id)}</span>'
        + "".join(f"<span>{markup.esc(k)} <b>{markup.esc(v)}</b></span>" for k, v in facts)
        + _sessions(view, calls)
        + markup.link(f"<u>{markup.esc(t('Other traces'))}</u>", view.filters.link("trace"))
        + "</div>"
    )
    st.html(markup.stats(_numbers(trace)))


def _sessions(view: View, calls: pd.DataFrame) -> str:
    """Return links to the sessions of a trace: mostly one."""
    named = calls[calls["session"].notna()].drop_duplicates("session", keep="last").head(3)
    links = [
        markup.link(f"<u>{markup.esc(markup.shorten(row.session, 60))}</u>",
                    sessions.link(view.filters, row.session, row.end))
        for row in rows_of(named)
    ]  # fmt: skip
    return f"<span>{markup.esc(t('Session'))} {', '.join(links)}</span>" if links else ""


def _numbers(trace: Trace) -> list[markup.Stat]:
    calls, made = trace.calls, [row for row in trace.rows if row.kind == CALL]
    faulty = sum(waterfall.is_faulty(row) for row in made)
    attempts, retried = int(calls["attempts"].sum()), int((calls["attempts"] > 1).sum())
    waited = float(calls["backoff_seconds"].fillna(0.0).sum())
    shown = made or trace.rows
    length = (max(r.end for r in shown) - min(r.start for r in shown)).total_seconds()
    tools = calls["tool"].nunique()
    numbers = [
        markup.Stat("trace-seconds", t("Time"), theme.seconds(length), length,
                    t("first call to last"),
                    hint=t("from the start of the first call to the end of the last")),
        markup.Stat("trace-calls", t("Calls"), theme.count(len(calls)), len(calls),
                    n("of {count} tool", "of {count} tools", tools)),
        markup.Stat("trace-faults", t("Faulty calls"), theme.count(faulty), faulty,
                    t("handled or not"), "bad" if faulty else "",
                    hint=t("calls that carry an error class, handled or not")),
        markup.Stat("trace-attempts", t("Attempts"), theme.count(attempts), attempts,
                    n("{count} call retried", "{count} calls retried", retried)),
        markup.Stat("trace-backoff", t("Back-off"), theme.seconds(waited), waited,
                    t("between attempts")),
        markup.Stat("trace-changes", t("Breakers"), theme.count(len(trace.changes)),
                    len(trace.changes), t("changed by calls")),
    ]  # fmt: skip
    told = contexts.of_models(trace.spans)
    read, written = (told[name].dropna() for name in ("input_tokens", "output_tokens"))
    if len(read) or len(written):
        total = float(read.sum() + written.sum())
        note = t("{read} in, {written} out", read=theme.count(float(read.sum())),
                 written=theme.count(float(written.sum())))  # fmt: skip
        numbers.append(markup.Stat("trace-tokens", t("Tokens"), theme.count(total), total, note,
                                   hint=t("as far as spans of models tell")))  # fmt: skip
    cost = calls["cost"].dropna()
    if len(cost):
        total = float(cost.sum())
        numbers.append(markup.Stat("trace-cost", t("Cost"), f"{total:,.4g}", total,
                                   t("as tools report it")))  # fmt: skip
    return numbers


def opened(trace: Trace) -> str | None:
    """Return the span id of the call to open: the first with the worst fault; else the only one."""
    made = [row for row in trace.rows if row.kind == CALL]
    for wanted in (("error", "rejected"), ("degraded", "partial")):
        for row in made:
            if row.data.outcome in wanted:
                return str(row.data.span_id)
    retried = [row for row in made if row.data.attempts > 1]
    first = retried[0] if retried else made[0] if len(made) == 1 else None
    return None if first is None else str(first.data.span_id)


def inside(view: View, trace: Trace) -> Callable[[Row], str]:
    """Return what makes the markup that a call's line opens to."""
    caused: dict[Any, list[Any]] = {}
    for change in waterfall.known(trace.changes):
        caused.setdefault(change.span_id, []).append(change)

    def draw(row: Row) -> str:
        own = [row.data.span_id, *(attempt.span_id for attempt in row.attempts)]
        changes = [change for span in dict.fromkeys(own) if span for change in caused.get(span, ())]
        return _story(row, changes) + _facts(view, row.data) + _ways(view, row.data)

    return draw


def _story(row: Row, changes: list[Any]) -> str:
    told = "".join(f"<li>{markup.esc(words)}</li>" for words in story.tell(row, changes))
    odd = "".join(f'<p class="fb-odd">? {markup.esc(w)}</p>' for w in waterfall.oddities(row))
    message = row.data.error_message
    said = f'<p class="fb-said fb-break fb-mono">{markup.esc(message)}</p>' if message else ""
    close = ""
    if len(row.attempts) > 1:
        own = scales.of_call(row)
        close = (
            f'<div class="fb-close"><span class="fb-lane">{lanes.call_bars(row, own)}</span>'
            f"<small>{markup.esc(theme.seconds(own.length.total_seconds()))}</small></div>"
        )
    return f'<div>{close}<ol data-testid="fb-story">{told}</ol>{said}{odd}</div>'


def _facts(view: View, call: Any) -> str:
    facts = (
        (t("Ended"), view.clock(call.end)),
        (t("Argument hash"), call.args_hash),
        (t("Classifier"), call.classifier_id),
        (t("Error type"), call.error_type),
        (t("Cause"), call.cause_type),
        (t("HTTP status"), None if call.http_status is None else int(call.http_status)),
        (t("Decided by"), call.layer),
        (t("Fault of"), call.origin),
        (t("Strategy"), call.retry_strategy),
        (t("Upstream"), call.upstream or call.server),
        (t("Agent"), call.agent),
        (t("Service"), call.service),
        (t("Cost"), None if call.cost is None else f"{call.cost:,.4g}"),
        (t("Call id"), call.call_id),
        (t("Span id"), call.span_id),
        (t("Recorded by"), call.instrumentation),
    )
    rows = "".join(
        f'<dt>{markup.esc(title)}</dt><dd class="fb-break">'
        f"{markup.esc(markup.shorten(str(value), 200))}</dd>"
        for title, value in facts
        if value is not None
    )
    return f"<dl>{rows}</dl>"


def _ways(view: View, call: Any) -> str:
    ways = traces.ways(view.filters, view.window, call, view.source.clock())
    links = " ".join(markup.link(f"<u>{markup.esc(words)}</u>", href) for words, href in ways)
    return f'<nav class="fb-ways" aria-label="{markup.esc(t("More of the same"))}">{links}</nav>'


def table(view: View, trace: Trace) -> None:
    """Draw all calls as a table."""
    calls = trace.calls
    shown = pd.DataFrame(
        {
            "start": view.local(calls["start"]),
            "tool": calls["tool"],
            "region": calls["region"],
            "outcome": tables.marked(calls["outcome"], theme.OUTCOME_MARKS),
            "class": tables.marked(calls["error_class"], theme.CLASS_MARKS),
            "error": tables.blank(calls["error_type"]).map(tables.last_part),
            "message": tables.blank(calls["error_message"]),
            "attempts": calls["attempts"],
            "duration": calls["duration_seconds"],
            "backoff": calls["backoff_seconds"],
            "decided": tables.blank(calls["layer"]),
            "arguments": tables.blank(calls["args_hash"]),
        }
    )
    rarely = ("class", "error", "message")
    drop = [column for column in rarely if (shown[column] == "").all()]
    column = st.column_config
    st.dataframe(
        shown.drop(columns=drop), hide_index=True, height=tables.height(shown), key="trace_calls",
        column_config={
            "start": tables.times(t("Began"), view, shown["start"]),
            "tool": column.TextColumn(t("Tool"), width=140),
            "region": column.TextColumn(t("Region"), width=110),
            "outcome": column.TextColumn(t("Outcome"), width=110),
            "class": column.TextColumn(t("Class"), width=130),
            "error": column.TextColumn(t("Error type"), width=150),
            "message": column.TextColumn(t("Message"), width=320),
            "attempts": column.NumberColumn(t("Attempts"), width=80),
            "duration": column.NumberColumn(t("Duration (s)"), format="%.3f", width=100),
            "backoff": column.NumberColumn(t("Back-off (s)"), format="%.3f", width=100),
            "decided": column.TextColumn(t("Decided by"), width=100),
            "arguments": column.TextColumn(t("Argument hash"), width=170),
        },
    )  # fmt: skip
