"""Ranges of time to choose from, by their names in the URL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from fuseboard_dashboard.language import later

PRESETS: Final[dict[str, tuple[Callable[[], str], timedelta]]] = {
    "5m": (later("Last 5 minutes"), timedelta(minutes=5)),
    "15m": (later("Last 15 minutes"), timedelta(minutes=15)),
    "1h": (later("Last hour"), timedelta(hours=1)),
    "6h": (later("Last 6 hours"), timedelta(hours=6)),
    "24h": (later("Last 24 hours"), timedelta(hours=24)),
    "7d": (later("Last 7 days"), timedelta(days=7)),
    "30d": (later("Last 30 days"), timedelta(days=30)),
}
STARTS: Final = {"24h": timedelta(hours=1), "7d": timedelta(hours=12), "30d": timedelta(days=1)}
"""Where long views begin, in UTC: the first bars of their charts are whole, their oldest part is
answered from rollups alone."""
KEPT_RANGE: Final = "30d"
"""Begins at the next whole day, not at the last: no older calls are kept by default."""

DEFAULT_RANGE: Final = "15m"
