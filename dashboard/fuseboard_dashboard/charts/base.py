"""What every figure shares. Backgrounds and font colours are left to the page's theme."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from html import escape
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from fuseboard_dashboard import theme
from fuseboard_dashboard.filters import Window
from fuseboard_dashboard.language import t
from fuseboard_dashboard.markup import shorten

HEIGHT: Final = 260
STANDOFF: Final = 14
"""Pixels between the longest tick label and the title of a y axis; less makes them touch."""
MAX_POINTS: Final = 5000
"""Most points of one trace; more freeze the browser and can't be told apart."""

Limit = tuple[float, Callable[[], str]]
"""A threshold, and what gives its words."""

_GAP_FILL: Final = theme.GREY
_GAP_OPACITY: Final = 0.10


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The time that a figure covers, and how it is cut.

    Attributes:
        window: (since, until] in UTC.
        bucket_seconds: Width of a bucket.
        zone: The viewer's zone; the axis shows its wall time.
        zone_name: As shown in the axis title.
    """

    window: Window
    bucket_seconds: int
    zone: tzinfo
    zone_name: str

    @property
    def bucket_label(self) -> str:
        """Return the width in words, for units like ``calls per 10 s``."""
        for size, unit in ((86400, t("day")), (3600, t("h")), (60, t("min"))):
            if self.bucket_seconds % size == 0:
                number = self.bucket_seconds // size
                return unit if number == 1 else f"{number} {unit}"
        return t("s") if self.bucket_seconds == 1 else f"{self.bucket_seconds} {t('s')}"

    def grid(self) -> pd.DatetimeIndex:
        """Return the start of every bucket of the window, those without calls included."""
        width = self.bucket_seconds
        first = (_microseconds(self.window.since) // 1_000_000) // width * width
        last = (_microseconds(self.window.until) - 1) // 1_000_000 // width * width
        start, end = (datetime.fromtimestamp(edge, UTC) for edge in (first, last))
        return pd.date_range(
            start.replace(tzinfo=None), end.replace(tzinfo=None), freq=f"{width}s", unit="us"
        )

    def fill(self, frame: pd.DataFrame, counts: Sequence[str]) -> pd.DataFrame:
        """Return one row per bucket: counts are 0 where there were no calls, the rest is NaN."""
        index = frame.set_index("bucket") if len(frame) else frame.reindex(columns=frame.columns)
        if not len(frame):
            index = frame.drop(columns="bucket").set_index(pd.DatetimeIndex([], name="bucket"))
        filled = index.reindex(self.grid())
        return filled.assign(**{name: filled[name].fillna(0.0) for name in counts})

    def middles(self, buckets: pd.DatetimeIndex) -> list[datetime]:
        """Return the middle of each bucket as wall time of the viewer."""
        half = timedelta(seconds=self.bucket_seconds / 2)
        return [self.wall(moment.to_pydatetime() + half) for moment in buckets]

    def wall(self, moment: datetime) -> datetime:
        """Turn a UTC moment into wall time of the viewer, as Plotly shows it."""
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware.astimezone(self.zone).replace(tzinfo=None)

    @property
    def title(self) -> str:
        """Return the axis title: its unit is the zone."""
        return t("time ({zone})", zone=escape(self.zone_name))


def _microseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def label(name: object, limit: int = 34) -> str:
    """Return a foreign name for a figure: Plotly reads markup in texts, so it is escaped."""
    text = "".join(c if c.isprintable() else " " for c in str(name))
    return escape(shorten(text, limit), quote=False)


def new(height: int = HEIGHT) -> go.Figure:
    """Return an empty figure with the common layout."""
    figure = go.Figure()
    arrange(figure, height)
    return figure


def arrange(figure: go.Figure, height: int) -> None:
    """Give a figure the common margins, legend and hover."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 46, "t": 34, "b": 8},
        hovermode="x unified",
        # A lone series is named too: nobody knows a class by its colour.
        showlegend=True,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "xanchor": "left",
                "title": {"text": ""}},
        bargap=0.06,
    )  # fmt: skip


