"""The rules by which spans of one trace become calls, one at a time."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from fuseboard_collector.normalise.assembly import Assembled, Relative, Trace, assemble
from fuseboard_collector.store.rows import Sighting

TRACE = "1" * 32
START = 1_796_000_000_000_000
MS = 1_000


def seen(
    span: str, parent: str | None = None, at: float = 0, ms: float = 100, **fields: Any
) -> Sighting:
    """Return a sighting that starts ``at`` milliseconds after the trace and takes ``ms``."""
    given_fields: dict[str, Any] = {
        "tool": "search", "name": "execute_tool search", "dialect": "genai",
        "instrumentation": "openinference.instrumentation.langchain", "framework": "langchain",
    }  # fmt: skip
    if fields.get("failed"):
        given_fields |= {"error_class": "unclassified", "evidence": 3, "error_type": "OddError"}
    return Sighting(
        trace_id=TRACE,
        span_id=span,
        parent_span_id=parent,
        start=START + round(at * MS),
        duration_seconds=ms / 1e3,
        **{**given_fields, **fields},
    )


def other(
    span: str, parent: str | None = None, at: float = 0, ms: float = 100, **fields: Any
) -> Relative:
    start = START + round(at * MS)
    return Relative(span, parent, start, start + round(ms * MS), **fields)


def assembled(*spans: Sighting | Relative) -> Assembled:
    """Assemble spans; what they come to must not depend on their order."""
    results = []
    random = Random(len(spans))
    orders = [spans, spans[::-1], *(random.sample(spans, len(spans)) for _ in range(8))]
    for order in orders:
        sightings = [item for item in order if isinstance(item, Sighting)]
        relatives = [item for item in order if isinstance(item, Relative)]
        results.append(assemble(Trace(TRACE, sightings, relatives)))
    assert all(set(map(repr, everything(one))) == set(map(repr, everything(results[0])))
               for one in results)  # fmt: skip
    return results[0]


def everything(found: Assembled) -> list[Any]:
    return [*found.calls, *found.attempts, *found.spans]


def ids(rows: list[Any]) -> set[str]:
    return {row.span_id for row in rows}


# --- relatives -------------------------------------------------------------------------------


def test_spans_of_one_tool_in_one_line_are_one_call_and_the_outermost_stands_for_it() -> None:
    found = assembled(
        seen("agent", at=0, ms=90, call_id="c-1", kind="internal"),
        other("between", "agent", at=10, ms=70),
        seen("client", "between", at=11, ms=60, dialect="mcp", server="files", kind="client"),
        seen("server", "client", at=20, ms=30, dialect="mcp", args_hash="v1:0", service="tools"),
    )
    (call,) = found.calls
    assert (call.span_id, call.call_id, call.server, call.args_hash) == (
        "agent", "c-1", "files", "v1:0",
    )  # fmt: skip
    assert (call.duration_seconds, call.attempts, call.outcome) == (0.09, 1, "ok")
    assert found.attempts == []
    assert {span.span_id: span.operation for span in found.spans} == {
        "client": "execute_tool", "server": "execute_tool",
    }  # fmt: skip


def test_the_best_evidence_of_a_failure_wins_wherever_it_is() -> None:
    found = assembled(
        seen("outer", failed=True, evidence=1, error_type="tool_error", error_class="L5_semantic"),
        seen("inner", "outer", at=1, ms=50, failed=True, evidence=3, error_type="ReadTimeout",
             error_class="L3_transient", error_message="timed out", http_status=504),
    )  # fmt: skip
    (call,) = found.calls
    assert (call.span_id, call.error_type, call.error_class) == (
        "outer", "ReadTimeout", "L3_transient",
    )  # fmt: skip
    assert (call.error_message, call.http_status) == ("timed out", 504)
    (attempt,) = found.attempts
    assert (attempt.span_id, attempt.call_span_id, attempt.number) == ("outer", "outer", 1)
    assert (attempt.error_type, attempt.result) == ("ReadTimeout", "failure")


def test_a_class_is_taken_from_where_there_is_one() -> None:
    found = assembled(
        seen("outer", failed=True, evidence=3, error_type="Odd", error_class="unclassified"),
        seen("inner", "outer", failed=True, evidence=1, error_type="tool_error",
             error_class="L2_access", classifier_id="http_status"),
    )  # fmt: skip
    (call,) = found.calls
    assert (call.error_type, call.error_class, call.classifier_id) == (
        "Odd", "L2_access", "http_status",
    )  # fmt: skip


def test_a_client_that_does_not_know_learns_from_its_server_that_the_call_failed() -> None:
    found = assembled(seen("client", ms=50), seen("server", "client", at=5, ms=10, failed=True))
    assert [(call.span_id, call.outcome) for call in found.calls] == [("client", "error")]


def test_a_failure_inside_that_was_tried_again_with_success_is_none() -> None:
    found = assembled(
        seen("outer", ms=100),
        seen("first", "outer", at=10, ms=20, failed=True),
        seen("second", "outer", at=50, ms=20),
    )
    (call,) = found.calls
    assert (call.outcome, call.error_type, call.attempts) == ("ok", None, 2)
    assert (call.duration_seconds, call.attempt_seconds) == (0.1, pytest.approx(0.04))
    assert call.backoff_seconds == pytest.approx(0.02)
    assert [(row.span_id, row.result) for row in found.attempts] == [
        ("first", "failure"), ("second", "success"),
    ]  # fmt: skip
    assert found.spans == []


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param([seen("b", "a", at=10, ms=20, failed=True), seen("c", "a", at=20, ms=20)],
                     id="at one time"),
        pytest.param([seen("b", "a", at=10, ms=20), seen("c", "a", at=50, ms=20)],
                     id="the first succeeded"),
    ],
)  # fmt: skip
def test_what_a_call_does_twice_inside_is_not_always_a_second_attempt(
    inner: list[Sighting],
) -> None:
    found = assembled(seen("a"), *inner)
    assert [(call.span_id, call.attempts) for call in found.calls] == [("a", 1)]
    assert ids(found.spans) == {"b", "c"}


def test_a_failure_after_attempts_inside_had_succeeded_is_the_calls_own() -> None:
    found = assembled(
        seen("a", failed=True),
        seen("b", "a", at=10, ms=20, failed=True),
        seen("c", "a", at=50, ms=20),
    )
    assert [(call.outcome, call.attempts) for call in found.calls] == [("error", 1)]
    assert [(row.span_id, row.result) for row in found.attempts] == [("a", "failure")]


def test_attempts_inside_have_the_region_of_the_call_unless_they_tell_their_own() -> None:
    found = assembled(
        seen("a", region="eu"),
        seen("b", "a", at=10, ms=20, failed=True, region="us"),
        seen("c", "a", at=50, ms=20),
    )
    assert {row.span_id: row.region for row in found.attempts} == {"b": "us", "c": "eu"}


def test_an_agent_in_between_makes_two_calls_of_a_tool() -> None:
    outer = seen("outer", ms=100)
    inner = seen("inner", "agent", at=10, ms=10)
    assert len(assembled(outer, other("agent", "outer", at=5), inner).calls) == 1
    agent = other("agent", "outer", at=5, operation="invoke_agent")
    assert ids(assembled(outer, agent, inner).calls) == {"outer", "inner"}


def test_two_requests_of_the_model_are_two_calls_even_if_one_is_inside_of_the_other() -> None:
    found = assembled(seen("outer", call_id="c-1"), seen("inner", "outer", call_id="c-2"))
    assert ids(found.calls) == {"outer", "inner"}


def test_different_tools_in_one_line_are_different_calls() -> None:
    found = assembled(
        seen("outer"), seen("middle", "outer", tool="fetch"), seen("inner", "middle", at=1)
    )
    assert len(found.calls) == 3


def test_a_name_that_a_framework_put_before_that_of_a_server_is_no_other_tool() -> None:
    outer = seen("outer", tool="weather_search")
    found = assembled(outer, seen("inner", "outer", dialect="mcp", tool="search"))
    assert [(call.tool, call.span_id) for call in found.calls] == [("search", "outer")]
    assert len(assembled(outer, seen("inner", "outer", tool="search")).calls) == 2
    unrelated = seen("inner", "outer", dialect="mcp", tool="ch")
    assert len(assembled(outer, unrelated).calls) == 2


# --- two instrumentations ----------------------------------------------------------------------

LLM = {"instrumentation": "opentelemetry.instrumentation.langchain"}


def test_two_instrumentations_of_one_process_see_one_call() -> None:
    found = assembled(
        other("root"), seen("a", "root", at=0.3, ms=12), seen("b", "root", at=0, ms=13, **LLM)
    )
    assert [call.span_id for call in found.calls] == ["b"]
    assert ids(found.spans) == {"a"}


def test_of_two_instrumentations_the_one_that_knows_more_tells_the_fault() -> None:
    found = assembled(
        seen("a", ms=12, failed=True, evidence=0, error_type=None),
        seen("b", at=0.3, ms=12, failed=True, evidence=3, error_type="ReadTimeout", **LLM),
    )
    assert [(call.span_id, call.error_type) for call in found.calls] == [("a", "ReadTimeout")]


def test_calls_at_one_time_stay_apart_and_each_finds_its_own_other_span() -> None:
    found = assembled(
        seen("a1", at=0, ms=30, args_hash="v1:1"),
        seen("a2", at=0.1, ms=20, args_hash="v1:2", failed=True),
        seen("b2", at=0.2, ms=20, args_hash="v1:2", failed=True, **LLM),
        seen("b1", at=0.4, ms=30, args_hash="v1:1", **LLM),
    )
    assert {call.span_id: call.outcome for call in found.calls} == {"a1": "ok", "a2": "error"}
    assert ids(found.spans) == {"b1", "b2"}


def test_without_ids_and_arguments_those_that_failed_belong_together() -> None:
    found = assembled(
        seen("a1", at=0, ms=30),
        seen("a2", at=0.1, ms=20, failed=True),
        seen("b2", at=0.2, ms=20, failed=True, **LLM),
        seen("b1", at=0.4, ms=30, **LLM),
    )
    assert {call.span_id: call.outcome for call in found.calls} == {"a1": "ok", "a2": "error"}


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param((seen("a"), seen("b")), id="one instrumentation"),
        pytest.param((seen("a"), seen("b", at=0.2), seen("c", at=0.1, **LLM)), id="counts differ"),
        pytest.param((seen("a"), seen("b", at=40, **LLM)), id="not at one time"),
        pytest.param((seen("a", ms=1), seen("b", at=1.5, ms=1, **LLM)), id="one after the other"),
        pytest.param((seen("a"), seen("b", tool="fetch", **LLM)), id="different tools"),
        pytest.param((seen("a", call_id="1"), seen("b", call_id="2", **LLM)), id="different ids"),
    ],
)
def test_parallel_calls_are_not_taken_for_one(spans: tuple[Sighting, ...]) -> None:
    found = assembled(*spans)
    assert ids(found.calls) == {span.span_id for span in spans}
    assert found.spans == []


def test_the_models_own_ids_pair_spans_that_a_busy_machine_parted() -> None:
    found = assembled(seen("a", call_id="1"), seen("b", at=40, call_id="1", **LLM))
    assert ids(found.calls) == {"a"}


# --- our own span ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param((other("own", "a", at=1, own_tool="search"), seen("a")), id="inside"),
        pytest.param((other("own", own_tool="search"), seen("a", "own")), id="around"),
        pytest.param(
            (other("own", own_tool="search"), other("try", "own"), seen("a", "try", at=1)),
            id="around, of a second attempt",
        ),
        pytest.param((other("own", at=0.2, own_tool="search"), seen("a")), id="beside"),
    ],
)
def test_our_own_span_beats_a_foreign_one(spans: tuple[Sighting | Relative, ...]) -> None:
    found = assembled(*spans)
    assert (found.calls, found.attempts) == ([], [])
    assert ids(found.spans) == {"a"}


def test_our_own_calls_within_each_other_have_one_foreign_span_each() -> None:
    outer, inner = other("own", own_tool="search"), other("own2", "own", at=20, own_tool="search")
    assert assembled(outer, inner, seen("a"), seen("b", at=20)).calls == []
    assert len(assembled(outer, inner, seen("a")).calls) == 1


def test_a_foreign_call_of_another_tool_or_at_another_time_is_a_call() -> None:
    own = other("own", own_tool="search")
    assert ids(assembled(own, seen("a", "own", tool="fetch")).calls) == {"a"}
    assert ids(assembled(own, seen("a", at=500)).calls) == {"a"}
    assert ids(assembled(own, seen("a"), seen("b", at=0.2)).calls) == {"a", "b"}


# --- attempts ----------------------------------------------------------------------------------


def tries(*fails: bool, **fields: Any) -> list[Sighting]:
    """Return attempts one after another, 30 ms each, 20 ms apart, the first at 10 ms."""
    return [
        seen(f"t{number}", "node", at=10 + 50 * number, ms=30, failed=failed, **fields)
        for number, failed in enumerate(fails)
    ]


@pytest.mark.parametrize(
    "same", [{"call_id": "c-1"}, {"args_hash": "v1:1"}, {"args_hash": "raw:1"}]
)
def test_retries_of_a_framework_are_attempts_of_one_call(same: dict[str, str]) -> None:
    found = assembled(other("node", ms=400), *tries(True, True, False, **same))
    (call,) = found.calls
    assert (call.span_id, call.outcome, call.error_class, call.attempts) == ("t0", "ok", None, 3)
    assert call.duration_seconds == pytest.approx(0.13)
    assert call.attempt_seconds == pytest.approx(0.09)
    assert call.backoff_seconds == pytest.approx(0.04)
    assert call.end == START + 140 * MS
    rows = sorted(found.attempts, key=lambda row: row.number)
    assert [(row.span_id, row.call_span_id, row.number, row.result) for row in rows] == [
        ("t0", "t0", 1, "failure"), ("t1", "t0", 2, "failure"), ("t2", "t0", 3, "success"),
    ]  # fmt: skip
    assert [row.delay_seconds for row in rows] == [0, pytest.approx(0.02), pytest.approx(0.02)]
    assert found.spans == []
    assert call.args_hash == (None if "raw:1" in same.values() else same.get("args_hash"))


def test_a_call_whose_last_attempt_failed_failed_with_its_fault() -> None:
    first, last = tries(True, True, call_id="c-1")
    last.error_type, last.error_class = "LastError", "L4_persistent"
    (call,) = assembled(first, last).calls
    assert (call.outcome, call.error_type, call.error_class, call.attempts) == (
        "error", "LastError", "L4_persistent", 2,
    )  # fmt: skip


def test_an_id_that_is_told_of_the_attempt_that_succeeded_alone_parts_nothing() -> None:
    first, second = tries(True, False, args_hash="raw:1")
    second.call_id = "c-1"
    (call,) = assembled(first, second).calls
    assert call.attempts == 2


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param(tries(False, False, call_id="1"), id="the first succeeded"),
        pytest.param(tries(True, False), id="nothing says that they are of one call"),
        pytest.param(tries(True, False, args_hash="v1:1", framework="openai_agents"),
                     id="the framework never tries again"),
        pytest.param([*tries(True, args_hash="v1:1"), seen("b", "else", at=90, args_hash="v1:1")],
                     id="under different spans"),
        pytest.param([*tries(True, args_hash="v1:1"), seen("b", "node", at=39, args_hash="v1:1")],
                     id="at one time"),
        pytest.param([*tries(True, args_hash="v1:1"), seen("b", "node", at=90, args_hash="v1:2")],
                     id="different arguments"),
        pytest.param(
            [seen("a", "n", failed=True, args_hash="v1:1", call_id="1"),
             seen("b", "n", at=200, args_hash="v1:1", call_id="2")],
            id="the model asked twice",
        ),
        pytest.param(
            [seen("a", failed=True, args_hash="v1:1"), seen("b", at=200, args_hash="v1:1")],
            id="under no span",
        ),
    ],
)  # fmt: skip
def test_what_is_no_retry_is_a_new_call(spans: list[Sighting]) -> None:
    assert ids(assembled(*spans).calls) == {span.span_id for span in spans}


@pytest.mark.parametrize("operation", ["chat", "generate_content"])
def test_a_question_to_the_model_in_between_makes_a_new_call(operation: str) -> None:
    spans = tries(True, False, args_hash="v1:1")
    step = other("step", "node", at=45, ms=4)
    asked = other("chat", "step", at=45, ms=4, operation=operation)
    assert len(assembled(*spans, other("node"), step, asked).calls) == 2
    before = other("chat", "step", at=5, ms=4, operation=operation)
    assert len(assembled(*spans, other("node"), step, before).calls) == 1
    elsewhere = other("chat", "far", at=45, ms=4, operation=operation)
    assert len(assembled(*spans, other("node"), elsewhere).calls) == 1


def test_numbers_that_spans_give_count_attempts_whose_spans_are_missing() -> None:
    second = seen("b", "node", at=50, ms=30, attempt_number=2, failed=True)
    third = seen("c", "node", at=100, ms=30, attempt_number=3)
    found = assembled(second, third)
    (call,) = found.calls
    assert (call.attempts, call.outcome) == (3, "ok")
    assert {row.span_id: row.number for row in found.attempts} == {"b": 2, "c": 3}
    (alone,) = assembled(third).calls
    assert alone.attempts == 3


def test_a_number_that_starts_again_is_of_a_new_call() -> None:
    spans = [
        seen(f"t{at}", "node", at=at, ms=30, attempt_number=number, failed=failed)
        for at, number, failed in ((0, 1, True), (50, 2, True), (100, 1, True), (150, 2, False))
    ]
    assert sorted((call.span_id, call.attempts) for call in assembled(*spans).calls) == [
        ("t0", 2), ("t100", 2),
    ]  # fmt: skip


def test_parallel_calls_that_are_both_tried_again_keep_their_attempts() -> None:
    found = assembled(
        seen("a", "node", at=0, ms=30, failed=True, call_id="1"),
        seen("b", "node", at=1, ms=30, failed=True, call_id="2"),
        seen("a2", "node", at=50, ms=30, call_id="1"),
        seen("b2", "node", at=51, ms=30, failed=True, call_id="2"),
    )
    assert {call.span_id: (call.outcome, call.attempts) for call in found.calls} == {
        "a": ("ok", 2), "b": ("error", 2),
    }  # fmt: skip


def test_retries_that_two_instrumentations_saw_are_attempts_of_one_call() -> None:
    first = [seen("a1", "x", at=0, ms=30, failed=True, call_id="1"),
             seen("a2", "x", at=50.4, ms=30, call_id="1")]  # fmt: skip
    second = [seen("b1", "y", at=0.4, ms=30, failed=True, **LLM),
              seen("b2", "y", at=50, ms=31, **LLM)]  # fmt: skip
    found = assembled(*first, *second)
    assert [(call.span_id, call.attempts, call.outcome) for call in found.calls] == [
        ("a1", 2, "ok")
    ]
    assert ids(found.attempts) == {"a1", "a2"}
    assert ids(found.spans) == {"b1", "b2"}


# --- context -----------------------------------------------------------------------------------


def test_session_and_agent_come_from_the_nearest_ancestor_that_tells() -> None:
    found = assembled(
        other("root", session="s-root", agent="planner"),
        other("agent", "root", agent="searcher"),
        other("step", "agent"),
        seen("a", "step"),
        seen("b", "agent", at=300, tool="fetch", session="s-own"),
    )
    told = {call.span_id: (call.session, call.agent) for call in found.calls}
    assert told == {"a": ("s-root", "searcher"), "b": ("s-own", "searcher")}


def test_a_server_far_away_tells_the_region_that_the_client_does_not() -> None:
    (call,) = assembled(seen("a"), seen("b", "a", region="eu-west-1", environment="live")).calls
    assert (call.region, call.environment) == ("eu-west-1", "live")


def test_the_last_request_of_a_failed_call_tells_its_status_where_nothing_else_does() -> None:
    spans = (
        other("h1", "a", at=1, ms=5, http_status=200),
        other("between", "a", at=10, ms=50),
        other("h2", "between", at=20, ms=5, http_status=429),
    )
    (call,) = assembled(seen("a", failed=True), *spans).calls
    assert (call.http_status, call.error_class) == (429, "L3_transient")
    known = {"error_class": "L1_input", "evidence": 3}
    (call,) = assembled(seen("a", failed=True, **known), *spans).calls
    assert (call.http_status, call.error_class) == (None, "L1_input")
    (call,) = assembled(seen("a"), *spans).calls
    assert (call.outcome, call.http_status) == ("ok", None)
    last = other("h3", "a", at=70, ms=5, http_status=200)
    (call,) = assembled(seen("a", failed=True), *spans, last).calls
    assert call.http_status is None


# --- odd traces --------------------------------------------------------------------------------


def test_hc_37_a_parent_that_is_missing_or_oneself_hides_no_call() -> None:
    assert ids(assembled(seen("a", "missing"), seen("b", "b", at=900)).calls) == {"a", "b"}


def test_hc_37_a_cycle_is_cut_at_its_earliest_span() -> None:
    found = assembled(seen("b", "a", at=1), seen("a", "c", at=0), seen("c", "b", at=2))
    assert [call.span_id for call in found.calls] == ["a"]
    assert ids(found.spans) == {"b", "c"}
    mixed = assembled(seen("x", "y", at=1), other("y", "x"), seen("z", "y", tool="fetch"))
    assert ids(mixed.calls) == {"x", "z"}


@pytest.mark.parametrize("shape", ["nested", "flat", "parallel", "retried"])
def test_hc_37_a_trace_of_5000_spans_takes_no_time(shape: str) -> None:
    parents = {"nested": lambda n: f"s{n - 1}", "retried": lambda n: "root"}
    spans = [
        seen(
            f"s{n}", parents.get(shape, lambda n: None)(n), at=0 if shape == "parallel" else n,
            ms=0.5, failed=shape == "retried", args_hash="v1:1",
            instrumentation=f"scope{n % 2}" if shape == "parallel" else "one",
        )
        for n in range(5000)
    ]  # fmt: skip
    Random(1).shuffle(spans)
    began = time.perf_counter()
    found = assemble(Trace(TRACE, spans, [other("root", ms=9000)]))
    assert time.perf_counter() - began < 5
    expected = {"nested": 1, "flat": 5000, "parallel": 2500, "retried": 1}
    assert len(found.calls) == expected[shape]


def test_a_trace_of_thousands_of_scopes_takes_no_time() -> None:
    spans = [seen(f"s{n}", at=n, ms=0.5, instrumentation=f"scope{n}") for n in range(4000)]
    began = time.perf_counter()
    assert len(assemble(Trace(TRACE, spans)).calls) == 4000
    assert time.perf_counter() - began < 5


span_ids = st.sampled_from("abcdefg")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_trace_gives_each_span_one_place_whatever_the_order(data: st.DataObject) -> None:
    spans: list[Sighting | Relative] = []
    for span_id in "abcdefg":
        parent = data.draw(st.none() | span_ids)
        at, ms = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 5))
        if data.draw(st.booleans()):
            spans.append(
                seen(
                    span_id, parent, at, ms,
                    tool=data.draw(st.sampled_from(["search", "fetch"])),
                    failed=data.draw(st.booleans()),
                    call_id=data.draw(st.sampled_from([None, None, "1", "2"])),
                    args_hash=data.draw(st.sampled_from([None, "v1:1", "v1:2"])),
                    instrumentation=data.draw(st.sampled_from(["x", "y"])),
                )
            )  # fmt: skip
        else:
            spans.append(
                other(
                    span_id, parent, at, ms,
                    own_tool=data.draw(st.sampled_from([None, None, "search"])),
                    operation=data.draw(st.sampled_from([None, "invoke_agent", "chat"])),
                    http_status=data.draw(st.sampled_from([None, 200, 503])),
                )
            )  # fmt: skip
    for item in spans:
        note(repr(item))
    found = assembled(*spans)
    shown = [row.span_id for row in (*found.calls, *found.spans)]
    tried = {row.span_id for row in found.attempts}
    assert len(shown) == len(set(shown))
    assert set(shown) | tried == {item.span_id for item in spans if isinstance(item, Sighting)}
    for call in found.calls:
        rows = [row for row in found.attempts if row.call_span_id == call.span_id]
        assert len(rows) in (call.attempts, 0)
        if rows:
            assert (rows[-1].result == "failure") == (call.outcome == "error")
        else:
            assert (call.outcome, call.attempts) == ("ok", 1)
        assert call.attempts >= 1
        assert (call.outcome == "error") == (call.error_class is not None)
