"""HC-22: how long a retry waits, what it says, and what attempts cost."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from scripted_tools import BOTH, QUICK, Script, make_tool, status_error

import fuseboard
from fuseboard import (
    Outcome,
    Policy,
    Retry,
)
from fuseboard.conventions import Layer, RetryEnd, RetryStrategy


@BOTH
@pytest.mark.parametrize(
    ("headers", "waits"),
    [
        ({"retry-after": "5"}, [5.0]),
        ({"retry-after": "1.5"}, [1.5]),
        ({"retry-after-ms": "250", "retry-after": "9"}, [0.25]),
        ({"retry-after": "-1"}, [0.5]),
        ({"retry-after": "nan"}, [0.5]),
        ({"retry-after": "1e999"}, [0.5]),
        ({"retry-after": "garbage"}, [0.5]),
        ({"retry-after": ""}, [0.5]),
        ({"retry-after": "86400"}, []),
        ({"retry-after": "30"}, []),
    ],
    ids=str,
)
def test_hc_22_retry_after(
    telemetry: Any, clock: Any, full_wait: None, is_async: bool, headers: Any, waits: list[float]
) -> None:
    error = status_error(429, **headers)
    script = Script(error, "done")
    tool = make_tool(script, Policy(retry=Retry(attempts=2)), is_async=is_async)
    if waits:
        assert tool() == "done"
        assert telemetry.last.backoff_seconds == sum(waits)
    else:
        with pytest.raises(httpx.HTTPStatusError) as caught:
            tool()
        assert caught.value is error, "the tool's own error, not ours"
        assert telemetry.last.layer is Layer.BUDGET
        assert telemetry.last.outcome is Outcome.ERROR
    assert clock.slept == waits


def test_retry_says_what_it_did(telemetry: Any, clock: Any, full_wait: None) -> None:
    script = Script(status_error(503), status_error(503), "done")
    assert make_tool(script, Policy(retry=Retry(), effects="none"))() == "done"
    call = telemetry.last
    assert clock.slept == [0.5, 1.0]
    assert (call.outcome, call.layer, call.retry_end) == (Outcome.OK, Layer.RETRY, "recovered")
    assert call.retry_strategy is RetryStrategy.EXPONENTIAL_BACKOFF_FULL_JITTER
    assert call.fault is None, "a fault that retries handled is not the call's"
    assert [a.fault is None for a in call.attempts] == [False, False, True]


def test_retries_end_exhausted_or_stopped(telemetry: Any, clock: Any) -> None:
    policy = Policy(retry=Retry(), effects="none")
    with pytest.raises(httpx.HTTPStatusError):
        make_tool(Script(status_error(503)), policy)()
    assert telemetry.last.retry_end is RetryEnd.EXHAUSTED
    assert telemetry.last.layer is Layer.RETRY
    with pytest.raises(httpx.HTTPStatusError):
        make_tool(Script(status_error(503), status_error(404)), policy)()
    assert telemetry.last.retry_end is RetryEnd.STOPPED
    assert telemetry.last.fault.verdict.http_status == 404


def test_costs_of_attempts_add_up(telemetry: Any) -> None:
    costs = iter([0.5, 0.25])

    def costly() -> str:
        current = fuseboard.current_call()
        assert current is not None
        cost = next(costs)
        current.set_cost(cost)
        with pytest.raises(ValueError, match="set_cost"):
            current.set_cost(float("nan"))
        if cost == 0.5:
            raise ConnectionRefusedError
        return "done"

    fuseboard.wrap(costly, policy=Policy(retry=QUICK))()
    assert telemetry.last.cost == 0.75
    assert [attempt.cost for attempt in telemetry.last.attempts] == [0.5, 0.25]
