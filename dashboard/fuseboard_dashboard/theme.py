"""Every colour, symbol, pattern, unit and number format of the dashboard, once.

Series colours are mid-tones on purpose: one colour serves the light and the dark theme with a
contrast of at least 3:1 against all four backgrounds. Within each family they stay at least
15 Lab units apart for normal sight, protanopia, deuteranopia and tritanopia (held by tests), and
each colour has a symbol and a pattern of its own, so that colour is never the only signal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final

from fuseboard.conventions import BreakerState, ErrorClass, Outcome
from fuseboard_dashboard.language import t

BLUE: Final = "#4369df"
SLATE: Final = "#5269b7"
PURPLE: Final = "#985ba3"
VIOLET: Final = "#814be6"
ORANGE: Final = "#d57300"
AMBER: Final = "#bb8100"
RED: Final = "#cf2c30"
GREEN: Final = "#1e9e5e"
GREY: Final = "#757b7e"
MAUVE: Final = "#94788b"

LIGHT_BACKGROUND: Final = "#ffffff"
LIGHT_PANEL: Final = "#f4f5f3"
DARK_BACKGROUND: Final = "#14181d"
DARK_PANEL: Final = "#1d232b"
BACKGROUNDS: Final = (LIGHT_BACKGROUND, LIGHT_PANEL, DARK_BACKGROUND, DARK_PANEL)

HAN_FONTS: Final = (
    "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC",
    "WenQuanYi Micro Hei",
)  # fmt: skip
"""Of macOS, Windows, Linux: left to itself a browser takes the forms of another language's Han."""

DARK_PRIMARY: Final = "#93a6ee"

UNKNOWN_STATE: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Mark:
    """How one value of a family is told apart.

    Attributes:
        english: Short words for people, in English.
        colour: Hex colour, legible on every background.
        symbol: One character that works without colour.
        pattern: Plotly fill pattern of bars; empty = solid.
        dash: Plotly dash of lines.
        marker: Plotly marker symbol.
        is_foreign: Whether the words are a name from outside, which is not translated.
    """

    english: str
    colour: str
    symbol: str
    pattern: str = ""
    dash: str = "solid"
    marker: str = "circle"
    is_foreign: bool = False

    @property
    def label(self) -> str:
        """Return the words in the viewer's language."""
        return self.english if self.is_foreign else t(self.english)


CLASS_MARKS: Final[dict[str, Mark]] = {
    ErrorClass.L1_INPUT: Mark("L1 input", BLUE, "✎", "", "solid", "circle"),
    ErrorClass.L2_ACCESS: Mark("L2 access", PURPLE, "§", "x", "dot", "square"),
    ErrorClass.L3_TRANSIENT: Mark("L3 transient", ORANGE, "↻", "/", "dash", "diamond"),
    ErrorClass.L4_PERSISTENT: Mark("L4 persistent", RED, "✖", "\\", "longdash", "x"),
    ErrorClass.L5_SEMANTIC: Mark("L5 semantic", GREEN, "≠", ".", "dashdot", "triangle-up"),
    ErrorClass.UNCLASSIFIED: Mark("Unclassified", GREY, "?", "-", "longdashdot", "star"),
}

OUTCOME_MARKS: Final[dict[str, Mark]] = {
    Outcome.OK: Mark("OK", SLATE, "✓"),
    Outcome.PARTIAL: Mark("Partial", GREEN, "◐", ".", "dashdot", "triangle-up"),
    Outcome.DEGRADED: Mark("Degraded", ORANGE, "▼", "/", "dash", "diamond"),
    Outcome.ERROR: Mark("Error", RED, "✖", "\\", "longdash", "x"),
    Outcome.REJECTED: Mark("Rejected", VIOLET, "⊘", "x", "dot", "square"),
    Outcome.CANCELLED: Mark("Cancelled", MAUVE, "–", "-", "dot", "line-ew"),
    Outcome.ABANDONED: Mark("Abandoned", MAUVE, "⋯", "|", "dot", "line-ns"),
    Outcome.INTERRUPTED: Mark("Interrupted", MAUVE, "‖", "+", "dot", "cross"),
}

ANSWER_MARKS: Final[dict[str, Mark]] = {
    "default": Mark("Default", RED, "■", "\\", "longdash", "x"),
    "fallback": Mark("Fallback", VIOLET, "⇄", "x", "dot", "square"),
    "stale": Mark("Stale cache", ORANGE, "◷", "/", "dash", "diamond"),
    "untold": Mark("Source not told", MAUVE, "?", "-", "longdashdot", "star"),
    "partial": Mark("Partial", GREEN, "◐", ".", "dashdot", "triangle-up"),
    "cache": Mark("Cache hit", SLATE, "▣", "", "solid", "circle"),
}
"""Answers by where they came from, the least like the real thing first."""

