"""Place panels on Grafana's grid of 24 columns, left to right, top to bottom."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fuseboard_grafana.panels.shapes import Json

COLUMNS: Final = 24


def place(panels: Iterable[Json]) -> list[Json]:
    """Return the panels with positions; one that does not fit begins a new line."""
    placed: list[Json] = []
    x = y = line_height = 0
    for panel in panels:
        width, height = panel["gridPos"]["w"], panel["gridPos"]["h"]
        if x + width > COLUMNS:
            x, y, line_height = 0, y + line_height, 0
        placed.append({**panel, "gridPos": {"h": height, "w": width, "x": x, "y": y}})
        x, line_height = x + width, max(line_height, height)
    return placed
