"""Foreign spans: acknowledged when they are on disk, assembled after a grace time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fuseboard_collector.errors import StoreBusyError
from fuseboard_collector.normalise import assembly
from fuseboard_collector.store import Batch, Span, Store, ToolCall, assembling
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


def own_call(**fields: Any) -> ToolCall:
    given: dict[str, Any] = {
        "end": NOW + 260_000, "duration_seconds": 0.27, "instrumentation": "fuseboard",
        "received_at": NOW + 310_000,
    }  # fmt: skip
    ids = {"trace_id": TRACE, "span_id": "ef" * 8}
    return ToolCall("search", **{**ids, **given, **fields})


BELOW = {"parent_span_id": "ef" * 8}


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("order", ["own first", "foreign first", "together", "foreign pending"])
def test_our_own_span_beats_a_foreign_relative_whichever_came_first(
    make_store: Callable[..., Store], order: str, restart: bool
) -> None:
    own = Batch(calls=[own_call()])
    foreign = Batch(sightings=[sighting(1, **BELOW)])
    together = Batch(calls=own.calls, sightings=foreign.sightings)
    steps = {"own first": [own, foreign], "together": [together]}.get(order, [foreign, own])
    store = make_store(retention_days=None)
    for batch in steps:
        store.append(batch).result(10)
        if order == "foreign first":
            store.settle()
            assert store.stats.get("assembled_calls") == (batch is foreign or not restart)
        if restart:
            store.close()
            store = make_store(retention_days=None)
    store.settle()
    assert [call["span_id"] for call in calls(store)] == ["ef" * 8]
    assert store.query("export_attempts", EVERYTHING).num_rows == 1
    assert [row["span_id"] for row in table(store, "spans")] == [f"{1:016x}"]


@pytest.mark.parametrize("restart", [False, True])
def test_a_foreign_span_with_the_id_of_our_own_call_does_not_take_its_place(
    make_store: Callable[..., Store], restart: bool
) -> None:
    clock = ManualClock()
    store = make_store(retention_days=None, clock=clock)
    store.append(Batch(calls=[own_call(outcome="error", error_type="Mine")])).result(10)
    for seconds in (0.0, 3600.0, 7200.0, 10800.0):  # the memory of repeats has two generations
        clock.seconds = seconds
        arrived = NOW + round(seconds * 1e6) + 400_000
        claims = sighting(int("ef" * 8, 16), received_at=arrived, instrumentation="fuseboard")
        store.append(Batch(sightings=[claims, sighting(1, received_at=arrived)])).result(10)
        store.settle()
        if restart:
            store.close()
            store = make_store(retention_days=None, clock=clock)
    found = {call["span_id"]: call for call in calls(store)}
    assert len(calls(store)) == len(found)
    assert (found["ef" * 8]["outcome"], found["ef" * 8]["error_type"]) == ("error", "Mine")
    attempts = table(store, "attempts")
    assert [row["call_span_id"] for row in attempts].count("ef" * 8) <= 1


@pytest.mark.parametrize("scope", [None, "fuseboard"])
def test_a_foreign_call_never_passes_for_one_of_ours(
    make_store: Callable[..., Store], scope: str | None
) -> None:
    store = make_store(retention_days=None)
    for number in (1, 2):  # the second has the trace assembled again
        batch = Batch(
            sightings=[sighting(number, instrumentation=scope, start=NOW + number * 10**6)]
        )
        store.append(batch).result(10)
        store.settle()
    assert [row["instrumentation"] for row in table(store, "tool_calls")] == ["?", "?"]
    window = dict.fromkeys(("tools", "classes", "regions"))
    window |= {"since": datetime(2026, 1, 1, tzinfo=UTC), "until": datetime(2027, 1, 1, tzinfo=UTC)}
    (unguarded,) = store.query("page_unguarded_tools", window).to_pylist()
    assert (unguarded["tool"], unguarded["calls"]) == ("search", 2)


def test_an_own_call_under_which_another_tool_runs_hides_nothing(store: Store) -> None:
    other = own_call(trace_id="cd" * 16, span_id="cc" * 8)
    store.append(Batch(calls=[own_call(), other])).result(10)
    store.append(Batch(sightings=[sighting(1, tool="fetch", **BELOW)])).result(10)
    store.settle()
    assert len(calls(store)) == 3


def test_own_calls_wait_for_nothing_and_stage_nothing(store: Store) -> None:
    store.append(Batch(calls=[own_call()])).result(10)
    assert len(calls(store)) == 1
    assert store.describe()["staged"] == {"traces": 0, "spans": 0, "oldest_seconds": None}
    assert table(store, "staged_traces") == []


def table(store: Store, name: str) -> list[dict[str, Any]]:
    database = store._database
    assert database is not None
    with database.cursor() as cursor:
        found = cursor.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall()
        names = [item[0] for item in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found]


def test_context_that_comes_late_is_inherited(store: Store) -> None:
    store.append(Batch(sightings=[sighting(1, parent_span_id="aa" * 8)])).result(10)
    store.settle()
    assert [call["session"] for call in calls(store)] == [None]
    agent = Span(TRACE, "aa" * 8, "invoke_agent", NOW - 1000, 5.0, session="thread-1",
                 agent="planner", received_at=NOW + 5_000_000)  # fmt: skip
    store.append(Batch(spans=[agent])).result(10)
    store.settle()
    found = [(call["session"], call["agent"]) for call in calls(store)]
    assert found == [("thread-1", "planner")]


HOUR = 3_600_000_000


def expire(store: Store, clock: ManualClock, seconds: float, until: Callable[..., None]) -> None:
    clock.seconds = seconds
    until(lambda: table(store, "sightings") == [], "deletion")


def test_a_relative_that_comes_after_the_others_were_deleted_doubles_nothing(
    make_store: Callable[..., Store], until: Callable[..., None]
) -> None:
    clock = ManualClock()
    store = make_store(retention_days=None, clock=clock)
    outer = sighting(1, dialect="mcp", kind="client")
    store.append(Batch(sightings=[outer])).result(10)
    store.settle()
    expire(store, clock, 7 * 3600.0, until)
    late = {"received_at": NOW + 7 * HOUR, "parent_span_id": f"{1:016x}"}
    store.append(Batch(sightings=[sighting(2, **late), sighting(3, tool="fetch", **late)])).result(
        10
    )
    store.settle()
    assert sorted(call["tool"] for call in calls(store)) == ["fetch", "search"]
    assert store.stats.get("late_relatives") == 2


def test_what_waits_is_not_deleted_however_old_it_is(
    make_store: Callable[..., Store], until: Callable[..., None]
) -> None:
    clock = ManualClock()
    store = make_store(retention_days=None, clock=clock)
    other = sighting(2, trace="cd" * 16)
    store.append(Batch(sightings=[other])).result(10)
    store.settle()
    store.append(Batch(sightings=[sighting(1)])).result(10)
    store.close()
    clock.seconds = 7 * 3600.0
    store = make_store(retention_days=None, clock=clock)
    clock.seconds += 601.0
    until(lambda: table(store, "sightings") == [], "assembly, then deletion")
    assert len(calls(store)) == 2


def test_too_many_waiting_spans_are_refused_and_own_calls_are_not(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(retention_days=None, clock=ManualClock())
    monkeypatch.setattr(store._assembling.staging, "_max_staged", 2)
    store.append(Batch(sightings=[sighting(1), sighting(2)])).result(10)
    with pytest.raises(StoreBusyError, match="2 spans of other instrumentation wait"):
        store.append(Batch(sightings=[sighting(3)]))
    store.append(Batch(calls=[own_call()])).result(10)
    store.settle()
    store.append(Batch(sightings=[sighting(3)])).result(10)


@pytest.mark.parametrize("restart", [False, True])
def test_a_trace_that_can_not_be_assembled_holds_up_no_other_and_is_tried_again(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, restart: bool,
) -> None:  # fmt: skip
    original = assembly.assemble

    def fail(trace: assembly.Trace) -> assembly.Assembled:
        if trace.trace_id == TRACE:
            raise ZeroDivisionError("odd trace")
        return original(trace)

    monkeypatch.setattr(assembly, "assemble", fail)
    clock = ManualClock()
    store = make_store(retention_days=None, clock=clock)
    others = [sighting(n, trace=f"{n:032x}") for n in range(2, 9)]
    store.append(Batch(sightings=[sighting(1), *others])).result(10)
    store.settle()
    assert len(calls(store)) == 7
    assert store.stats.get("assembly_failures") == 1
    assert TRACE in caplog.text
    assert "odd trace" in caplog.text
    clock.seconds += 301.0
    store.settle()
    assert store.stats.get("assembly_failures") == 1, "said once"
    if restart:
        store.close()
    monkeypatch.setattr(assembly, "assemble", original)
    if restart:
        store = make_store(retention_days=None)
    clock.seconds += 301.0
    store.settle()
    assert len(calls(store)) == 8


def test_a_trace_without_end_is_assembled_piece_by_piece(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of its spans would cost as much as all before it."""
    store = make_store(retention_days=None)
    monkeypatch.setattr(store._assembling.staging, "_max_trace", 20)
    for first in range(0, 100, 10):
        later = {"received_at": NOW + first * 1_000_000, "start": NOW + first * 900_000}
        store.append(
            Batch(sightings=[sighting(first + n, tool=f"t{first + n}", **later) for n in range(10)])
        ).result(10)
        store.settle()
    assert sorted(call["tool"] for call in calls(store)) == sorted(f"t{n}" for n in range(100))


