"""The filters of every page, as a value: written to the URL, made a window.

URL parameters: ``range`` (a key of ``PRESETS``), ``to`` (RFC 3339; the window is pinned to end
there, absent = live), ``from`` (RFC 3339; with ``to`` any window of at most 30 days, alone one
of the length of ``range``), and ``tool``, ``class``, ``region``, each repeated for several values.
The class filter narrows which faults count, never the calls that they are divided by; pages that
list single calls or show their latency keep only the calls of the chosen classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from fuseboard_dashboard import language
from fuseboard_dashboard.ranges import DEFAULT_RANGE, KEPT_RANGE, PRESETS, STARTS
from fuseboard_dashboard.windows import FROM, TO, Window, rfc3339

__all__ = ["AGENT", "AT", "CLASS", "DEFAULT_RANGE", "FROM", "HASH", "LAYER", "MAX_CHOICES",
           "PAGE_PARAMETERS", "PRESETS", "RANGE", "REGION", "SESSION", "STARTS", "TO", "TOOL",
           "TRACE", "Filters", "Window", "rfc3339"]  # fmt: skip

MAX_CHOICES: Final = 50
"""Most values of one filter: a link can't grow without bound."""

RANGE, TOOL, CLASS, REGION = "range", "tool", "class", "region"
LAYER: Final = "layer"
HASH, TRACE, AT, SESSION, AGENT = "hash", "trace", "at", "session", "agent"
PAGE_PARAMETERS: Final = (
    HASH,
    "answer",
    "classifier",
    "upstream",
    "caller",
    TRACE,
    AT,
    SESSION,
    AGENT,
    LAYER,
)
"""Parameters of single pages, left alone here."""

_SHORT_RANGE: Final = timedelta(hours=1)
_LONG_RANGE: Final = timedelta(hours=24)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Filters:
    """What the viewer chose. Empty tuples mean all.

    Attributes:
        range: Key of ``PRESETS``; beside ``since``, what the way back leads to.
        to: End of a pinned window, in UTC; None follows the clock.
        since: Begin of a custom window, which has ``to``, too; None = as ``range`` says.
    """

    range: str = DEFAULT_RANGE
    to: datetime | None = None
    tools: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    since: datetime | None = None

    @property
    def is_custom(self) -> bool:
        """Tell whether the window begins where the viewer said."""
        return self.since is not None and self.to is not None

    @property
    def length(self) -> timedelta:
        """Return how long the window is by its name; long ranges are rounded to whole bars."""
        if self.since is not None and self.to is not None:
            return self.to - self.since
        return PRESETS[self.range][1]

    @property
    def is_live(self) -> bool:
        """Tell whether the window follows the clock."""
        return self.to is None

    @property
    def is_narrowed(self) -> bool:
        """Tell whether anything but the time is chosen."""
        return bool(self.tools or self.classes or self.regions)

    @property
    def refresh_seconds(self) -> float:
        """Return how often live pages refresh: the longer the window, the calmer."""
        length = PRESETS[self.range][1]
        if length <= _SHORT_RANGE:
            return 5.0
        return 15.0 if length <= _LONG_RANGE else 60.0

    def window(self, now: datetime) -> Window:
        """Return the window at ``now``; its live end is rounded down to the refresh interval.

        Rounding makes viewers with equal filters share one query result. The start of a long
        window is rounded, too (``STARTS``); a custom one begins where it was asked to.
        """
        if self.since is not None and self.to is not None:
            return Window(self.since, self.to)
        if self.to is not None:
            until = self.to
        else:
            step = int(self.refresh_seconds)
            until = datetime.fromtimestamp(int(now.timestamp()) // step * step, UTC)
        since = until - PRESETS[self.range][1]
        grain = STARTS.get(self.range)
        if grain and (late := (since - _EPOCH) % grain):
            since += grain - late if self.range == KEPT_RANGE else -late
        return Window(since, until)

    def before(self, window: Window) -> Window:
        """Return the window to compare one with: as many days (hours, minutes) earlier as chosen.

        Weekdays and hours of the day are in both equally often, also where the view is longer than
        its name says.
        """
        length = self.length
        return Window(window.since - length, window.until - length)

    def before_parameters(self, window: Window) -> dict[str, object]:
        """Return the bounds of the window to compare with, as query parameters."""
        before = self.before(window)
        return {"before_since": rfc3339(before.since), "before_until": rfc3339(before.until)}

    def parameters(self, window: Window) -> dict[str, object]:
        """Return the query parameters that every filtered page query takes."""
        return {
            "since": rfc3339(window.since),
            "until": rfc3339(window.until),
            "tools": list(self.tools) or None,
            "classes": list(self.classes) or None,
            "regions": list(self.regions) or None,
        }

    def zoomed(self, window: Window) -> Filters:
        """Return these filters with exactly this window."""
        return replace(self, since=window.since, to=window.until)

    def as_range(self, key: str | None = None) -> Filters:
        """Return these filters with a preset; instead of a custom window, it is live."""
        to = None if self.is_custom else self.to
        return replace(self, range=key or self.range, since=None, to=to)

    def moved(self, steps: int, now: datetime) -> Filters:
        """Return these filters so many windows later, negative = earlier, and not past ``now``.

        A preset that arrives at the clock follows it again.
        """
        until = self.window(now).until + steps * self.length
        if self.is_custom:
            until = min(until, max(now, self.window(now).until))
            return self.zoomed(Window(until - self.length, until))
        return replace(self, to=None if until >= now else until)

    def narrowed(
        self, *, tool: str | None = None, region: str | None = None, error_class: str | None = None
    ) -> Filters:
        """Return these filters with single values chosen instead."""
        return replace(
            self,
            tools=self.tools if tool is None else (tool,),
            regions=self.regions if region is None else (region,),
            classes=self.classes if error_class is None else (error_class,),
        )

    def pairs(self) -> list[tuple[str, str]]:
        """Return the URL parameters, in a fixed order, defaults left out."""
        pairs = [] if self.range == DEFAULT_RANGE else [(RANGE, self.range)]
        if self.since is not None:
            pairs.append((FROM, rfc3339(self.since)))
        if self.to is not None:
            pairs.append((TO, rfc3339(self.to)))
        for name, values in ((TOOL, self.tools), (CLASS, self.classes), (REGION, self.regions)):
            pairs += [(name, value) for value in values]
        return pairs

    def link(self, page: str, extra: Iterable[tuple[str, str]] = ()) -> str:
        """Return the relative URL of a page with these filters, in the viewer's language."""
        query = urlencode([*self.pairs(), *language.pairs(), *extra])
        return f"{page}?{query}" if query else page
