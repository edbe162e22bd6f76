"""Tables that several pages show: single calls, and labels for their cells."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import streamlit as st

from fuseboard_dashboard import theme, traces
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.view import View

MAX_ROWS: Final = 1000
SAMPLE_ROWS: Final = 100


def marked(values: pd.Series, family: dict[str, theme.Mark]) -> pd.Series:
    """Return symbol and label for each value of a family; absent stays empty."""

    def words(value: object) -> str:
        if value is None or value != value:
            return ""
        found = theme.mark(family, value)
        return f"{found.symbol} {found.label}"

    return values.map(words)


def blank(values: pd.Series) -> pd.Series:
    """Return texts with nothing where there is none: a table full of "None" hides what is there."""
    return values.astype(object).where(values.notna(), "")


def whole(values: pd.Series) -> pd.Series:
    """Return whole numbers as texts, with nothing where there is none."""
    return values.map(lambda value: "" if pd.isna(value) else f"{value:.0f}")


def last_part(name: str) -> str:
    """Return the last part of a dotted name, as of ``httpx.ConnectError``; a code stays whole."""
    return name.rsplit(".", 1)[-1] or name


def height(frame: pd.DataFrame) -> int:
    """Return the pixels that a table needs, at most twelve rows' worth."""
    return 38 + 35 * min(len(frame), 11)


def times(label: str, view: View, column: pd.Series, hint: str = "", *, pinned: bool = True) -> Any:
    """Return the column of times of day, with their dates unless all are of the window's last day.

    Args:
        label: Its heading.
        view: For the window's end and the zone.
        column: The times, in the viewer's zone.
        hint: What it says; empty = the zone.
        pinned: Whether it stays in sight when the table is moved sideways.
    """
    days = {*column.dropna().dt.date, view.window.until.astimezone(view.zone).date()}
    is_dated = len(days) > 1
    return st.column_config.DatetimeColumn(
        label, format="MM-DD HH:mm:ss.SSS" if is_dated else "HH:mm:ss.SSS", pinned=pinned,
        width=150 if is_dated else 110, help=hint or view.zone_name,
    )  # fmt: skip


def sample_calls(view: View, frame: pd.DataFrame, key: str) -> None:
    """Draw rows of ``page_calls``, newest first as they come.

    Args:
        view: For the zone.
        frame: The rows.
        key: Unique on the page; begins with the name of the page.
    """
    shown = pd.DataFrame(
        {
            "time": view.local(frame["end"]),
            "trace": traces.links(view.filters, frame["trace_id"], frame["end"]),
            "tool": frame["tool"],
            "region": frame["region"],
            "outcome": marked(frame["outcome"], theme.OUTCOME_MARKS),
            "class": marked(frame["error_class"], theme.CLASS_MARKS),
            "error": blank(frame["error_type"]).map(last_part),
            "message": blank(frame["error_message"]),
            "status": whole(frame["http_status"]),
            "attempts": frame["attempts"],
            "duration": frame["duration_seconds"],
            "backoff": frame["backoff_seconds"],
            "decided": blank(frame["layer"]),
            "classifier": blank(frame["classifier_id"]),
            "full_type": blank(frame["error_type"]),
            "arguments": blank(frame["args_hash"]),
        }
    )
    rarely = ("error", "full_type", "status", "class", "message")
    drop = [column for column in rarely if (shown[column] == "").all()]
    st.dataframe(
        shown.drop(columns=drop), hide_index=True, height=height(shown), key=key,
        column_config={
            "time": times(t("Ended"), view, shown["time"],
                          t("End of the call, {zone}", zone=view.zone_name)),
            "tool": st.column_config.TextColumn(t("Tool"), width=115),
            "region": st.column_config.TextColumn(t("Region"), width=100),
            "outcome": st.column_config.TextColumn(t("Outcome"), width=100),
            "class": st.column_config.TextColumn(t("Class"), width=120),
            "error": st.column_config.TextColumn(
                t("Error type"), width=140,
                help=t("Last part of its name; the full name is in the column Full type")),
            "message": st.column_config.TextColumn(t("Message"), width=300),
            "status": st.column_config.TextColumn(t("HTTP"), width=60),
            "attempts": st.column_config.NumberColumn(t("Attempts"), width=78),
            "duration": st.column_config.NumberColumn(t("Duration (s)"), format="%.3f", width=100),
            "backoff": st.column_config.NumberColumn(t("Back-off (s)"), format="%.3f", width=100),
            "decided": st.column_config.TextColumn(t("Decided by"), width=95),
            "classifier": st.column_config.TextColumn(t("Classifier"), width=150),
            "full_type": st.column_config.TextColumn(t("Full type"), width=260),
            "arguments": st.column_config.TextColumn(t("Argument hash"), width=165),
            "trace": st.column_config.LinkColumn(
                t("Trace"), display_text=traces.LINK_SHOWS, width=95,
                help=t("Opens what happened around this call, in a new tab")),
        },
    )  # fmt: skip
    download(view, frame, key.partition("_")[0], "calls")


def cut(frame: pd.DataFrame, rows: int = MAX_ROWS) -> pd.DataFrame:
    """Return at most ``rows`` rows; more would freeze the browser."""
    return frame.head(rows)
