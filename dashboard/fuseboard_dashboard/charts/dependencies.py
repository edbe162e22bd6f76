"""Callers, tools and upstreams from the left to the right: links that lie on a picture of edges."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Final

import pandas as pd
import plotly.graph_objects as go

from fuseboard_dashboard import markup, theme
from fuseboard_dashboard.charts import base
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.charts.sparkline import image
from fuseboard_dashboard.dependencies import COLUMNS, Edge, Graph, Node
from fuseboard_dashboard.language import n, t

ROW: Final = 38
"""Pixels from one node to the next."""
WIDTH: Final = 24.0
"""Of a column of nodes, percent of the picture."""
_LEFT: Final = {"caller": 0.0, "tool": 38.0, "upstream": 76.0}
_STROKES: Final = (1.2, 16.0)
"""Pixels of an edge with hardly a call, and of the busiest."""

_PATTERNS: Final = ("", "/", ".", "x", "\\", "-")

Address = Callable[[Node], str]
"""Where a node leads; empty = nowhere."""


def draw(graph: Graph, address: Address, chosen: str | None = None) -> str:
    """Return the graph as markup.

    The page's sanitiser removes SVG elements but keeps images: edges are an image below, nodes
    are links above it, which a keyboard reaches from the top left to the bottom right.

    Args:
        graph: What to draw.
        address: Where nodes lead.
        chosen: Name of the upstream that the page tells more of.
    """
    rows = max((len(graph.column(column)) for column in COLUMNS), default=1)
    height = max(rows, 2) * ROW
    middles = dict(chain.from_iterable(_middles(graph, column, height) for column in COLUMNS))
    picture = f'<img class="fb-edges" alt="" src="{image(_edges(graph, middles, height))}">'
    nodes = "".join(
        _node(node, middles[place], address(node), chosen) for place, node in enumerate(graph.nodes)
    )
    chips = "".join(_chips(graph, middles))
    heads = "".join(
        f'<div style="left:{_LEFT[column]}%;width:{WIDTH}%">{markup.esc(words)}</div>'
        for column, words in zip(
            COLUMNS, (t("Agents and services"), t("Tools"), t("Upstreams")), strict=True
        )
    )
    label = t("Calls from agents over tools to upstreams; the table below says the same")
    return (
        f'<div class="fb fb-scroll"><div class="fb-graph" role="group" '
        f'aria-label="{markup.esc(label)}"><div class="fb-graph-heads">{heads}</div>'
        f'<div class="fb-graph-plot" style="height:{height}px">{picture}{chips}{nodes}</div>'
        "</div></div>"
    )


def _middles(graph: Graph, column: str, height: float) -> list[tuple[int, float]]:
    places = graph.column(column)
    return [(place, (number + 0.5) * height / len(places)) for number, place in enumerate(places)]


def _edges(graph: Graph, middles: dict[int, float], height: float) -> str:
    busiest = max((edge.calls for edge in graph.edges), default=1.0) or 1.0
    # Those in trouble come last: they lie on top.
    ordered = sorted(graph.edges, key=lambda edge: (edge.is_failing, edge.calls))
    paths = "".join(
        f'<path d="{_path(graph, edge, middles)}" fill="none" vector-effect="non-scaling-stroke" '
        f'stroke="{theme.ERROR_COLOUR if edge.is_failing else theme.CALLS_COLOUR}" '
        f'stroke-opacity="{0.7 if edge.is_failing else 0.38}" '
        f'stroke-dasharray="{"12 4" if edge.is_failing else "none"}" '
        f'stroke-width="{max(_STROKES[0], _STROKES[1] * edge.calls / busiest):.3g}"/>'
        for edge in ordered
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 {height:g}" '
        f'preserveAspectRatio="none" width="1000" height="{height:g}">{paths}</svg>'
    )


def _ends(graph: Graph, edge: Edge) -> tuple[float, float]:
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    return _LEFT[source.column] + WIDTH, _LEFT[target.column]


def _path(graph: Graph, edge: Edge, middles: dict[int, float]) -> str:
    x, end = _ends(graph, edge)
    y, below = middles[edge.source], middles[edge.target]
    half = (x + end) / 2
    return f"M{x:g} {y:.4g}C{half:g} {y:.4g} {half:g} {below:.4g} {end:g} {below:.4g}"


def _chips(graph: Graph, middles: dict[int, float]) -> list[str]:
    """Return the error rate of the worst failing edge on either side of each tool, beside it."""
    worst: dict[tuple[int, bool], Edge] = {}
    for edge in graph.edges:
        is_left = graph.nodes[edge.target].column == "tool"
        key = (edge.target if is_left else edge.source, is_left)
        if edge.is_failing and (key not in worst or edge.errors > worst[key].errors):
            worst[key] = edge
    chips = []
    for (_, is_left), edge in worst.items():
        x, end = _ends(graph, edge)
        share = 0.78 if is_left else 0.22
        y, below = middles[edge.source], middles[edge.target]
        top = y + (below - y) * (3 * share**2 - 2 * share**3)
        chips.append(
            '<span class="fb-edge-share" '
            f'style="left:{x + (end - x) * share:.4g}%;top:{top:.4g}px">'
            f"✖ {theme.percent(edge.error_ratio)}</span>"
        )
    return chips


def title(node: Node) -> str:
    """Return a node's name, or what it stands for, in words."""
    if node.name is not None:
        return node.name
    if node.folded:
        return {
            "caller": n("{count} other", "{count} others", node.folded),
            "tool": n("{count} other tool", "{count} other tools", node.folded),
            "upstream": n("{count} other upstream", "{count} other upstreams", node.folded),
        }[node.column]
    return {"caller": t("not named"), "tool": t("no tool"), "upstream": t("no upstream told")}[
        node.column
    ]