STATE_MARKS: Final[dict[str, Mark]] = {
    BreakerState.CLOSED: Mark("Closed", GREEN, "●"),
    BreakerState.HALF_OPEN: Mark("Half-open", AMBER, "◐", "/"),
    BreakerState.OPEN: Mark("Open", RED, "○", "x"),
    BreakerState.ISOLATED: Mark("Isolated", VIOLET, "⊘", "\\"),
    UNKNOWN_STATE: Mark("Unknown", GREY, "?", "-"),
}

NO_BREAKER: Final = Mark("No breaker", GREY, "–")

SEVERITY_MARKS: Final[dict[str, Mark]] = {
    "critical": Mark("Critical", RED, "▲"),
    "warning": Mark("Warning", ORANGE, "◆"),
    "info": Mark("Info", BLUE, "●"),
}

ALERT_STATE_MARKS: Final[dict[str, Mark]] = {
    "firing": Mark("Firing", RED, "▲"),
    "no_data": Mark("No data", GREY, "?"),
    "pending": Mark("Pending", ORANGE, "◔"),
    "resolved": Mark("Resolved", GREEN, "✓"),
    "inactive": Mark("Inactive", GREY, "–"),
}

BUDGET_MARKS: Final[dict[str, Mark]] = {
    "fast": Mark("Burning fast", RED, "▲"),
    "gone": Mark("Budget gone", VIOLET, "✖"),
    "slow": Mark("Burning", ORANGE, "◆"),
    "fine": Mark("Within budget", GREEN, "●"),
    "few": Mark("Too few calls", GREY, "…"),
}
"""States of an error budget."""

OBJECTIVE_MARKS: Final[dict[str, Mark]] = {
    "availability": Mark("Availability", BLUE, "◉", dash="solid", marker="circle"),
    "latency": Mark("Latency", AMBER, "◔", dash="dash", marker="diamond"),
    "correctness": Mark("Correctness", PURPLE, "≠", dash="dot", marker="square"),
}

MUTED: Final = Mark("Muted", GREY, "∅", "-", "dot")
"""An alert that somebody muted, whatever its state."""

QUANTILE_MARKS: Final[dict[str, Mark]] = {
    "p50": Mark("p50", SLATE, "", dash="solid", marker="circle"),
    "p95": Mark("p95", AMBER, "", dash="dash", marker="diamond"),
    "p99": Mark("p99", RED, "", dash="dot", marker="square"),
    "slowest": Mark("Slowest", GREY, "", dash="dot", marker="x"),
}

SERIES: Final = (BLUE, ORANGE, GREEN, RED, PURPLE, GREY)
SERIES_DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SERIES_MARKERS: Final = ("circle", "square", "diamond", "triangle-up", "x", "star")

CALLS_COLOUR: Final = SLATE
ERROR_COLOUR: Final = RED
RETRY_COLOUR: Final = ORANGE
LIMIT_COLOUR: Final = RED
HEAT_SCALE: Final = ((0.0, "rgba(82,105,183,0.08)"), (0.35, SLATE), (1.0, ORANGE))
"""Few calls nearly transparent, so that the scale works on either background."""

UNMARKED: Final = Mark("Other", GREY, "·")

LEVEL_MARKS: Final[dict[str, Mark]] = {
    "tripped": Mark("Tripped", RED, "○"),
    "failing": Mark("Failing", RED, "✖"),
    "strained": Mark("Strained", ORANGE, "◆"),
    "few": Mark("Too few calls to judge", GREY, "…"),
    "fine": Mark("Fine", GREEN, "●"),
    "idle": Mark("No calls", GREY, "·"),
}
"""How much a fuse needs somebody."""


def mark(family: dict[str, Mark], value: object) -> Mark:
    """Return the mark of a value, or a neutral one with the value as its label."""
    found = family.get(str(value))
    return found or Mark(str(value), UNMARKED.colour, UNMARKED.symbol, is_foreign=True)


