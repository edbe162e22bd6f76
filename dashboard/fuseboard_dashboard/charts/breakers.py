"""Breaker states above the errors and retries that drove them, on one time axis."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base, rates
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.language import t

ROW_PIXELS: Final = 26
MAX_BREAKERS: Final = 30
LONGEST_EXACT: Final = timedelta(hours=6)
"""In longer windows a pixel stands for half a minute and more: an opening of seconds would be drawn
as long as that, so bars show shares of their time instead."""
_RATES_PIXELS: Final = 210
_THIN: Final = (BreakerState.CLOSED, theme.UNKNOWN_STATE)


def states_above_rates(
    timeline: pd.DataFrame, series: pd.DataFrame, axis: TimeAxis, limit: base.Limit
) -> go.Figure:
    """Draw one bar of states per breaker and below them the error and retry rate of their tools.

    Args:
        timeline: Rows of ``page_breaker_timeline``: breaker, state, began, ended (UTC).
        series: Rows per bucket with ``calls``, ``errors``, ``judged``, ``retried``,
            ``attempted`` of the same tools and regions.
        axis: The shared time axis.
        limit: The retry rate's threshold and its words.
    """
    breakers = list(dict.fromkeys(timeline["breaker"]))[:MAX_BREAKERS]
    figure = above_rates(breakers, ROW_PIXELS, series, axis, limit)
    _add_states(figure, timeline, breakers, axis)
    return figure


def above_rates(
    breakers: list[str], row: int, series: pd.DataFrame, axis: TimeAxis, limit: base.Limit
) -> go.Figure:
    """Return the rates with empty rows of breakers above, both on one time axis.

    Args:
        breakers: Names, from the top.
        row: Height of each in pixels.
        series: As of :func:`states_above_rates`.
        axis: The shared time axis.
        limit: The retry rate's threshold and its words.
    """
    top = row * max(len(breakers), 1) + 24
    height = top + _RATES_PIXELS + 120
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, vertical_spacing=34 / height,
        row_heights=[top, _RATES_PIXELS],
    )  # fmt: skip
    base.arrange(figure, height)
    columns = ["calls", "errors", "judged", "retried", "attempted"]
    filled = axis.fill(series[["bucket", *columns]], columns)
    for rate in (rates.ERRORS, rates.RETRIES):
        rates.add_rate(figure, filled, axis, rate, row=2, col=1)
    base.shade_gaps(figure, axis, filled["calls"], panel="2")
    base.limit_line(figure, *limit, row=2, col=1)
    base.time_axis(figure, axis)
    figure.update_xaxes(title={"text": ""}, showticklabels=False, row=1, col=1)
    base.value_axis(figure, t("share of calls (%)"), ".0%", row=2, col=1)
    figure.update_yaxes(
        title={"text": t("breaker")}, tickvals=list(range(len(breakers))), showgrid=False,
        ticktext=[base.label(name, 40) for name in breakers], zeroline=False,
        range=[max(len(breakers), 1) - 0.4, -0.6], row=1, col=1,
    )  # fmt: skip
    figure.update_layout(hovermode="closest", barmode="overlay")
    return figure


def _add_states(
    figure: go.Figure, timeline: pd.DataFrame, breakers: list[str], axis: TimeAxis
) -> None:
    places = {name: place for place, name in enumerate(breakers)}
    shown = timeline[timeline["breaker"].isin(breakers)]
    for state, mark in theme.STATE_MARKS.items():
        rows = shown[shown["state"] == state]
        if not len(rows):
            continue
        starts = [axis.wall(moment.to_pydatetime()) for moment in rows["began"]]
        lengths = (rows["ended"] - rows["began"]).dt.total_seconds()
        texts = [
            t("{breaker}: {state} for {time}", breaker=base.label(row.breaker, 60),
              state=mark.label.lower(), time=theme.span(row.ended - row.began))
            for row in rows_of(rows)
        ]  # fmt: skip
        figure.add_bar(
            base=starts, x=(lengths * 1000).to_list(), y=[places[b] for b in rows["breaker"]],
            orientation="h", width=0.34 if state in _THIN else 0.74,
            name=f"{mark.symbol} {mark.label}", marker=base.bar_fill(mark), text=None,
            hovertext=texts, hovertemplate="%{hovertext}<extra></extra>", row=1, col=1,
        )  # fmt: skip
