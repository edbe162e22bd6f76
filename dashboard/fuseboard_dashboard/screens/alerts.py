"""Alerts: what fires, what fired, and by which rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pandas as pd
import streamlit as st

from fuseboard_alerts.runbooks import runbook
from fuseboard_dashboard import alerting, episodes, markup, muting, rule_pages, tables, theme
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.refresh import PageFrame, show
from fuseboard_dashboard.view import View, panel

MOST_CHANGES: Final = 1000
"""As many as the store tells of at once."""


def page() -> None:
    """Draw the page; rules are worth reading before the first call."""
    question = t("What fires, what fired, and by which rules?")
    show(PageFrame(t("Alerts"), question, _body, needs_calls=False))


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
            st.html(markup.notice(t("Nothing fires, nothing is pending."),
                                  theme.ALERT_STATE_MARKS["resolved"], "fb-no-alerts"))  # fmt: skip
    names = list(dict.fromkeys(active["alert"]))
    if names:
        with panel(t("What to do")):
            _runbooks(names)
    with panel(t("Muted"), t("Evaluated and shown as ever; receivers hear nothing until it ends.")):
        muting.draw(view, active)
    with panel(t("History"), t("Alerts that changed in the window, the last to change first.")):
        _history(view, history)
    words = t("From the alert catalogue; the Prometheus rules are made from the same source. Open "
              "a rule for its series, its queries and its runbook.")  # fmt: skip
    with panel(t("Rules"), words):
        rule_pages.draw(view)
        download(view, rule_pages.as_frame(view), "alerts", "rules")


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
    more = "+" if len(history) >= MOST_CHANGES else ""  # of the newest alone
    return [
        markup.Stat("alerts-firing", t("Firing"), str(firing), firing, t("now"),
                    "bad" if firing else ""),
        markup.Stat("alerts-pending", t("Pending"), str(pending), pending,
                    t("condition true, on hold"), "warn" if pending else ""),
        markup.Stat("alerts-no-data", t("No data"), str(silent), silent,
                    t("fired, then fell silent")),
        markup.Stat("alerts-fired", t("Fired"), f"{fired}{more}", fired, t("in the window")),
        markup.Stat("alerts-resolved", t("Resolved"), f"{resolved}{more}", resolved,
                    t("in the window")),
    ]  # fmt: skip


def _history(view: View, frame: pd.DataFrame) -> None:
    if not len(frame):
        words = markup.esc(t("No alert changed its state in this window."))
        st.html(f'<div class="fb fb-quiet">{words}</div>')
        return
    download(view, episodes.draw(view, frame), "alerts", "episodes")
    with st.expander(t("Every change of state")):
        _changes(view, frame)


def _changes(view: View, frame: pd.DataFrame) -> None:
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
                t("Time"), format="YYYY-MM-DD HH:mm:ss", width=165, help=view.zone_name),
            "state": st.column_config.TextColumn(t("State"), width=110),
            "severity": st.column_config.TextColumn(t("Severity"), width=110),
            "alert": st.column_config.TextColumn(t("Alert"), width=210),
            "about": st.column_config.TextColumn(t("About"), width=330),
            "value": st.column_config.TextColumn(
                t("Value"), width=90, help=t("Measured when the state began")),
        },
    )  # fmt: skip
    download(view, shown, "alerts", "history")
