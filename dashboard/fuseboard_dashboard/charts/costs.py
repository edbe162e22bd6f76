"""What attempts cost over time, and how much of it went into failed ones."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.language import t

USED = theme.Mark("Other attempts", theme.SLATE, "●")
FAILED = theme.Mark("Failed attempts", theme.RETRY_COLOUR, "↻", "/")


def costs_over_time(frame: pd.DataFrame, axis: TimeAxis, height: int = 240) -> go.Figure:
    """Stack the cost of attempts per bucket: of failed ones at the bottom, of others on top.

    Args:
        frame: Rows of ``page_cost_series``: bucket, attempt_cost, failed_cost.
        axis: Time and bucket width.
        height: Pixels.
    """
    figure = base.new(height)
    columns = ["attempt_cost", "failed_cost"]
    filled = axis.fill(frame[["bucket", *columns]], columns)
    used = filled["attempt_cost"] - filled["failed_cost"]
    for mark, values in ((FAILED, filled["failed_cost"]), (USED, used)):
        figure.add_bar(
            x=axis.middles(pd.DatetimeIndex(filled.index)), y=values.to_numpy(),
            name=f"{mark.symbol} {mark.label}", marker=base.bar_fill(mark),
            hovertemplate="%{y:,.4~g}", width=axis.bucket_seconds * 1000 * 0.94,
        )  # fmt: skip
    figure.update_layout(barmode="stack")
    base.time_axis(figure, axis)
    base.value_axis(figure, t("cost per {width}", width=axis.bucket_label))
    return figure
