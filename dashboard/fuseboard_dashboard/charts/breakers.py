"""Breaker states above the errors and retries that drove them, on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
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
SHARED_ROW_PIXELS: Final = 34
MAX_BREAKERS: Final = 30
LONGEST_EXACT: Final = timedelta(hours=6)
"""In longer windows a pixel stands for half a minute and more: an opening of seconds would be drawn
as long as that, so bars show shares of their time instead."""
LEAST_SHARE: Final = 0.06
"""Shares below are no pixel high: they get a mark instead of a bar."""

_RATES_PIXELS: Final = 210
_THIN: Final = (BreakerState.CLOSED, theme.UNKNOWN_STATE)
_STACKED: Final = (BreakerState.ISOLATED, BreakerState.OPEN, BreakerState.HALF_OPEN,
                   theme.UNKNOWN_STATE)  # fmt: skip
_FULL: Final = 0.78
"""Height of a bar that was in a state all the time, in rows."""


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
    figure = _above_rates(breakers, ROW_PIXELS, series, axis, limit)
    _add_states(figure, timeline, breakers, axis)
    return figure


def shares_above_rates(
    shares: pd.DataFrame,
    breakers: Sequence[str],
    bars: TimeAxis,
    series: pd.DataFrame,
    axis: TimeAxis,
    limit: base.Limit,
) -> go.Figure:
    """Draw for each breaker how much of every bar's time it was not closed, above the rates.

    A bar is as high as the share of its time, never longer than it was: a state of a few seconds in
    an hour is a mark on the line, and the words at it say how long it was.

    Args:
        shares: Rows of ``page_breaker_shares`` in the buckets of ``bars``.
        breakers: Names, from the top.
        bars: The time axis in bars.
        series: As of :func:`states_above_rates`, in the buckets of ``axis``.
        axis: The time axis of the rates; of the same window.
        limit: The retry rate's threshold and its words.
    """
    drawn = list(breakers)[:MAX_BREAKERS]
    figure = _above_rates(drawn, SHARED_ROW_PIXELS, series, axis, limit)
    _add_shares(figure, shares, drawn, bars)
    return figure


def _above_rates(
    breakers: list[str], row: int, series: pd.DataFrame, axis: TimeAxis, limit: base.Limit
) -> go.Figure:
    """Return the rates with empty rows of breakers above, both on one time axis."""
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


def _add_shares(
    figure: go.Figure, shares: pd.DataFrame, breakers: list[str], bars: TimeAxis
) -> None:
    places = {name: place for place, name in enumerate(breakers)}
    for place in places.values():
        figure.add_hline(
            y=place + _FULL / 2, line={"color": theme.GREY, "width": 0.6}, row=1, col=1
        )
    rows = shares[shares["breaker"].isin(breakers)].copy()
    rows["whole"] = [_seconds(moment, bars) for moment in rows["bucket"]]
    rows["share"] = (rows["seconds"] / rows["whole"]).clip(upper=1.0)
    rows["rank"] = rows["state"].map({state: rank for rank, state in enumerate(_STACKED)})
    rows = rows.sort_values(["breaker", "bucket", "rank"], kind="stable")
    rows["below"] = rows.groupby(["breaker", "bucket"])["share"].cumsum() - rows["share"]
    for state in _STACKED:
        own = rows[rows["state"] == state]
        _add_bars(figure, own[own["share"] >= LEAST_SHARE], state, places, bars)
        _add_marks(figure, own[own["share"] < LEAST_SHARE], state, places, bars)


def _add_bars(
    figure: go.Figure, rows: pd.DataFrame, state: str, places: dict[str, int], bars: TimeAxis
) -> None:
    if not len(rows):
        return
    mark = theme.mark(theme.STATE_MARKS, state)
    feet = [places[row.breaker] + _FULL / 2 - row.below * _FULL for row in rows_of(rows)]
    figure.add_bar(
        x=_middles(rows, bars), base=feet, y=(-rows["share"] * _FULL).to_list(),
        width=bars.bucket_seconds * 1000, name=f"{mark.symbol} {mark.label}",
        marker=base.bar_fill(mark), hovertext=_words(rows, mark, bars),
        hovertemplate="%{hovertext}<extra></extra>", row=1, col=1,
    )  # fmt: skip


def _add_marks(
    figure: go.Figure, rows: pd.DataFrame, state: str, places: dict[str, int], bars: TimeAxis
) -> None:
    if not len(rows):
        return
    mark = theme.mark(theme.STATE_MARKS, state)
    heights = [places[row.breaker] + _FULL / 2 - row.below * _FULL for row in rows_of(rows)]
    under = t("{state}, under {share} of the bar", state=mark.label,
              share=theme.limit(LEAST_SHARE))  # fmt: skip
    figure.add_scatter(
        x=_middles(rows, bars), y=heights, mode="text", text=mark.symbol, textposition="top center",
        textfont={"color": mark.colour, "size": 11}, hovertext=_words(rows, mark, bars),
        name=f"{mark.symbol} {under}",
        hovertemplate="%{hovertext}<extra></extra>", row=1, col=1,
    )  # fmt: skip


def _middles(rows: pd.DataFrame, bars: TimeAxis) -> list[object]:
    return list(bars.middles(pd.DatetimeIndex(rows["bucket"])))


def _words(rows: pd.DataFrame, mark: theme.Mark, bars: TimeAxis) -> list[str]:
    return [
        t("{breaker}: {state} {time} of {whole} ({share}), from {moment}",
          breaker=base.label(row.breaker, 60), state=mark.label.lower(),
          time=theme.seconds(row.seconds) if row.seconds < 60 else
          theme.span(timedelta(seconds=row.seconds)),
          whole=theme.span(timedelta(seconds=row.whole)), share=theme.percent(row.share),
          moment=f"{bars.wall(row.bucket.to_pydatetime()):%d %b %H:%M}")
        for row in rows_of(rows)
    ]  # fmt: skip


def _seconds(bucket: pd.Timestamp, bars: TimeAxis) -> float:
    """Return how much of a bar lies in the window: the first and the last may be cut."""
    start = bucket.to_pydatetime().replace(tzinfo=UTC)
    end = start + timedelta(seconds=bars.bucket_seconds)
    inside = min(end, bars.window.until) - max(start, bars.window.since)
    return max(inside.total_seconds(), 1e-6)
