"""``forced_faults``: a tool fails on purpose, and its policies see it."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import fuseboard
from fuseboard import (
    Breaker,
    CircuitOpenError,
    ConfigurationError,
    Fallback,
    Policy,
    Retry,
)
from fuseboard.testing import PASS, Delay, FakeClock, capture, forced_faults

THREE = Policy(retry=Retry(attempts=3), effects="none")


def kinds() -> dict[str, Callable[[], Any]]:
    @fuseboard.tool(policy=THREE)
    def plain() -> str:
        return "live"

    @fuseboard.tool(policy=THREE)
    async def later() -> str:
        return "live"

    @fuseboard.tool(policy=THREE)
    def stream() -> Iterator[str]:
        yield "live"

    @fuseboard.tool(policy=THREE)
    async def stream_later() -> AsyncIterator[str]:
        yield "live"

    class Kitchen:
        @fuseboard.tool(policy=THREE)
        def method(self) -> str:
            return "live"

    async def collect() -> list[str]:
        return [item async for item in stream_later()]

    return {
        "plain": plain,
        "later": lambda: asyncio.run(later()),  # type: ignore[arg-type]
        "stream": lambda: next(iter(list(stream()))),
        "stream_later": lambda: asyncio.run(collect())[0],
        "method": Kitchen().method,
    }


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_attempts_fail_below_the_policies(kind: str) -> None:
    run = kinds()[kind]
    with (
        capture(clock=FakeClock()) as calls,
        forced_faults(kind, [ConnectionResetError("gone"), TimeoutError]) as faults,
    ):
        assert run() == "live"
        assert faults.used == 2
    (call,) = calls
    assert [attempt.error_type for attempt in call.attempts] == [
        "ConnectionResetError", "TimeoutError", None,
    ]  # fmt: skip
    assert call.outcome == "ok"


@pytest.mark.parametrize("kind", ["stream", "stream_later"])
def test_a_stream_may_be_forced_to_yield(kind: str) -> None:
    run = kinds()[kind]
    with forced_faults(kind, [["forced"]]):
        assert run() == "forced"
        assert run() == "live"


@pytest.mark.parametrize("kind", ["plain", "later", "method"])
def test_values_delays_and_the_tool_itself_may_be_asked_for(kind: str) -> None:
    run, clock = kinds()[kind], FakeClock()
    script = ["forced", Delay(30), PASS, Delay(2, then="late"), Delay(1, KeyError("k"))]
    with capture(clock=clock) as calls, forced_faults(kind, script):
        assert [run() for _ in range(4)] == ["forced", "live", "live", "late"]
        with pytest.raises(KeyError):
            run()
        assert run() == "live"
    assert [call.duration_seconds for call in calls] == [0, 30, 0, 2, 1, 0]
    assert clock.slept == [30, 2, 1]


def test_an_endless_fault_opens_the_breaker_and_is_gone_afterwards() -> None:
    @fuseboard.tool(policy=Policy(breaker=Breaker(minimum_throughput=3)))
    def search(what: str) -> str:
        return what

    with capture() as calls, forced_faults("search", itertools.repeat(ConnectionResetError)):
        for _ in range(3):
            with pytest.raises(ConnectionResetError):
                search("a")
        with pytest.raises(CircuitOpenError):
            search("a")
    assert [move.to_state for move in calls.transitions] == ["open"]
    assert search("a") == "a"
    assert list(inspect.signature(search).parameters) == ["what"]


def test_a_policy_that_is_given_meanwhile_sees_the_faults() -> None:
    tool = fuseboard.wrap(lambda: "live", name="search")
    with forced_faults("search", [ConnectionResetError] * 2):
        with pytest.raises(ConnectionResetError):
            tool()
        fuseboard.configure("search", Policy(fallback=Fallback(value="spare")))
        assert tool() == "spare"
        assert tool() == "live"
    assert tool() == "live"
    fuseboard.configure("search")


def test_the_tool_is_itself_again_after_an_exception() -> None:
    tool = fuseboard.wrap(lambda: "live", name="search")
    with pytest.raises(KeyError), forced_faults("search", itertools.repeat("forced")):
        assert tool() == "forced"
        raise KeyError
    assert tool() == "live"


def test_a_tool_that_is_not_there_is_named() -> None:
    tool = fuseboard.wrap(len, name="length")
    with (
        pytest.raises(ConfigurationError, match="no tool 'lenght'; did you mean 'length'"),
        forced_faults("lenght", []),
    ):
        pass
    assert tool("abc") == 3
