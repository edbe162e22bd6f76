"""Calls over time, by outcome and by error class."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from fuseboard.conventions import Outcome
from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import base
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.language import t

STACK_ORDER = (
    Outcome.OK, Outcome.PARTIAL, Outcome.DEGRADED, Outcome.REJECTED, Outcome.ERROR,
    Outcome.CANCELLED, Outcome.ABANDONED, Outcome.INTERRUPTED,
)  # fmt: skip


def outcomes_over_time(frame: pd.DataFrame, axis: TimeAxis, height: int = 280) -> go.Figure:
    """Stack calls per bucket by outcome.

    Args:
        frame: Rows of ``page_outcomes``: bucket, outcome, error_class, calls.
        axis: Time and bucket width.
        height: Pixels.
    """
    order = [outcome.value for outcome in STACK_ORDER]
    return stacked(
        frame,
        axis,
        "outcome",
        theme.OUTCOME_MARKS,
        order,
        t("calls per {time}", time=axis.bucket_label),
        height,
    )


def classes_over_time(frame: pd.DataFrame, axis: TimeAxis, height: int = 280) -> go.Figure:
    """Stack faulty calls per bucket by error class; rows without a class are left out.

    Args:
        frame: Rows of ``page_outcomes``.
        axis: Time and bucket width.
        height: Pixels.
    """
    faulty = frame[frame["error_class"].notna()]
    order = list(theme.CLASS_MARKS)
    return stacked(
        faulty,
        axis,
        "error_class",
        theme.CLASS_MARKS,
        order,
        t("faulty calls per {time}", time=axis.bucket_label),
        height,
    )


def stacked(
    frame: pd.DataFrame,
    axis: TimeAxis,
    column: str,
    marks: dict[str, theme.Mark],
    order: Sequence[str],
    unit: str,
    height: int,
) -> go.Figure:
    """Stack counts per bucket by the values of a column.

    Args:
        frame: Rows with ``bucket``, the column, and ``calls``.
        axis: Time and bucket width.
        column: Whose values are stacked.
        marks: How its values are told apart.
        order: Its values from the bottom up; others go on top.
        unit: Of the counts, on the axis.
        height: Pixels.
    """
    figure = base.new(height)
    grid = axis.grid()
    middles = axis.middles(grid)
    table = frame.pivot_table(index="bucket", columns=column, values="calls", aggfunc="sum")
    table = table.reindex(grid).fillna(0.0)
    known = [value for value in order if value in table.columns]
    for value in [*known, *sorted(set(map(str, table.columns)) - set(order))]:
        mark = theme.mark(marks, value)
        figure.add_bar(
            x=middles, y=table[value], name=f"{mark.symbol} {base.label(mark.label)}",
            marker=base.bar_fill(mark), width=axis.bucket_seconds * 1000 * 0.94,
            hovertemplate="%{y:,.0f}",
        )  # fmt: skip
    figure.update_layout(barmode="stack")
    base.time_axis(figure, axis)
    base.value_axis(figure, unit)
    return figure
