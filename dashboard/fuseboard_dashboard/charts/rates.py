"""Rates over time against their line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import pandas as pd
import plotly.graph_objects as go

from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.language import later, t


@dataclass(frozen=True, slots=True)
class Rate:
    """A ratio of two count columns, drawn as one line."""

    name: Callable[[], str]
    part: str
    whole: str
    mark: theme.Mark


ERRORS = Rate(later("Error rate"), "errors", "judged", theme.Mark("Errors", theme.ERROR_COLOUR, "✖",
              dash="solid", marker="x"))  # fmt: skip
RETRIES = Rate(
    later("Retry rate"),
    "retried",
    "attempted",
    theme.Mark("Retries", theme.RETRY_COLOUR, "↻", dash="dash", marker="diamond"),
)
DEGRADED = Rate(later("Degraded"), "degraded", "judged", theme.OUTCOME_MARKS["degraded"])
PARTIAL = Rate(later("Partial"), "partials", "judged", theme.OUTCOME_MARKS["partial"])


def rates_over_time(
    frame: pd.DataFrame,
    axis: TimeAxis,
    rates: tuple[Rate, ...],
    limit: base.Limit | None = None,
    height: int = 260,
) -> go.Figure:
    """Draw rates of counts per bucket; no calls = a gap, none of them bad = a line at 0 %.

    Args:
        frame: Rows with ``bucket``, ``calls`` and the columns of the rates.
        axis: Time and bucket width.
        rates: What to draw.
        limit: A threshold (0 to 1) and its words.
        height: Pixels.
    """
    figure = base.new(height)
    columns = sorted({"calls", *(c for rate in rates for c in (rate.part, rate.whole))})
    filled = axis.fill(frame[["bucket", *columns]], columns)
    for rate in rates:
        add_rate(figure, filled, axis, rate)
    base.shade_gaps(figure, axis, filled["calls"])
    if limit is not None:
        base.limit_line(figure, *limit)
    base.time_axis(figure, axis)
    base.value_axis(figure, t("share of calls (%)"), ".0%")
    top = max((max(t.y[~pd.isna(t.y)], default=0.0) for t in figure.data), default=0.0)
    floor = limit[0] * 1.7 if limit else 0.05
    figure.update_yaxes(range=[0, min(1.05, max(float(top) * 1.12, floor))])
    return figure


def add_rate(
    figure: go.Figure, filled: pd.DataFrame, axis: TimeAxis, rate: Rate, **where: int
) -> None:
    """Add one rate's line to a figure; ``filled`` has one row per bucket of the grid."""
    values = filled[rate.part] / filled[rate.whole].where(filled[rate.whole] > 0)
    figure.add_trace(
        go.Scatter(
            x=axis.middles(pd.DatetimeIndex(filled.index)), y=values.to_numpy(), name=rate.name(),
            mode="lines+markers", connectgaps=False, line=base.line(rate.mark),
            marker={"symbol": rate.mark.marker, "size": 5, "color": rate.mark.colour},
            hovertemplate="%{y:.1%}",
        ),
        **where,
    )  # fmt: skip


def lines_by_name(
    frames: Mapping[str, pd.DataFrame],
    axis: TimeAxis,
    rate: Rate,
    limit: base.Limit | None = None,
    height: int = 300,
) -> go.Figure:
    """Draw one rate for several tools, at most six.

    Args:
        frames: Rows per bucket by tool name, most important first.
        axis: Time and bucket width.
        rate: Which ratio.
        limit: A threshold (0 to 1) and its words.
        height: Pixels.
    """
    figure = base.new(height)
    styles = zip(theme.SERIES, theme.SERIES_DASHES, theme.SERIES_MARKERS, strict=True)
    for (name, frame), (colour, dash, marker) in zip(frames.items(), styles, strict=False):
        mark = theme.Mark(name, colour, "", dash=dash, marker=marker, is_foreign=True)
        filled = axis.fill(frame[["bucket", rate.part, rate.whole]], [rate.part, rate.whole])
        add_rate(figure, filled, axis, Rate(partial(base.label, name), rate.part, rate.whole, mark))
    if limit is not None:
        base.limit_line(figure, *limit)
    base.time_axis(figure, axis)
    base.value_axis(figure, t("share of calls (%)"), ".0%")
    return figure
