"""How close each alert rule is to firing, and with what it is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fuseboard_alerts.model import Absent, Ratio, Rule, SlowShare, StateFor
from fuseboard_alerts.targets.prometheus import render_rules
from fuseboard_alerts.targets.sql import Question, observe, question
from fuseboard_collector.store import named_queries
from fuseboard_dashboard import theme
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.windows import rfc3339

MOST: Final = 10
"""Series that are shown of a rule, the closest first."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One series of a rule at the time of the evaluation.

    Attributes:
        labels: Job, tool and region; empty for a rule about everything.
        value: As measured.
        threshold: The rule is true above it; of a state, at it.
        is_true: Whether the condition is true now, its guards included.
        calls: In the rule's window; None where a rule counts none.
        events: Of them.
    """

    labels: dict[str, str]
    value: float
    threshold: float
    is_true: bool
    calls: float | None
    events: float | None

    @property
    def closeness(self) -> float:
        """Return the value as a share of the threshold: 1 and more is over it."""
        return self.value / self.threshold if self.threshold else float(self.value > 0)


def asked(rule: Rule, now: datetime, time_scale: float) -> Question:
    """Return what the evaluator would ask the store at a moment, with times as text."""
    plain = question(rule.condition, now, time_scale)
    return Question(
        plain.query,
        tuple(
            (name, rfc3339(value) if isinstance(value, datetime) else value)
            for name, value in plain.parameters
        ),
    )


def standings(rule: Rule, rows: Sequence[dict[str, Any]]) -> list[Standing]:
    """Return the series of a rule, the closest to its threshold first.

    Args:
        rule: The rule.
        rows: What the store answered to its question. Judged as the evaluator does.
    """
    counted = {tuple(str(row.get(name)) for name in rule.labels): row for row in rows}
    found = []
    for seen in observe(rule, list(rows)):
        row = counted[tuple(value for _, value in seen.labels)]
        found.append(
            Standing(dict(seen.labels), seen.value, threshold(rule), seen.is_true,
                     row.get("calls"), row.get("events"))
        )  # fmt: skip
    return sorted(found, key=lambda one: (not one.is_true, -one.closeness, -(one.calls or 0),
                                          *one.labels.values()))  # fmt: skip


def threshold(rule: Rule) -> float:
    """Return the value at which a rule turns true."""
    condition = rule.condition
    return condition.above if isinstance(condition, Ratio | SlowShare) else 1.0


def window_seconds(rule: Rule) -> float:
    """Return how far back a rule looks, in seconds of real time."""
    condition = rule.condition
    return condition.lookback if isinstance(condition, Absent) else condition.window


def distance(rule: Rule, one: Standing) -> str:
    """Return in words how close a series is, and what it lacks to be judged."""
    condition = rule.condition
    if isinstance(condition, Ratio | SlowShare):
        words = t("{value} against {limit}", value=theme.percent(one.value),
                  limit=theme.limit(condition.above))  # fmt: skip
        lacks = _lacks(condition, one)
        return f"{words}; {lacks}" if lacks else words
    if isinstance(condition, StateFor):
        return t("not closed in a process") if one.is_true else t("closed in every process")
    return t("nothing reports") if one.is_true else t("processes report")


def _lacks(condition: Ratio | SlowShare, one: Standing) -> str:
    calls, events = one.calls or 0.0, one.events or 0.0
    if calls <= condition.minimum_calls - 0.5:
        return n("{calls} of the {count} call that it needs",
                 "{calls} of the {count} calls that it needs",
                 condition.minimum_calls, calls=theme.count(calls))  # fmt: skip
    if events <= condition.minimum_events - 0.5 and one.value > condition.above:
        return n("{events} of the {count} event that it needs",
                 "{events} of the {count} events that it needs",
                 condition.minimum_events, events=theme.count(events))  # fmt: skip
    return ""


def promql(rule: Rule) -> str:
    """Return the rule as Prometheus gets it, recording rules and all."""
    text = render_rules((rule,))
    return "\n".join(line for line in text.splitlines() if not line.startswith("#")) + "\n"


def sql(rule: Rule, now: datetime, time_scale: float) -> str:
    """Return the query that the rule is evaluated with here, and its parameters.

    Args:
        rule: The rule.
        now: End of its window.
        time_scale: Factor of windows.
    """
    wanted = asked(rule, now, time_scale)
    lines = [f"-- ${name} = {value!r}" for name, value in wanted.parameters]
    return "\n".join([*lines, named_queries.text(wanted.query).strip(), ""])