def test_a_start_that_looks_at_the_newest_spans_alone_doubles_nothing(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembling, "MAX_LOOKED_AT", 2)
    store = make_store(retention_days=None)
    spread = 3600_000_000
    outer = [
        sighting(n, trace=f"{n:032x}", kind="client", received_at=NOW + n * spread)
        for n in range(1, 6)
    ]
    store.append(Batch(sightings=outer)).result(10)
    store.settle()
    store.close()
    store = make_store(retention_days=None)
    inner = [
        sighting(n + 100, trace=f"{n:032x}", parent_span_id=f"{n:016x}", dialect="mcp",
                 received_at=NOW + 5 * spread)
        for n in range(1, 6)
    ]  # fmt: skip
    store.append(Batch(sightings=inner)).result(10)
    store.settle()
    assert len(calls(store)) == 5


def test_a_trace_too_large_to_wait_is_assembled_at_once(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch, until: Callable[..., None]
) -> None:
    """Else the longest pause of the writer would be as long as a client cares to make it."""
    store = make_store(retention_days=None, clock=ManualClock())
    monkeypatch.setattr(store._assembling.staging, "_max_trace", 20)
    store.append(Batch(sightings=[sighting(n, tool=f"t{n}") for n in range(1, 22)])).result(10)
    until(lambda: len(calls(store)) == 21, "assembly without the grace time")


def test_traces_that_memory_forgot_are_found_on_disk(
    make_store: Callable[..., Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(retention_days=None)
    monkeypatch.setattr(store._assembling.staging, "_max_known", 3)
    outer = [sighting(n, trace=f"{n:032x}", kind="client") for n in range(1, 9)]
    store.append(Batch(sightings=outer)).result(10)
    store.settle()
    inner = [
        sighting(n + 100, trace=f"{n:032x}", parent_span_id=f"{n:016x}", dialect="mcp",
                 received_at=NOW + 60_000_000)
        for n in range(1, 9)
    ]  # fmt: skip
    store.append(Batch(sightings=inner)).result(10)
    store.settle()
    assert len(calls(store)) == 8
    assert store.stats.get("reassembled_traces") == 8
