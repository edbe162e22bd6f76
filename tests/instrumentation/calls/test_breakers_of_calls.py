"""The breaker within the onion: around attempts or whole calls, apart by what it guards."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_tools import BOTH, Script, make_tool

import fuseboard
from fuseboard import (
    Breaker,
    CircuitOpenError,
    ErrorClass,
    Outcome,
    Policy,
    Retry,
)
from fuseboard.conventions import BreakerState, Layer, RetryEnd

OPENS_AT_2 = Breaker(minimum_throughput=2, break_duration=60)


@BOTH
def test_open_breaker_rejects_without_an_attempt(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    script = Script(ConnectionResetError())
    tool = make_tool(script, Policy(breaker=OPENS_AT_2), is_async=is_async)
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            tool()
    clock.move(10)
    with pytest.raises(CircuitOpenError) as caught:
        tool()
    assert script.runs == 2
    assert caught.value.retry_after == pytest.approx(50)
    assert caught.value.error_class is ErrorClass.L3_TRANSIENT
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.REJECTED, Layer.BREAKER)
    assert call.attempts == []
    assert call.breaker_state is BreakerState.OPEN
    assert call.fault.verdict.classifier_id == "circuit_open"
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
    (transition,) = telemetry.transitions
    assert transition.call is telemetry.calls[1]
    assert (transition.calls, transition.failures, transition.failure_ratio) == (2, 2, 1.0)


def test_breaker_that_opens_in_mid_retry_stops_the_retry(telemetry: Any, clock: Any) -> None:
    error = ConnectionRefusedError()
    script = Script(error)
    policy = Policy(retry=Retry(attempts=9), breaker=OPENS_AT_2)
    with pytest.raises(ConnectionRefusedError) as caught:
        make_tool(script, policy)()
    assert caught.value is error
    assert script.runs == 2
    assert len(clock.slept) == 1, "it does not wait for a rejection"
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.ERROR, Layer.BREAKER)
    assert call.retry_end is RetryEnd.STOPPED
    assert ("breaker", "rejected") in call.layer_actions


def test_breaker_of_scope_call_judges_whole_calls(telemetry: Any, clock: Any) -> None:
    breaker = Breaker(minimum_throughput=2, scope="call")
    script = Script(*[ConnectionRefusedError()] * 6)
    tool = make_tool(script, Policy(retry=Retry(attempts=3), breaker=breaker))
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            tool()
    assert script.runs == 6
    with pytest.raises(CircuitOpenError):
        tool()


def test_breakers_are_apart_by_region_and_upstream(telemetry: Any, clock: Any) -> None:
    @fuseboard.tool(
        policy=Policy(breaker=OPENS_AT_2),
        region=lambda arguments: arguments["region"],
        upstream=lambda arguments: arguments["host"],
    )
    def fetch(region: str, host: str, *, fails: bool) -> str:
        if fails:
            raise ConnectionResetError
        return "ok"

    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            fetch("eu", "a", fails=True)
    with pytest.raises(CircuitOpenError, match="fetch/eu/a"):
        fetch("eu", "a", fails=False)
    assert fetch("us", "a", fails=False) == "ok"
    assert fetch("eu", "b", fails=False) == "ok"
    assert (telemetry.last.region, telemetry.last.upstream) == ("eu", "b")
