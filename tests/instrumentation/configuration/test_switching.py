"""Policies change while the process runs: for calls to come, all at once, without a trace."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import fuseboard
from fuseboard import (
    Breaker,
    Cache,
    CircuitOpenError,
    ConfigurationError,
    Fallback,
    Policy,
    Retry,
)
from fuseboard.calls.switching import SWITCHES
from fuseboard.conventions import BreakerState
from fuseboard.policy.registry import BREAKERS

TWICE = Policy(retry=Retry(attempts=2, wait_initial=0), effects="none")


class Flaky:
    """Fails at every odd attempt; one tool of each kind."""

    def __init__(self) -> None:
        self.attempts = 0

    def work(self) -> str:
        self.attempts += 1
        if self.attempts % 2:
            raise ConnectionResetError("reset")
        return "done"


def kinds(flaky: Flaky) -> dict[str, Callable[[], Any]]:
    @fuseboard.tool
    def plain() -> str:
        return flaky.work()

    @fuseboard.tool
    async def later() -> str:
        return flaky.work()

    @fuseboard.tool
    def stream() -> Iterator[str]:
        yield flaky.work()

    @fuseboard.tool
    async def stream_later() -> AsyncIterator[str]:
        yield flaky.work()

    class Kitchen:
        @fuseboard.tool
        def method(self) -> str:
            return flaky.work()

        @classmethod
        @fuseboard.tool
        def of_class(cls) -> str:
            return flaky.work()

    async def collect() -> str:
        async for item in stream_later():
            return item
        raise AssertionError

    return {
        "plain": plain,
        "later": lambda: asyncio.run(later()),  # type: ignore[arg-type]
        "stream": lambda: next(iter(list(stream()))),
        "stream_later": lambda: asyncio.run(collect()),
        "method": Kitchen().method,
        "of_class": Kitchen.of_class,
    }


KINDS = sorted(kinds(Flaky()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_policy_comes_and_goes_for_every_kind_of_tool(telemetry: Any, kind: str) -> None:
    run = kinds(Flaky())[kind]
    with pytest.raises(ConnectionResetError):
        run()
    assert run() == "done"
    fuseboard.configure(kind, TWICE)
    assert run() == "done"
    assert [len(call.attempts) for call in telemetry.calls] == [1, 1, 2]
    fuseboard.configure(kind, None)
    with pytest.raises(ConnectionResetError):
        run()
    fuseboard.configure(kind, TWICE)
    fuseboard.configure(kind)
    assert run() == "done"
    with pytest.raises(ConnectionResetError):
        run()
    assert [len(call.attempts) for call in telemetry.calls[3:]] == [1, 1, 1]


def test_what_the_code_declared_comes_back(telemetry: Any) -> None:
    flaky = Flaky()

    @fuseboard.tool(policy=TWICE)
    def search() -> str:
        return flaky.work()

    before = inspect.signature(search), search.__name__
    fuseboard.configure("search", None)
    with pytest.raises(ConnectionResetError):
        search()
    fuseboard.configure("search")
    flaky.attempts = 0
    assert search() == "done"
    assert (inspect.signature(search), search.__name__) == before


def test_a_running_call_finishes_under_the_policy_it_began_with(telemetry: Any) -> None:
    reached, go_on = threading.Event(), threading.Event()
    attempts: list[int] = []

    @fuseboard.tool(policy=TWICE)
    def search() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            reached.set()
            assert go_on.wait(20)
            raise ConnectionResetError
        return "done"

    found: list[str] = []
    caller = threading.Thread(target=lambda: found.append(search()))
    caller.start()
    assert reached.wait(20)
    fuseboard.configure("search", None)
    go_on.set()
    caller.join(20)
    assert found == ["done"]


def test_a_running_stream_finishes_under_the_policy_it_began_with(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(breaker=Breaker(minimum_throughput=2)))
    def stream() -> Iterator[int]:
        yield 1
        yield 2

    items = stream()
    assert next(items) == 1
    fuseboard.configure("stream", None)
    assert list(items) == [2]
    assert telemetry.last.outcome == "ok"
    assert telemetry.last.breaker_state == BreakerState.CLOSED


def test_all_tools_of_a_name_are_changed(telemetry: Any) -> None:
    flaky = Flaky()
    first = fuseboard.wrap(flaky.work, name="search")
    second = fuseboard.wrap(flaky.work, name="search")
    fuseboard.configure("search", TWICE)
    assert first() == second() == "done"
    third = fuseboard.wrap(flaky.work, name="search")
    assert third() == "done", "one that comes later gets it as well"


def test_what_goes_wrong_changes_nothing(telemetry: Any) -> None:
    @fuseboard.tool(name="shared")
    def plain() -> str:
        return "plain"

    @fuseboard.tool(name="shared")
    def stream() -> Iterator[int]:
        yield 1

    with pytest.raises(ConfigurationError) as at_run_time:
        fuseboard.configure("shared", Policy(timeout=1))
    with pytest.raises(ConfigurationError) as at_decoration:
        fuseboard.wrap(inspect.unwrap(stream), name="shared", policy=Policy(timeout=1))
    assert str(at_run_time.value) == str(at_decoration.value)
    assert "a synchronous generator can't be interrupted" in str(at_run_time.value)
    assert [tool.policy for tool in SWITCHES.named("shared", "test")] == [None, None]
    assert plain() == "plain"
    assert list(stream()) == [1]


@pytest.mark.parametrize(
    ("name", "policy", "words"),
    [
        ("serch", None, "there is no tool 'serch'; did you mean 'search'?"),
        ("other", None, "there is no tool 'other'; there are search"),
        ("search", "fast", "configure(policy='fast'): must be a fuseboard.Policy or None"),
    ],
)
def test_mistakes_are_named(telemetry: Any, name: str, policy: Any, words: str) -> None:
    search = fuseboard.wrap(len, name="search")
    with pytest.raises(ConfigurationError) as caught:
        fuseboard.configure(name, policy)
    assert words in str(caught.value)
    assert search("abc") == 3


def test_an_async_fallback_is_refused_for_a_sync_tool(telemetry: Any) -> None:
    async def later() -> str:
        return "later"

    search = fuseboard.wrap(lambda: "live", name="search")
    with pytest.raises(ConfigurationError, match="an async fallback needs an async tool"):
        fuseboard.configure("search", Policy(fallback=later))
    assert search() == "live"


def test_tools_that_nobody_has_any_more_are_forgotten(telemetry: Any) -> None:
    for _ in range(50):
        fuseboard.wrap(lambda: "live", name="search")
    gc.collect()
    assert len(SWITCHES.named("search", "test")) == 1, "the last one is registered"


# --- Breakers -----------------------------------------------------------------------------
FRAGILE = Breaker(minimum_throughput=2, break_duration=1000)


def opened(telemetry: Any) -> Callable[[], str]:
    @fuseboard.tool(policy=Policy(breaker=FRAGILE))
    def search() -> str:
        raise ConnectionResetError

    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            search()
    with pytest.raises(CircuitOpenError):
        search()
    assert [move.to_state for move in telemetry.transitions] == ["open"]
    return search


def test_a_breaker_keeps_its_state_while_its_settings_stay(telemetry: Any, clock: Any) -> None:
    search = opened(telemetry)
    fuseboard.configure("search", Policy(breaker=Breaker(minimum_throughput=2, break_duration=1000),
                                         retry=Retry(attempts=2)))  # fmt: skip
    with pytest.raises(CircuitOpenError):
        search()
    assert len(telemetry.transitions) == 1


def test_a_breaker_with_other_settings_starts_closed_and_says_so(
    telemetry: Any, clock: Any
) -> None:
    search = opened(telemetry)
    fuseboard.configure("search", Policy(breaker=Breaker(minimum_throughput=3)))
    assert [(m.from_state, m.to_state, m.reason) for m in telemetry.transitions[1:]] == [
        ("open", "closed", "reconfigured")
    ]
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            search()
    (status,) = BREAKERS.statuses()
    assert status.state == BreakerState.CLOSED


def test_a_breaker_that_is_taken_away_does_not_stay_open_in_the_metrics(
    telemetry: Any, clock: Any
) -> None:
    search = opened(telemetry)
    fuseboard.configure("search", None)
    assert [move.to_state for move in telemetry.transitions] == ["open", "closed"]
    assert BREAKERS.statuses() == []
    with pytest.raises(ConnectionResetError):
        search()
    assert telemetry.last.breaker_state is None


def test_a_call_that_began_under_the_old_breaker_does_not_disturb_the_new_one(
    telemetry: Any,
) -> None:
    reached, go_on = threading.Barrier(3), threading.Event()

    @fuseboard.tool(policy=Policy(breaker=FRAGILE))
    def search() -> str:
        reached.wait(20)
        go_on.wait(20)
        raise ConnectionResetError

    def call() -> None:
        with pytest.raises(ConnectionResetError):
            search()

    callers = [threading.Thread(target=call) for _ in range(2)]
    [caller.start() for caller in callers]
    reached.wait(20)
    fuseboard.configure("search", Policy(breaker=Breaker(minimum_throughput=2, break_duration=7)))
    go_on.set()
    [caller.join(20) for caller in callers]
    assert telemetry.transitions == [], "two failures would have opened the old one"
    assert [status.state for status in BREAKERS.statuses()] in ([], [BreakerState.CLOSED])


def test_a_call_that_outlives_its_breaker_opens_none_that_nobody_would_close(
    telemetry: Any,
) -> None:
    attempts: list[int] = []

    @fuseboard.tool(policy=Policy(breaker=FRAGILE, retry=Retry(attempts=5, wait_initial=0)))
    def search() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            fuseboard.configure("search", None)
        raise ConnectionRefusedError

    with pytest.raises(ConnectionRefusedError):
        search()
    assert BREAKERS.statuses() == []
    assert telemetry.transitions == []
    fuseboard.configure("search", Policy(breaker=FRAGILE))
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            search()
    assert [status.state for status in BREAKERS.statuses()] == [BreakerState.OPEN]


# --- Caches -------------------------------------------------------------------------------
@pytest.mark.parametrize("is_async", [False, True])
def test_a_cache_keeps_its_answers_while_its_settings_stay(telemetry: Any, is_async: bool) -> None:
    asked: list[str] = []

    def plain(what: str) -> str:
        asked.append(what)
        return what.upper()

    async def later(what: str) -> str:
        return plain(what)

    tool = fuseboard.wrap(later if is_async else plain, name="search")

    def search() -> Any:
        return asyncio.run(tool("a")) if is_async else tool("a")  # type: ignore[arg-type]

    fuseboard.configure("search", Policy(cache=Cache(ttl=60), effects="none"))
    assert search() == search() == "A"
    assert asked == ["a"]
    fuseboard.configure("search", Policy(cache=Cache(ttl=60), effects="none", timeout=5))
    assert search() == "A"
    assert asked == ["a"]
    fuseboard.configure("search", Policy(cache=Cache(ttl=50), effects="none"))
    assert search() == "A"
    assert asked == ["a", "a"]
    fuseboard.configure("search", None)
    assert search() == "A"
    assert asked == ["a", "a", "a"]


# --- Threads ------------------------------------------------------------------------------
def test_calls_of_many_threads_are_never_lost_while_policies_change(telemetry: Any) -> None:
    served = Policy(fallback=Fallback(value="served"))

    @fuseboard.tool
    def search(n: int) -> int:
        raise ConnectionResetError

    stop = threading.Event()
    wrong: list[object] = []
    counts = [0, 0]

    def call() -> None:
        while not stop.is_set():
            try:
                found: object = search(1)
            except ConnectionResetError:
                counts[0] += 1
            except BaseException as error:
                wrong.append(error)
            else:
                counts[1] += 1
                if found != "served":
                    wrong.append(found)

    threads = [threading.Thread(target=call) for _ in range(4)]
    [thread.start() for thread in threads]
    deadline = time.monotonic() + 30
    for number in range(60):
        seen = counts[number % 2]
        fuseboard.configure("search", served if number % 2 else None)
        while counts[number % 2] == seen and time.monotonic() < deadline:
            time.sleep(0.0005)
    stop.set()
    [thread.join(20) for thread in threads]
    assert wrong == []
    outcomes = [call.outcome for call in telemetry.calls]
    assert outcomes.count("degraded") + outcomes.count("error") == len(outcomes)
    assert min(counts) >= 30