def time_axis(figure: go.Figure, axis: TimeAxis, **where: int) -> None:
    """Fix the x axis to the whole window, so that charts of a page line up."""
    ends = [axis.wall(axis.window.since), axis.wall(axis.window.until)]
    figure.update_xaxes(
        type="date", range=ends, title={"text": axis.title, "standoff": 6}, showgrid=False,
        tickformatstops=_time_forms(), hoverformat=t("%b %-d, %Y, %H:%M:%S"), **where,
    )  # fmt: skip


def _time_forms() -> list[dict[str, object]]:
    """Return how moments read at ticks that are so many milliseconds apart, as d3 writes it.

    Plotly's own forms are English, whatever the language; the second line is drawn only where it
    differs from the tick before.
    """
    forms = (
        (1_000, t("%H:%M:%S.%L\n%b %-d, %Y")),
        (60_000, t("%H:%M:%S\n%b %-d, %Y")),
        (86_400_000, t("%H:%M\n%b %-d, %Y")),
    )
    edges = [None, *(edge for edge, _ in forms)]
    stops: list[dict[str, object]] = [
        # Both ends of a range belong to it, the first that fits counts.
        {"dtickrange": [edges[place], edge - 1], "value": value}
        for place, (edge, value) in enumerate(forms)
    ]
    return [*stops, {"dtickrange": [86_400_000, None], "value": t("%b %-d\n%Y")}]


def value_axis(figure: go.Figure, unit: str, tickformat: str = "", **where: int) -> None:
    """Start the y axis at zero and name its unit."""
    figure.update_yaxes(
        title={"text": unit, "standoff": STANDOFF}, rangemode="tozero", nticks=6,
        tickformat=tickformat or None, **where,
    )  # fmt: skip


def shade_gaps(figure: go.Figure, axis: TimeAxis, calls: pd.Series, panel: str = "") -> None:
    """Shade the stretches without any call: no data looks different from a value of zero.

    Args:
        figure: Shapes are added to it, at most one per stretch.
        axis: Its time.
        calls: Calls per bucket of the grid.
        panel: Number of the subplot's axes, as Plotly counts them; empty = the only one.
    """
    empty = (calls == 0).to_numpy()
    width = timedelta(seconds=axis.bucket_seconds)
    starts = [m.to_pydatetime() for m in pd.DatetimeIndex(calls.index)]
    begin: datetime | None = None
    for start, is_empty in zip([*starts, None], [*empty, False], strict=True):
        if is_empty and begin is None:
            begin = start
        elif not is_empty and begin is not None:
            end = start if start is not None else starts[-1] + width
            figure.add_shape(
                type="rect", x0=axis.wall(begin), x1=axis.wall(end), y0=0, y1=1, xref=f"x{panel}",
                yref=f"y{panel} domain", fillcolor=_GAP_FILL, opacity=_GAP_OPACITY, line_width=0,
                layer="below", name=t("no calls"),
            )  # fmt: skip
            begin = None


def limit_line(
    figure: go.Figure,
    value: float,
    words: str | Callable[[], str],
    *,
    is_log: bool = False,
    **where: int,
) -> None:
    """Draw a threshold; its words, trusted markup, stand right of the plot, clear of all lines.

    Args:
        figure: The line is added to it.
        value: Where the threshold is.
        words: What it is, or what returns that.
        is_log: Whether the axis is logarithmic.
        where: Row and column of a subplot.
    """
    line = {"color": theme.LIMIT_COLOUR, "width": 1.4, "dash": "dash"}
    figure.add_hline(y=value, line=line, **where)
    # Plotly places annotations of a logarithmic axis by the logarithm.
    shown = math.log10(value) if is_log else value
    figure.add_annotation(
        x=1, xref="x domain", xanchor="left", xshift=4, y=shown, yanchor="middle",
        text=words() if callable(words) else words, showarrow=False, align="left", **where,
    )  # fmt: skip


def line(mark: theme.Mark, width: float = 2.0) -> dict[str, object]:
    """Return the line style of a mark."""
    return {"color": mark.colour, "dash": mark.dash, "width": width}


def bar_fill(mark: theme.Mark) -> dict[str, object]:
    """Return the bar style of a mark: its colour and its pattern."""
    pattern = {"shape": mark.pattern, "size": 6, "solidity": 0.22, "fillmode": "overlay"}
    return {"color": mark.colour, "pattern": pattern, "line": {"width": 0}}
