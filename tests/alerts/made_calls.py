"""Calls, heartbeats and breaker transitions made up for tests, at seconds after ``START``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.evaluator import Evaluator
from fuseboard_collector.store import Store

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
STEP = 15

Row = dict[str, Any]
_TIMES = ("start", "end", "received_at", "time")
_numbers = itertools.count(1)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def call(end: float, **fields: Any) -> Row:
    number = next(_numbers)
    duration = fields.get("duration_seconds", 0.2)
    is_finite = duration == duration and abs(duration) < 1e9
    return {
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
        "start": at(end - (duration if is_finite else 0)),
        "end": at(end),
        "received_at": at(end),
        "duration_seconds": duration,
        "tool": "weather",
        "region": "eu-west",
        "service": "trip",
        "instance": "a",
        "outcome": "ok",
        "error_class": None,
        "error_message": None,
        "attempts": 1,
        "weight": 1.0,
        **fields,
    }


def steady(
    begin: float, end: float, per_second: float, special: int = 0, **fields: Any
) -> list[Row]:
    """Return ordinary calls in (begin, end], ``special`` of each 1000 with the given fields."""
    count = round((end - begin) * per_second)
    return [
        call(
            begin + (index + 1) / per_second,
            **(fields if (index * special) % 1000 < special else {}),
        )
        for index in range(count)
    ]


def failed(**fields: Any) -> Row:
    return {"outcome": "error", "error_class": "L3_transient", **fields}


def beat(
    time: float, instance: str = "a", open_: Iterable[Mapping[str, str]] = (), **fields: Any
) -> Row:
    return {
        "time": at(time),
        "service": "trip",
        "instance": instance,
        "breakers": json.dumps(list(open_)),
        "received_at": at(time),
        **fields,
    }


def moved(time: float, before: str, after: str, instance: str = "a", **fields: Any) -> Row:
    return {
        "time": at(time),
        "breaker": "weather/eu-west",
        "tool": "weather",
        "region": "eu-west",
        "service": "trip",
        "instance": instance,
        "from_state": before,
        "to_state": after,
        "received_at": at(time),
        **fields,
    }


@dataclass(frozen=True)
class Seen:
    """One change, told from the start of the test."""

    second: float
    alert: str
    state: str
    tool: str


class Seeded:
    """A store that tests fill directly."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def calls(self, *groups: Iterable[Row]) -> None:
        self._insert("tool_calls", [row for group in groups for row in group])

    def beats(self, rows: Iterable[Row]) -> None:
        self._insert("heartbeats", list(rows))

    def moves(self, rows: Iterable[Row]) -> None:
        self._insert("breaker_transitions", list(rows))

    def history(self) -> list[Row]:
        return self.store.query(
            "page_alert_history", {"since": at(-1e6), "until": at(1e7)}
        ).to_pylist()[::-1]

    def _insert(self, table: str, rows: list[Row]) -> None:
        names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
        columns = {
            name: pa.array(
                [_naive(row[name]) for row in rows],
                type=pa.timestamp("us") if name in _TIMES else None,
            )
            for name in names
        }
        self.store.insert(table, pa.table(columns))


def _naive(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def run(evaluator: Evaluator, begin: float, end: float, step: float = STEP) -> list[Seen]:
    """Tick through [begin, end) and return what changed."""
    seen: list[Seen] = []
    second = begin
    while second < end:
        for change in evaluator.tick(at(second)):
            labels = dict(change.instance.labels)
            seen.append(Seen(second, change.rule.id, str(change.state), labels.get("tool", "")))
        second += step
    return seen


def judge(seeded: Seeded, *rule_ids: str, **settings: Any) -> Evaluator:
    """Return an evaluator of a few of the shipped rules."""
    rules = [rule for rule in CATALOGUE if rule.id in rule_ids]
    assert len(rules) == len(rule_ids)
    return Evaluator(seeded.store, rules=rules, **settings)


def only(seen: Iterable[Seen], alert: str) -> list[tuple[float, str]]:
    return [(one.second, one.state) for one in seen if one.alert == alert]


def states(seen: Iterable[Seen], alert: str) -> list[str]:
    return [state for _, state in only(seen, alert)]
