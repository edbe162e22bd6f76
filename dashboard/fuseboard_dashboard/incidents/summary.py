"""An incident in a few lines: began, detected, mitigated, over, and whom it touched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd

from fuseboard.conventions import BreakerState
from fuseboard_dashboard import theme
from fuseboard_dashboard.alerting import place_of
from fuseboard_dashboard.incidents.evidence import Evidence
from fuseboard_dashboard.incidents.stretch import Moments, Trouble, find_trouble
from fuseboard_dashboard.incidents.wording import named
from fuseboard_dashboard.language import n, t


@dataclass(frozen=True, slots=True)
class Milestone:
    """One line of the summary.

    Attributes:
        id: ``began``, ``detected``, ``mitigated`` or ``over``.
        moment: Naive UTC; None where it did not happen.
        sentence: What happened, or that nothing did.
        short: The same in a few words.
    """

    id: str
    moment: datetime | None
    sentence: str
    short: str = ""


@dataclass(frozen=True)
class Summary:
    """What stands above the timeline.

    Attributes:
        trouble: The worst tool's bad stretch; None where there is none.
        milestones: In the order of time as it should be.
        impact: Sentences on who was touched, and what it cost.
    """

    trouble: Trouble | None
    milestones: tuple[Milestone, ...]
    impact: tuple[str, ...]


def summarise(evidence: Evidence, moments: Moments) -> Summary:
    """Return the summary of a window.

    Args:
        evidence: What the store knows.
        moments: Asks for the first and last bad calls of a tool in a part of the window.
    """
    trouble = find_trouble(evidence, moments)
    lines = (_began(trouble), _detected(evidence, trouble), _mitigated(evidence, trouble),
             _over(trouble))  # fmt: skip
    return Summary(trouble, lines, tuple(_impact(evidence)))


def _began(trouble: Trouble | None) -> Milestone:
    if trouble is None:
        return Milestone("began", None, t("no tool failed more than it usually does"))
    words = t("first bad call of {tool}, the worst tool", tool=named(trouble.tool))
    return Milestone("began", trouble.began, words, named(trouble.tool))


def _detected(evidence: Evidence, trouble: Trouble | None) -> Milestone:
    firing = _concerning(trouble, evidence.alerts[evidence.alerts["state"] == "firing"])
    if trouble is not None:
        firing = firing[firing["time"] >= trouble.began]
    if len(firing):
        first = firing.iloc[0]
        moment = first["time"].to_pydatetime()
        words = t("{alert} fired, the first alert", alert=named(first["alert"]))
        return Milestone("detected", moment, words + _after(trouble, moment),
                         _short_after(trouble, moment))  # fmt: skip
    before = evidence.firing_before
    already = _concerning(trouble, before[before["state"] == "firing"])
    if len(already):
        words = t("{alert} fired since before this window", alert=named(already.iloc[0]["alert"]))
        return Milestone("detected", None, words)
    return Milestone("detected", None, t("no alert fired"))


def _concerning(trouble: Trouble | None, alerts: pd.DataFrame) -> pd.DataFrame:
    """Return the alerts about the tool in trouble, and those that name none."""
    if trouble is None or not len(alerts):
        return alerts
    tools = alerts["labels"].map(lambda labels: place_of(str(labels))[0] or trouble.tool)
    return alerts[tools == trouble.tool]


def _mitigated(evidence: Evidence, trouble: Trouble | None) -> Milestone:
    nothing = Milestone("mitigated", None, t("no breaker opened and nothing stood in"))
    if trouble is None:
        return nothing
    moves = evidence.transitions
    opened = moves[
        (moves["tool"] == trouble.tool)
        & moves["to_state"].isin([BreakerState.OPEN.value, BreakerState.ISOLATED.value])
        & (moves["time"] >= trouble.began)
    ]
    # Of many transitions only the newest are known, of each breaker its first opening is.
    firsts = evidence.breakers
    firsts = firsts[(firsts["tool"] == trouble.tool) & (firsts["first_opened"] >= trouble.began)]
    openings = [*zip(opened["time"], opened["breaker"], strict=True),
                *zip(firsts["first_opened"], firsts["breaker"], strict=True)]  # fmt: skip
    found: list[tuple[datetime, str]] = []
    if openings:
        time, breaker = min(openings)
        words = t("breaker {breaker} opened", breaker=named(breaker))
        found.append((time.to_pydatetime(), words))
    if trouble.first_degraded is not None:
        words = t("a stand-in answered for {tool}", tool=named(trouble.tool))
        found.append((trouble.first_degraded, words))
    if not found:
        return nothing
    moment, words = min(found)
    return Milestone("mitigated", moment, words + _after(trouble, moment),
                     _short_after(trouble, moment))  # fmt: skip


def _after(trouble: Trouble | None, moment: datetime) -> str:
    if trouble is None:
        return ""
    return t(", {time} after it began", time=theme.span(moment - trouble.began))


def _short_after(trouble: Trouble | None, moment: datetime) -> str:
    return "" if trouble is None else t("{time} later", time=theme.span(moment - trouble.began))


def _over(trouble: Trouble | None) -> Milestone:
    if trouble is None:
        return Milestone("over", None, t("nothing to be over"))
    if not trouble.is_over:
        return Milestone("over", None, t("not over at the end of this window"))
    lasted = theme.span(trouble.last_bad - trouble.began)
    words = t("last bad call of {tool}; it lasted {time}", tool=named(trouble.tool), time=lasted)
    return Milestone("over", trouble.last_bad, words, t("lasted {time}", time=lasted))


def _impact(evidence: Evidence) -> list[str]:
    totals = evidence.totals
    noted = [evidence.note] if evidence.note else []
    share = theme.percent(theme.ratio(totals["affected"], evidence.all_calls))
    lines = [
        *noted,
        t("{calls} of {all} calls affected ({share}): {errors} errors, {rejected} rejected, "
          "{degraded} answered by a stand-in, {unusable} answered unusably.",
          calls=_count(totals["affected"]), all=_count(evidence.all_calls), share=share,
          errors=_count(totals["errors"]), rejected=_count(totals["rejected"]),
          degraded=_count(totals["degraded"]), unusable=_count(totals["unusable"])),
    ]  # fmt: skip
    touched = (
        n("{count} tool", "{count} tools", int(totals["tools"])),
        n("{count} agent", "{count} agents", int(totals["agents"])),
        n("{count} session", "{count} sessions", int(totals["sessions"])),
    )
    lines.append(t("Touched: {what}.", what=t(", ").join(touched)))
    cost = totals["cost_of_these"]
    if cost is not None and not pd.isna(cost):
        lines.append(t("Affected calls cost {cost} ({told} of them tell what they cost).",
                       cost=f"{cost:,.4g}", told=_count(totals["priced"])))  # fmt: skip
    return lines


def _count(value: Any) -> str:
    """Return a whole number of calls: a report is to be checked."""
    return f"{float(value):,.0f}"
