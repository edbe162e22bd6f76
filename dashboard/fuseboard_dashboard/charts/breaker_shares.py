"""Breakers in long windows: of each bar's time the share in which they were not closed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.charts.breakers import MAX_BREAKERS, above_rates
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.language import t

ROW_PIXELS: Final = 34
LEAST_SHARE: Final = 0.06
"""Shares below are no pixel high: they get a mark instead of a bar."""

_STACKED: Final = (BreakerState.ISOLATED, BreakerState.OPEN, BreakerState.HALF_OPEN,
                   theme.UNKNOWN_STATE)  # fmt: skip
_MARKERS: Final = {
    BreakerState.ISOLATED: "x", BreakerState.OPEN: "circle-open", BreakerState.HALF_OPEN: "diamond",
    theme.UNKNOWN_STATE: "line-ew-open",
}  # fmt: skip
_FULL: Final = 0.78
"""Height of a bar that was in a state all the time, in rows."""


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
        series: Counts as of ``breakers.states_above_rates``, in the buckets of ``axis``.
        axis: The time axis of the rates; of the same window.
        limit: The retry rate's threshold and its words.
    """
    drawn = list(breakers)[:MAX_BREAKERS]
    figure = above_rates(drawn, ROW_PIXELS, series, axis, limit)
    _add_shares(figure, shares, drawn, bars)
    return figure


def _add_shares(
    figure: go.Figure, shares: pd.DataFrame, breakers: list[str], bars: TimeAxis
) -> None:
    places = {name: place for place, name in enumerate(breakers)}
    for place in places.values():
        # The closed state: where nothing stands on it.
        figure.add_hline(
            y=place + _FULL / 2, line={"color": theme.GREY, "width": 1}, row=1, col=1,
            exclude_empty_subplots=False,
        )  # fmt: skip
    rows = _stacked(shares[shares["breaker"].isin(breakers)], bars)
    rows["foot"] = rows["breaker"].map(places) + _FULL / 2 - rows["below"] * _FULL
    for state in _STACKED:
        own = rows[rows["state"] == state]
        _add_bars(figure, own[own["share"] >= LEAST_SHARE], state, bars)
        _add_marks(figure, own[own["is_lone"]], state, bars)


def _stacked(shares: pd.DataFrame, bars: TimeAxis) -> pd.DataFrame:
    """Return shares of each bar's time, the worst state below, with the words for the whole bar.

    ``is_lone`` marks the worst state of bars in which no state lasted long enough to be drawn.
    """
    rows = shares.copy()
    rows["whole"] = [_seconds(moment, bars) for moment in rows["bucket"]]
    rows["share"] = (rows["seconds"] / rows["whole"]).clip(upper=1.0)
    rows["rank"] = rows["state"].map({state: rank for rank, state in enumerate(_STACKED)})
    rows = rows.sort_values(["breaker", "bucket", "rank"], kind="stable")
    bar = rows.groupby(["breaker", "bucket"])
    rows["below"] = bar["share"].cumsum() - rows["share"]
    rows["is_lone"] = (bar["share"].transform("max") < LEAST_SHARE) & (bar.cumcount() == 0)
    words = {key: _words(group, bars) for key, group in bar}
    rows["words"] = [words[row.breaker, row.bucket] for row in rows_of(rows)]
    return rows


def _add_bars(figure: go.Figure, rows: pd.DataFrame, state: str, bars: TimeAxis) -> None:
    if not len(rows):
        return
    mark = theme.mark(theme.STATE_MARKS, state)
    figure.add_bar(
        x=_middles(rows, bars), base=rows["foot"].to_list(), y=(-rows["share"] * _FULL).to_list(),
        width=bars.bucket_seconds * 1000, name=f"{mark.symbol} {mark.label}",
        marker=base.bar_fill(mark), hovertext=rows["words"].to_list(),
        hovertemplate="%{hovertext}<extra></extra>", row=1, col=1,
    )  # fmt: skip


def _add_marks(figure: go.Figure, rows: pd.DataFrame, state: str, bars: TimeAxis) -> None:
    if not len(rows):
        return
    mark = theme.mark(theme.STATE_MARKS, state)
    under = t("{state}, under {share} of the bar", state=mark.label,
              share=theme.limit(LEAST_SHARE))  # fmt: skip
    figure.add_scatter(
        x=_middles(rows, bars), y=(rows["foot"] - _FULL / 6).to_list(), mode="markers", name=under,
        marker={"symbol": _MARKERS[state], "size": 7, "color": mark.colour, "line": {"width": 1.6}},
        hovertext=rows["words"].to_list(), hovertemplate="%{hovertext}<extra></extra>",
        row=1, col=1,
    )  # fmt: skip


def _middles(rows: pd.DataFrame, bars: TimeAxis) -> list[object]:
    return list(bars.middles(pd.DatetimeIndex(rows["bucket"])))


def _words(rows: pd.DataFrame, bars: TimeAxis) -> str:
    """Return how long a breaker was in which state in one bar, the worst first."""
    states = t(", ").join(
        t("{state} {time} ({share})", state=theme.mark(theme.STATE_MARKS, row.state).label.lower(),
          time=theme.seconds(row.seconds) if row.seconds < 60 else
          theme.span(timedelta(seconds=row.seconds)), share=theme.percent(row.share))
        for row in rows_of(rows)
    )  # fmt: skip
    first = next(rows_of(rows))
    start = bars.wall(max(first.bucket.to_pydatetime().replace(tzinfo=UTC), bars.window.since))
    return t(
        "{breaker}: {states} of {whole} from {moment}", breaker=base.label(first.breaker, 60),
        states=states, whole=theme.span(timedelta(seconds=first.whole)),
        moment=start.strftime(t("%d %b %H:%M")),
    )  # fmt: skip


def _seconds(bucket: pd.Timestamp, bars: TimeAxis) -> float:
    """Return how much of a bar lies in the window: the first and the last may be cut."""
    start = bucket.to_pydatetime().replace(tzinfo=UTC)
    end = start + timedelta(seconds=bars.bucket_seconds)
    inside = min(end, bars.window.until) - max(start, bars.window.since)
    return max(inside.total_seconds(), 1e-6)
