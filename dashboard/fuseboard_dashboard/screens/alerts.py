"""Alerts: what fires, what fired, and by which rules."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import streamlit as st

from fuseboard_alerts.catalogue import CATALOGUE, rule_names
from fuseboard_alerts.model import Absent, Ratio, Rule, SlowShare, StateFor
from fuseboard_alerts.runbooks import runbook
from fuseboard_dashboard import alerting, markup, tables, theme
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.view import View, panel


def page() -> None:
    """Draw the page; rules are worth reading before the first call."""
    question = "What fires, what fired, and by which rules?"
    show(PageFrame("Alerts", question, _body, needs_calls=False))


def _body(view: View) -> None:
    with panel():
        notice = alerting.scale_notice(view)
        if notice:
            st.html(notice)
        active = view.ask("page_alerts_now")
        history = view.ask("page_alert_history")
        st.html(markup.stats(_headline(active, history)))
        if len(active):
            st.html(alerting.strip(view, active, most=50))
        else:
            st.html(markup.notice("Nothing fires, nothing is pending.",
                                  theme.ALERT_STATE_MARKS["resolved"], "fb-no-alerts"))  # fmt: skip
    names = list(dict.fromkeys(active["alert"]))
    if names:
        with panel("What to do"):
            _runbooks(names)
    with panel("History", "State changes in the window, newest first."):
        _history(view, history)
    words = "From the alert catalogue; the Prometheus rules are made from the same source."
    with panel("Rules", words):
        st.html(_rules(view))
    with panel("Runbooks", "What each alert means, and what to do about it."):
        _runbooks([name for name in rule_names() if name not in names])


def _runbooks(names: Iterable[str]) -> None:
    for name in names:
        page = runbook(name)
        if page is not None:
            with st.expander(name):
                st.markdown(page.replace("## ", "#### "))


def _headline(active: pd.DataFrame, history: pd.DataFrame) -> list[markup.Stat]:
    def number(frame: pd.DataFrame, state: str) -> int:
        return int((frame["state"] == state).sum())

    firing, pending = number(active, "firing"), number(active, "pending")
    silent = number(active, "no_data")
    fired, resolved = number(history, "firing"), number(history, "resolved")
    return [
        markup.Stat("alerts-firing", "Firing", str(firing), firing, "now", "bad" if firing else ""),
        markup.Stat("alerts-pending", "Pending", str(pending), pending, "condition true, on hold",
                    "warn" if pending else ""),
        markup.Stat("alerts-no-data", "No data", str(silent), silent, "fired, then fell silent"),
        markup.Stat("alerts-fired", "Fired", str(fired), fired, "in the window"),
        markup.Stat("alerts-resolved", "Resolved", str(resolved), resolved, "in the window"),
    ]  # fmt: skip


def _history(view: View, frame: pd.DataFrame) -> None:
    if not len(frame):
        st.html('<div class="fb fb-quiet">No alert changed its state in this window.</div>')
        return
    shown = tables.cut(frame)
    st.dataframe(
        pd.DataFrame(
            {
                "time": view.local(shown["time"]),
                "state": tables.marked(shown["state"], theme.ALERT_STATE_MARKS),
                "severity": tables.marked(shown["severity"], theme.SEVERITY_MARKS),
                "alert": shown["alert"],
                "about": shown["labels"].map(alerting.label_words),
                "value": [
                    alerting.value_words(alert, value)
                    for alert, value in zip(shown["alert"], shown["value"], strict=True)
                ],
            }
        ),
        hide_index=True, height=tables.height(shown), key="alert_history",
        column_config={
            "time": st.column_config.DatetimeColumn(
                "Time", format="YYYY-MM-DD HH:mm:ss", width=165, help=view.zone_name),
            "state": st.column_config.TextColumn("State", width=110),
            "severity": st.column_config.TextColumn("Severity", width=110),
            "alert": st.column_config.TextColumn("Alert", width=210),
            "about": st.column_config.TextColumn("About", width=330),
            "value": st.column_config.TextColumn(
                "Value", width=90, help="Measured when the state began"),
        },
    )  # fmt: skip
    download(view, shown, "alerts", "history")


def _rules(view: View) -> str:
    scale = view.source.alert_time_scale
    headers = (("Alert", False), ("Severity", False), ("Fires when", False), ("Window", True),
               ("For", True), ("Keeps firing", True))  # fmt: skip
    return markup.table(headers, [_rule_row(rule, scale) for rule in CATALOGUE])


def _rule_row(rule: Rule, scale: float) -> list[str]:
    window = (
        rule.condition.lookback if isinstance(rule.condition, Absent) else rule.condition.window
    )
    name = f'<span title="{markup.esc(rule.summary)}">{markup.esc(rule.name)}</span>'
    return [
        name,
        markup.badge(theme.SEVERITY_MARKS[rule.severity]),
        markup.esc(condition_words(rule)),
        _scaled(window, scale),
        _scaled(rule.hold, scale),
        _scaled(rule.keep_firing, scale),
    ]


def _scaled(seconds: float, scale: float) -> str:
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
        if isinstance(condition, SlowShare):
            what = f"calls slower than {condition.slower_than:g} s"
        else:
            what = condition.subject.replace("_", " ")
        return (
            f"{what} above {theme.limit(condition.above)}, of at least "
            f"{condition.minimum_calls} calls and {condition.minimum_events} events"
        )
    if isinstance(condition, StateFor):
        states = " or ".join(state.replace("_", "-") for state in condition.states)
        return f"a breaker is {states} in any process"
    return "no agent process reports any more"
