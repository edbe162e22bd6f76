"""Who depends on what: callers, tools and upstreams as a bounded graph, and fates they share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pandas as pd

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import thresholds
from fuseboard_dashboard.data import rows
from fuseboard_dashboard.theme import ratio

COLUMNS: Final = ("caller", "tool", "upstream")
MOST: Final = {"caller": 10, "tool": 18, "upstream": 14}
"""Nodes drawn by their own name in each column; the rest is one node."""

HELD: Final = (BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.ISOLATED)
"""States in which a breaker keeps calls from its tool."""

LEAST_ERRORS: Final = 2
"""Errors of a tool in a stretch of time that make it one in which the tool fails."""

_SUMS: Final = ["calls", "judged", "errors"]

Held = Collection[tuple[str, str]]
"""Column and name of what has a breaker that is not closed."""


@dataclass(frozen=True, slots=True)
class Node:
    """A caller, a tool or an upstream; or what is folded or not told.

    Attributes:
        column: One of ``COLUMNS``.
        name: Its name; None for others, and for what tells none.
        folded: How many others it stands for; 0 = itself.
        calls: Weighted calls.
        judged: Those that the error rate is of.
        errors: Those that failed.
        is_held: Whether a breaker here is not closed.
    """

    column: str
    name: str | None
    folded: int
    calls: float
    judged: float
    errors: float
    is_held: bool = False

    @property
    def error_ratio(self) -> float | None:
        """Return errors over judged calls."""
        return ratio(self.errors, self.judged)

    @property
    def level(self) -> str:
        """Return how much it needs somebody: a key of the level marks."""
        return "tripped" if self.is_held else _level(self.errors, self.judged)


@dataclass(frozen=True, slots=True)
class Edge:
    """Calls between neighbours; ``source`` and ``target`` are places in the graph's nodes."""

    source: int
    target: int
    calls: float
    judged: float
    errors: float

    @property
    def error_ratio(self) -> float | None:
        """Return errors over judged calls."""
        return ratio(self.errors, self.judged)

    @property
    def is_failing(self) -> bool:
        """Tell whether it fails more than the alert on errors lets pass."""
        return _level(self.errors, self.judged) == "failing"


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes from the left to the right and from the top down, and the edges between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def column(self, name: str) -> list[int]:
        """Return the places of a column's nodes, from the top down."""
        return [place for place, node in enumerate(self.nodes) if node.column == name]


def _level(errors: float, judged: float) -> str:
    share = ratio(errors, judged)
    if share is None:
        return "idle"
    is_over = share > thresholds.ERROR_RATIO and errors >= LEAST_ERRORS
    return "failing" if is_over else "fine"


def held(states: pd.DataFrame) -> Held:
    """Return what has a breaker that is not closed.

    Args:
        states: Rows of ``page_breaker_states``.
    """
    found: set[tuple[str, str]] = set()
    for row in rows(states[states["state"].isin([str(state) for state in HELD])]):
        found.add(("tool", row.tool))
        if isinstance(row.upstream, str):
            found.add(("upstream", row.upstream))
    return found


def graph(frame: pd.DataFrame, held: Held = (), most: Mapping[str, int] = MOST) -> Graph:
    """Return the graph of calls, the worst and the busiest by name and the rest folded.

    Args:
        frame: Rows of ``page_dependencies``.
        held: What has a breaker that is not closed.
        most: Nodes by name in each column.
    """
    keyed = frame[_SUMS].copy()
    nodes: list[Node] = []
    places: dict[tuple[str, str], int] = {}
    for column in COLUMNS:
        keyed[column], folded = _keys(frame, column, most[column], held)
        sums = keyed.groupby(column)[_SUMS].sum()
        for key, row in sums.iterrows():
            places[column, str(key)] = len(nodes)
            nodes.append(_node(column, str(key), folded, row, held))
    edges = [
        Edge(places[left, row[0]], places[right, row[1]], *row[2:])
        for left, right in pairwise(COLUMNS)
        for row in rows(keyed.groupby([left, right], as_index=False)[_SUMS].sum())
    ]
    return _ordered(nodes, edges)


