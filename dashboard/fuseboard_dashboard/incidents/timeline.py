"""The entries of an incident's timeline: each with its time, a sentence and a way to the calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import pandas as pd

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import alerting, changed, theme
from fuseboard_dashboard.changes import Change
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.incidents.evidence import Evidence
from fuseboard_dashboard.incidents.wording import named
from fuseboard_dashboard.language import n, t

MOST: Final = 1000
BUSY: Final = 6
"""More state changes of one alert or breaker are told in one sentence."""
WORST: Final = 10
"""Slices whose first and last bad call are told of."""
SILENT: Final = timedelta(seconds=45)
"""Three heartbeats: who sends none for so long is gone."""
DIP: Final = 0.5
"""Less than this share of the usual number of calls is a dip."""
LEAST_USUAL: Final = 20
"""Calls per bucket below which a dip may be chance."""

_KINDS: Final = (
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
        kind: One of ``_KINDS``.
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


def timeline(evidence: Evidence) -> tuple[list[Entry], int]:
    """Return the entries in order of time, and how many were left out beyond ``MOST``."""
    found = [
        *_changes(evidence), *_alerts(evidence), *_mutes(evidence), *_breakers(evidence),
        *_slices(evidence), *_degraded(evidence), *_dips(evidence), *_processes(evidence),
    ]  # fmt: skip
    kept = sorted(found, key=lambda entry: (_KINDS.index(entry.kind), entry.moment))[:MOST]
    kept.sort(key=lambda entry: (entry.moment, _KINDS.index(entry.kind), entry.sentence))
    return kept, len(found) - len(kept)


def change_words(change: Change) -> str:
    """Return what rose, where, and how much of the rise that is, in a sentence."""
    where = change.where
    parts = [named(where["tool"])] if "tool" in where else [t("all tools")]
    if "region" in where:
        parts.append(t("in {region}", region=named(where["region"])))
    if "args_hash" in where:
        parts.append(t("with arguments {hash}", hash=named(where["args_hash"])))
    if "agent" in where:
        parts.append(t("of agent {agent}", agent=named(where["agent"])))
    if "service" in where:
        parts.append(t("of service {service}", service=named(where["service"])))
    if "upstream" in where:
        parts.append(t("at {upstream}", upstream=named(where["upstream"])))
    error_class = where.get("error_class") or change.mostly
    if error_class:
        parts.append(f"({theme.mark(theme.CLASS_MARKS, error_class).label})")
    what = {
        "errors": t("errors"), "retries": t("retried calls"), "slow": t("slow calls"),
    }[change.measure.id]  # fmt: skip
    before = t("no calls") if change.before is None else theme.percent(change.before)
    return t("{what} of {where} rose from {before} to {now}: {share} of the rise", what=what,
             where=" ".join(parts), before=before, now=theme.percent(change.rate),
             share=theme.percent(round(change.share, 2)))  # fmt: skip


def _changes(evidence: Evidence) -> Iterator[Entry]:
    """Yield rises of errors at the first error of their tool, region and class."""
    for change in evidence.rises:
        rows = evidence.slices
        for name in ("tool", "region", "error_class"):
            if name in change.where:
                rows = rows[rows[name] == change.where[name]]
        if change.measure.id != "errors" or not len(rows):
            continue
        yield Entry(rows["first_bad"].min().to_pydatetime(), "change",
                    theme.mark(theme.OUTCOME_MARKS, "error"), change_words(change),
                    changed.link(evidence.filters, change), round(change.events))  # fmt: skip


def _alerts(evidence: Evidence) -> Iterator[Entry]:
    for (alert, labels), rows in evidence.alerts.groupby(["alert", "labels"], sort=False):
        href = alerting.cause_link(str(alert), str(labels), evidence.filters)
        about = {"alert": named(alert), "about": named(alerting.label_words(str(labels)), 110)}
        if len(rows) <= BUSY:
            for row in rows_of(rows):
                yield Entry(row.time.to_pydatetime(), "alert", _alert_mark(row),
                            _alert_words(row, about), href)  # fmt: skip
            continue
        fired = int((rows["state"] == "firing").sum())
        first, last = rows.iloc[0], rows.iloc[-1]
        words = t("{alert} for {about} changed its state {number} times in {time} and fired "
                  "{fired} times; then it was {state}", **about, number=len(rows),
                  time=theme.span(last["time"] - first["time"]), fired=fired,
                  state=_state_words(last["state"]))  # fmt: skip
        yield Entry(first["time"].to_pydatetime(), "alert",
                    theme.ALERT_STATE_MARKS["firing"], words, href, len(rows))  # fmt: skip


def _alert_mark(row: Any) -> theme.Mark:
    if row.state == "firing":
        return theme.mark(theme.SEVERITY_MARKS, row.severity)
    return theme.mark(theme.ALERT_STATE_MARKS, row.state)


def _alert_words(row: Any, about: dict[str, str]) -> str:
    is_active = row.state in ("firing", "pending")
    value = alerting.value_words(row.alert, row.value) if is_active else ""
    at = t(" at {value}", value=value) if value else ""
    return t("{alert} for {about}: {state}", **about, state=_state_words(row.state)) + at


def _state_words(state: str) -> str:
    return {
        "firing": t("firing"), "pending": t("pending"), "resolved": t("resolved"),
        "no_data": t("no data"), "inactive": t("no longer pending"), "muted": t("muted"),
    }.get(state, named(state))  # fmt: skip


def _mutes(evidence: Evidence) -> Iterator[Entry]:
    for row in rows_of(evidence.mutes):
        where = [named(value) for value in (row.severity, row.tool, row.region)
                 if isinstance(value, str)]  # fmt: skip
        about = {"alert": named(row.alert), "where": ", ".join(where) or t("everywhere")}
        if row.ends <= row.time:
            words = t("{alert} ({where}) is no longer muted", **about)
        else:
            held = theme.span(row.ends - row.time)
            words = t("{alert} ({where}) was muted for {time}: {reason}", **about, time=held,
                      reason=named(row.reason, 200))  # fmt: skip
        if isinstance(row.author, str) and row.author:
            words += t(", by {author}", author=named(row.author))
        yield Entry(row.time.to_pydatetime(), "mute", MUTED, words,
                    evidence.filters.link("alerts"))  # fmt: skip


def _breakers(evidence: Evidence) -> Iterator[Entry]:
    for row in rows_of(evidence.breakers):
        href = evidence.filters.narrowed(tool=row.tool, region=row.region).link("breakers")
        moves = evidence.transitions
        mine = moves[
            (moves["breaker"] == row.breaker)
            & (moves["tool"] == row.tool)
            & (moves["region"] == row.region)
        ]
        if row.moves <= BUSY and len(mine) == row.moves:
            for move in rows_of(mine):
                yield Entry(move.time.to_pydatetime(), "breaker",
                            theme.mark(theme.STATE_MARKS, move.to_state), _move_words(move),
                            href)  # fmt: skip
            continue
        opened = row.first_opened if not pd.isna(row.first_opened) else row.first_time
        state = str(mine.iloc[-1]["to_state"]) if len(mine) else theme.UNKNOWN_STATE
        words = t("breaker {breaker} flapped: it opened {openings} times in {time} ({number} "
                  "transitions in {processes}); then it was {state}",
                  breaker=named(row.breaker), number=row.moves, openings=int(row.openings),
                  processes=n("{count} process", "{count} processes", int(row.processes)),
                  time=theme.span(row.last_time - opened), state=_breaker_words(state))  # fmt: skip
        yield Entry(opened.to_pydatetime(), "breaker",
                    theme.mark(theme.STATE_MARKS, BreakerState.OPEN.value), words, href,
                    int(row.moves))  # fmt: skip


def _breaker_words(state: str) -> str:
    return {
        BreakerState.CLOSED.value: t("closed"), BreakerState.OPEN.value: t("open"),
        BreakerState.HALF_OPEN.value: t("half-open"), BreakerState.ISOLATED.value: t("isolated"),
    }.get(state, t("unknown"))  # fmt: skip


def _move_words(move: Any) -> str:
    words = t("breaker {breaker} went from {old} to {new}", breaker=named(move.breaker),
              old=_breaker_words(move.from_state), new=_breaker_words(move.to_state))  # fmt: skip
    if isinstance(move.reason, str) and move.reason:
        words += t(": {reason}", reason=named(move.reason))
    if move.to_state == BreakerState.OPEN.value and not pd.isna(move.failures):
        words += t(" ({failures} of {calls} calls failed)", failures=int(move.failures),
                   calls=int(move.calls))  # fmt: skip
    return words


def _slices(evidence: Evidence) -> Iterator[Entry]:
    """Yield the first and the last bad call of the worst slices."""
    for row in rows_of(evidence.slices.head(WORST)):
        href = evidence.filters.narrowed(
            tool=row.tool, region=row.region, error_class=row.error_class
        ).link("errors")
        mark = theme.mark(theme.CLASS_MARKS, row.error_class)
        about = {"class_": mark.label, "tool": named(row.tool), "region": named(row.region)}
        words = t("first of {number} bad calls of {tool} in {region} ({class_})",
                  number=f"{row.bad:,.0f}", **about)  # fmt: skip
        if row.bad == 1:
            words = t("the only bad call of {tool} in {region} ({class_})", **about)
        yield Entry(row.first_bad.to_pydatetime(), "first", mark, words, href, round(row.bad))
        if row.last_bad > row.first_bad:
            words = t("last bad call of {tool} in {region} ({class_})", **about)
            yield Entry(row.last_bad.to_pydatetime(), "last", mark, words, href)


def _degraded(evidence: Evidence) -> Iterator[Entry]:
    """Yield each stretch of time in which a tool's answers were stand-ins."""
    mark = theme.OUTCOME_MARKS["degraded"]
    for tool, rows in evidence.series.groupby("tool", sort=True):
        served = rows[rows["degraded"] > 0].sort_values("bucket")
        # A bucket without any in between does not end a stretch.
        stretch = (served["bucket"].diff() > 2 * evidence.bucket).cumsum()
        href = evidence.filters.narrowed(tool=str(tool)).link("degradation")
        for _, part in served.groupby(stretch):
            began = _exactly(evidence, str(tool), part["bucket"].iloc[0])
            ended = min((part["bucket"].iloc[-1] + evidence.bucket).to_pydatetime(),
                        evidence.until)  # fmt: skip
            number = round(part["degraded"].sum())
            words = n("a stand-in answered {count} call of {tool}",
                      "stand-ins answered {count} calls of {tool} in {time}", number,
                      tool=named(tool), time=theme.span(ended - began))  # fmt: skip
            yield Entry(began, "degraded", mark, words, href, number)


