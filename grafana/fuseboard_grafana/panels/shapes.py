"""The kinds of panels that the boards use, as plain dicts of Grafana's classic schema."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fuseboard_grafana.theme import BLUE, SCRAPE_INTERVAL

Json = dict[str, Any]

DATASOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}
"""The data source that the reader of the board has chosen; never one by name."""


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL query of a panel.

    Attributes:
        expression: PromQL.
        legend: Grafana's legend template, for example ``{{tool}}``.
        exemplars: Whether to ask for exemplars too.
    """

    expression: str
    legend: str
    exemplars: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """What every panel says about itself.

    Attributes:
        width: Columns of 24.
        unit: Grafana's id of the unit.
        step: Least step of its queries.
    """

    title: str
    description: str
    unit: str
    width: int = 12
    height: int = 8
    step: str = SCRAPE_INTERVAL


def panel_id(title: str) -> int:
    """Return an id that stays when panels are added: links to a panel survive."""
    return zlib.crc32(title.encode()) % 1_000_000 + 1


def row(title: str) -> Json:
    """Return a heading over the panels that follow it."""
    return {
        "id": panel_id(f"row {title}"),
        "type": "row",
        "title": title,
        "collapsed": False,
        "panels": [],
        "gridPos": {"h": 1, "w": 24, "x": 0, "y": 0},
    }


def timeseries(
    frame: Frame,
    queries: Sequence[Query],
    *,
    lines: Sequence[tuple[float, str]] = (),
    colours: Mapping[str, str] | None = None,
    is_stacked: bool = False,
) -> Json:
    """Return a panel of lines over time.

    Args:
        frame: Title, description, unit and size.
        queries: What to draw.
        lines: Thresholds, drawn as dashed lines: ``(value, colour)`` in ascending order.
        colours: Colours of series by their legend.
        is_stacked: Whether series stand on each other.
    """
    custom = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 30 if is_stacked else 0,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if is_stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if lines else "off"},
    }
    return {
        **_panel("timeseries", frame, queries),
        "fieldConfig": {
            "defaults": {
                "unit": frame.unit,
                "min": 0,
                "color": {"mode": "palette-classic"},
                "thresholds": _thresholds(lines),
                "custom": custom,
            },
            "overrides": [_colour(name, colour) for name, colour in (colours or {}).items()],
        },
        "options": {
            "legend": {
                "showLegend": True,
                "displayMode": "table",
                "placement": "right",
                "calcs": ["lastNotNull", "max"],
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def state_timeline(
    frame: Frame, queries: Sequence[Query], levels: Sequence[tuple[int, str, str]]
) -> Json:
    """Return a panel of coloured bars over time, one row per series.

    Args:
        frame: Title, description, unit and size.
        queries: Queries of small whole numbers.
        levels: ``(number, text, colour)`` of each state.
    """
    mapping = {
        str(level): {"text": text, "color": colour, "index": index}
        for index, (level, text, colour) in enumerate(levels)
    }
    return {
        **_panel("state-timeline", frame, queries),
        "fieldConfig": {
            "defaults": {
                "unit": frame.unit,
                "color": {"mode": "thresholds"},
                "thresholds": _thresholds([(level, colour) for level, _, colour in levels[1:]]),
                "mappings": [{"type": "value", "options": mapping}],
                "custom": {"fillOpacity": 80, "lineWidth": 0},
            },
            "overrides": [],
        },
        "options": {
            "mergeValues": True,
            "showValue": "auto",
            "rowHeight": 0.9,
            "alignValue": "left",
            "legend": {
                "showLegend": True,
                "displayMode": "list",
                "placement": "bottom",
                "calcs": [],
            },
            "tooltip": {"mode": "single", "sort": "none"},
        },
    }


def _panel(kind: str, frame: Frame, queries: Sequence[Query]) -> Json:
    return {
        "id": panel_id(frame.title),
        "type": kind,
        "title": frame.title,
        "description": frame.description,
        "datasource": DATASOURCE,
        "interval": frame.step,
        "gridPos": {"h": frame.height, "w": frame.width, "x": 0, "y": 0},
        "targets": [_target(index, query, frame.step) for index, query in enumerate(queries)],
    }


def _target(index: int, query: Query, step: str) -> Json:
    return {
        "refId": chr(ord("A") + index),
        "datasource": DATASOURCE,
        "expr": query.expression,
        "legendFormat": query.legend,
        "interval": step,
        "range": True,
        "instant": False,
        "exemplar": query.exemplars,
        "editorMode": "code",
    }


def _thresholds(lines: Sequence[tuple[float, str]]) -> Json:
    steps: list[Json] = [{"value": None, "color": BLUE if not lines else "transparent"}]
    return {
        "mode": "absolute",
        "steps": [*steps, *({"value": value, "color": colour} for value, colour in lines)],
    }


def _colour(name: str, colour: str) -> Json:
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
    }
