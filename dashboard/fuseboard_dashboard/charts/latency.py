"""Latency: quantiles over time, where the time goes, and the whole distribution."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.language import t

_TICKS = {0.001: "1 ms", 0.01: "10 ms", 0.1: "100 ms", 1.0: "1 s", 10.0: "10 s", 60.0: "1 min",
          600.0: "10 min"}  # fmt: skip


def quantiles_over_time(
    frame: pd.DataFrame, axis: TimeAxis, slow: float | None = None, height: int = 300
) -> go.Figure:
    """Draw p50, p95, p99 and the slowest call of each bucket on a logarithmic axis.

    Args:
        frame: Rows with ``bucket``, ``calls``, ``p50``, ``p95``, ``p99``, ``slowest`` (seconds).
        axis: Time and bucket width.
        slow: A line at this many seconds.
        height: Pixels.
    """
    figure = base.new(height)
    columns = ["calls", *theme.QUANTILE_MARKS]
    filled = axis.fill(frame[["bucket", *columns]], ["calls"])
    middles = axis.middles(pd.DatetimeIndex(filled.index))
    for name, mark in theme.QUANTILE_MARKS.items():
        figure.add_scatter(
            x=middles, y=filled[name].astype(float).to_numpy(), name=mark.label, connectgaps=False,
            mode="markers" if name == "slowest" else "lines+markers",
            line=base.line(mark), marker={"symbol": mark.marker, "size": 5, "color": mark.colour},
            hovertemplate="%{y:.3s}s",
        )  # fmt: skip
    base.shade_gaps(figure, axis, filled["calls"])
    if slow is not None:
        base.limit_line(figure, slow, t("slow:<br>{limit} s", limit=f"{slow:g}"), is_log=True)
    base.time_axis(figure, axis)
    _log_seconds(figure, t("latency of calls (s, log)"))
    return figure


def _log_seconds(figure: go.Figure, unit: str) -> None:
    figure.update_yaxes(
        type="log", title={"text": unit, "standoff": base.STANDOFF}, tickvals=list(_TICKS),
        ticktext=list(_TICKS.values()),
    )  # fmt: skip


ATTEMPT_PART = theme.Mark("Attempts", theme.SLATE, "▮")
BACKOFF_PART = theme.Mark("Back-off", theme.ORANGE, "▯", "/")
OTHER_PART = theme.Mark("Rest", theme.GREY, "▯", ".")


def split_over_time(frame: pd.DataFrame, axis: TimeAxis, height: int = 260) -> go.Figure:
    """Stack where the mean call's time goes: attempts, back-off, everything else.

    Args:
        frame: Rows with ``bucket``, ``mean_attempt``, ``mean_backoff``, ``mean`` (seconds).
        axis: Time and bucket width.
        height: Pixels.
    """
    figure = base.new(height)
    filled = axis.fill(frame[["bucket", "mean_attempt", "mean_backoff", "mean"]], [])
    rest = (filled["mean"] - filled["mean_attempt"] - filled["mean_backoff"]).clip(lower=0)
    parts = (
        (ATTEMPT_PART, filled["mean_attempt"]),
        (BACKOFF_PART, filled["mean_backoff"]),
        (OTHER_PART, rest),
    )
    for mark, values in parts:
        figure.add_bar(
            x=axis.middles(pd.DatetimeIndex(filled.index)), y=values.astype(float).to_numpy(),
            name=mark.label, marker=base.bar_fill(mark), hovertemplate="%{y:.3s}s",
            width=axis.bucket_seconds * 1000 * 0.94,
        )  # fmt: skip
    figure.update_layout(barmode="stack")
    base.time_axis(figure, axis)
    base.value_axis(figure, t("mean per call (s)"))
    return figure


def heatmap(frame: pd.DataFrame, axis: TimeAxis, height: int = 320) -> go.Figure:
    """Draw calls per bucket of time and latency; colour grows with the logarithm of the count.

    Args:
        frame: Rows of ``page_latency_heatmap``: bucket, step, calls.
        axis: Time and bucket width.
        height: Pixels.
    """
    figure = base.new(height)
    table = frame.pivot_table(index="step", columns="bucket", values="calls", aggfunc="sum")
    low, high = (int(table.index.min()), int(table.index.max())) if len(table) else (0, 1)
    table = table.reindex(index=range(low, high + 1), columns=axis.grid())
    counts = table.astype(float).to_numpy()
    edges = [_edge(step) for step in table.index]
    spans = [t("{low} to {high}", low=theme.seconds(a), high=theme.seconds(_edge(s + 1)))
             for a, s in zip(edges, table.index, strict=True)]  # fmt: skip
    figure.add_heatmap(
        x=axis.middles(pd.DatetimeIndex(table.columns)), y=np.log10(edges).tolist(),
        z=np.log10(counts), customdata=counts, text=[[span] * counts.shape[1] for span in spans],
        colorscale=[list(stop) for stop in theme.HEAT_SCALE], showscale=False, hoverongaps=False,
        xgap=0.5, ygap=0.5,
        hovertemplate=t("%{customdata:,.0f} calls of %{text}") + "<extra></extra>",
    )  # fmt: skip
    figure.update_layout(hovermode="closest")
    base.time_axis(figure, axis)
    ticks = [tick for tick in _TICKS if edges[0] / 2 <= tick <= edges[-1] * 2]
    figure.update_yaxes(
        title={"text": t("latency of calls (s, log)"), "standoff": base.STANDOFF},
        tickvals=np.log10(ticks).tolist(), ticktext=[_TICKS[tick] for tick in ticks],
        showgrid=False,
    )  # fmt: skip
    return figure


def _edge(step: int) -> float:
    """Return the lower edge of a latency step in seconds (two steps per octave from 1 ms)."""
    return float(2 ** (step / 2) / 1000)


def quantiles_by_tool(frame: pd.DataFrame, slow: float, height: int | None = None) -> go.Figure:
    """Draw the reach from p50 to p99 of each tool, calls against attempts.

    Args:
        frame: Rows of ``page_latency`` with those of ``page_attempt_latency``, slowest first; at
            most 40 are drawn.
        slow: A line at this many seconds.
        height: Pixels; None fits the number of tools.
    """
    shown = frame.head(40).iloc[::-1]
    figure = base.new(height or 110 + 30 * len(shown))
    names = [base.label(tool) for tool in shown["tool"]]
    for prefix, mark, shift in (("", ATTEMPT_PART, 0.14), ("attempt_", BACKOFF_PART, -0.14)):
        spots = np.arange(len(shown)) + shift
        what = t("Attempts (no back-off)") if prefix else t("Calls (with back-off)")
        x, y = _reaches(shown, prefix, spots)
        figure.add_scatter(x=x, y=y, mode="lines", hoverinfo="skip", showlegend=False,
                           line={"color": mark.colour, "width": 3})  # fmt: skip
        for quantile, symbol in (("p50", "circle"), ("p95", "diamond"), ("p99", "square")):
            values = shown[f"{prefix}{quantile}"].astype(float).to_numpy()
            figure.add_scatter(
                x=values, y=spots, mode="markers", name=what, legendgroup=what, text=names,
                showlegend=quantile == "p50",
                marker={"symbol": symbol + ("-open" if prefix else ""), "size": 9,
                        "color": mark.colour, "line": {"width": 1.6}},
                hovertemplate=f"%{{text}}: {quantile} %{{x:.3s}}s<extra>{what}</extra>",
            )  # fmt: skip
    figure.add_vline(x=slow, line={"color": theme.LIMIT_COLOUR, "width": 1.4, "dash": "dash"})
    # Plotly places annotations of a logarithmic axis by the logarithm.
    figure.add_annotation(
        x=math.log10(slow),
        y=1,
        yref="y domain",
        yanchor="bottom",
        text=t("slow: {limit} s", limit=f"{slow:g}"),
        showarrow=False,
    )
    figure.update_xaxes(
        type="log", title={"text": t("latency (s, log); ● p50, ◆ p95, ■ p99"), "standoff": 14},
        tickvals=list(_TICKS), ticktext=list(_TICKS.values()),
    )  # fmt: skip
    figure.update_yaxes(
        title={"text": t("tool")}, tickvals=list(range(len(names))), ticktext=names, showgrid=False,
        range=[-0.6, max(len(names) - 0.4, 0.6)],
    )  # fmt: skip
    figure.update_layout(hovermode="closest")
    return figure


def _reaches(
    shown: pd.DataFrame, prefix: str, spots: np.ndarray
) -> tuple[list[float | None], list[float | None]]:
    x: list[float | None] = []
    y: list[float | None] = []
    for low, high, spot in zip(
        shown[f"{prefix}p50"], shown[f"{prefix}p99"], spots.tolist(), strict=True
    ):
        x += [low, high, None]
        y += [spot, spot, None]
    return x, y
