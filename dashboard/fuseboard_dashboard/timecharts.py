"""Charts over time, in which dragging chooses the window."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from fuseboard_dashboard import sidebar
from fuseboard_dashboard.view import View
from fuseboard_dashboard.windows import Window, rfc3339


def time_chart(view: View, figure: go.Figure, key: str) -> None:
    """Draw a chart over time; a range dragged in it becomes the window of all pages.

    Args:
        view: For the zone of its axis.
        figure: Its x axes are times of :class:`~fuseboard_dashboard.charts.base.TimeAxis`.
        key: Unique on the page.
    """
    window = view.filters
    if window.is_custom:
        # A chart of its own for each window: the box that chose it stays behind with the old one.
        key = f"{key} {rfc3339(view.window.since)} {rfc3339(view.window.until)}"
    figure.update_layout(dragmode="select", selectdirection="h")

    def dragged() -> None:
        found = dragged_window(st.session_state.get(key), view.zone)
        if found is not None:
            sidebar.zoom(found)

    st.plotly_chart(figure, key=key, on_select=dragged, selection_mode="box")


def dragged_window(event: Any, zone: tzinfo) -> Window | None:
    """Return the window of a selection that Streamlit reports; None where no range was chosen.

    Args:
        event: The chart's value: boxes with the wall times of their edges, in any order.
        zone: Of those wall times.
    """
    boxes = ((event or {}).get("selection") or {}).get("box") or []
    if not boxes:
        return None
    try:
        edges = sorted(pd.Timestamp(edge).to_pydatetime(warn=False) for edge in boxes[-1]["x"])
        since, *_, until = (edge.replace(tzinfo=zone).astimezone(UTC) for edge in edges)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None  # what a browser sends is not ours to trust
    return Window(since, until)
