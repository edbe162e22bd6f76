"""The rules of the catalogue as the Alerts page shows them: what they mean, how close they are."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.model import Ratio, Rule, SlowShare, StateFor
from fuseboard_alerts.runbooks import runbook
from fuseboard_dashboard import alerting, markup, theme
from fuseboard_dashboard.data import CACHE
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.rulebook import (
    MOST,
    Standing,
    asked,
    distance,
    promql,
    sql,
    standings,
    window_seconds,
)
from fuseboard_dashboard.view import View


def draw(view: View, rules: Sequence[Rule] = CATALOGUE) -> None:
    """Draw the table of rules and below it a fold for each, with its series and queries."""
    found = {rule.id: _standings(view, rule) for rule in rules}
    headers = ((t("Alert"), False), (t("Severity"), False), (t("Fires when"), False),
               (t("Window"), True), (t("For"), True), (t("Keeps firing"), True),
               (t("Closest now"), False))  # fmt: skip
    st.html(markup.table(headers, [_row(view, rule, found[rule.id]) for rule in rules]))
    for rule in rules:
        severity = theme.SEVERITY_MARKS[rule.severity]
        with st.expander(f"{rule.name} · {severity.symbol} {severity.label}"):
            _fold(view, rule, found[rule.id])


def _standings(view: View, rule: Rule) -> list[Standing]:
    wanted = asked(rule, view.window.until, view.source.alert_time_scale)
    answer = CACHE.ask(view.source.reader, wanted.query, dict(wanted.parameters), view.source.clock)
    view.read_times.append(answer.read_at)
    return standings(rule, answer.table.to_pylist())


def _row(view: View, rule: Rule, found: Sequence[Standing]) -> list[str]:
    scale = view.source.alert_time_scale
    name = f'<span title="{markup.esc(t(rule.summary))}">{markup.esc(rule.name)}</span>'
    return [
        name,
        markup.badge(theme.SEVERITY_MARKS[rule.severity]),
        markup.esc(condition_words(rule)),
        scaled(window_seconds(rule), scale),
        scaled(rule.hold, scale),
        scaled(rule.keep_firing, scale),
        _closest(view, rule, found),
    ]


def _closest(view: View, rule: Rule, found: Sequence[Standing]) -> str:
    if not found:
        return f'<span class="fb-quiet">{markup.esc(t("nothing to judge"))}</span>'
    first = found[0]
    where = _where(view, rule, first)
    flag = '<span class="fb-flag">▲</span>' if first.is_true else ""
    below = f'<div class="fb-quiet">{where}</div>' if first.labels else ""
    words = f"{flag}{markup.esc(distance(rule, first))}"
    return f'<div class="fb-closest">{words}{below}</div>'


def _where(view: View, rule: Rule, one: Standing) -> str:
    labels = one.labels
    own = view.filters.narrowed(tool=labels.get("tool"), region=labels.get("region"))
    words = " · ".join(labels[key] for key in ("tool", "region") if key in labels)
    page = alerting.CAUSES.get(rule.name, "errors")
    return markup.link(markup.name(words or t("everything")), own.link(page))


def _fold(view: View, rule: Rule, found: Sequence[Standing]) -> None:
    words = f"{markup.esc(t(rule.summary))} {markup.esc(_meaning(rule))}"
    st.html(f'<div class="fb"><p>{words}</p></div>')
    if found:
        headers = ((t("Series"), False), (t("Job"), False), (t("Now, and the threshold"), False),
                   (t("Events"), True), (t("Calls"), True), (t("Condition"), False))  # fmt: skip
        st.html(markup.table(headers, [_series(view, rule, one) for one in found[:MOST]]))
        if len(found) > MOST:
            st.caption(n("{count} more is further away.", "{count} more are further away.",
                         len(found) - MOST))  # fmt: skip
    else:
        words = t("No series to judge: no call that it counts ended in its window.")
        st.html(f'<div class="fb fb-quiet">{markup.esc(words)}</div>')
    st.caption(t("As Prometheus evaluates it (`fuseboard alerts render`)"))
    st.code(promql(rule), language="yaml")
    st.caption(t("As it is evaluated here, on the store; these are DuckDB's words"))
    st.code(sql(rule, view.window.until, view.source.alert_time_scale), language="sql")
    if page := runbook(rule.name):
        st.markdown(page.replace("## ", "#### "))


def _meaning(rule: Rule) -> str:
    if isinstance(rule.condition, StateFor):
        return t("One series for each job, tool and region, the worst of all processes.")
    if rule.labels:
        return t("One series for each job, tool and region. Too few calls or events keep it quiet.")
    return t("One series for everything.")


def _series(view: View, rule: Rule, one: Standing) -> list[str]:
    mark = theme.ALERT_STATE_MARKS["firing" if one.is_true else "inactive"]
    share = max(0.0, min(1.0, one.closeness))
    bar = (
        f'<span class="fb-closeness" style="--c:{mark.colour};--s:{share:.1%}" '
        f'data-testid="fb-standing" data-rule="{markup.esc(rule.id)}" '
        f'data-tool="{markup.esc(one.labels.get("tool", ""))}" '
        f'data-region="{markup.esc(one.labels.get("region", ""))}" '
        f'data-value="{one.value!r}" data-threshold="{one.threshold!r}" '
        f'data-true="{str(one.is_true).lower()}">{markup.esc(distance(rule, one))}</span>'
    )
    return [
        _where(view, rule, one),
        markup.name(one.labels.get("job", theme.NOTHING)),
        bar,
        theme.count(one.events),
        theme.count(one.calls),
        markup.badge(mark, t("true") if one.is_true else t("false")),
    ]


def scaled(seconds: float, scale: float) -> str:
    """Return a window or hold in words, with the real time behind it where it is scaled."""
    if not seconds:
        return theme.NOTHING
    real = _round(seconds)
    return real if scale == 1 else f"{_round(seconds * scale)} ({real})"


def _round(seconds: float) -> str:
    if seconds >= 3600 and seconds % 3600 == 0:
        return f"{seconds / 3600:g} h"
    return f"{seconds / 60:g} min" if seconds % 60 == 0 else f"{seconds:g} s"


def condition_words(rule: Rule) -> str:
    """Return a rule's condition in words, with its threshold and guards."""
    condition = rule.condition
    if isinstance(condition, Ratio | SlowShare):
        return t(
            "{what} above {limit}, of at least {calls} calls and {events} events",
            what=_subject(condition), limit=theme.limit(condition.above),
            calls=condition.minimum_calls, events=condition.minimum_events,
        )  # fmt: skip
    if isinstance(condition, StateFor):
        states = t(" or ").join(
            theme.mark(theme.STATE_MARKS, state).label.lower() for state in condition.states
        )
        return t("a breaker is {states} in any process", states=states)
    return t("no agent process reports any more")


def _subject(condition: Ratio | SlowShare) -> str:
    if isinstance(condition, SlowShare):
        return t("calls slower than {seconds} s", seconds=f"{condition.slower_than:g}")
    known = {
        "failed_calls": t("failed calls"),
        "semantically_wrong_calls": t("semantically wrong calls"),
        "retried_calls": t("retried calls"),
    }
    return known.get(condition.subject, condition.subject.replace("_", " "))


def as_frame(view: View, rules: Sequence[Rule] = CATALOGUE) -> pd.DataFrame:
    """Return every series of every rule, to download."""
    return pd.DataFrame(
        [
            {"alert": rule.name, "severity": str(rule.severity), **one.labels, "value": one.value,
             "threshold": one.threshold, "calls": one.calls, "events": one.events,
             "is_true": one.is_true}
            for rule in rules for one in _standings(view, rule)
        ]
    )  # fmt: skip
