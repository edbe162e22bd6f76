"""The filters of every page, as a value: parsed from the URL, written back to it, made a window.

URL parameters: ``range`` (a key of ``PRESETS``), ``to`` (RFC 3339; the window is pinned to end
there, absent = live), and ``tool``, ``class``, ``region``, each repeated for several values.
The class filter narrows which faults count, never the calls that they are divided by; pages that
list single calls or show their latency keep only the calls of the chosen classes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from fuseboard.conventions import ErrorClass

PRESETS: Final[dict[str, tuple[str, timedelta]]] = {
    "5m": ("Last 5 minutes", timedelta(minutes=5)),
    "15m": ("Last 15 minutes", timedelta(minutes=15)),
    "1h": ("Last hour", timedelta(hours=1)),
    "6h": ("Last 6 hours", timedelta(hours=6)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
}
STARTS: Final = {"24h": timedelta(hours=1), "7d": timedelta(hours=12), "30d": timedelta(days=1)}
"""Where long views begin, in UTC: the first bars of their charts are whole, their oldest part is
answered from rollups alone."""
_KEPT_RANGE: Final = "30d"
"""Begins at the next whole day, not at the last: no older calls are kept by default."""

DEFAULT_RANGE: Final = "15m"
MAX_CHOICES: Final = 50
"""Most values of one filter: a link can't grow without bound."""

RANGE, TO, TOOL, CLASS, REGION = "range", "to", "tool", "class", "region"
PAGE_PARAMETERS: Final = ("hash",)
"""Parameters of single pages, left alone here."""

_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600)
_SHORT_RANGE: Final = timedelta(hours=1)
_LONG_RANGE: Final = timedelta(hours=24)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Window:
    """The time a page is about: (since, until] over the END of calls, in UTC."""

    since: datetime
    until: datetime

    @property
    def length(self) -> timedelta:
        """Return until − since."""
        return self.until - self.since

    def bucket_seconds(self, most: int = 120) -> int:
        """Return the smallest round width that cuts the window into at most ``most`` buckets."""
        needed = self.length.total_seconds() / most
        return next((step for step in _STEPS if step >= needed), 86400)


@dataclass(frozen=True, slots=True)
class Filters:
    """What the viewer chose. Empty tuples mean all.

    Attributes:
        range: Key of ``PRESETS``.
        to: End of a pinned window, in UTC; None follows the clock.
    """

    range: str = DEFAULT_RANGE
    to: datetime | None = None
    tools: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()

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
        window is rounded, too (``STARTS``).
        """
        if self.to is not None:
            until = self.to
        else:
            step = int(self.refresh_seconds)
            until = datetime.fromtimestamp(int(now.timestamp()) // step * step, UTC)
        since = until - PRESETS[self.range][1]
        grain = STARTS.get(self.range)
        if grain and (late := (since - _EPOCH) % grain):
            since += grain - late if self.range == _KEPT_RANGE else -late
        return Window(since, until)

    def before(self, window: Window) -> Window:
        """Return the window to compare one with: as many days (hours, minutes) earlier as chosen.

        Weekdays and hours of the day are in both equally often, also where the view is longer than
        its name says.
        """
        length = PRESETS[self.range][1]
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
        if self.to is not None:
            pairs.append((TO, rfc3339(self.to)))
        for name, values in ((TOOL, self.tools), (CLASS, self.classes), (REGION, self.regions)):
            pairs += [(name, value) for value in values]
        return pairs

    def link(self, page: str, extra: Iterable[tuple[str, str]] = ()) -> str:
        """Return the relative URL of a page with these filters."""
        query = urlencode([*self.pairs(), *extra])
        return f"{page}?{query}" if query else page


@dataclass(frozen=True, slots=True)
class Known:
    """The values that a filter may have; None accepts all (the store could not be asked)."""

    tools: Collection[str] | None = None
    regions: Collection[str] | None = None


def rfc3339(moment: datetime) -> str:
    """Format a moment as queries and URLs take it: UTC, microseconds only where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse(raw: Mapping[str, Sequence[str]], known: Known) -> tuple[Filters, list[str]]:
    """Read filters from URL parameters; what makes no sense is left out and said.

    Args:
        raw: Parameter names with all their values.
        known: Values to accept.

    Returns:
        The filters, and a sentence for each thing that was ignored.
    """
    strangers = sorted(set(raw) - {RANGE, TO, TOOL, CLASS, REGION, *PAGE_PARAMETERS})
    notices = [f"There is no filter {_quote(name)}." for name in strangers]
    chosen = _range(raw.get(RANGE, ()), notices)
    return (
        Filters(
            range=chosen,
            to=_moment(raw.get(TO, ()), notices),
            tools=_values(TOOL, raw.get(TOOL, ()), known.tools, notices),
            classes=_values(CLASS, raw.get(CLASS, ()), tuple(ErrorClass), notices),
            regions=_values(REGION, raw.get(REGION, ()), known.regions, notices),
        ),
        notices,
    )


def _range(values: Sequence[str], notices: list[str]) -> str:
    if not values:
        return DEFAULT_RANGE
    if values[-1] in PRESETS:
        return values[-1]
    notices.append(f"There is no time range {_quote(values[-1])}; choices: {', '.join(PRESETS)}.")
    return DEFAULT_RANGE


def _moment(values: Sequence[str], notices: list[str]) -> datetime | None:
    if not values:
        return None
    try:
        moment = datetime.fromisoformat(values[-1])
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        # A window of 30 days must still fit into the calendar, and the store's TIMESTAMP.
        if not 2000 <= moment.year <= 9000:
            raise ValueError(moment.year)
    except (ValueError, OverflowError):
        notices.append(f"{_quote(values[-1])} is no moment in time for {TO!r}; showing live data.")
        return None
    return moment


def _values(
    name: str, values: Sequence[str], known: Collection[str] | None, notices: list[str]
) -> tuple[str, ...]:
    unique = list(dict.fromkeys(values))
    kept = [value for value in unique if known is None or value in known]
    where = "" if name == CLASS else " in the last 30 days"
    notices += [f"There is no {name} {_quote(value)}{where}." for value in unique
                if value not in kept]  # fmt: skip
    if len(kept) > MAX_CHOICES:
        notices.append(f"Only the first {MAX_CHOICES} values of {name!r} are used.")
    return tuple(kept[:MAX_CHOICES])


def _quote(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")
