"""Every headline number counted again, plainly, from what ``fuseboard export`` writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

Record = dict[str, Any]
Records = list[Record]

LOST_INTEREST = {"cancelled", "abandoned", "interrupted"}
LIVE = {"ok", "partial"}


def in_window(records: Iterable[Record], window: tuple[str, str], key: str = "end") -> Records:
    """Keep records of (since, until], by the text of equally written UTC times."""
    since, until = (text.replace("+00:00", "").rstrip("Z")[:26].ljust(26, "0") for text in window)
    return [record for record in records if since < record[key].rstrip("Z")[:26] <= until]


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def judged(calls: Records) -> Records:
    return [call for call in calls if call["outcome"] not in LOST_INTEREST]


def attempted(calls: Records) -> Records:
    return [call for call in calls if call["attempts"]]


def retried(calls: Records) -> Records:
    return [call for call in calls if call["attempts"] > 1]


def errors(calls: Records) -> Records:
    return [
        call for call in judged(calls)
        if call["outcome"] in ("error", "rejected") and call["error_class"] != "L1_input"
    ]  # fmt: skip


def of(calls: Records, outcome: str) -> Records:
    return [call for call in calls if call["outcome"] == outcome]


def error_ratio(calls: Records) -> float | None:
    return ratio(len(errors(calls)), len(judged(calls)))


def retry_ratio(calls: Records) -> float | None:
    return ratio(len(retried(calls)), len(attempted(calls)))


def amplification(calls: Records) -> float | None:
    return ratio(sum(call["attempts"] for call in calls), len(attempted(calls)))


def degraded_ratio(calls: Records) -> float | None:
    return ratio(len(of(calls, "degraded")), len(judged(calls)))


def quantile(calls: Records, q: float) -> float | None:
    """Return the duration that a share of ``q`` of the calls did not exceed."""
    lengths = sorted(float(call["duration_seconds"]) for call in calls)
    return lengths[max(0, math.ceil(q * len(lengths)) - 1)] if lengths else None


def backoff(calls: Records) -> float:
    return sum(call["backoff_seconds"] or 0.0 for call in calls)


def mean(calls: Records, column: str) -> float | None:
    return ratio(sum(call[column] or 0.0 for call in calls), len(calls))


def answers(calls: Records, outcome: str, *sources: str | None) -> int:
    return sum(call["result_source"] in sources for call in of(calls, outcome))


def cache_hit_ratio(calls: Records) -> float | None:
    """Return hits over judged calls of all tools and regions with a cache."""
    cached = {
        (call["tool"], call["region"]) for call in calls
        if call["outcome"] in ("ok", "degraded") and (
            call["result_source"] == "cache"
            or ((call["outcome"], call["result_source"]) == ("ok", "live") and call["confidence"]))
    }  # fmt: skip
    there = [call for call in judged(calls) if (call["tool"], call["region"]) in cached]
    return ratio(answers(there, "ok", "cache"), len(there))


def age_p95(calls: Records) -> float | None:
    told = [call["result_age_seconds"] for call in calls
            if call["outcome"] in ("ok", "partial", "degraded")]  # fmt: skip
    ages = sorted(age for age in told if age is not None)
    return ages[max(0, math.ceil(0.95 * len(ages)) - 1)] if ages else None


def at_worst_upstream(calls: Records) -> Records:
    """Return the calls at the upstream with the most errors, of equals the busiest."""
    groups: dict[str, Records] = {}
    for call in calls:
        if call["upstream"] is not None:
            groups.setdefault(call["upstream"], []).append(call)
    worst = sorted(groups, key=lambda name: (-len(errors(groups[name])), -len(groups[name]), name))
    return groups[worst[0]] if worst else []


def priced(calls: Records) -> Records:
    """Return the calls of tools that report a cost."""
    tools = {call["tool"] for call in calls if call["cost"] is not None}
    return [call for call in calls if call["tool"] in tools]


def cost(calls: Iterable[Record]) -> float:
    return sum(call["cost"] or 0.0 for call in calls)


HEADLINES: dict[str, Callable[[Records], float | None]] = {
    "calls": lambda calls: float(len(calls)),
    "error-ratio": error_ratio,
    "retry-ratio": retry_ratio,
    "amplification": amplification,
    "degraded-ratio": degraded_ratio,
    "p50": lambda calls: quantile(calls, 0.5),
    "p95": lambda calls: quantile(calls, 0.95),
    "p99": lambda calls: quantile(calls, 0.99),
    "faults": lambda calls: sum(bool(call["error_class"]) for call in calls),
    "errors": lambda calls: len(errors(calls)),
    "rejected": lambda calls: len(of(errors(calls), "rejected")),
    "partials": lambda calls: len(of(calls, "partial")),
    "retried": lambda calls: len(retried(calls)),
    "first-try-ratio": lambda calls: ratio(
        sum(call["attempts"] == 1 and call["outcome"] in LIVE for call in calls),
        len(attempted(calls)),
    ),
    "final-ratio": lambda calls: ratio(
        sum(call["outcome"] in LIVE for call in attempted(calls)), len(attempted(calls))
    ),
    "recovered": lambda calls: sum(call["outcome"] in LIVE for call in retried(calls)),
    "exhausted": lambda calls: sum(
        call["outcome"] in ("error", "degraded", "rejected") for call in retried(calls)
    ),
    "backoff-seconds": backoff,
    "slowest": lambda calls: max((call["duration_seconds"] for call in calls), default=None),
    "mean": lambda calls: mean(calls, "duration_seconds"),
    "mean-attempt": lambda calls: mean(calls, "attempt_seconds"),
    "mean-backoff": lambda calls: mean(calls, "backoff_seconds"),
    "answers-default": lambda calls: (
        answers(calls, "degraded", "default") + answers(calls, "ok", "default")
    ),
    "answers-fallback": lambda calls: (
        answers(calls, "degraded", "fallback") + answers(calls, "ok", "fallback")
    ),
    "answers-stale": lambda calls: answers(calls, "degraded", "cache"),
    "answers-untold": lambda calls: (
        len(of(calls, "degraded")) - answers(calls, "degraded", "default", "fallback", "cache")
    ),
    "answers-partial": lambda calls: len(of(calls, "partial")),
    "answers-cache": lambda calls: answers(calls, "ok", "cache"),
    "cache-hit-ratio": cache_hit_ratio,
    "answer-age-p95": age_p95,
    "impact-tools": lambda calls: len({call["tool"] for call in at_worst_upstream(calls)}),
    "impact-callers": lambda calls: len(
        {call["agent"] or call["service"] for call in at_worst_upstream(calls)} - {None}
    ),
    "impact-sessions": lambda calls: len(
        {call["session"] for call in at_worst_upstream(calls)} - {None}
    ),
    "impact-calls": lambda calls: len(at_worst_upstream(calls)),
    "impact-error-ratio": lambda calls: error_ratio(at_worst_upstream(calls)),
    "impact-explains": lambda calls: ratio(
        len(errors(at_worst_upstream(calls))), len(errors(calls))
    ),
    "cost": lambda calls: cost(calls),
    "cost-degraded": lambda calls: cost(of(calls, "degraded")),
    "cost-errors": lambda calls: cost(
        call for call in calls if call["outcome"] in ("error", "rejected")
    ),
    "cost-per-success": lambda calls: ratio(
        cost(calls), sum(call["outcome"] in LIVE for call in priced(calls))
    ),
}
"""``data-stat`` → its definition, over the calls of the window and the filters."""


def openings(transitions: Records) -> int:
    return sum(move["to_state"] == "open" for move in transitions)