def _exactly(evidence: Evidence, tool: str, bucket: pd.Timestamp) -> datetime:
    """Return when the first stand-in of a bucket answered, where that is known; else its start."""
    first = evidence.slices.loc[evidence.slices["tool"] == tool, "first_degraded"].min()
    if not pd.isna(first) and bucket <= first <= bucket + evidence.bucket:
        return pd.Timestamp(first).to_pydatetime()
    return max(bucket.to_pydatetime(), evidence.since)


def _dips(evidence: Evidence) -> Iterator[Entry]:
    """Yield each stretch with less than half as many calls as usual; ragged ends don't count."""
    inner = evidence.calls.iloc[1:-1]
    busy = inner[inner > 0]
    usual = float(busy.median()) if len(busy) else 0.0
    if usual < LEAST_USUAL:
        return
    low = inner[inner < DIP * usual]
    stretch = (low.index.to_series().diff() > evidence.bucket).cumsum()
    for _, part in low.groupby(stretch.to_numpy()):
        began = pd.Timestamp(part.index[0])
        words = t("only {calls} calls in {time}, usually {usual}",
                  calls=f"{part.sum():,.0f}", time=theme.span(evidence.bucket * len(part)),
                  usual=f"{usual * len(part):,.0f}")  # fmt: skip
        yield Entry(began.to_pydatetime(), "dip", DIP_MARK, words, evidence.filters.link("board"))


