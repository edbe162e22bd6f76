"""Mutes: alerts of which somebody wants no notifications for a while, and why.

They mean what Alertmanager's silences mean: a mute matches the labels that it names and any value
of the others, holds from its begin until before its end, and hides nothing: the alert goes on being
evaluated and shown. Rows are never changed; the newest row of an id counts.
"""

from __future__ import annotations

import difflib
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from fuseboard.errors import ConfigurationError
from fuseboard_alerts.catalogue import CATALOGUE, rule_names
from fuseboard_alerts.storage import AlertStore
from fuseboard_collector.reading import Reader

LONGEST: Final = timedelta(days=30)
"""A mute that outlasts the memory of who set it is a rule that should be changed."""
MOST: Final = 500
"""Mutes in force at once; below what ``alert_mutes`` returns, so that servers that write at one
moment don't go beyond that."""
LONGEST_REASON: Final = 500
LONGEST_NAME: Final = 512
LONGEST_AUTHOR: Final = 120

_UNSEEN: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""What moves the cursor, turns the line round or is not text; joiners within words may stay."""
_TIME: Final = pa.timestamp("us")
_TICK: Final = timedelta(microseconds=1)
_ROWS: Final = pa.schema(
    [("id", pa.string()), ("set_at", _TIME), ("begins", _TIME), ("ends", _TIME),
     *((name, pa.string()) for name in ("alert", "severity", "tool", "region", "reason", "author"))]
)  # fmt: skip


class MuteError(ConfigurationError):
    """A mute makes no sense; the message says what to give instead."""


@dataclass(frozen=True, slots=True)
class Mute:
    """Alerts of which nobody is notified for a while.

    Attributes:
        id: Tells mutes apart; two of the same alert hold until the later end.
        alert: Name of the alert.
        severity: Of that one alone; None = any, as of the labels ``tool`` and ``region``.
        begins: From when on, in UTC.
        ends: Until before then.
        reason: Why, in the words of who set it.
        author: Who; None = not known.
        set_at: When this row was written.
    """

    id: str
    alert: str
    severity: str | None
    tool: str | None
    region: str | None
    begins: datetime
    ends: datetime
    reason: str
    author: str | None
    set_at: datetime

    def is_on(self, now: datetime) -> bool:
        """Tell whether it holds at a moment; at its end it does not any more."""
        return self.begins <= now < self.ends

    def matches(self, alert: str, severity: str, labels: Mapping[str, str]) -> bool:
        """Tell whether an alert instance is one of those that it mutes."""
        wanted = (("tool", self.tool), ("region", self.region))
        return (
            self.alert == alert
            and self.severity in (None, severity)
            and all(value is None or labels.get(name) == value for name, value in wanted)
        )


def muted_by(
    mutes: Sequence[Mute], now: datetime, alert: str, severity: str, labels: Mapping[str, str]
) -> Mute | None:
    """Return the mute that holds an instance back the longest; None if none does."""
    found = [one for one in mutes if one.is_on(now) and one.matches(alert, severity, labels)]
    return max(found, key=lambda one: one.ends, default=None)


def draft(
    alert: str,
    reason: str,
    ends: datetime,
    now: datetime,
    *,
    severity: str | None = None,
    tool: str | None = None,
    region: str | None = None,
    author: str | None = None,
    mute_id: str | None = None,
) -> Mute:
    """Return a new mute that begins now.

    Args:
        alert: Name of a shipped alert.
        reason: Why; at most ``LONGEST_REASON`` characters. What can't be seen becomes a space.
        ends: Its end, aware; in the future, at most ``LONGEST`` away.
        now: The present, aware.
        severity: Of this one alone.
        tool: Of this tool alone.
        region: Of this region alone.
        author: Who mutes it.
        mute_id: For a request that is sent again: the same mute.

    Raises:
        MuteError: If something makes no sense.
    """
    severities = [str(rule.severity) for rule in CATALOGUE if rule.name == alert]
    if not severities:
        near = difflib.get_close_matches(alert[:80], rule_names(), n=1, cutoff=0.45)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(rule_names())}"
        raise MuteError(f"there is no alert {alert[:80]!r}{hint}")
    if severity is not None and severity not in severities:
        raise MuteError(f"{alert} has no severity {severity[:40]!r}; it has {severities}")
    words = _plain(reason)
    if not words:
        raise MuteError("a mute needs a reason: who looks at it next must know why")
    if len(words) > LONGEST_REASON:
        raise MuteError(f"the reason has {len(words)} characters, more than {LONGEST_REASON}")
    ends = _checked_end(ends, now)
    return Mute(
        id=_id(mute_id), alert=alert, severity=severity, tool=_label("tool", tool),
        region=_label("region", region), begins=now, ends=ends, reason=words,
        author=_author(author), set_at=now,
    )  # fmt: skip


def _checked_end(ends: datetime, now: datetime) -> datetime:
    """Return the end in UTC."""
    if ends.tzinfo is None:
        raise MuteError(f"the end {ends.isoformat()} needs an offset, like 2026-01-05T08:00:00Z")
    try:
        ends = ends.astimezone(UTC)
    except OverflowError:  # at the edge of the calendar
        raise MuteError(f"the end {ends.isoformat()} is not within the years 1 to 9999") from None
    if ends <= now:
        raise MuteError(f"the end {_text(ends)} is in the past; it is {_text(now)}")
    if ends - now > LONGEST:
        raise MuteError(
            f"the end {_text(ends)} is more than {LONGEST.days} days away; who muted it would be "
            "forgotten by then: change the rule instead"
        )
    return ends


def _id(given: str | None) -> str:
    if given is None:
        return uuid.uuid4().hex
    try:
        return uuid.UUID(given).hex
    except ValueError:
        raise MuteError(f"{given[:40]!r} is no id of a mute") from None


def _label(name: str, value: str | None) -> str | None:
    if value is not None and not 0 < len(value) <= LONGEST_NAME:
        raise MuteError(f"{name} must have 1 to {LONGEST_NAME} characters, not {len(value)}")
    # Another text would match another tool, or none.
    if value is not None and (unseen := _UNSEEN.search(value)) is not None:
        raise MuteError(
            f"{name} has a character that can't be shown, {unseen[0]!a}; leave it out to mute any"
        )
    return value


def _plain(text: str) -> str:
    """Return a text on one line, without what can't be seen."""
    return " ".join(_UNSEEN.sub(" ", text).split())


