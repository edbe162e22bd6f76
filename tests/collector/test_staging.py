"""Foreign spans: acknowledged when they are on disk, assembled after a grace time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fuseboard_collector.store import Batch, Span, Store, ToolCall
from fuseboard_collector.store.at_once import assembled_at_once
from fuseboard_collector.store.rows import Attempt, Sighting

NOW = 1_796_000_000_000_000
TRACE = "ab" * 16
EVERYTHING = {"since": None, "until": None}
Rows = Callable[[str], list[dict[str, Any]]]


class ManualClock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def time_ns(self) -> int:
        return NOW * 1000 + round(self.seconds * 1e9)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    async def async_sleep(self, seconds: float) -> None:
        self.seconds += seconds


def sighting(number: int, trace: str = TRACE, **fields: Any) -> Sighting:
    given: dict[str, Any] = {
        "name": "execute_tool search", "start": NOW, "duration_seconds": 0.25, "dialect": "genai",
        "tool": "search", "instrumentation": "foreign", "received_at": NOW + 300_000,
    }  # fmt: skip
    return Sighting(trace, f"{number:016x}", **{**given, **fields})


def calls(store: Store) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = store.query("export_calls", EVERYTHING).to_pylist()
    return found


def test_a_foreign_call_shows_after_the_grace_time_and_not_before(
    make_store: Callable[..., Store], until: Callable[..., None]
) -> None:
    clock = ManualClock()
    store = make_store(retention_days=None, clock=clock)
    store.append(Batch(sightings=[sighting(1)])).result(10)
    assert store.describe()["staged"] == {"traces": 1, "spans": 1, "oldest_seconds": 0.0}
    clock.seconds = 1.9
    store.append(Batch(calls=[ToolCall("other", end=NOW)])).result(10)
    assert [call["tool"] for call in calls(store)] == ["other"]
    clock.seconds = 2.0
    until(lambda: len(calls(store)) == 2, "assembly")
    until(lambda: store.stats.get("assembled_calls") == 1, "counting")
    assert store.describe()["staged"] == {"traces": 0, "spans": 0, "oldest_seconds": None}


def test_a_trace_that_never_falls_silent_is_assembled_all_the_same(
    make_store: Callable[..., Store], until: Callable[..., None]
) -> None:
    clock = ManualClock()
    store = make_store(retention_days=None, clock=clock)
    for second in range(16):
        clock.seconds = float(second)
        store.append(Batch(sightings=[sighting(second + 1)])).result(10)
    until(lambda: len(calls(store)) == 16, "assembly")


@pytest.mark.parametrize("restart", [False, True])
def test_a_late_relative_puts_right_what_was_stored(
    make_store: Callable[..., Store], restart: bool
) -> None:
    store = make_store(retention_days=None)
    store.append(Batch(sightings=[sighting(1), sighting(2, tool="fetch")])).result(10)
    store.settle()
    if restart:
        store.close()
        store = make_store(retention_days=None)
    store.append(Batch(sightings=[sighting(3)])).result(10)
    store.settle()
    assert sorted(call["span_id"] for call in calls(store)) == [f"{n:016x}" for n in (1, 2, 3)]
    assert store.query("export_attempts", EVERYTHING).num_rows == 3
    assert store.stats.get("reassembled_traces") == 1
    assert store.stats.get("assembled_calls") == (1 if restart else 3), "only what changed is new"


def test_what_waits_when_the_store_closes_is_assembled_after_the_next_start(
    make_store: Callable[..., Store],
) -> None:
    store = make_store(retention_days=None)
    store.append(Batch(sightings=[sighting(1)])).result(10)
    store.close()
    store = make_store(retention_days=None)
    assert calls(store) == []
    store.settle()
    store.settle()
    assert len(calls(store)) == 1
    store.close()
    store = make_store(retention_days=None)
    store.settle()
    assert len(calls(store)) == 1
    assert store.stats.get("assembled_calls") == 0


def test_hc_38_foreign_spans_sent_twice_are_stored_once(store: Store, rows: Rows) -> None:
    batch = Batch(sightings=[sighting(1)], spans=[Span(TRACE, "cd" * 8, "chat", NOW, 1.0)])
    store.append(batch).result(10)
    store.append(batch).result(10)
    store.settle()
    store.append(batch).result(10)
    assert len(rows("sightings")) == len(rows("spans")) == len(rows("tool_calls")) == 1


def test_hc_38_foreign_spans_sent_again_after_the_memory_of_repeats_are_assembled_once(
    make_store: Callable[..., Store],
) -> None:
    clock = ManualClock()
    store = make_store(retention_days=None, clock=clock)
    for hours in (0, 1, 2, 7):
        clock.seconds = hours * 3600.0
        store.append(
            Batch(sightings=[sighting(1, received_at=NOW + hours * 3_600_000_000)])
        ).result(10)
        store.settle()
        assert len(calls(store)) == 1
    assert store.query("export_attempts", EVERYTHING).num_rows == 1


def test_own_attempts_do_not_count_as_assembled(store: Store, rows: Rows) -> None:
    own = ToolCall("mine", end=NOW, trace_id=TRACE, span_id="ef" * 8, attempts=2,
                   instrumentation="fuseboard", received_at=NOW)  # fmt: skip
    attempts = [
        Attempt(TRACE, "ef" * 8, number, NOW, 0.1, "mine", "failure", received_at=NOW)
        for number in (1, 2)
    ]
    store.append(Batch(calls=[own], attempts=attempts)).result(10)
    for number in (1, 2, 3):
        store.append(Batch(sightings=[sighting(number)])).result(10)
        store.settle()
    assert len([row for row in rows("attempts") if row["call_span_id"] == "ef" * 8]) == 2
    assert len(rows("tool_calls")) == 4


def test_a_store_that_keeps_nothing_back_assembles_each_request_by_itself() -> None:
    batch = Batch(calls=[ToolCall("mine", end=NOW)], sightings=[sighting(1), sighting(2)])
    found = assembled_at_once(batch)
    assert [call.tool for call in found.calls] == ["mine", "search", "search"]
    assert (found.sightings, len(batch.calls), len(batch.sightings)) == ([], 1, 2)
