from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from fuseboard_collector.store import (
    Attempt,
    Batch,
    BreakerTransition,
    Heartbeat,
    Span,
    Store,
    ToolCall,
)

DAY = timedelta(days=1)
TABLES = ("tool_calls", "attempts", "breaker_transitions", "heartbeats", "spans", "alert_events")


def fill(store: Store, arrived: datetime, ended: datetime | None = None) -> None:
    """Store one row of each table."""
    at: dict[str, Any] = {"received_at": arrived}
    end = ended or arrived
    trace = ToolCall("a", end=end).trace_id
    store.append(
        Batch(
            calls=[ToolCall("a", end=end, outcome="error", **at)],
            attempts=[Attempt(trace, "cd" * 8, 1, end, 0.1, "a", "failure", **at)],
            transitions=[BreakerTransition(end, "a", "a", "closed", "open", **at)],
            heartbeats=[Heartbeat(end, "i", **at)],
            spans=[Span(trace, "ef" * 8, "chat", end, 0.1, **at)],
        )
    ).result(10)
    event = {
        "alert": "A", "severity": "info", "labels": "{}", "state": "firing",
        "time": end.replace(tzinfo=None),
    }  # fmt: skip
    store.insert("alert_events", pa.Table.from_pylist([event]))


def test_expired_rows_of_every_table_go_and_others_stay(
    make_store: Callable[..., Store],
    clock: Any,
) -> None:
    store = make_store(clock=clock, retention_days=30)
    fill(store, clock.now - 31 * DAY)
    fill(store, clock.now - 29 * DAY)
    store.apply_retention()
    with store._open_database().cursor() as cursor:
        for table in TABLES:
            (count,) = cursor.execute(f"SELECT count(*) FROM {table}").fetchall()[0]
            assert count == 1, table


def test_old_data_that_came_in_today_stays(make_store: Callable[..., Store], clock: Any) -> None:
    store = make_store(clock=clock, retention_days=1)
    fill(store, clock.now, ended=clock.now - 400 * DAY)
    store.apply_retention()
    assert store.query("export_calls", {"since": None, "until": None}).num_rows == 1


def test_deletion_happens_by_itself_every_hour(
    make_store: Callable[..., Store], clock: Any, until: Callable[..., None]
) -> None:
    store = make_store(clock=clock, retention_days=30)

    def calls() -> int:
        return int(store.query("export_calls", {"since": None, "until": None}).num_rows)

    fill(store, clock.now - 31 * DAY)
    assert calls() == 1
    clock.now += timedelta(minutes=2)
    until(lambda: calls() == 0, "the first deletion")
    fill(store, clock.now - 31 * DAY)
    assert calls() == 1
    clock.now += timedelta(hours=1)
    until(lambda: calls() == 0, "the next deletion")


def test_without_retention_nothing_goes(make_store: Callable[..., Store], clock: Any) -> None:
    store = make_store(clock=clock, retention_days=None)
    fill(store, clock.now - 4000 * DAY)
    store.apply_retention()
    clock.now += timedelta(hours=2)
    fill(store, clock.now)
    assert store.query("export_calls", {"since": None, "until": None}).num_rows == 2


def test_a_retention_beyond_the_calendar_keeps_everything(
    make_store: Callable[..., Store],
    clock: Any,
) -> None:
    store = make_store(clock=clock, retention_days=1e12)
    store.apply_retention()
    clock.now += timedelta(hours=2)
    for _ in range(3):
        fill(store, clock.now - 4000 * DAY)
    assert store.query("export_calls", {"since": None, "until": None}).num_rows == 3


def test_maintenance_that_fails_does_not_end_storing(
    make_store: Callable[..., Store],
    clock: Any,
    monkeypatch: pytest.MonkeyPatch,
    until: Callable[..., None],
) -> None:
    store = make_store(clock=clock, retention_days=30)
    failures: list[int] = []

    def fail() -> None:
        failures.append(1)
        raise RuntimeError("oh")

    monkeypatch.setattr(store._retention, "is_time", fail)
    fill(store, clock.now)
    until(lambda: failures, "a failure")
    fill(store, clock.now)
    assert store.query("export_calls", {"since": None, "until": None}).num_rows == 2
