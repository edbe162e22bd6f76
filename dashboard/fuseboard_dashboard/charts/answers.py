"""Where answers came from over time, how old they were, and how far to trust them."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from fuseboard.conventions import Confidence
from fuseboard.policy.cache_memory import FAIR_SECONDS, SURE_SECONDS
from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base, calls
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.language import t

AGE_MARKS = {
    "p50": theme.QUANTILE_MARKS["p50"],
    "p95": theme.QUANTILE_MARKS["p95"],
    "oldest": theme.QUANTILE_MARKS["slowest"],
}
_LEAST_AGE = 0.1
"""Seconds; a logarithmic axis has no place for 0."""
_TICKS = (0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800)


def sources_over_time(frame: pd.DataFrame, axis: TimeAxis, height: int = 280) -> go.Figure:
    """Stack answers that are not the tool's own of this moment, by their kind.

    Args:
        frame: Rows with ``bucket``, ``kind``, ``calls``.
        axis: Time and bucket width.
        height: Pixels.
    """
    order = list(reversed(theme.ANSWER_MARKS))
    unit = t("answers per {time}", time=axis.bucket_label)
    return calls.stacked(frame, axis, "kind", theme.ANSWER_MARKS, order, unit, height)


def ages_over_time(frame: pd.DataFrame, axis: TimeAxis, height: int = 280) -> go.Figure:
    """Draw how old answers were, against the ages that the shim's confidence changes at.

    Args:
        frame: Rows of ``page_answer_ages``: bucket, answers, p50, p95, oldest (seconds).
        axis: Time and bucket width.
        height: Pixels.
    """
    figure = base.new(height)
    filled = axis.fill(frame[["bucket", "answers", *AGE_MARKS]], ["answers"])
    middles = axis.middles(pd.DatetimeIndex(filled.index))
    for name, mark in AGE_MARKS.items():
        ages = filled[name].astype(float)
        figure.add_scatter(
            x=middles, y=ages.clip(lower=_LEAST_AGE).to_numpy(), connectgaps=False,
            name=t("oldest") if name == "oldest" else mark.label,
            mode="markers" if name == "oldest" else "lines+markers",
            line=base.line(mark), marker={"symbol": mark.marker, "size": 6, "color": mark.colour},
            text=[theme.seconds(age) for age in ages], hovertemplate="%{text}",
        )  # fmt: skip
    base.limit_line(figure, SURE_SECONDS, t("medium<br>from here"), is_log=True)
    base.limit_line(figure, FAIR_SECONDS, t("low<br>from here"), is_log=True)
    base.time_axis(figure, axis)
    figure.update_yaxes(
        type="log", title={"text": t("age of answers (log)"), "standoff": base.STANDOFF},
        tickvals=list(_TICKS), ticktext=[_tick(age) for age in _TICKS],
    )  # fmt: skip
    figure.update_layout(margin={"r": 76})
    return figure


def _tick(age: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if age >= size:
            return f"{age / size:g} {unit}"
    return f"{age:g} s"


def confidence(frame: pd.DataFrame, height: int = 280) -> go.Figure:
    """Stack answers that are not live by the confidence they carry, and by kind.

    Args:
        frame: Rows with ``kind``, ``confidence``, ``calls``.
        height: Pixels.
    """
    names = {
        Confidence.HIGH.value: t("high"), Confidence.MEDIUM_HIGH.value: t("medium high"),
        Confidence.MEDIUM.value: t("medium"), Confidence.LOW.value: t("low"), "": t("not told"),
    }  # fmt: skip
    told = frame["confidence"].astype(object).where(frame["confidence"].notna(), "")
    table = frame.assign(told=told.map(lambda value: names.get(value, base.label(value))))
    table = table.pivot_table(index="told", columns="kind", values="calls", aggfunc="sum")
    rows = [name for name in (*names.values(), *sorted(set(table.index) - set(names.values())))
            if name in table.index]  # fmt: skip
    table = table.reindex(rows).fillna(0.0)
    figure = base.new(height)
    for value, mark in theme.ANSWER_MARKS.items():
        if value in table.columns:
            figure.add_bar(
                y=rows, x=table[value].to_numpy(), name=f"{mark.symbol} {mark.label}",
                orientation="h", marker=base.bar_fill(mark), hovertemplate="%{x:,.0f}",
            )  # fmt: skip
    figure.update_layout(barmode="stack", hovermode="y unified", bargap=0.35)
    figure.update_xaxes(title={"text": t("answers (count)"), "standoff": 6}, rangemode="tozero")
    figure.update_yaxes(
        title={"text": t("confidence"), "standoff": base.STANDOFF}, autorange="reversed"
    )
    return figure
