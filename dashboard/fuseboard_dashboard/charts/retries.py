"""What retries cost and what they bring."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.language import t

FIRST = theme.Mark("First try", theme.ORANGE, "◆", "/", marker="diamond")
FINAL = theme.Mark("After retries", theme.SLATE, "●", "", marker="circle")
AMPLIFICATION = theme.Mark("Amplification", theme.PURPLE, "×", dash="solid", marker="circle")


def amplification_over_time(frame: pd.DataFrame, axis: TimeAxis, height: int = 260) -> go.Figure:
    """Draw attempts per call that made one; 1 = no retries.

    Args:
        frame: Rows with ``bucket``, ``calls``, ``attempts_made``, ``attempted``.
        axis: Time and bucket width.
        height: Pixels.
    """
    figure = base.new(height)
    counts = ["calls", "attempts_made", "attempted"]
    filled = axis.fill(frame[["bucket", *counts]], counts)
    values = filled["attempts_made"] / filled["attempted"].where(filled["attempted"] > 0)
    figure.add_scatter(
        x=axis.middles(pd.DatetimeIndex(filled.index)), y=values.to_numpy(), connectgaps=False,
        mode="lines+markers", name=AMPLIFICATION.label, line=base.line(AMPLIFICATION),
        marker={"size": 5, "color": AMPLIFICATION.colour}, hovertemplate=t("%{y:.2f} attempts"),
    )  # fmt: skip
    base.shade_gaps(figure, axis, filled["calls"])
    base.time_axis(figure, axis)
    base.value_axis(figure, t("attempts per call (×)"))
    known = values.dropna()
    figure.update_yaxes(range=[0.9, max(1.6, float(known.max()) * 1.1 if len(known) else 1.6)])
    return figure


def first_and_final(frame: pd.DataFrame, height: int | None = None) -> go.Figure:
    """Draw first-try success against final success per tool; the line between is what retries won.

    Args:
        frame: Rows with ``tool``, ``attempted``, ``first_try``, ``succeeded``, worst first;
            at most 40 are drawn.
        height: Pixels; None fits the number of tools.
    """
    shown = frame.head(40).iloc[::-1]
    figure = base.new(height or 110 + 28 * len(shown))
    names = [base.label(tool) for tool in shown["tool"]]
    first = (shown["first_try"] / shown["attempted"]).to_numpy()
    final = (shown["succeeded"] / shown["attempted"]).to_numpy()
    x: list[float | None] = []
    y: list[float | None] = []
    for spot, (low, high) in enumerate(zip(first.tolist(), final.tolist(), strict=True)):
        x += [low, high, None]
        y += [spot, spot, None]
    figure.add_scatter(x=x, y=y, mode="lines", showlegend=False, hoverinfo="skip",
                       line={"color": theme.GREY, "width": 3})  # fmt: skip
    for mark, values in ((FIRST, first), (FINAL, final)):
        figure.add_scatter(
            x=values, y=list(range(len(names))), mode="markers", name=mark.label, text=names,
            marker={"symbol": mark.marker, "size": 10, "color": mark.colour},
            hovertemplate="%{text}: %{x:.1%}",
        )  # fmt: skip
    figure.update_xaxes(title={"text": t("successful calls (%)"), "standoff": 6}, tickformat=".0%")
    figure.update_yaxes(
        title={"text": t("tool")}, tickvals=list(range(len(names))), ticktext=names, showgrid=False,
        range=[-0.6, max(len(names) - 0.4, 0.6)],
    )  # fmt: skip
    figure.update_layout(hovermode="closest")
    return figure


def failures_by_attempt(frame: pd.DataFrame, height: int = 260) -> go.Figure:
    """Stack failed attempts by their number within the call and by class.

    Args:
        frame: Rows of ``page_attempt_faults``: error_class, number (10 = 10 or more), failures.
        height: Pixels.
    """
    figure = base.new(height)
    numbers = sorted(frame["number"].unique().tolist())
    table = frame.pivot_table(
        index="number", columns="error_class", values="failures", aggfunc="sum"
    )
    for value, mark in theme.CLASS_MARKS.items():
        if value in table.columns:
            figure.add_bar(
                x=[str(n) if n < 10 else "10+" for n in numbers], y=table[value].fillna(0.0),
                name=f"{mark.symbol} {mark.label}", marker=base.bar_fill(mark),
                hovertemplate=t("%{y:,.0f} failed"),
            )  # fmt: skip
    figure.update_layout(barmode="stack", bargap=0.4)
    figure.update_xaxes(title={"text": t("attempt (number within the call)"), "standoff": 6},
                        type="category")  # fmt: skip
    base.value_axis(figure, t("failed attempts (count)"))
    return figure
