"""``capture``: what a test is told of calls, and that it leaves no trace."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import fuseboard
from fuseboard import Breaker, Cache, CircuitOpenError, Fallback, Policy, Retry, setup, testing
from fuseboard.policy.registry import BREAKERS
from fuseboard.runtime import RUNTIME


@pytest.fixture(autouse=True)
def _the_runtime_is_as_before() -> Iterator[None]:
    names = ("telemetry", "clock", "uniform", "record_arguments", "record_results")
    before = [getattr(RUNTIME, name) for name in names]
    yield
    assert [getattr(RUNTIME, name) for name in names] == before
    assert RUNTIME.taps == []


def test_calls_are_there_with_arguments_results_and_attempts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flaky = iter([ConnectionResetError("reset"), None])

    @fuseboard.tool(policy=Policy(retry=Retry(), effects="none"), region="eu")
    def search(what: str, limit: int = 3) -> list[str]:
        if (error := next(flaky)) is not None:
            raise error
        return [what]

    clock = testing.FakeClock()
    with testing.capture(clock=clock, uniform=max) as calls:
        assert search("fuse", limit=1) == ["fuse"]
    call = calls.one(tool="search")
    assert (call.outcome, call.region, call.layer, call.error_class) == ("ok", "eu", "retry", None)
    assert dict(call.arguments) == {"what": "fuse", "limit": 1}
    assert call.result == ["fuse"]
    assert (call.backoff_seconds, clock.slept) == (0.5, [0.5])
    first, second = call.attempts
    assert (first.number, first.result, first.error_class) == (1, "failure", "L3_transient")
    assert (first.error_type, first.error_message) == ("ConnectionResetError", "reset")
    assert (second.number, second.result, second.delay_seconds) == (2, "success", 0.5)
    assert calls.attempts == [first, second]
    assert "before fuseboard.init()" not in caplog.text


def test_a_captured_call_is_a_copy_that_cannot_change() -> None:
    tool = fuseboard.wrap(lambda given: given, name="echo")
    given = {"a": 1}
    with testing.capture() as calls:
        tool(given=given)
    with pytest.raises(dataclasses.FrozenInstanceError):
        calls[0].outcome = "error"  # type: ignore[misc]
    with pytest.raises(TypeError):
        calls[0].arguments["given"] = 2  # type: ignore[index]


def kinds() -> dict[str, Any]:
    @fuseboard.tool
    def plain() -> int:
        return 1

    @fuseboard.tool
    async def later() -> int:
        return 1

    @fuseboard.tool
    def stream() -> Iterator[int]:
        yield 1

    @fuseboard.tool
    async def stream_later() -> AsyncIterator[int]:
        yield 1

    async def collect() -> list[int]:
        return [item async for item in stream_later()]

    def manual() -> None:
        with fuseboard.call("manual", {"q": 1}) as call:
            call.set_result(1)

    return {
        "plain": plain,
        "later": lambda: asyncio.run(later()),  # type: ignore[arg-type]
        "stream": lambda: list(stream()),
        "stream_later": lambda: asyncio.run(collect()),
        "manual": manual,
    }


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_every_kind_of_tool_is_captured(kind: str) -> None:
    run = kinds()[kind]
    with testing.capture() as calls:
        run()
    assert calls.one(tool=kind).outcome == "ok"
    assert len(calls[0].attempts) == 1
    assert calls.running == []
    run()
    assert len(calls) == 1, "nothing is captured afterwards"


def test_running_calls_are_named() -> None:
    tool = fuseboard.wrap(lambda: list(seen.running), name="inner")
    with testing.capture() as seen:
        assert tool() == ["inner"]
    assert seen.running == []


def test_helpers_say_what_there_is_instead() -> None:
    tool = fuseboard.wrap(len, name="length")
    with testing.capture() as calls:
        tool("a")
        with pytest.raises(TypeError):
            tool(3)
    assert [call.outcome for call in calls.all(tool="length")] == ["ok", "error"]
    assert calls.one(outcome="error").error_type == "TypeError"
    assert calls.all(tool="other") == []
    with pytest.raises(AssertionError) as caught:
        calls.one(tool="length")
    assert str(caught.value).splitlines() == [
        "expected one call with tool='length', found 2; captured calls:",
        "  <call of length: ok>",
        f"  <call of length: error, {calls[1].error_class}>",
    ]
    with pytest.raises(TypeError, match="a call has no 'tol'; it has agent, args_hash"):
        calls.one(tol="length")
    assert repr(calls[0].attempts[0]) == "<attempt 1 at length: success>"
    calls.clear()
    assert repr(calls) == "captured calls:\n  none"


def test_breakers_start_closed_and_their_transitions_are_there() -> None:
    @fuseboard.tool(policy=Policy(breaker=Breaker(minimum_throughput=2)))
    def search() -> None:
        raise ConnectionResetError

    for _ in range(2):
        with testing.capture(clock=testing.FakeClock()) as calls:
            for _ in range(2):
                with pytest.raises(ConnectionResetError):
                    search()
            with pytest.raises(CircuitOpenError):
                search()
        assert [move.to_state for move in calls.transitions] == ["open"]
        assert [call.outcome for call in calls] == ["error", "error", "rejected"]
        assert calls[2].attempts == ()
        assert BREAKERS.statuses() == []


def test_cached_answers_do_not_reach_the_next_test() -> None:
    tool = fuseboard.wrap(
        lambda what: what.upper(), name="upper", policy=Policy(cache=Cache(), effects="none")
    )
    for _ in range(2):
        with testing.capture() as calls:
            assert tool("a") == tool("a") == "A"
        assert [call.result_source for call in calls] == ["live", "cache"]


def test_policies_that_a_test_changes_are_as_before_in_the_end() -> None:
    tool = fuseboard.wrap(lambda: 1 / 0, name="divide")
    with testing.capture():
        fuseboard.configure("divide", Policy(fallback=Fallback(value=7)))
        assert tool() == 7
    with pytest.raises(ZeroDivisionError):
        tool()


def test_telemetry_that_is_there_goes_on(clean_setup: None) -> None:
    before = RUNTIME.telemetry
    setup.init("tests", endpoint="http://127.0.0.1:9", registry=CollectorRegistry())
    tool = fuseboard.wrap(len, name="length")
    sink = RUNTIME.telemetry
    with testing.capture() as calls:
        tool("abc")
    assert RUNTIME.telemetry is sink
    assert len(calls) == 1
    text = setup.metrics_text()[0].decode()
    assert 'calls_total{error_class="none",outcome="ok",region="unknown",tool="length"} 1.0' in text
    setup.shutdown(0)
    RUNTIME.telemetry = before


def test_init_within_a_test_is_not_lost(clean_setup: None) -> None:
    tool = fuseboard.wrap(len, name="length")
    before = RUNTIME.telemetry
    with testing.capture() as calls:
        setup.init(
            "tests",
            endpoint="http://127.0.0.1:9",
            registry=CollectorRegistry(),
            record_arguments=True,
        )
        tool("abc")
    assert dict(calls.one().arguments) == {"obj": "abc"}
    assert RUNTIME.record_arguments, "as init said"
    assert not RUNTIME.record_results
    tool("abc")
    text = setup.metrics_text()[0].decode()
    assert 'calls_total{error_class="none",outcome="ok",region="unknown",tool="length"} 2.0' in text
    setup.shutdown(0)
    RUNTIME.telemetry = before
    RUNTIME.record(arguments=False, results=False)


def test_captures_may_be_nested() -> None:
    tool = fuseboard.wrap(len, name="length")
    with testing.capture() as outer:
        tool("a")
        with testing.capture() as inner:
            tool("b")
        tool("c")
    assert [call.arguments["obj"] for call in outer] == ["a", "b", "c"]
    assert [call.arguments["obj"] for call in inner] == ["b"]


def test_the_runtime_is_restored_after_an_exception() -> None:
    with pytest.raises(KeyError), testing.capture(clock=testing.FakeClock()):
        raise KeyError("x")


async def test_it_works_in_async_tests() -> None:
    @fuseboard.tool
    async def search(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async with testing.capture() as calls:
        await asyncio.gather(*(search(n) for n in range(50)))
    assert sorted(call.result for call in calls) == list(range(50))


def test_calls_of_threads_are_all_there() -> None:
    tool = fuseboard.wrap(len, name="length")
    with testing.capture() as calls:
        threads = [
            threading.Thread(target=lambda: [tool("abc") for _ in range(200)]) for _ in range(4)
        ]
        [thread.start() for thread in threads]
        [thread.join(20) for thread in threads]
    assert len(calls) == 800
    assert calls.running == []


def test_the_clock_moves_only_forwards() -> None:
    clock = testing.FakeClock(1_000_000.0)
    assert clock.time_ns() == 1_000_000_000_000_000
    clock.move(1.5)
    clock.sleep(-3)
    assert clock.time_ns() == 1_000_001_500_000_000
    assert clock.monotonic() == 1001.5
    with pytest.raises(ValueError, match="does not run backwards"):
        clock.move(-1)


async def test_sleeping_on_the_clock_lets_other_tasks_run() -> None:
    clock, ran = testing.FakeClock(), []

    async def other() -> None:
        ran.append(clock.monotonic())

    task = asyncio.ensure_future(other())
    await clock.async_sleep(3600)
    assert ran == [4600.0]
    await task
