"""An incident whose every number is known: a tool fails, a breaker opens, a fallback serves."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from fuseboard_collector.store import Batch, BreakerTransition, Heartbeat, Store, ToolCall

SINCE = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
UNTIL = SINCE + timedelta(minutes=60)
LABELS = json.dumps({"job": "agent", "region": "us-east", "tool": "search"})


def at(minutes: float) -> datetime:
    """Return a moment this many minutes into the window."""
    return SINCE + timedelta(minutes=minutes)


def calls(tool: str = "search") -> list[ToolCall]:
    """Return six calls a minute for two hours, of two tools; one of them fails from 20 to 40.

    From minute 20 to 25 each second call fails; then a fallback answers every call until 40.
    """
    made = []
    for number in range(-360, 360):
        end = at(number / 6)
        shared = {"region": "us-east", "service": "agent", "agent": "planner",
                  "session": f"s{number % 50}", "cost": 0.25}  # fmt: skip
        fault: dict[str, object] = {"outcome": "ok"}
        if 120 <= number < 150 and number % 2 == 0:
            fault = {"outcome": "error", "error_class": "L3_transient", "attempts": 1}
        elif 150 <= number < 240:
            fault = {"outcome": "degraded", "error_class": "L3_transient", "attempts": 0,
                     "classifier_id": "circuit_open", "layer": "fallback"}  # fmt: skip
        made.append(ToolCall(tool, end=end, duration_seconds=0.2, **shared, **fault))  # type: ignore[arg-type]
        made.append(ToolCall("calm", end=end, duration_seconds=0.1, **shared))  # type: ignore[arg-type]
    return made


def moves(count: int, tool: str = "search") -> list[BreakerTransition]:
    """Return an opening at minute 25, ``count`` failed probes a minute, and the closing at 40."""

    def move(minute: float, old: str, new: str, reason: str) -> BreakerTransition:
        return BreakerTransition(
            at(minute), f"{tool}/us-east", tool, old, new, region="us-east", instance="p1",
            service="agent", reason=reason, calls=30, failures=15, error_class="L3_transient",
        )  # fmt: skip

    found = [move(25, "closed", "open", "failure ratio")]
    for probe in range(count):
        found.append(move(26 + probe, "open", "half_open", "break over"))
        found.append(move(26.1 + probe, "half_open", "open", "probe failed"))
    found.append(move(40, "open", "half_open", "break over"))
    return [*found, move(40.2, "half_open", "closed", "probe succeeded")]


def beats() -> list[Heartbeat]:
    """Return those of a process that stays, one that ends at minute 10, one that begins at 12."""
    stays = [(at(minute), "p1", "1.0") for minute in range(-5, 61)]
    ends = [(at(minute), "p0", "1.0") for minute in range(-5, 11)]
    begins = [(at(minute), "p2", "1.1") for minute in range(12, 61)]
    return [
        Heartbeat(moment, instance, service="agent", version=version)
        for moment, instance, version in (*stays, *ends, *begins)
    ]


def alerts(*events: tuple[float, str]) -> pa.Table:
    """Return state changes of one alert instance: minute and state."""
    rows = [
        {"time": at(minute).replace(tzinfo=None), "alert": "ToolCallErrorRatioHigh",
         "severity": "critical", "labels": LABELS, "state": state,
         "active_at": at(minute).replace(tzinfo=None), "fired_at": None, "resolved_at": None,
         "value": 0.5}
        for minute, state in events
    ]  # fmt: skip
    times = dict.fromkeys(("time", "active_at", "fired_at", "resolved_at"), pa.timestamp("us"))
    texts = dict.fromkeys(("alert", "severity", "labels", "state"), pa.string())
    kinds = {**times, **texts, "value": pa.float64()}
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, kinds[name]) for name in rows[0]]))


def fill(store: Store, probes: int = 1, tool: str = "search") -> None:
    """Store all of it."""
    batch = Batch(calls=calls(tool), transitions=moves(probes, tool), heartbeats=beats())
    store.append(batch).result(60)
    store.insert("alert_events", alerts((21, "pending"), (23, "firing"), (44, "resolved")))
