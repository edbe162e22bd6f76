"""Retries that a tool makes itself, and other libraries' breakers, as a collector gets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pybreaker
import pytest
import tenacity
from opentelemetry import trace

import fuseboard
from fuseboard import conventions as c
from fuseboard import setup
from fuseboard.adapters import (
    instrument_pybreaker,
    instrument_tenacity,
    uninstrument_pybreaker,
    uninstrument_tenacity,
)


@pytest.fixture(autouse=True)
def _installed() -> Iterator[None]:
    instrument_tenacity()
    instrument_pybreaker()
    yield
    uninstrument_tenacity()
    uninstrument_pybreaker()


def attributes_of(message: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in message.attributes}


def values_of(name: str, **labels: str) -> list[float]:
    from prometheus_client.parser import text_string_to_metric_families

    text = fuseboard.metrics_text()[0].decode()
    return [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]


def test_each_try_is_a_span_under_the_call(start: Any, collector: Any) -> None:
    start()
    tries: list[int] = []

    @fuseboard.tool
    def search_inside() -> str:
        @tenacity.retry(wait=tenacity.wait_fixed(0.001), stop=tenacity.stop_after_attempt(3))
        def fetch() -> str:
            tries.append(1)
            with trace.get_tracer("test").start_as_current_span(f"request {len(tries)}"):
                if len(tries) < 3:
                    raise ConnectionResetError("away")
            return "found"

        return fetch()

    assert search_inside() == "found"
    assert setup.flush(20.0)
    spans = {span.name: span for span in collector.spans()}
    call = spans["execute_tool search_inside"]
    attempts = [one for one in collector.spans() if one.name == "tool_attempt search_inside"]
    attempts.sort(key=lambda span: span.start_time_unix_nano)
    told = [attributes_of(span) for span in attempts]
    assert [one[c.ATTEMPT_NUMBER] for one in told] == [1, 2, 3]
    assert [one.get(c.ERROR_CLASSIFIED_AS) for one in told] == ["L3_transient"] * 2 + [None]
    assert {span.parent_span_id for span in attempts} == {call.span_id}
    ended = attributes_of(call)
    assert (ended[c.OUTCOME], ended[c.ATTEMPTS], ended[c.LAYER]) == ("ok", 3, "retry")
    assert ended[c.BACKOFF_SECONDS] == pytest.approx(0.002)
    assert c.ERROR_TYPE not in ended
    for number, parent in ((1, call), (2, attempts[1]), (3, attempts[2])):
        assert spans[f"request {number}"].parent_span_id == parent.span_id
    assert values_of(c.METRIC_ATTEMPTS, tool="search_inside", result="failure",
                     error_class="L3_transient") == [2]  # fmt: skip
    assert values_of(c.METRIC_ATTEMPTED_CALLS, tool="search_inside", retry="recovered",
                     first_attempt="failure") == [1]  # fmt: skip
    assert values_of(c.METRIC_BACKOFF, tool="search_inside") == [pytest.approx(0.002)]


def test_a_breaker_of_another_library_has_series(start: Any, collector: Any) -> None:
    start()
    breaker = pybreaker.CircuitBreaker(fail_max=1, name="api")

    @fuseboard.tool
    def ask_behind() -> None:
        def fail() -> None:
            raise TimeoutError

        breaker.call(fail)

    for _ in range(2):
        with pytest.raises(pybreaker.CircuitBreakerError):
            ask_behind()
    named = {"tool": "ask_behind", "breaker": "ask_behind/api"}
    assert values_of(c.METRIC_BREAKER_STATE, **named, state="open") == [1]
    assert values_of(c.METRIC_BREAKER_STATE, **named, state="closed") == [0]
    moves = values_of(c.METRIC_BREAKER_TRANSITIONS, **named, from_state="closed", to_state="open")
    assert moves == [1]
    rejected = values_of(c.METRIC_LAYER_ACTIONS, tool="ask_behind", layer="breaker",
                         action="rejected")  # fmt: skip
    assert rejected == [1]