def _node(node: Node, middle: float, href: str, chosen: str | None) -> str:
    mark = theme.LEVEL_MARKS[node.level]
    words = title(node)
    told = t(
        "{name}: {calls} calls, {errors} errors ({share}). {level}.", name=words[:200],
        calls=theme.count(node.calls), errors=theme.count(node.errors),
        share=theme.percent(node.error_ratio), level=mark.label,
    )  # fmt: skip
    name = "" if node.name is None else node.name
    is_chosen = node.column == "upstream" and node.name is not None and node.name == chosen
    kinds = f" is-{node.level}{' is-chosen' if is_chosen else ''}"
    kinds += "" if node.name is not None else " is-rest"
    tag, target = ("a", f' href="{markup.esc(href)}" target="_self"') if href else ("div", "")
    return (
        f'<{tag} class="fb-node{kinds}"{target} title="{markup.esc(told)}" '
        f'style="left:{_LEFT[node.column]}%;top:{middle:.4g}px;width:{WIDTH}%;--c:{mark.colour}" '
        f'data-testid="fb-node" data-column="{node.column}" data-name="{markup.esc(name)}" '
        f'data-folded="{node.folded}" data-level="{node.level}" data-calls="{node.calls!r}" '
        f'data-errors="{node.errors!r}"><span class="fb-symbol">{mark.symbol}</span>'
        f'<span class="fb-node-name">{markup.esc(markup.shorten(words))}</span>'
        f'<span class="fb-node-calls">{theme.count(node.calls)}</span></{tag}>'
    )


def errors_over_time(series: pd.DataFrame, axis: TimeAxis, height: int = 260) -> go.Figure:
    """Stack errors per bucket by tool: those with the most by name, the rest together.

    Args:
        series: Rows of ``page_upstream_series`` of one upstream.
        axis: Time and bucket width.
        height: Pixels.
    """
    figure = base.new(height)
    grid = axis.grid()
    totals = series.groupby("tool")["errors"].sum().sort_values(ascending=False, kind="stable")
    named = list(totals.index[: len(theme.SERIES) - 1])
    groups = [(base.label(name), series[series["tool"] == name]) for name in named]
    rest = series[~series["tool"].isin(named)]
    if len(rest):
        groups.append((t("other tools"), rest))
    for (name, frame), colour, pattern in zip(groups, theme.SERIES, _PATTERNS, strict=False):
        values = frame.groupby("bucket")["errors"].sum().reindex(grid).fillna(0.0)
        figure.add_bar(
            x=axis.middles(grid), y=values.to_numpy(), name=name, hovertemplate="%{y:,.0f}",
            marker=base.bar_fill(theme.Mark(name, colour, "", pattern, is_foreign=True)),
            width=axis.bucket_seconds * 1000 * 0.94,
        )  # fmt: skip
    figure.update_layout(barmode="stack")
    base.time_axis(figure, axis)
    base.value_axis(figure, t("errors per {width}", width=axis.bucket_label))
    return figure
