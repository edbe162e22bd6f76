"""What the Trace page tells of a call, outcome by outcome."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from fuseboard.conventions import Outcome
from fuseboard_dashboard import story
from fuseboard_dashboard.waterfall import CALL, SPAN, Row

T0 = datetime(2026, 1, 5)


def call(**more: object) -> Any:
    values = dict.fromkeys(
        ("error_class", "error_type", "http_status", "layer", "breaker_state", "result_source",
         "result_age_seconds", "confidence", "fallback_tool", "partial_failures", "retryable"),
    )  # fmt: skip
    return SimpleNamespace(**{**values, "outcome": "ok", "attempts": 1, **more})


def told(of: Any, *attempts: Any) -> list[str]:
    return story.tell(Row(CALL, T0, T0 + timedelta(seconds=1), of, attempts))


def attempt(number: int, result: str, delay: float = 0.0, **more: object) -> Any:
    values = {"error_class": None, "error_type": None, "http_status": None, **more}
    return SimpleNamespace(number=number, result=result, delay_seconds=delay,
                           duration_seconds=0.4, **values)  # fmt: skip


FAULT = {"error_class": "L3_transient", "error_type": "TimeoutError", "http_status": 503}


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (call(), "The caller got the live result."),
        (call(result_source="cache", result_age_seconds=3.0),
         "Answered from the cache, 3.00 s old."),
        (call(outcome="partial", partial_failures=1),
         "The caller got a live result, but 1 part of it failed."),
        (call(outcome="partial", partial_failures=3),
         "The caller got a live result, but 3 parts of it failed."),
        (call(outcome="partial"), "The caller got a live result that is not complete."),
        (call(outcome="degraded", result_source="cache", result_age_seconds=90.0,
              confidence="medium_high", **FAULT),
         "A stale entry of the cache was served, 90.0 s old, confidence medium high. Behind it: "
         + story.fault_words(call(**FAULT)) + "."),
        (call(outcome="degraded", result_source="fallback", fallback_tool="maps2",
              error_class="L4_persistent"),
         "The fallback maps2 answered instead. Behind it: L4 persistent."),
        (call(outcome="degraded", result_source="fallback"),
         "A fallback answered instead. Behind it: Unclassified."),
        (call(outcome="error", **FAULT), "The caller got the error."),
        (call(outcome="rejected", layer="breaker"),
         "Rejected by the breaker: no attempt was made, the caller got an error at once."),
        (call(outcome="rejected", layer="limit"),
         "Rejected by the limit of calls: no attempt was made."),
        (call(outcome="rejected", layer="budget"),
         "Rejected because a budget was used up: no attempt was made."),
        (call(outcome="rejected"), "Rejected: no attempt was made."),
        (call(outcome="somebody's own"), "The call ended with outcome somebody's own."),
    ],
)  # fmt: skip
def test_the_ending_says_what_the_caller_got(of: Any, words: str) -> None:
    assert story.ending(of) == words


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_an_ending_of_its_own(outcome: str) -> None:
    assert "with outcome" not in story.ending(call(outcome=outcome))


def test_attempts_and_waits_are_told_in_their_order() -> None:
    assert told(
        call(attempts=2), attempt(1, "failure", **FAULT), attempt(2, "success", 0.2)
    ) == [
        "Attempt 1 failed after 400 ms: L3 transient, TimeoutError, HTTP 503.",
        "Waited 200 ms.",
        "Attempt 2 succeeded after 400 ms.",
        "The caller got the live result.",
    ]  # fmt: skip


def test_why_nothing_was_tried_again_is_told() -> None:
    last = attempt(1, "failure", error_class="L1_input")
    assert told(call(outcome="error", error_class="L1_input", retryable=False), last)[1] == (
        "Not retried: this kind of fault is not expected to pass."
    )
    assert told(call(outcome="error", retryable=True), last)[1] == (
        "No attempt was made after that."
    )


def test_the_breaker_on_entry_is_told_unless_it_was_closed() -> None:
    assert told(call(breaker_state="half_open"))[0] == "On entry the breaker was half-open."
    assert len(told(call(breaker_state="closed"))) == 1


@pytest.mark.parametrize(
    ("reason", "calls", "words"),
    [
        ("failure_ratio", 20, ": too many failures, 12 of 20 failed."),
        ("probe_failed", None, ": probe failed."),
        (None, None, "."),
        ("own_reason", 0, ": own reason."),
    ],
)
def test_a_change_of_a_breaker_says_why(reason: str | None, calls: int | None, words: str) -> None:
    moved = SimpleNamespace(breaker="b", from_state="closed", to_state="open", reason=reason,
                            calls=calls, failures=12)  # fmt: skip
    assert story.change(moved) == f"Breaker b went from closed to open{words}"


def test_a_span_has_no_story() -> None:
    assert story.tell(Row(SPAN, T0, T0, call())) == []
