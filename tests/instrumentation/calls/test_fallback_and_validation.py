"""What is served instead of a failed or rejected call, and which answers are of no use."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from scripted_tools import BOTH, QUICK, Script, make_tool, status_error

import fuseboard
from fuseboard import (
    Breaker,
    Confidence,
    ConfigurationError,
    ErrorClass,
    Fallback,
    InvalidResultError,
    Outcome,
    Policy,
    ResultSource,
    Retry,
    Validation,
)
from fuseboard.conventions import Layer, RetryStrategy


@BOTH
def test_fallbacks_are_tried_in_order_and_labelled(telemetry: Any, is_async: bool) -> None:
    def cached() -> str:
        current = fuseboard.current_call()
        assert current is not None
        current.set_result_age(90)
        return "stale"

    policy = Policy(
        fallback=(
            Script(OSError("the first fails")),
            Fallback(Script({"ok": False}), name="packet"),
            Fallback(cached, source=ResultSource.CACHE, confidence=Confidence.MEDIUM),
            Fallback(value="never reached"),
        )
    )
    assert make_tool(Script(status_error(503)), policy, is_async=is_async)() == "stale"
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.DEGRADED, Layer.FALLBACK)
    assert call.fault.verdict.http_status == 503, "the class of the fault that was handled"
    assert call.retry_strategy is RetryStrategy.SWITCH
    assert (call.result_source, call.confidence) == (ResultSource.CACHE, Confidence.MEDIUM)
    assert (call.fallback_tool, call.result_age_seconds) == ("cached", 90)
    assert call.layer_actions == (
        ("fallback", "failed"),
        ("fallback", "failed"),
        ("fallback", "served"),
    )


def test_rejected_call_is_served_by_the_fallback(telemetry: Any, clock: Any) -> None:
    policy = Policy(
        breaker=Breaker(minimum_throughput=2), fallback=Fallback(value={"forecast": None})
    )
    tool = make_tool(Script(ConnectionResetError()), policy)
    answers = [tool() for _ in range(3)]
    assert answers == [{"forecast": None}] * 3
    assert answers[0] is not answers[1], "a caller may change what it got"
    call = telemetry.last
    assert (call.outcome, call.attempts) == (Outcome.DEGRADED, [])
    assert call.fault.verdict.classifier_id == "circuit_open"
    assert (call.result_source, call.confidence) == (ResultSource.DEFAULT, Confidence.LOW)


def test_callers_mistake_is_not_papered_over(telemetry: Any) -> None:
    policy = Policy(fallback=Fallback(value=0))
    with pytest.raises(httpx.HTTPStatusError):
        make_tool(Script(status_error(422)), policy)()
    assert telemetry.last.outcome is Outcome.ERROR


def test_async_fallback(telemetry: Any) -> None:
    async def other() -> str:
        await asyncio.sleep(0)
        return "other"

    tool = make_tool(Script(OSError()), Policy(fallback=other), is_async=True)
    assert tool() == "other"
    with pytest.raises(ConfigurationError, match="needs an async tool"):
        make_tool(Script(1), Policy(fallback=other))


async def test_cancelled_in_the_fallback_is_cancelled(telemetry: Any) -> None:
    async def other() -> None:
        task.cancel()
        await asyncio.sleep(60)

    @fuseboard.tool(policy=Policy(fallback=other))
    async def fails() -> None:
        raise OSError

    task = asyncio.create_task(fails())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert telemetry.last.outcome is Outcome.CANCELLED


@pytest.mark.parametrize("empty", [None, "", "  ", [], {}, ()])
def test_empty_answers_fail_only_where_asked(telemetry: Any, empty: Any) -> None:
    assert make_tool(Script(empty), Policy())() == empty
    assert telemetry.last.outcome is Outcome.OK
    policy = Policy(validation=Validation(non_empty=True))
    with pytest.raises(InvalidResultError):
        make_tool(Script(empty), policy)()
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.ERROR, Layer.VALIDATION)
    assert call.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
    assert ("validation", "failed") in call.layer_actions


def test_unusable_answers_are_retried_where_asked(telemetry: Any) -> None:
    policy = Policy(
        retry=Retry(wait_initial=0, semantic=True),
        validation=Validation(non_empty=True),
        effects="none",
    )
    assert make_tool(Script([], [], [1]), policy)() == [1]
    assert len(telemetry.last.attempts) == 3


def test_returned_error_with_a_transient_status_is_retried(telemetry: Any) -> None:
    packet = {"ok": False, "status": 503}
    tool = make_tool(Script(packet, {"ok": True}), Policy(retry=QUICK, effects="none"))
    assert tool() == {"ok": True}
    tool = make_tool(Script(packet), Policy(retry=QUICK, effects="none"))
    assert tool() is packet, "exhausted: the tool's own value comes back"
    assert telemetry.last.outcome is Outcome.ERROR
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