def _keys(frame: pd.DataFrame, column: str, most: int, held: Held) -> tuple[pd.Series, int]:
    """Return a key for each row: ``n`` and a name, ``o`` for others, ``u`` for none told."""
    sums = frame[frame[column].notna()].groupby(column)[_SUMS].sum()
    sums["held"] = [(column, name) in held for name in sums.index]
    worst = sums[(sums["errors"] > 0) | sums["held"]]
    worst = worst.sort_values(["held", "errors", "calls"], ascending=False, kind="stable")
    kept = list(worst.index[: most * 2 // 3])
    busiest = sums.sort_values("calls", ascending=False, kind="stable").index
    kept += [name for name in busiest if name not in kept][: most - len(kept)]
    names = set(kept)
    keys = frame[column].map(
        lambda name: f"n{name}" if name in names else "u" if pd.isna(name) else "o"
    )
    return keys.astype(object), len(sums) - len(kept)


def _node(column: str, key: str, folded: int, sums: pd.Series, held: Held) -> Node:
    name = key[1:] if key[0] == "n" else None
    calls, judged, errors = (float(sums[item]) for item in _SUMS)
    is_held = name is not None and (column, name) in held
    return Node(column, name, folded if key == "o" else 0, calls, judged, errors, is_held)


def _ordered(nodes: list[Node], edges: list[Edge]) -> Graph:
    """Return the graph with each column in an order in which few edges cross.

    Upstreams are sorted by trouble; tools lie where their upstreams do, callers where their tools.
    """
    heights: dict[int, float] = {}
    order: list[int] = []
    for column in reversed(COLUMNS):
        mine = [place for place, node in enumerate(nodes) if node.column == column]
        pull = {place: _pull(place, edges, heights) for place in mine}
        mine.sort(key=lambda p: (nodes[p].name is None, pull[p], -nodes[p].errors,
                                 -nodes[p].calls, nodes[p].name or ""))  # fmt: skip
        heights |= {place: (number + 0.5) / len(mine) for number, place in enumerate(mine)}
        order = mine + order
    moved = {old: new for new, old in enumerate(order)}
    return Graph(
        tuple(nodes[place] for place in order),
        tuple(Edge(moved[e.source], moved[e.target], e.calls, e.judged, e.errors) for e in edges),
    )


def _pull(place: int, edges: list[Edge], heights: Mapping[int, float]) -> float:
    mine = [(edge.calls, heights[edge.target]) for edge in edges if edge.source == place]
    total = sum(calls for calls, _ in mine)
    return sum(calls * height for calls, height in mine) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Fate:
    """Tools that failed at once in one region, with the upstream that they share.

    Attributes:
        upstream: Its name.
        region: Where.
        tools: Those that failed while another one did, most errors first.
        together: Stretches of time in which at least two of them failed.
        failing: Stretches in which any tool of the upstream failed there.
    """

    upstream: str
    region: str
    tools: tuple[str, ...]
    together: int
    failing: int


def shared_fates(series: pd.DataFrame) -> list[Fate]:
    """Return the upstreams whose tools mostly fail at the same time, most stretches first.

    A tool fails in a stretch of time with at least ``LEAST_ERRORS`` errors and more than the line
    of the alert on errors. Tools share a fate when at least half of the stretches with a failing
    tool have two or more.

    Args:
        series: Rows of ``page_upstream_series``.
    """
    is_over = series["errors"] > thresholds.ERROR_RATIO * series["judged"]
    failing = series[is_over & (series["errors"] >= LEAST_ERRORS)]
    found = []
    for (upstream, region), place in failing.groupby(["upstream", "region"]):
        numbers = place.groupby("bucket")["tool"].nunique()
        together = numbers[numbers > 1]
        if len(together) and 2 * len(together) >= len(numbers):
            mine = place[place["bucket"].isin(together.index)]
            errors = mine.groupby("tool")["errors"].sum().sort_index()
            worst = errors.sort_values(ascending=False, kind="stable").index
            names = (str(upstream), str(region), tuple(worst))
            found.append(Fate(*names, len(together), len(numbers)))
    return sorted(found, key=lambda fate: (-fate.together, fate.upstream, fate.region))