def _processes(evidence: Evidence) -> Iterator[Entry]:
    frame = evidence.processes
    if not len(frame):
        return
    href = evidence.filters.link("board")
    for (instance, service), rows in frame.groupby(["instance", "service"], sort=True):
        first, last = rows["first_beat"].min(), rows["last_beat"].max()
        newest = rows.sort_values("last_beat").iloc[-1]["version"]
        about = {"instance": named(instance), "service": named(service)}
        version = ""
        if isinstance(newest, str) and newest:
            version = t(" with version {version}", version=named(newest))
        if first > evidence.since:
            words = t("process {instance} of {service} started", **about) + version
            yield Entry(first.to_pydatetime(), "process", STARTED, words, href)
        if evidence.since < last < evidence.until - SILENT:
            words = t("process {instance} of {service} sent its last heartbeat", **about)
            yield Entry(last.to_pydatetime(), "process", STOPPED, words, href)
    known = frame[frame["version"].notna()]
    for (service, number), rows in known.groupby(["service", "version"], sort=True):
        first = rows["first_beat"].min()
        had_others = (frame["service"] == service) & (frame["first_beat"] <= evidence.since)
        if first > evidence.since and had_others.any():
            words = t("version {version} of {service} was seen first", version=named(number),
                      service=named(service))  # fmt: skip
            yield Entry(first.to_pydatetime(), "process", STARTED, words, href)


STARTED: Final = replace(theme.SEVERITY_MARKS["info"], symbol="▷")
STOPPED: Final = replace(theme.mark(theme.STATE_MARKS, theme.UNKNOWN_STATE), symbol="◻")
MUTED: Final = replace(theme.ALERT_STATE_MARKS["inactive"], symbol="⊖")
DIP_MARK: Final = replace(theme.SEVERITY_MARKS["warning"], symbol="↓")
