"""The table of breakers' transitions: when, why, on what counts, and which call caused each."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from fuseboard_dashboard import markup, tables, theme, traces
from fuseboard_dashboard.downloads import download
from fuseboard_dashboard.language import t
from fuseboard_dashboard.view import View
from fuseboard_dashboard.vocabulary import reason_words


def draw(view: View, frame: pd.DataFrame) -> None:
    """Draw rows of ``page_breaker_transitions`` as they come, newest first.

    Args:
        view: For the zone and links.
        frame: The rows.
    """
    if not len(frame):
        words = markup.esc(t("No breaker changed its state in this window."))
        st.html(f'<div class="fb fb-quiet">{words}</div>')
        return
    shown = tables.cut(frame)
    no_window = t("In the breaker's window; – where a probe or the clock decided")
    st.dataframe(
        pd.DataFrame(
            {
                "time": view.local(shown["time"]),
                "breaker": shown["breaker"],
                "from": tables.marked(shown["from_state"], theme.STATE_MARKS),
                "to": tables.marked(shown["to_state"], theme.STATE_MARKS),
                "reason": shown["reason"].map(reason_words),
                "trace": tables.blank(
                    traces.links(view.filters, shown["trace_id"], shown["time"])),
                "ratio": shown["failure_ratio"].where(shown["calls"] > 0).map(theme.percent),
                "failures": _counted(shown, "failures"),
                "calls": _counted(shown, "calls"),
                "class": tables.marked(shown["error_class"], theme.CLASS_MARKS),
                "service": tables.blank(shown["service"]),
                "process": tables.blank(shown["instance"]),
            }
        ),
        hide_index=True, height=tables.height(shown), key="breaker_transitions",
        column_config={
            "time": tables.times(t("Time"), view, view.local(shown["time"])),
            "breaker": st.column_config.TextColumn(t("Breaker"), width=215),
            "from": st.column_config.TextColumn(t("From"), width=105),
            "to": st.column_config.TextColumn(t("To"), width=105),
            "reason": st.column_config.TextColumn(t("Reason"), width=165),
            "ratio": st.column_config.TextColumn(t("Failure ratio"), width=105),
            "failures": st.column_config.TextColumn(t("Failures"), width=80, help=no_window),
            "calls": st.column_config.TextColumn(t("Calls"), width=70, help=no_window),
            "class": st.column_config.TextColumn(t("Class"), width=130),
            "trace": st.column_config.LinkColumn(
                t("Caused by"), display_text=traces.LINK_SHOWS, width=95,
                help=t("The trace of the call that caused it, in a new tab")),
            "service": st.column_config.TextColumn(t("Service"), width=120),
            "process": st.column_config.TextColumn(t("Process"), width=120),
        },
    )  # fmt: skip
    download(view, shown, "breakers", "transitions")


def _counted(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return the counts of the window that decided; a probe or the end of a break has none."""
    return frame[column].where(frame["calls"] > 0).map(theme.count)
