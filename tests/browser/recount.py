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
}
"""``data-stat`` → its definition, over the calls of the window and the filters."""


def openings(transitions: Records) -> int:
    return sum(move["to_state"] == "open" for move in transitions)
