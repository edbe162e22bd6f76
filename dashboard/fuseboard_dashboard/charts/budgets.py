"""What is left of error budgets over their period."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.language import t

DEEPEST: Final = -1.0
"""Where the axis ends: a budget spent five times over would squeeze the others into a line."""


def budgets_over_time(
    lines: Mapping[str, tuple[str, pd.Series]], calls: pd.Series, axis: TimeAxis, height: int = 300
) -> go.Figure:
    """Draw what is left of each budget at the end of each bucket.

    Args:
        lines: Objective → its label, and the shares left (1 = all) by bucket of the grid.
        calls: Calls by bucket; stretches without any are shaded.
        axis: Time of the period.
        height: Pixels.
    """
    figure = base.new(height)
    low = 0.0
    for kind, (name, left) in lines.items():
        mark = theme.OBJECTIVE_MARKS[kind]
        ends = [
            axis.wall(min(bucket.to_pydatetime() + pd.Timedelta(seconds=axis.bucket_seconds),
                          axis.window.until.replace(tzinfo=None)))
            for bucket in pd.DatetimeIndex(left.index)
        ]  # fmt: skip
        low = min(low, float(left.min()) if left.notna().any() else 0.0)
        figure.add_trace(
            go.Scatter(
                x=ends, y=left.to_numpy(), name=name, mode="lines+markers", line=base.line(mark),
                marker={"symbol": mark.marker, "size": 4, "color": mark.colour},
                hovertemplate="%{y:.1%}",
            )
        )  # fmt: skip
    base.shade_gaps(figure, axis, calls)
    base.limit_line(figure, 0.0, t("gone"))
    base.time_axis(figure, axis)
    base.value_axis(figure, t("budget left (%)"), ".0%")
    figure.update_yaxes(range=[max(min(low * 1.08, -0.04), DEEPEST), 1.04])
    return figure
