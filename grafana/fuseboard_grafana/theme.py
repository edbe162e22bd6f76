"""Colours, units and intervals of the boards, each once; colours are safe for all eyes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fuseboard.conventions import BreakerState, ErrorClass, Outcome

GREEN: Final = "#009E73"
YELLOW: Final = "#E69F00"
RED: Final = "#D55E00"
BLUE: Final = "#0072B2"
SKY: Final = "#56B4E9"
PURPLE: Final = "#CC79A7"
GREY: Final = "#7F7F7F"
OCHRE: Final = "#B8A400"

CLASS_COLOURS: Final[Mapping[str, str]] = {
    ErrorClass.L1_INPUT: SKY,
    ErrorClass.L2_ACCESS: PURPLE,
    ErrorClass.L3_TRANSIENT: YELLOW,
    ErrorClass.L4_PERSISTENT: RED,
    ErrorClass.L5_SEMANTIC: BLUE,
    ErrorClass.UNCLASSIFIED: GREY,
}
OUTCOME_COLOURS: Final[Mapping[str, str]] = {
    Outcome.OK: GREEN,
    Outcome.PARTIAL: BLUE,
    Outcome.DEGRADED: YELLOW,
    Outcome.ERROR: RED,
    Outcome.REJECTED: PURPLE,
    Outcome.CANCELLED: GREY,
    Outcome.ABANDONED: OCHRE,
    Outcome.INTERRUPTED: SKY,
}
BREAKER_LEVELS: Final = (
    (0, BreakerState.CLOSED, GREEN),
    (1, BreakerState.HALF_OPEN, YELLOW),
    (2, BreakerState.OPEN, RED),
    (3, BreakerState.ISOLATED, PURPLE),
)
"""The number that stands for a state on a board, better to worse, and its colour."""

PER_SECOND: Final = "reqps"
RATIO: Final = "percentunit"
SECONDS: Final = "s"
COUNT: Final = "none"

SCRAPE_INTERVAL: Final = "15s"
"""The documented scrape interval: the least step of rates."""
RATIO_STEP: Final = "1m"
"""The least step of ratios: four minutes of calls are judged, close to the alerts' five."""
