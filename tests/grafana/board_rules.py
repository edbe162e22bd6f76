"""The rules of Grafana's dashboard linter that concern Prometheus, and a few of our own.

Each rule is a function that yields what is wrong with a board, so that the tests can also show
that it finds the fault it is for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import promql_parser

Board = dict[str, Any]

PANEL_TYPES = {"row", "timeseries", "state-timeline", "stat", "table", "heatmap"}
RATE = {"rate", "irate"}
COUNTER = {"rate", "irate", "increase"}


def panels(board: Board) -> Iterator[dict[str, Any]]:
    return (panel for panel in board["panels"] if panel["type"] != "row")


def expressions(board: Board) -> Iterator[tuple[str, str]]:
    """Yield where each query of the board is, and the query."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield f"{panel['title']}/{target['refId']}", target["expr"]
    for annotation in board["annotations"]["list"]:
        yield annotation["name"], annotation["target"]["expr"]


def selectors_of_variables(board: Board) -> Iterator[tuple[str, str]]:
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert found, variable["query"]
            yield variable["name"], found.group(1)


def parse(expression: str) -> Any:
    for name, value in (("$__rate_interval", "1m"), ("$__interval", "15s"), ("$__range", "1h")):
        expression = expression.replace(name, value)
    return promql_parser.parse(expression)


def nodes(expression: str) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return every node of an expression with its ancestors, outermost first."""
    found: list[tuple[Any, tuple[Any, ...]]] = []
    stack: list[Any] = []

    def enter(node: Any) -> None:
        found.append((node, tuple(stack)))
        stack.append(node)

    def leave(_: Any) -> None:
        stack.pop()

    promql_parser.walk(parse(expression), enter, leave)
    return found


def metrics(expression: str) -> set[str]:
    return {
        node.name for node, _ in nodes(expression) if isinstance(node, promql_parser.VectorSelector)
    }


def identity(board: Board) -> Iterator[str]:
    if board.get("id") is not None:
        yield "id must be null: a number collides with another board's"
    if not re.fullmatch(r"fuseboard-[a-z0-9-]{1,30}", board.get("uid", "")):
        yield f"uid {board.get('uid')!r} is not a stable one of ours with at most 40 characters"
    if "__inputs" in board or "__requires" in board:
        yield "__inputs works in the import dialog only"
    if board.get("editable") is not False:
        yield "a generated board must not be editable"
    ids = [panel["id"] for panel in board["panels"]]
    if min(ids) < 1 or len(set(ids)) != len(ids):
        yield "panel ids must be unique and at least 1"


def datasource(board: Board) -> Iterator[str]:
    variable = board["templating"]["list"][0]
    if (variable["name"], variable["type"], variable["query"]) != (
        "datasource",
        "datasource",
        "prometheus",
    ):
        yield "the first variable must choose the data source"

    def walk(value: Any, path: str) -> Iterator[str]:
        if isinstance(value, dict):
            chosen = value.get("datasource")
            if "datasource" in value and (
                not isinstance(chosen, dict) or chosen.get("uid") != "${datasource}"
            ):
                yield f"{path}: data source {chosen!r} is not the variable"
            for key, inner in value.items():
                yield from walk(inner, f"{path}/{key}")
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                yield from walk(inner, f"{path}/{index}")

    yield from walk(board, "")
    needy = [*panels(board), *board["annotations"]["list"], *board["templating"]["list"][1:]]
    needy += [target for panel in panels(board) for target in panel["targets"]]
    yield from (f"{one}: no data source" for one in needy if "datasource" not in one)


def variables(board: Board) -> Iterator[str]:
    by_name = {one["name"]: one for one in board["templating"]["list"]}
    for name in ("job", "instance", "tool", "region"):
        one = by_name.get(name, {})
        wanted = {"type": "query", "multi": True, "includeAll": True, "allValue": ".+"}
        wanted |= {"refresh": 2, "label": name.capitalize()}
        wrong = {key for key, value in wanted.items() if one.get(key) != value}
        if wrong:
            yield f"variable {name}: {sorted(wrong)}"


def texts_and_units(board: Board) -> Iterator[str]:
    for panel in panels(board):
        if not panel.get("title") or not panel.get("description"):
            yield f"{panel.get('title')!r}: title and description are needed"
        if not panel["fieldConfig"]["defaults"].get("unit"):
            yield f"{panel['title']}: no unit"
        if not panel.get("targets"):
            yield f"{panel['title']}: no query"
        if not panel.get("interval"):
            yield f"{panel['title']}: no least interval"
        if panel["type"] not in PANEL_TYPES:
            yield f"{panel['title']}: {panel['type']} is no living panel type"


def layout(board: Board) -> Iterator[str]:
    def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        return {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}

    for panel in board["panels"]:
        if panel["gridPos"]["x"] + panel["gridPos"]["w"] > 24:
            yield f"{panel['title']} is wider than the board"
    for one, other in combinations(board["panels"], 2):
        if cells(one) & cells(other):
            yield f"{one['title']} and {other['title']} overlap"


def scope(board: Board) -> Iterator[str]:
    for where, expression in expressions(board):
        for node, _ in nodes(expression):
            if isinstance(node, promql_parser.VectorSelector):
                matchers = {(one.name, one.value) for one in node.matchers.matchers}
                for label in ("job", "instance", "tool", "region"):
                    if (label, f"${label}") not in matchers:
                        yield f"{where}: {node.name} is not restricted to ${label}"


def counters(board: Board) -> Iterator[str]:
    for where, expression in expressions(board):
        for node, ancestors in nodes(expression):
            calls = [one for one in ancestors if isinstance(one, promql_parser.Call)]
            is_counted = any(one.func.name in COUNTER for one in calls)
            if isinstance(node, promql_parser.VectorSelector):
                is_counter = (node.name or "").endswith(("_total", "_bucket", "_count"))
                if is_counter and not is_counted:
                    yield f"{where}: counter {node.name} outside rate or increase"
        if re.search(r"\b(rate|irate)\([^\[]*\[(?!\$__rate_interval\])", expression):
            yield f"{where}: rate over a fixed window"


def guarded_divisions(board: Board) -> Iterator[str]:
    for where, expression in expressions(board):
        for node, _ in nodes(expression):
            if isinstance(node, promql_parser.BinaryExpr) and str(node.op) == "/":
                text = str(node.rhs)
                if not re.fullmatch(r"\(.* > 0\)", text, re.DOTALL):
                    yield f"{where}: the divisor {text} may be 0"


RULES: tuple[Callable[[Board], Iterator[str]], ...] = (
    identity,
    datasource,
    variables,
    texts_and_units,
    layout,
    scope,
    counters,
    guarded_divisions,
)


def findings(board: Board) -> list[str]:
    return [f"{rule.__name__}: {text}" for rule in RULES for text in rule(board)]
