"""The history of alerts: one row for each time an alert was active, from its state changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import streamlit as st

from fuseboard_dashboard import alerting, tables, theme
from fuseboard_dashboard.language import t
from fuseboard_dashboard.view import View

_SAME = ["alert", "severity", "labels", "active_at"]
"""What state changes of one time have in common."""
_OVER = ("resolved", "inactive")


def episodes(changes: pd.DataFrame, until: datetime) -> pd.DataFrame:
    """Return one row per time that an alert was active, the newest first.

    Args:
        changes: Rows of ``page_alert_history``; the beginning of what began before its window is
            known from its other columns.
        until: End of the window: what is not over by then lasts until then.

    Returns:
        ``alert``, ``severity``, ``labels``, ``active_at``, ``fired_at`` (NaT: it never fired),
        ``state`` (its last), ``ended`` (NaT: not over), ``seconds`` since it fired, or since it
        began where it never did, and ``begin``, ``worst`` and ``last`` value.
    """
    ordered = changes.sort_values("time", kind="stable")
    groups = ordered.groupby(_SAME, dropna=False, sort=False)
    found = groups.agg(
        fired_at=("fired_at", "max"), state=("state", "last"), changed=("time", "last"),
        begin=("value", "first"), last=("value", "last"), highest=("value", "max"),
        peak=("peak", "max"),
    ).reset_index()  # fmt: skip
    found["worst"] = found[["peak", "highest"]].astype(float).max(axis=1)
    is_over = found["state"].isin(_OVER)
    found["ended"] = found["changed"].where(is_over)
    end = found["ended"].fillna(pd.Timestamp(until.astimezone(UTC).replace(tzinfo=None)))
    begun = found["fired_at"].fillna(found["active_at"])
    found["seconds"] = (end - begun).dt.total_seconds().clip(lower=0.0)
    return found.sort_values("changed", ascending=False, kind="stable").drop(
        columns=["changed", "highest", "peak"]
    )


def draw(view: View, changes: pd.DataFrame) -> pd.DataFrame:
    """Draw the table; return its rows, to download.

    Args:
        view: For the window and the zone.
        changes: Rows of ``page_alert_history``.
    """
    found = tables.cut(episodes(changes, view.window.until))

    def values(column: str) -> list[str]:
        return [alerting.value_words(*pair)
                for pair in zip(found["alert"], found[column], strict=True)]  # fmt: skip

    shown: dict[str, Any] = {
        "began": view.local(found["active_at"]),
        "state": tables.marked(found["state"], theme.ALERT_STATE_MARKS),
        "alert": found["alert"],
        "about": found["labels"].map(alerting.label_words),
        "lasted": [theme.span(pd.Timedelta(seconds=value)) for value in found["seconds"]],
        "begin": values("begin"),
        "worst": values("worst"),
        "last": values("last"),
        "severity": tables.marked(found["severity"], theme.SEVERITY_MARKS),
    }
    st.dataframe(
        pd.DataFrame(shown), hide_index=True, height=tables.height(found), key="alert_episodes",
        column_config={
            "began": st.column_config.DatetimeColumn(
                t("Began"), format="YYYY-MM-DD HH:mm:ss", width=155,
                help=t("When its condition turned true, {zone}", zone=view.zone_name)),
            "state": st.column_config.TextColumn(t("State"), width=95),
            "severity": st.column_config.TextColumn(t("Severity"), width=110),
            "alert": st.column_config.TextColumn(t("Alert"), width=195),
            "about": st.column_config.TextColumn(t("About"), width=190),
            "lasted": st.column_config.TextColumn(
                t("Lasted"), width=95, help=t("Since it fired, until it was over or until now")),
            "begin": st.column_config.TextColumn(
                t("First"), width=70, help=t("Value at its first change in the window")),
            "worst": st.column_config.TextColumn(
                t("Worst"), width=70, help=t("The worst value that was evaluated until its last "
                                             "change of state")),
            "last": st.column_config.TextColumn(
                t("Last"), width=70, help=t("Value at its last change of state")),
        },
    )  # fmt: skip
    return found
