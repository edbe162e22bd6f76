"""Windows of time, and the moments of the URL that bound them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from fuseboard_dashboard.language import t

FROM, TO = "from", "to"

LONGEST: Final = timedelta(days=30)
"""The longest window: as long as calls are kept by default."""
SHORTEST: Final = timedelta(seconds=1)
"""The shortest window: charts have no narrower bucket."""

_SKEW: Final = timedelta(minutes=1)
"""A viewer's clock, and the link that it wrote, may be this far ahead."""
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600)

Bounds = tuple[datetime | None, datetime | None]


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

    def doubled(self, now: datetime) -> Window:
        """Return a window twice as long around this one, as far as ``now`` and ``LONGEST`` let."""
        length = min(self.length * 2, LONGEST)
        until = min(self.until + (length - self.length) / 2, max(now, self.until))
        return Window(until - length, until)

    def outward(self, now: datetime) -> Window | None:
        """Return it on whole seconds, none lost, not past ``now``; None where nothing is left."""
        since, until = self.since.replace(microsecond=0), self.until.replace(microsecond=0)
        if until < self.until:
            until += timedelta(seconds=1)
        whole = Window(since, min(max(until, since + SHORTEST), now))
        return whole if SHORTEST <= whole.length <= LONGEST else None


def rfc3339(moment: datetime) -> str:
    """Format a moment as queries and URLs take it: UTC, microseconds only where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_bounds(
    begin: Sequence[str], end: Sequence[str], length: timedelta, now: datetime | None
) -> tuple[Bounds, list[str]]:
    """Read both ends of a window from URL parameters.

    Args:
        begin: Values of ``from``; the last one counts.
        end: Values of ``to``.
        length: Of the window that has a begin alone.
        now: What lies after it makes no sense; None = not known.

    Returns:
        Begin and end, None where there is none, and a sentence for each thing that was ignored.
    """
    notices: list[str] = []
    until = _moment(TO, end, notices)
    since = _moment(FROM, begin, notices)
    if since is None:
        return (None, until), notices
    if end and until is None:  # its notice is enough: half a window says nothing
        return (None, None), notices
    until = since + length if until is None else until
    kept, words = judge(since, until, now)
    return (kept or (None, None)), notices + ([words] if words else [])


def judge(
    since: datetime, until: datetime, now: datetime | None
) -> tuple[tuple[datetime, datetime] | None, str]:
    """Return what can be shown of a window that somebody asked for, and what is wrong with it."""
    if until - since < SHORTEST:
        return None, t(
            "{begin} ({since}) must be earlier than {end} ({until}), by a second or more.",
            begin=repr(FROM), since=rfc3339(since), end=repr(TO), until=rfc3339(until),
        )  # fmt: skip
    if now is not None and since >= now + _SKEW:
        return None, t(
            "{begin} ({since}) is in the future.", begin=repr(FROM), since=rfc3339(since)
        )
    words = ""
    if now is not None and until > now + _SKEW:
        until = max(now, since + SHORTEST)
        words = t("{end} is in the future; the window ends now.", end=repr(TO))
    if until - since > LONGEST:
        since = until - LONGEST
        words += " " if words else ""
        words += t("The window is longer than {days} days; its last {days} are shown.",
                   days=LONGEST.days)  # fmt: skip
    return (since, until), words


def parse_moment(text: str) -> datetime | None:
    """Return a moment of the URL in UTC; None where no window can be made of it."""
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    # A window of 30 days must still fit into the calendar, and the store's TIMESTAMP.
    return moment if 2000 <= moment.year <= 9000 else None


def _moment(name: str, values: Sequence[str], notices: list[str]) -> datetime | None:
    if not values:
        return None
    moment = parse_moment(values[-1])
    if moment is None:
        text = values[-1] if len(values[-1]) <= 60 else values[-1][:59] + "…"
        notices.append(t("{text} is no moment in time for {name}; showing live data.",
                         text=repr(text), name=repr(name)))  # fmt: skip
    return moment


def zoned(moment: datetime) -> datetime:
    """Return a moment of the store, which has no zone, in UTC."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