def ink(colour: str) -> str:
    """Return the text colour, white or black, that is easier to read on a colour."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if luminance < 0.2 else DARK_BACKGROUND


# --- Numbers and times ---------------------------------------------------------------------
NOTHING: Final = "–"
"""Shown where there is no number, never where the number is 0."""


def is_missing(value: float | None) -> bool:
    """Tell whether a number is absent: None, NaN or infinite."""
    return value is None or value != value or value in (float("inf"), float("-inf"))


def count(value: float | None) -> str:
    """Format a number of calls: exact up to 9,999, then with k or M."""
    if value is None or is_missing(value):
        return NOTHING
    for limit, divisor, suffix in ((1e7, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= limit:
            return f"{value / divisor:,.1f}{suffix}"
    return f"{value:,.0f}"


def percent(ratio: float | None) -> str:
    """Format a ratio of 0 to 1; small but not zero never reads as 0 %."""
    if ratio is None or is_missing(ratio):
        return NOTHING
    value = ratio * 100
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99.9 < value < 100:
        return "> 99.9 %"
    return f"{value:.0f} %" if value in (0, 100) else f"{value:.1f} %"


def share(ratio: float | None) -> str:
    """Format a share close to 1 with up to three decimals, cut: only all of them read as 100 %."""
    if ratio is None or is_missing(ratio):
        return NOTHING
    return f"{math.floor(ratio * 100_000 + 1e-6) / 1000:.3f}".rstrip("0").rstrip(".") + " %"


def limit(ratio: float) -> str:
    """Format a threshold in few characters: ``5 %``."""
    return f"{ratio * 100:g} %"


def seconds(value: float | None) -> str:
    """Format a duration given in seconds with the unit that suits it; only 0 reads as 0."""
    if value is None or is_missing(value):
        return NOTHING
    if value == 0:
        return "0 s"
    if 0 < value < 0.0001:
        return "< 0.1 ms"
    if abs(value) < 0.00995:
        return f"{value * 1000:.1f} ms"
    if abs(value) < 0.9995:
        return f"{value * 1000:.0f} ms"
    if abs(value) < 99.95:
        return f"{value:.2f} s" if abs(value) < 9.995 else f"{value:.1f} s"
    if abs(value) < 5400:
        return f"{value / 60:.1f} min"
    return f"{value / 3600:.1f} h" if abs(value) < 172_800 else f"{value / 86400:,.1f} d"


def amount(value: float | None) -> str:
    """Format a cost in whatever unit it is; small but not zero never reads as 0."""
    if value is None or is_missing(value):
        return NOTHING
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}"


def factor(value: float | None) -> str:
    """Format an amplification factor."""
    return NOTHING if value is None or is_missing(value) else f"{value:.2f}×"


def span(delta: timedelta) -> str:
    """Format how long something has lasted, in two units at most: ``45 s``, ``1 min 28 s``."""
    total = max(0, int(delta.total_seconds()))
    found = []
    units = ((86400, t("d")), (3600, t("h")), (60, t("min")), (1, t("s")))
    for size, unit in units:
        number, total = divmod(total, size)
        found.append((number, f"{number} {unit}"))
    first = next((place for place, (number, _) in enumerate(found) if number), len(found) - 1)
    largest, *rest = found[first : first + 2]
    return " ".join([largest[1], *(words for number, words in rest if number)])


def clock_time(moment: datetime, zone: tzinfo) -> str:
    """Format a moment as ``hh:mm:ss`` in the viewer's zone."""
    return moment.astimezone(zone).strftime("%H:%M:%S")


def ratio(part: float | None, whole: float | None) -> float | None:
    """Divide two counts; None where there is nothing to divide by."""
    if part is None or whole is None or is_missing(part) or is_missing(whole) or whole == 0:
        return None
    return part / whole


def streamlit_options() -> dict[str, object]:
    """Return the Streamlit options that the server sets before the app starts.

    Returns:
        Option names of ``streamlit config show`` with their values: nothing phones home, no
        file watcher, and the light and the dark theme.
    """
    shared = {"primaryColor": SLATE, "blueColor": BLUE, "redColor": RED, "orangeColor": ORANGE,
              "greenColor": GREEN, "violetColor": VIOLET, "grayColor": GREY,
              "chartCategoricalColors": list(SERIES)}  # fmt: skip
    light = {"backgroundColor": LIGHT_BACKGROUND, "secondaryBackgroundColor": LIGHT_PANEL,
             "textColor": "#1b2126", "linkColor": "#3552b8", "borderColor": "#dcdfdb"}  # fmt: skip
    # Streamlit writes with the primary colour, too: the dark theme needs a lighter one.
    dark = {"primaryColor": DARK_PRIMARY, "backgroundColor": DARK_BACKGROUND,
            "secondaryBackgroundColor": DARK_PANEL,
            "textColor": "#e4e8ea", "linkColor": "#9db4ff", "borderColor": "#333b45"}  # fmt: skip
    options: dict[str, object] = {
        "browser.gatherUsageStats": False,
        "server.fileWatcherType": "none",
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "theme.font": ", ".join(("Source Sans", *HAN_FONTS, "sans-serif")),
        "theme.codeFont": ", ".join(("Source Code Pro", *HAN_FONTS, "monospace")),
        "theme.baseFontSize": 15,
        "theme.baseRadius": "small",
        "theme.showWidgetBorder": True,
        "theme.light.sidebar.backgroundColor": LIGHT_PANEL,
        "theme.dark.sidebar.backgroundColor": "#101418",
    }
    for name, own in (("light", light), ("dark", dark)):
        options |= {f"theme.{name}.{key}": value for key, value in (shared | own).items()}
    return options
