"""What the machinery itself reported: alerts, mutes and transitions of breakers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pandas as pd

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import alerting, theme
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.incidents.entry import Entry
from fuseboard_dashboard.incidents.evidence import Evidence
from fuseboard_dashboard.incidents.wording import named
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.vocabulary import reason_words

BUSY: Final = 6
"""More state changes of one alert or breaker are told in one sentence."""
MUTED: Final = replace(theme.ALERT_STATE_MARKS["inactive"], symbol="⊖")


def alerts(evidence: Evidence) -> Iterator[Entry]:
    """Yield each state change of an alert, those of a busy one as one entry."""
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


def mutes(evidence: Evidence) -> Iterator[Entry]:
    """Yield each mute that somebody set or took back."""
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


def breakers(evidence: Evidence) -> Iterator[Entry]:
    """Yield each transition of a breaker, those of a busy one as one entry."""
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
        words += t(": {reason}", reason=named(reason_words(move.reason)))
    if move.to_state == BreakerState.OPEN.value and not pd.isna(move.failures):
        words += t(" ({failures} of {calls} calls failed)", failures=int(move.failures),
                   calls=int(move.calls))  # fmt: skip
    return words
