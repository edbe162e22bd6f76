"""What each breaker did: how long it was open, whom it turned away, and when it probes next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final

import pandas as pd

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import theme
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.language import n, t

_DUE: Final = re.compile(r"\(next probe in (\d{1,9}(?:\.\d{1,6})?) s\)\Z")
"""The end of what a call is told that an open breaker turns away."""

_COUNTS: Final = ("turned_away", "rejected", "degraded", "stopped", "sessions", "agents", "probes")
_OPEN: Final = (BreakerState.OPEN, BreakerState.ISOLATED)


@dataclass(frozen=True, slots=True)
class Blast:
    """What one breaker did in the window.

    Attributes:
        breaker: Its name.
        state: The worst over processes at the window's end.
        since: When that state began; None if it never changed.
        processes: Processes that have it; ``processes_not_closed`` of them now.
        seconds: In each state but closed, the worst over processes, by state.
        periods: How often it was anything but closed; ``reopened``: within a minute after it had
            closed.
        turned_away: Calls that were rejected, ``degraded`` or ``stopped`` between attempts.
        sessions: Different ones of those calls, and their ``agents``, named in ``agent_names``.
        probes: Calls that it let through half open.
        due: When the process that turned a call away last lets the next one through.
    """

    breaker: str
    tool: str
    region: str
    state: str
    since: datetime | None
    processes: int
    processes_not_closed: int
    seconds: Mapping[str, float]
    periods: int
    reopened: int
    turned_away: float
    rejected: float
    degraded: float
    stopped: float
    sessions: int
    agents: int
    agent_names: str
    trace_id: str | None
    last_turned_away: datetime | None
    probes: int
    last_probe: datetime | None
    probe_outcome: str | None
    probe_trace_id: str | None
    due: datetime | None

    @property
    def open_seconds(self) -> float:
        """Return for how long it was open, held open by hand included."""
        return sum(self.seconds.get(state, 0.0) for state in _OPEN)

    @property
    def half_open_seconds(self) -> float:
        """Return for how long it was probing, and open nowhere."""
        return self.seconds.get(BreakerState.HALF_OPEN, 0.0)

    @property
    def is_worth_showing(self) -> bool:
        """Tell whether it did anything, or is about to."""
        is_calm = self.state in (BreakerState.CLOSED, theme.UNKNOWN_STATE)
        lasted = self.open_seconds or self.half_open_seconds
        return bool(not is_calm or self.turned_away or self.periods or self.probes or lasted)


def blasts(states: pd.DataFrame, shares: pd.DataFrame, damage: pd.DataFrame) -> list[Blast]:
    """Return what breakers did, the most damaging first.

    Args:
        states: Rows of ``page_breaker_states``.
        shares: Rows of ``page_breaker_shares``, of any buckets.
        damage: Rows of ``page_breaker_damage``.
    """
    lasted: dict[str, dict[str, float]] = {}
    begun: dict[str, tuple[int, int]] = {}
    for row in rows_of(shares):
        of = lasted.setdefault(row.breaker, {})
        of[row.state] = of.get(row.state, 0.0) + float(row.seconds)
        periods, reopened = begun.get(row.breaker, (0, 0))
        begun[row.breaker] = periods + int(row.periods), reopened + int(row.reopened)
    done = {row.breaker: row for row in rows_of(damage)}
    found = [
        _blast(row, lasted.get(row.breaker, {}), begun.get(row.breaker, (0, 0)),
               done.get(row.breaker))
        for row in rows_of(states)
    ]  # fmt: skip
    return sorted(
        (one for one in found if one.is_worth_showing),
        key=lambda one: (-one.turned_away, -one.open_seconds, -one.half_open_seconds, one.breaker),
    )


def to_frame(found: list[Blast]) -> pd.DataFrame:
    """Return breakers as a table to download, with seconds open and half-open."""
    rows = []
    for one in found:
        row = {field.name: getattr(one, field.name) for field in fields(one)}
        del row["seconds"]
        rows.append(row | {"open_seconds": one.open_seconds,
                           "half_open_seconds": one.half_open_seconds})  # fmt: skip
    return pd.DataFrame(rows)


def _blast(state: Any, seconds: Mapping[str, float], begun: tuple[int, int], done: Any) -> Blast:
    counts = {name: float(getattr(done, name)) if done is not None else 0.0 for name in _COUNTS}
    turned = _moment(done.last_turned_away) if done is not None else None
    return Blast(
        breaker=state.breaker, tool=state.tool, region=state.region, state=state.state,
        since=_moment(state.since_time), processes=int(state.processes),
        processes_not_closed=int(state.processes_not_closed), seconds=seconds,
        periods=begun[0], reopened=begun[1], turned_away=counts["turned_away"],
        rejected=counts["rejected"], degraded=counts["degraded"], stopped=counts["stopped"],
        sessions=int(counts["sessions"]), agents=int(counts["agents"]),
        agent_names=_text(done, "agent") or "", last_turned_away=turned,
        trace_id=_text(done, "trace_id") if turned else None, probes=int(counts["probes"]),
        last_probe=_moment(done.last_probe) if done is not None else None,
        probe_outcome=_text(done, "probe_outcome") if counts["probes"] else None,
        probe_trace_id=_text(done, "probe_trace_id") if counts["probes"] else None,
        due=due_at(_text(done, "words"), turned) if state.state == BreakerState.OPEN else None,
    )  # fmt: skip


def due_at(words: str | None, told_at: datetime | None) -> datetime | None:
    """Return when the next probe is due by what a call was told that was turned away.

    Args:
        words: The message that the call got.
        told_at: When.
    """
    found = _DUE.search(words or "")
    if found is None or told_at is None:
        return None
    return told_at + timedelta(seconds=float(found[1]))


def sentence(blast: Blast, length: timedelta) -> str:
    """Return what a breaker did in a sentence.

    Args:
        blast: Of which breaker.
        length: Of the window.
    """
    parts = (_lasted(blast, length), _turned(blast), _whom(blast), _flapped(blast))
    return t("; ").join(part for part in parts if part)


def _lasted(blast: Blast, length: timedelta) -> str:
    parts = []
    if blast.open_seconds:
        share = theme.percent(min(1.0, blast.open_seconds / length.total_seconds()))
        parts.append(t("open {time} ({share} of the window)", time=time(blast.open_seconds),
                       share=share))  # fmt: skip
    if blast.half_open_seconds:
        parts.append(t("half-open {time}", time=time(blast.half_open_seconds)))
    words = t(", ").join(parts) or t("not open in this window")
    if not blast.processes_not_closed:
        return words
    return n(
        "{words}, now not closed in {some} of {count} process",
        "{words}, now not closed in {some} of {count} processes",
        blast.processes, words=words, some=blast.processes_not_closed,
    )  # fmt: skip


def _turned(blast: Blast) -> str:
    parts = []
    if number := round(blast.rejected):
        parts.append(n("{calls} call rejected", "{calls} calls rejected", number,
                       calls=theme.count(number)))  # fmt: skip
    if number := round(blast.degraded):
        parts.append(n("{calls} call degraded", "{calls} calls degraded", number,
                       calls=theme.count(number)))  # fmt: skip
    if number := round(blast.stopped):
        parts.append(n("{calls} retry cut short", "{calls} retries cut short", number,
                       calls=theme.count(number)))  # fmt: skip
    return t(", ").join(parts) or t("no call turned away")


def _whom(blast: Blast) -> str:
    sessions = n("{count} session", "{count} sessions", blast.sessions)
    agents = n("{count} agent", "{count} agents", blast.agents)
    if blast.sessions and blast.agents:
        return t("{sessions} of {agents}", sessions=sessions, agents=agents)
    if blast.sessions:
        return sessions
    return agents if blast.agents else ""


def _flapped(blast: Blast) -> str:
    if blast.periods < 2:
        return ""
    words = n("opened {count} time", "opened {count} times", blast.periods)
    if not blast.reopened:
        return words
    return t("{words}, {number} within a minute after it had closed", words=words,
             number=blast.reopened)  # fmt: skip


def time(seconds: float) -> str:
    """Return a length of time in words; less than a second is not nothing."""
    return theme.seconds(seconds) if seconds < 1 else theme.span(timedelta(seconds=seconds))


def _moment(value: Any) -> datetime | None:
    return None if value is None or pd.isna(value) else value.to_pydatetime()


def _text(row: Any, name: str) -> str | None:
    value = getattr(row, name, None) if row is not None else None
    return value if isinstance(value, str) and value else None
