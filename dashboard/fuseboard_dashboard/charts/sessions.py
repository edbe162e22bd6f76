"""Sessions over time; and of one session its steps, and how its context grew."""

from __future__ import annotations

from typing import Final

import pandas as pd
import plotly.graph_objects as go

from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.language import n, t

ROW_PIXELS: Final = 26
MAX_TOOLS: Final = 30
"""Rows of a chart of steps; tools beyond share the last."""


def troubled(frame: pd.DataFrame, axis: TimeAxis, height: int = 260) -> go.Figure:
    """Draw each session at its last call, as high as it has calls, by its worst trouble.

    Args:
        frame: Rows of ``page_sessions``.
        axis: The window's.
        height: Pixels.
    """
    figure = base.new(height)
    kinds = (
        (t("Repeated calls"), frame["repeats"] > 0, theme.VIOLET, "hexagon-open"),
        (t("Faulty calls"), frame["faults"] > 0, theme.RED, "x"),
        (t("Retries"), frame["retries"] > 0, theme.ORANGE, "diamond"),
        (t("No trouble"), pd.Series(True, index=frame.index), theme.SLATE, "circle"),
    )
    left, parts = pd.Series(True, index=frame.index), []
    for label, is_such, colour, symbol in kinds:
        parts.append((label, frame[left & is_such], colour, symbol))
        left &= ~is_such
    for label, shown, colour, symbol in reversed(parts):  # the worst on top
        if not len(shown):
            continue
        words = [
            n("{session}: {count} call", "{session}: {count} calls", round(calls),
              session=base.label(session, 48))
            for session, calls in zip(shown["session"], shown["calls"], strict=True)
        ]  # fmt: skip
        figure.add_scatter(
            x=[axis.wall(moment) for moment in shown["last_end"]], y=shown["calls"], name=label,
            mode="markers", text=words,
            marker={"color": colour, "symbol": symbol, "size": 8,
                    "line": {"width": 1.2, "color": colour}},
            hovertemplate="%{text}",
        )  # fmt: skip
    figure.update_layout(hovermode="closest")
    base.time_axis(figure, axis)
    base.value_axis(figure, t("calls of a session"))
    return figure


def steps(calls: pd.DataFrame, repeated: pd.Series, axis: TimeAxis) -> go.Figure:
    """Draw each call of a session at its start, a row for each tool, by its outcome.

    Args:
        calls: Rows of ``page_session_calls``, in time.
        repeated: Which of them are the same as others.
        axis: The session's time.
    """
    tools = list(dict.fromkeys(calls["tool"]))
    rows = {tool: min(number, MAX_TOOLS - 1) for number, tool in enumerate(tools)}
    shown = calls.assign(row=calls["tool"].map(rows), number=range(1, len(calls) + 1))
    figure = base.new(ROW_PIXELS * min(len(tools), MAX_TOOLS) + 120)
    again = shown[repeated.to_numpy()]
    if len(again):
        _dots(figure, again, axis, t("Repeated"), {
            "color": theme.VIOLET, "symbol": "circle-open", "size": 19, "line": {"width": 2},
        })  # fmt: skip
    for outcome, mark in theme.OUTCOME_MARKS.items():
        of = shown[shown["outcome"] == outcome]
        if len(of):
            marker = {"color": mark.colour, "symbol": mark.marker, "size": 10,
                      "line": {"color": mark.colour, "width": 1.5}}  # fmt: skip
            _dots(figure, of, axis, f"{mark.symbol} {base.label(mark.label)}", marker)
    labels = [base.label(tool, 40) for tool in tools[:MAX_TOOLS]]
    if len(tools) > MAX_TOOLS:
        labels[-1] = t("{count} others", count=len(tools) - MAX_TOOLS + 1)
    figure.update_yaxes(
        tickvals=list(range(len(labels))), ticktext=labels, zeroline=False,
        range=[len(labels) - 0.4, -0.6], title={"text": t("tool"), "standoff": base.STANDOFF},
    )  # fmt: skip
    figure.update_layout(hovermode="closest")
    base.time_axis(figure, axis)
    return figure


def _dots(
    figure: go.Figure, of: pd.DataFrame, axis: TimeAxis, label: str, marker: dict[str, object]
) -> None:
    words = [
        t("step {number}: {tool}, {length}", number=number, tool=base.label(tool),
          length=theme.seconds(length))
        for number, tool, length in zip(of["number"], of["tool"], of["duration_seconds"],
                                        strict=True)
    ]  # fmt: skip
    figure.add_scatter(
        x=[axis.wall(moment) for moment in of["start"]], y=of["row"], name=label, mode="markers",
        text=words, marker=marker, hovertemplate="%{text}",
    )  # fmt: skip


def context(spans: pd.DataFrame, axis: TimeAxis, height: int = 240) -> go.Figure:
    """Draw what each call of a model read and wrote, in tokens.

    Args:
        spans: Rows of ``page_session_spans``, in time.
        axis: The session's time.
        height: Pixels.
    """
    figure = base.new(height)
    lines = (
        (t("Input tokens"), "input_tokens", theme.BLUE, "solid", "circle"),
        (t("Output tokens"), "output_tokens", theme.AMBER, "dot", "diamond"),
    )
    for label, column, colour, dash, symbol in lines:
        known = spans[spans[column].notna()]
        if len(known):
            figure.add_scatter(
                x=[axis.wall(moment) for moment in known["start"]], y=known[column], name=label,
                mode="lines+markers", line={"color": colour, "dash": dash, "width": 2},
                marker={"symbol": symbol, "size": 6}, hovertemplate="%{y:,.0f}",
            )  # fmt: skip
    base.time_axis(figure, axis)
    base.value_axis(figure, t("tokens of a model call"))
    return figure
