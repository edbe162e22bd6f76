"""All recorded exports: every call found once, whatever the order and size of requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from assembled_exports import Expected, Stage, expected_of, outcomes_to_see, portions, sent, whole
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorded_exports import RECEIVED, recordings

from fuseboard import conventions as c
from fuseboard_collector.normalise.incoming import Traces
from fuseboard_collector.normalise.normaliser import normalise_traces
from fuseboard_collector.store import Store
from fuseboard_collector.store.rows import ToolCall

NAMES = list(recordings())


def test_there_is_something_to_find() -> None:
    found = [call for item in recordings().values() for call in expected_of(item)]
    assert len(found) > 380
    assert Counter(len(call.entries) for call in found)[3] >= 10


@pytest.mark.parametrize("name", NAMES)
def test_each_call_is_found_once_with_its_outcome_and_attempts(name: str) -> None:
    calls = whole(name).calls()
    for expected in expected_of(recordings()[name]):
        (span_id,) = calls.keys() & expected.spans
        check(calls.pop(span_id), expected)
    assert not calls, "these are no calls, or calls that were found already"


def check(call: ToolCall, expected: Expected) -> None:
    last = expected.last
    assert call.tool == last["tool"]
    assert call.outcome in outcomes_to_see(last)
    assert call.attempts == len(expected.entries)
    assert call.instrumentation not in (None, c.SCOPE_NAME)
    if call.outcome == "ok":
        assert (call.error_type, call.error_class, call.error_message) == (None, None, None)
        return
    assert call.error_class is not None
    if last.get("error_type_from") in ("attribute", "text"):
        assert call.error_type is not None
        assert call.error_type.rsplit(".", 1)[-1] == last["error_type"]
    if last.get("http_status_from") in ("attribute", "text"):
        assert call.http_status == last["http_status"]


@pytest.mark.parametrize("name", NAMES)
def test_attempts_have_rows_where_one_failed_or_there_are_several(name: str) -> None:
    found = whole(name).assembled.values()
    rows = {row.span_id: row for item in found for row in item.attempts}
    calls = {call.span_id: call for item in found for call in item.calls}
    for expected in expected_of(recordings()[name]):
        (span_id,) = calls.keys() & expected.spans
        call = calls[span_id]
        if len(expected.entries) == 1 and call.outcome == "ok":
            continue
        for number, entry in enumerate(expected.entries, 1):
            (row_id,) = rows.keys() & {entry["span_id"], *entry["other_span_ids"]}
            row = rows.pop(row_id)
            assert (row.call_span_id, row.number) == (call.span_id, number)
            assert (row.result == "failure") == (outcomes_to_see(entry) != {"ok"})
    assert not rows


@pytest.mark.parametrize("name", NAMES)
def test_each_span_is_shown_once(name: str) -> None:
    stage = whole(name)
    found = stage.assembled.values()
    shown = Counter(row.span_id for item in found for row in (*item.calls, *item.spans))
    shown.update(row.span_id for item in found for row in item.attempts if not shown[row.span_id])
    told = {span_id for call in expected_of(recordings()[name]) for entry in call.entries
            for span_id in (entry["span_id"], *entry["other_span_ids"])}  # fmt: skip
    assert shown == Counter(told)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True),
    order=st.randoms(use_true_random=False),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_order_and_size_of_requests_change_nothing(
    names: list[str], order: Random, cuts: list[int]
) -> None:
    spans = [item for name in names for item in sent(recordings()[name])]
    order.shuffle(spans)
    stage = Stage()
    for portion in portions(spans, cuts):
        stage.take(portion)
    assert stage.result() == sorted((row for n in names for row in whole(n).result()), key=repr)


def test_one_span_per_request_changes_nothing() -> None:
    spans = [item for name in NAMES for item in sent(recordings()[name])]
    Random(4).shuffle(spans)
    stage = Stage()
    for span in spans:
        stage.take([span])
    assert stage.result() == sorted((row for n in NAMES for row in whole(n).result()), key=repr)


COLUMNS = (
    "trace_id", "span_id", "parent_span_id", "tool", "server", "outcome", "attempts", "session",
    "agent", "error_type", "error_class", "error_message", "http_status", "args_hash", "call_id",
    "framework", "instrumentation", "environment", "region", "duration_seconds", "backoff_seconds",
)  # fmt: skip


def test_a_store_to_which_they_come_in_pieces_ends_with_the_same_calls(
    store: Store, rows: Callable[[str], list[dict[str, Any]]]
) -> None:
    spans = [item for name in NAMES for item in sent(recordings()[name])]
    Random(5).shuffle(spans)
    for number, portion in enumerate(portions(spans, range(0, len(spans), 60))):
        traces = Traces(groups=[(source, [span]) for source, span in portion])
        store.append(normalise_traces(traces, RECEIVED)).result(30)
        if number % 5 == 0:
            store.settle()
    expected = [row for name in NAMES for row in whole(name).calls().values()]
    found = {tuple(row[column] for column in COLUMNS) for row in rows("tool_calls")}
    assert found == {tuple(getattr(row, column) for column in COLUMNS) for row in expected}
    assert len(rows("tool_calls")) == len(expected)
