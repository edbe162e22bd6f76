"""Calls that a vanished process left behind, and tools that no policy of ours guards."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fuseboard_collector.store import Batch, Heartbeat, Store, ToolCall

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
Ask = Callable[..., list[dict[str, Any]]]


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.fixture
def ask(store: Store) -> Ask:
    def run(name: str, **changes: object) -> list[dict[str, Any]]:
        given = {"since": NOON, "until": at(600), "tools": None, "regions": None}
        found: list[dict[str, Any]] = store.query(name, {**given, **changes}).to_pylist()
        return found

    return run


def running(tool: str, span: str, seconds: float, **more: object) -> dict[str, object]:
    """Return an entry of a heartbeat's list of calls, as the shim writes it."""
    start = at(seconds).isoformat().replace("+00:00", "Z")
    return {
        "tool": tool,
        "region": None,
        "span_id": span,
        "start": start,
        "args_hash": None,
        **more,
    }


def beat(seconds: float, *calls: dict[str, object], instance: str = "one") -> Heartbeat:
    return Heartbeat(at(seconds), instance, service="trips", calls_in_flight=json.dumps(calls))


def test_calls_of_a_vanished_process_are_lost(store: Store, ask: Ask) -> None:
    call = running("book", "a" * 16, 90, region="eu-west", args_hash="v1:00")
    store.append(Batch(heartbeats=[beat(85), beat(100, call)])).result(10)
    assert ask("page_lost_calls") == [
        {"tool": "book", "region": "eu-west", "service": "trips", "instance": "one",
         "since_time": at(90).replace(tzinfo=None), "args_hash": "v1:00", "span_id": "a" * 16,
         "last_beat": at(100).replace(tzinfo=None)}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("until", "lost"),
    [pytest.param(at(145), 0, id="three beats missed, no more"), (at(145.000001), 1)],
)
def test_a_process_has_vanished_after_three_beats(
    store: Store, ask: Ask, until: datetime, lost: int
) -> None:
    store.append(Batch(heartbeats=[beat(100, running("book", "a" * 16, 90))])).result(10)
    assert len(ask("page_lost_calls", until=until)) == lost


def test_a_call_that_got_its_row_is_not_lost(store: Store, ask: Ask) -> None:
    """Its span was on the way when the process died."""
    beats = [beat(100, running("book", "a" * 16, 90), running("find", "b" * 16, 80))]
    call = ToolCall("book", end=at(101), span_id="a" * 16)
    store.append(Batch(heartbeats=beats, calls=[call])).result(10)
    assert [row["tool"] for row in ask("page_lost_calls")] == ["find"]


def test_only_the_last_beat_of_each_process_counts(store: Store, ask: Ask) -> None:
    over, under_way = running("book", "a" * 16, 60), running("book", "b" * 16, 70)
    beats = [
        beat(75, over, under_way), beat(90, under_way), beat(105),
        beat(90, running("find", "c" * 16, 10), instance="two"),
    ]  # fmt: skip
    store.append(Batch(heartbeats=beats)).result(10)
    assert [row["span_id"] for row in ask("page_lost_calls")] == ["c" * 16]
    assert ask("page_lost_calls", since=at(91)) == [], "what fell silent before is history"


def test_lost_calls_are_filtered_and_the_oldest_come_first(store: Store, ask: Ask) -> None:
    calls = [
        running("book", "a" * 16, 90, region="eu-west"), running("find", "b" * 16, 80),
        running("pay", "c" * 16, 85), {"tool": "odd"}, {"span_id": "d" * 16},
    ]  # fmt: skip
    store.append(Batch(heartbeats=[beat(100, *calls)])).result(10)
    assert [row["tool"] for row in ask("page_lost_calls")] == ["find", "pay", "book"]
    assert [row["tool"] for row in ask("page_lost_calls", regions=["eu-west"])] == ["book"]
    assert [row["tool"] for row in ask("page_lost_calls", tools=["pay"])] == ["pay"]


def call(tool: str, instrumentation: str | None, outcome: str = "ok", **more: Any) -> ToolCall:
    return ToolCall(tool, end=at(60), instrumentation=instrumentation, outcome=outcome, **more)


def test_tools_seen_by_others_alone_are_unguarded(store: Store, ask: Ask) -> None:
    foreign = "openinference.instrumentation.langchain"
    calls = [
        call("mine", "fuseboard"), call("both", "fuseboard"), call("both", foreign),
        call("old", None), call("theirs", foreign, "error", framework="langchain"),
        call("theirs", foreign, framework="langchain", weight=3.0),
        call("theirs", "strands", framework="agno"), call("quiet", "strands"),
    ]  # fmt: skip
    store.append(Batch(calls=calls)).result(10)
    found = ask("page_unguarded_tools", classes=None)
    assert [(row["tool"], row["frameworks"], row["calls"], row["errors"], row["error_ratio"])
            for row in found] == [
        ("theirs", "agno, langchain", 5, 1, 0.2), ("quiet", None, 1, 0, 0.0),
    ]  # fmt: skip
    assert ask("page_unguarded_tools", classes=None, tools=["mine"]) == []
