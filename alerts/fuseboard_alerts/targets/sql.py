"""Evaluate a rule's condition on the store: one named query, then the catalogue's thresholds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from fuseboard.conventions import HEARTBEAT_INTERVAL_SECONDS, UNKNOWN_REGION
from fuseboard_alerts.model import (
    GROUP_BY,
    Absent,
    Condition,
    Ratio,
    Rule,
    SlowShare,
    StateFor,
)
from fuseboard_alerts.state import Labels, Observation
from fuseboard_collector.reading import Reader

UNKNOWN_SERVICE: Final = "unknown_service"
LIVE_FOR: Final = timedelta(seconds=3 * HEARTBEAT_INTERVAL_SECONDS)
"""A process is live for three heartbeats; not scaled, since heartbeats are not."""
UNHEARD_FOR: Final = timedelta(hours=1)
"""How long a breaker's state is believed of a process that never sent a heartbeat."""

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Question:
    """A query with all its parameters; equal questions have equal answers."""

    query: str
    parameters: tuple[tuple[str, object], ...]

    def ask(self, reader: Reader) -> list[dict[str, object]]:
        """Return the rows of the answer."""
        rows: list[dict[str, object]] = reader.query(self.query, dict(self.parameters)).to_pylist()
        return rows


def question(condition: Condition, now: datetime, time_scale: float = 1.0) -> Question:
    """Say what to ask the store.

    Args:
        condition: The condition.
        now: End of the window; aware.
        time_scale: Factor for the window.
    """
    window = condition.lookback if isinstance(condition, Absent) else condition.window
    parameters: dict[str, object] = {
        "since": now - timedelta(seconds=window * time_scale),
        "until": now,
    }
    if not isinstance(condition, Absent):
        parameters |= {"no_service": UNKNOWN_SERVICE, "no_region": UNKNOWN_REGION}
    if isinstance(condition, SlowShare):
        parameters["slower_than"] = condition.slower_than
    if isinstance(condition, StateFor):
        parameters |= {"live_since": now - LIVE_FOR, "unheard_since": now - UNHEARD_FOR}
    return Question(condition.query, tuple(parameters.items()))


def observe(rule: Rule, rows: list[dict[str, object]]) -> list[Observation]:
    """Judge the rows that the store answered.

    Rows without a finite value are no data: NaN compares greater than any threshold in the
    store, and would fire.
    """
    return [
        Observation(
            labels=_labels(rule, row),
            is_true=_is_over(rule.condition, value) and _is_enough(rule.condition, row),
            is_well=not _is_over(rule.condition, value),
            value=value,
            newest=_time(row["newest"]),
        )
        for row in rows
        if (value := _number(row["value"])) is not None
    ]


def _labels(rule: Rule, row: Row) -> Labels:
    return tuple((label, str(row[label])) for label in GROUP_BY if label in rule.labels)


def _is_over(condition: Condition, value: float) -> bool:
    return value > condition.above if isinstance(condition, Ratio | SlowShare) else value == 1


def _is_enough(condition: Condition, row: Row) -> bool:
    if not isinstance(condition, Ratio | SlowShare):
        return True
    calls, events = _number(row["calls"]), _number(row["events"])
    return (
        calls is not None
        and events is not None
        and calls > condition.minimum_calls - 0.5
        and events > condition.minimum_events - 0.5
    )


def _number(value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float):
        # Dropping it as "no data" would silence the rule for good.
        raise TypeError(f"the query answered {value!r} where a DOUBLE is wanted")
    return float(value) if math.isfinite(value) else None


def _time(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError(f"column newest must be a timestamp, not {value!r}")
    return value if value.tzinfo else value.replace(tzinfo=UTC)
