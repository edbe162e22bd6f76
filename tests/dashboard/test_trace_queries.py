"""Golden answers of the queries of one trace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fuseboard_collector.store import Batch, BreakerTransition, Store

from .conftest import at
from .trip import AGENT, BASE, GOOD, MODEL, REFUSED, RETRIED, TRACE, big_trace, trip

Ask = Callable[..., list[dict[str, object]]]


@pytest.fixture
def traced(store: Store) -> Store:
    store.append(trip()).result(30)
    return store


def test_calls_come_with_faults_and_retries_first(traced: Store, ask: Ask) -> None:
    rows = ask("page_trace_calls", trace_id=TRACE)
    assert [row["span_id"] for row in rows] == [RETRIED, REFUSED, GOOD]
    assert rows[0]["start"] == at(BASE + 1).replace(tzinfo=None)
    assert (rows[0]["attempts"], rows[0]["backoff_seconds"]) == (2, 0.2)
    assert (rows[0]["session"], rows[0]["parent_span_id"]) == ("s-1", AGENT)


def test_attempts_are_those_of_the_trace_and_implied_ones(traced: Store, ask: Ask) -> None:
    rows = ask("page_trace_attempts", trace_id=TRACE)
    assert [(r["call_span_id"], r["number"], r["result"], r["delay_seconds"]) for r in rows] == [
        (GOOD, 1, "success", 0.0), (RETRIED, 1, "failure", 0.0), (RETRIED, 2, "failure", 0.2),
    ]  # fmt: skip
    assert rows[0]["span_id"] is None


def test_spans_of_agents_and_models_come_before_longer_ones(traced: Store, ask: Ask) -> None:
    rows = ask("page_trace_spans", trace_id=TRACE)
    assert [(row["span_id"], row["input_tokens"]) for row in rows] == [(AGENT, None), (MODEL, 1200)]
    traced.append(big_trace(0, 1200)).result(30)
    rows = ask("page_trace_spans", trace_id=TRACE)
    assert len(rows) == 1000
    assert [row["span_id"] for row in rows[:2]] == [AGENT, MODEL]


def test_transitions_are_those_that_the_trace_caused(traced: Store, ask: Ask) -> None:
    other = BreakerTransition(at(BASE), "x", "x", "closed", "open", trace_id="ff" * 16)
    traced.append(Batch(transitions=[other])).result(30)
    (row,) = ask("page_trace_transitions", trace_id=TRACE)
    assert (row["breaker"], row["to_state"], row["failures"]) == ("weather/eu-west", "open", 12)


def test_found_tells_how_much_there_is_and_when(traced: Store, ask: Ask) -> None:
    (row,) = ask("page_trace_found", trace_id=TRACE)
    assert (row["calls"], row["context"]) == (3, 2)
    assert row["last_end"] == at(BASE + 3.001).replace(tzinfo=None)
    assert row["last_start"] == at(BASE + 0.1).replace(tzinfo=None)
    (row,) = ask("page_trace_found", trace_id=TRACE, until=at(BASE).isoformat())
    assert (row["calls"], row["last_end"], row["context"]) == (0, None, 1)


def test_a_trace_that_is_cut_off_keeps_its_fault(store: Store, ask: Ask) -> None:
    store.append(big_trace(1500, 0)).result(30)
    rows = ask("page_trace_calls", trace_id=TRACE)
    assert len(rows) == 1000
    assert rows[0]["outcome"] == "error"
    assert [row["outcome"] for row in rows].count("error") == 1


def test_nothing_of_other_traces_is_told(traced: Store, ask: Ask) -> None:
    for name in ("calls", "attempts", "spans", "transitions"):
        assert ask(f"page_trace_{name}", trace_id="00" * 16) == []
