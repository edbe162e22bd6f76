"""One line of an incident's timeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fuseboard_dashboard import theme

KINDS: Final = (
    "change",
    "alert",
    "mute",
    "breaker",
    "first",
    "degraded",
    "dip",
    "process",
    "last",
)
"""At the same moment in this order; the last go first where there is too much to tell."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the timeline.

    Attributes:
        moment: Naive UTC.
        kind: One of ``KINDS``.
        mark: Its symbol and colour.
        sentence: What happened, see :mod:`~fuseboard_dashboard.incidents.wording`.
        href: Relative address of the page with the calls behind it, its window pinned.
        count: How many events it tells of.
    """

    moment: datetime
    kind: str
    mark: theme.Mark
    sentence: str
    href: str
    count: int = 1
