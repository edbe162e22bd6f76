"""Golden answers of the queries of sessions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fuseboard_collector.store import Store

from .conftest import at
from .runs import FAILING, FINE, LOOPING, long_run, many_runs, runs

Ask = Callable[..., list[dict[str, object]]]


@pytest.fixture
def running(store: Store) -> Store:
    store.append(runs()).result(30)
    return store


def test_sessions_with_most_trouble_come_first(running: Store, ask: Ask) -> None:
    rows = ask("page_sessions")
    assert [(r["session"], r["trouble"]) for r in rows] == [(LOOPING, 4), (FAILING, 3), (FINE, 0)]
    loop, fail, fine = rows
    assert (loop["calls"], loop["tools"], loop["repeats"], loop["most_repeated"]) == (7, 2, 5, 5)
    assert loop["longest_run"] == 4
    assert (loop["agents"], loop["services"], loop["cost"]) == ("planner, reader", "agent", 1.75)
    assert (fail["faults"], fail["lost"], fail["attempts"], fail["retries"]) == (1, 1, 4, 2)
    assert (fail["repeats"], fail["longest_run"], fail["backoff"]) == (0, None, 1.0)
    assert fine["cost"] is None
    assert fine["last_end"] == at(300.5).replace(tzinfo=None)


def test_totals_are_of_all_sessions_and_calls_without_one_are_left_out(
    running: Store, ask: Ask
) -> None:
    row = ask("page_sessions")[0]
    totals = [row[f"all_{what}"] for what in ("sessions", "calls", "troubled", "repeating")]
    assert totals == [3, 10, 2, 1]


def test_filters_narrow_calls_and_a_class_which_faults_count(running: Store, ask: Ask) -> None:
    assert [r["session"] for r in ask("page_sessions", tools=["weather"])] == [FAILING]
    (only,) = ask("page_sessions", agents=["reader"])
    assert (only["session"], only["calls"]) == (LOOPING, 1)
    by_class = {r["session"]: r["faults"] for r in ask("page_sessions", classes=["L1_input"])}
    assert by_class == {LOOPING: 0, FAILING: 0, FINE: 0}
    assert ask("page_sessions", regions=["nowhere"]) == []


def test_of_many_sessions_the_worst_are_listed_and_all_counted(store: Store, ask: Ask) -> None:
    store.append(many_runs(2000)).result(30)
    rows = ask("page_sessions")
    assert len(rows) == 500
    assert (rows[0]["session"], rows[0]["all_sessions"]) == ("run-77", 2000)


def test_agents_are_those_that_call_in_sessions(running: Store, ask: Ask) -> None:
    rows = [(r["agent"], r["calls"]) for r in ask("page_session_agents")]
    assert rows == [("planner", 9), ("reader", 1)]


def test_tokens_are_told_apart_by_kind_of_span(running: Store, ask: Ask) -> None:
    agent, chat = ask("page_session_tokens", sessions=[LOOPING, FINE])[::-1]
    assert agent["operation"] == "invoke_agent"
    assert (chat["spans"], chat["read_tokens"], chat["written_tokens"]) == (4, 9000, 80)
    assert (chat["first_read"], chat["most_read"]) == (1500, 3000)


def test_calls_and_spans_of_a_session(running: Store, ask: Ask) -> None:
    calls = ask("page_session_calls", session=LOOPING)
    assert [c["tool"] for c in calls] == ["read", *["search"] * 4, "read", "search"]
    spans = ask("page_session_spans", session=LOOPING, traces=[])
    assert [s["input_tokens"] for s in spans] == [3000, 2500, 2000, 1500, 9000]
    (found,) = ask("page_session_found", session=LOOPING)
    assert found == {
        "calls": 7, "first_end": at(100.5).replace(tzinfo=None),
        "last_end": at(107.5).replace(tzinfo=None),
    }  # fmt: skip


def test_a_long_session_is_cut_off_at_its_newest_calls(store: Store, ask: Ask) -> None:
    store.append(long_run(1500)).result(30)
    calls = ask("page_session_calls", session="long")
    assert len(calls) == 1000
    assert calls[0]["start"] == at(400 + 1499 / 20).replace(tzinfo=None)
