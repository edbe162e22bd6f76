"""An attempt that was cancelled, left or interrupted is no success: in spans, metrics and store.

The tools are real and so is the telemetry; what the store makes of a single such attempt is held
by the collector's own tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_collector import as_dict
from prometheus_client import CollectorRegistry

import fuseboard
from fuseboard import Policy, Retry, setup
from fuseboard.conventions import Outcome

QUICK = Retry(wait_initial=0)


class GraphInterrupt(Exception):  # noqa: N818 - the name that LangGraph gave it
    __module__ = "langgraph.errors"


class Halt(BaseException):
    """Not an Exception, and unknown to every classifier."""


ENDINGS = [
    (asyncio.CancelledError(), Outcome.CANCELLED, "asyncio.exceptions.CancelledError"),
    (KeyboardInterrupt(), Outcome.CANCELLED, "KeyboardInterrupt"),
    (GeneratorExit(), Outcome.ABANDONED, "GeneratorExit"),
    (GraphInterrupt(), Outcome.INTERRUPTED, "langgraph.errors.GraphInterrupt"),
    (SystemExit(0), Outcome.OK, None),
    (SystemExit(3), Outcome.ERROR, "SystemExit"),
    (Halt(), Outcome.ERROR, f"{Halt.__module__}.Halt"),
]
EACH_ENDING = pytest.mark.parametrize(
    ("error", "outcome", "error_type"), ENDINGS, ids=[repr(error) for error, *_ in ENDINGS]
)


class Counted:
    """The counts of one tool that are not zero, by their further labels."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def __call__(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        return {
            tuple(sample.labels[label] for label in labels): sample.value
            for family in self._registry.collect()
            for sample in family.samples
            if sample.name == f"fuseboard_tool_{name}" and sample.value
        }


@pytest.fixture
def counted(start: Callable[..., None], registry: CollectorRegistry) -> Counted:
    start()
    return Counted(registry)


def spans_of(collector: Any, name: str) -> list[Any]:
    return [span for span in collector.spans() if span.name.startswith(name)]


@EACH_ENDING
def test_hc_04_each_ending_is_one_span_and_one_count(
    counted: Counted, collector: Any, error: BaseException, outcome: Outcome, error_type: str | None
) -> None:
    @fuseboard.tool
    def ends() -> None:
        raise error

    with pytest.raises(BaseException) as caught:
        ends()
    assert caught.value is error
    assert setup.flush(10)
    (call,) = spans_of(collector, "execute_tool")
    assert as_dict(call.attributes)["fuseboard.outcome"] == outcome
    assert (call.status.code == 2) is (outcome is Outcome.ERROR)
    assert counted("calls_total", "outcome") == {(outcome.value,): 1}
    assert counted("call_duration_seconds_count") == {(): 1}
    assert counted("calls_in_flight") == {}
    result = "success" if error_type is None else "failure"
    assert list(counted("attempts_total", "result")) == [(result,)]
    assert list(counted("attempted_calls_total", "first_attempt")) == [(result,)]
    has_class = ("none",) not in counted("attempts_total", "error_class")
    assert has_class is (outcome is Outcome.ERROR)
    # One that was cut short failed in nothing, so its row is derived from the call.
    assert len(spans_of(collector, "tool_attempt")) == (outcome is Outcome.ERROR)


@EACH_ENDING
def test_a_second_attempt_that_is_cut_short_says_what_ended_it(
    counted: Counted, collector: Any, error: BaseException, outcome: Outcome, error_type: str | None
) -> None:
    raised: Iterator[BaseException] = iter([ConnectionRefusedError(), error])

    @fuseboard.tool(policy=Policy(retry=QUICK))
    def ends() -> None:
        raise next(raised)

    with pytest.raises(BaseException) as caught:
        ends()
    assert caught.value is error
    assert setup.flush(10)
    first, second = (as_dict(span.attributes) for span in spans_of(collector, "tool_attempt"))
    assert first["error.classified_as"] == "L3_transient"
    assert second.get("error.type") == error_type
    assert ("error.classified_as" in second) is (outcome is Outcome.ERROR)
    assert counted("attempted_calls_total", "first_attempt") == {("failure",): 1}
    assert (("success",) in counted("attempts_total", "result")) is (outcome is Outcome.OK)


def test_a_stream_that_was_left_did_not_succeed(counted: Counted) -> None:
    @fuseboard.tool
    def pages() -> Iterator[int]:
        yield from range(9)

    stream = pages()
    assert next(stream) == 0
    del stream
    assert counted("calls_total", "outcome") == {("abandoned",): 1}
    assert counted("attempts_total", "result", "error_class") == {("failure", "none"): 1}


def test_left_before_the_start_of_its_work_did_not_succeed(counted: Counted) -> None:
    @fuseboard.tool
    def later() -> Iterator[int]:
        return (number for number in range(9))

    later()
    assert counted("calls_total", "outcome") == {("abandoned",): 1}
    assert counted("attempts_total", "result", "error_class") == {("failure", "none"): 1}