def _author(given: str | None) -> str | None:
    return _plain(given or "")[:LONGEST_AUTHOR].strip() or None


def ended(mute: Mute, now: datetime, author: str | None = None) -> Mute:
    """Return a mute as it is once somebody unmuted it.

    Args:
        mute: The mute.
        now: The present.
        author: Who unmutes it; None keeps who set it.
    """
    set_at = max(now, mute.set_at + _TICK)
    return replace(mute, ends=min(now, mute.ends), set_at=set_at,
                   author=_author(author) or mute.author)  # fmt: skip


def save(store: AlertStore, mute: Mute) -> None:
    """Add a row to ``mutes`` and wait until it is durable.

    Raises:
        StoreError: If it can't be stored.
    """
    row = {name: _stored(getattr(mute, name)) for name in _ROWS.names}
    store.insert("mutes", pa.Table.from_pylist([row], schema=_ROWS))


def load(reader: Reader, now: datetime) -> list[Mute]:
    """Return the mutes that have not ended, the next to end first.

    Raises:
        StoreError: If the store can't answer.
    """
    return [from_row(row) for row in reader.query("alert_mutes", {"until": now}).to_pylist()]


def find(reader: Reader, mute_id: str) -> Mute | None:
    """Return a mute by its id, whether it has ended or not; None if there was none.

    Raises:
        StoreError: If the store can't answer.
    """
    rows = reader.query("alert_mute", {"id": mute_id}).to_pylist()
    return from_row(rows[0]) if rows else None


def from_row(row: Mapping[str, Any]) -> Mute:
    """Return the mute of a row of ``alert_mutes`` or ``alert_mute``."""
    return Mute(
        id=row["id"], alert=row["alert"], severity=row["severity"], tool=row["tool"],
        region=row["region"], begins=_aware(row["begins"]), ends=_aware(row["ends"]),
        reason=row["reason"], author=row["author"], set_at=_aware(row["set_at"]),
    )  # fmt: skip


def _stored(value: object) -> object:
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
