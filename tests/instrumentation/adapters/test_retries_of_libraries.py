"""Retries that tools make by tenacity or stamina are attempts of their calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import stamina
import tenacity
from tests.instrumentation.conftest import RecordingTelemetry

import fuseboard
from fuseboard import ErrorClass, Outcome, Policy, Retry, current_call
from fuseboard.adapters import (
    instrument_stamina,
    instrument_tenacity,
    uninstrument_stamina,
    uninstrument_tenacity,
)
from fuseboard.conventions import Layer, RetryEnd
from fuseboard.record import CallRecord


@pytest.fixture(autouse=True)
def listening_to_retries() -> Iterator[None]:
    instrument_tenacity()
    instrument_stamina()
    yield
    uninstrument_tenacity()
    uninstrument_stamina()


class Flaky:
    """Fails so many times, then answers."""

    def __init__(self, failures: int, error: type[Exception] = TimeoutError) -> None:
        self.failures = failures
        self.error = error
        self.tries = 0
        self.attempts_seen: list[int] = []

    def __call__(self) -> str:
        self.tries += 1
        call = current_call()
        self.attempts_seen.append(call.attempt if call is not None else 0)
        if self.tries <= self.failures:
            raise self.error(f"try {self.tries}")
        return "found"

    async def awaited(self) -> str:
        await asyncio.sleep(0)
        return self()


OPTIONS: dict[str, Any] = {
    "stop": tenacity.stop_after_attempt(3),
    "wait": tenacity.wait_fixed(0.002),
    "reraise": True,
}
STAMINA: dict[str, Any] = {
    "attempts": 3, "on": TimeoutError, "wait_initial": 0.001, "wait_max": 0.002, "wait_jitter": 0,
}  # fmt: skip


def by_decorator(flaky: Flaky) -> str:
    return tenacity.retry(**OPTIONS)(flaky.__call__)()


def by_block(flaky: Flaky) -> str:
    for attempt in tenacity.Retrying(**OPTIONS):
        with attempt:
            answer = flaky()
    return answer


def by_stamina(flaky: Flaky) -> str:
    return stamina.retry(**STAMINA)(lambda: flaky())()


def by_stamina_block(flaky: Flaky) -> str:
    for attempt in stamina.retry_context(**STAMINA):
        with attempt:
            answer = flaky()
    return answer


def by_stamina_caller(flaky: Flaky) -> str:
    options = {key: value for key, value in STAMINA.items() if key != "on"}
    return stamina.RetryingCaller(**options)(TimeoutError, flaky)


async def awaited_by_decorator(flaky: Flaky) -> str:
    return await tenacity.retry(**OPTIONS)(flaky.awaited)()


async def awaited_by_block(flaky: Flaky) -> str:
    async for attempt in tenacity.AsyncRetrying(**OPTIONS):
        with attempt:
            answer = await flaky.awaited()
    return answer


async def awaited_by_stamina(flaky: Flaky) -> str:
    async def ask() -> str:
        return await flaky.awaited()

    return await stamina.retry(**STAMINA)(ask)()


SYNC = [by_decorator, by_block, by_stamina, by_stamina_block, by_stamina_caller]
ASYNC = [awaited_by_decorator, awaited_by_block, awaited_by_stamina]
WAYS = pytest.mark.parametrize("way", [*SYNC, *ASYNC], ids=lambda way: way.__name__)
POLICIES = pytest.mark.parametrize(
    "policy",
    [None, Policy(retry=Retry(attempts=2, wait_initial=0)), Policy(timeout=20)],
    ids=["bare", "retry", "timeout"],
)


def search(way: Any, flaky: Flaky, policy: Policy | None = None) -> Any:
    """Call a tool that retries in one of the ways within itself."""
    if asyncio.iscoroutinefunction(way):

        @fuseboard.tool(name="search", policy=policy)
        async def search_async() -> str:
            return str(await way(flaky))

        return asyncio.run(search_async())

    @fuseboard.tool(name="search", policy=policy)
    def search_sync() -> str:
        return str(way(flaky))

    return search_sync()


def only(telemetry: RecordingTelemetry) -> CallRecord:
    (call,) = telemetry.calls
    return call


@WAYS
@POLICIES
def test_retries_that_help_are_attempts(
    way: Any, policy: Policy | None, telemetry: RecordingTelemetry
) -> None:
    flaky = Flaky(2)
    assert search(way, flaky, policy) == "found"
    call = only(telemetry)
    assert (call.outcome, call.fault, call.layer) == (Outcome.OK, None, Layer.RETRY)
    assert call.retry_end is RetryEnd.RECOVERED
    assert [attempt.number for attempt in call.attempts] == [1, 2, 3]
    assert [attempt.result for attempt in call.attempts] == ["failure", "failure", "success"]
    faults = [attempt.fault for attempt in call.attempts]
    assert [f.verdict.error_class if f else None for f in faults] == [
        ErrorClass.L3_TRANSIENT, ErrorClass.L3_TRANSIENT, None
    ]  # fmt: skip
    assert faults[0] is not None
    assert (faults[0].error_type, faults[0].message) == ("TimeoutError", "try 1")
    delays = [attempt.delay for attempt in call.attempts]
    assert delays[0] == 0
    assert all(0 < delay < 0.1 for delay in delays[1:])
    assert call.backoff_seconds == pytest.approx(sum(delays))
    ends = [attempt.started + attempt.duration for attempt in call.attempts]
    for end, later in zip(ends, call.attempts[1:], strict=False):
        assert end <= later.started, "an attempt ends before the next begins"
    assert ends[-1] <= call.started + call.duration
    assert flaky.attempts_seen == [1, 2, 3], "the tool is told its attempt"


@WAYS
def test_retries_that_do_not_help(way: Any, telemetry: RecordingTelemetry) -> None:
    with pytest.raises(TimeoutError, match="try 3"):
        search(way, Flaky(9))
    call = only(telemetry)
    assert (call.outcome, call.layer, call.retry_end) == (
        Outcome.ERROR, Layer.RETRY, RetryEnd.EXHAUSTED
    )  # fmt: skip
    assert [attempt.result for attempt in call.attempts] == ["failure"] * 3
    assert call.fault is not None
    assert call.fault.message == "try 3"


def test_the_limit_of_the_policy_counts_what_the_tool_has_tried(
    telemetry: RecordingTelemetry,
) -> None:
    flaky = Flaky(99)
    with pytest.raises(TimeoutError):
        search(by_decorator, flaky, Policy(retry=Retry(attempts=3, wait_initial=0), effects="none"))
    assert flaky.tries == 3, "three tries of tenacity's and no more of ours"
    assert len(only(telemetry).attempts) == 3
    flaky = Flaky(99)
    with pytest.raises(TimeoutError):
        search(by_decorator, flaky, Policy(retry=Retry(attempts=5, wait_initial=0), effects="none"))
    assert flaky.tries == 6
    numbers = [attempt.number for attempt in telemetry.last.attempts]
    assert numbers == [1, 2, 3, 4, 5, 6], "the policy decides between runs of the tool"


def test_a_retry_that_is_wrapped_is_judged_by_its_cause(telemetry: RecordingTelemetry) -> None:
    def ask(flaky: Flaky) -> str:
        return tenacity.Retrying(stop=tenacity.stop_after_attempt(2))(flaky)

    with pytest.raises(tenacity.RetryError):
        search(ask, Flaky(9, ConnectionRefusedError))
    call = only(telemetry)
    assert call.fault is not None
    assert call.fault.verdict.classifier_id == "connection_refused_matcher"
    assert len(call.attempts) == 2


def test_an_answer_that_is_not_liked_is_a_fault_of_its_attempt(
    telemetry: RecordingTelemetry,
) -> None:
    answers = [None, "found"]

    @fuseboard.tool
    def poll() -> Any:
        retrying = tenacity.Retrying(retry=tenacity.retry_if_result(lambda found: found is None))
        return retrying(lambda: answers.pop(0))

    assert poll() == "found"
    first, second = only(telemetry).attempts
    assert first.fault is not None
    assert (first.fault.error_type, first.fault.verdict.error_class) == (
        "retried_result", ErrorClass.L5_SEMANTIC
    )  # fmt: skip
    assert second.fault is None


def test_a_fault_that_tenacity_does_not_retry_stops(telemetry: RecordingTelemetry) -> None:
    errors = iter([TimeoutError("1"), KeyError("2")])

    @fuseboard.tool
    def ask() -> None:
        def fail() -> None:
            raise next(errors)

        only_late = tenacity.retry_if_exception_type(TimeoutError)
        tenacity.Retrying(retry=only_late, reraise=True)(fail)

    with pytest.raises(KeyError):
        ask()
    call = only(telemetry)
    assert (len(call.attempts), call.retry_end) == (2, RetryEnd.STOPPED)
    assert call.fault is not None
    assert call.fault.verdict.error_class is ErrorClass.L4_PERSISTENT


def test_two_retried_parts_of_a_tool_add_up(telemetry: RecordingTelemetry) -> None:
    @fuseboard.tool
    def both() -> str:
        return by_decorator(Flaky(1)) + by_stamina(Flaky(2))

    assert both() == "foundfound"
    call = only(telemetry)
    assert [attempt.result for attempt in call.attempts] == [*["failure"] * 3, "success"]
    assert call.retry_end is RetryEnd.RECOVERED


def test_around_a_tool_each_try_is_a_call(telemetry: RecordingTelemetry) -> None:
    flaky = Flaky(2)

    @fuseboard.tool
    def search_once() -> str:
        return flaky()

    assert tenacity.Retrying(**OPTIONS)(search_once) == "found"
    assert [call.outcome for call in telemetry.calls] == [
        Outcome.ERROR, Outcome.ERROR, Outcome.OK
    ]  # fmt: skip
    assert [len(call.attempts) for call in telemetry.calls] == [1, 1, 1]


def test_a_tool_that_retries_another_tool_has_attempts_the_other_has_calls(
    telemetry: RecordingTelemetry,
) -> None:
    flaky = Flaky(1)

    @fuseboard.tool
    def inner() -> str:
        return flaky()

    @fuseboard.tool
    def outer() -> str:
        return str(tenacity.Retrying(**OPTIONS)(inner))

    assert outer() == "found"
    names = [(call.tool.name, len(call.attempts)) for call in telemetry.calls]
    assert names == [("inner", 1), ("inner", 1), ("outer", 2)]


def test_cancelled_in_the_wait_between(telemetry: RecordingTelemetry) -> None:
    waits = asyncio.Event()
    waiting: dict[str, Any] = {
        **OPTIONS, "wait": tenacity.wait_fixed(30), "before_sleep": lambda _: waits.set()
    }  # fmt: skip

    @fuseboard.tool
    async def ask() -> None:
        await tenacity.AsyncRetrying(**waiting)(Flaky(9).awaited)

    async def run() -> None:
        task = asyncio.create_task(ask())
        await asyncio.wait_for(waits.wait(), 10)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    call = only(telemetry)
    assert call.outcome is Outcome.CANCELLED
    assert [attempt.result for attempt in call.attempts] == ["failure"]


def test_functions_that_retry_beside_each_other(telemetry: RecordingTelemetry) -> None:
    @fuseboard.tool
    async def both() -> list[str]:
        flaky = [Flaky(1), Flaky(2)]
        return await asyncio.gather(*map(awaited_by_decorator, flaky))

    assert asyncio.run(both()) == ["found", "found"]
    call = only(telemetry)
    assert call.outcome is Outcome.OK
    assert 2 <= len(call.attempts) <= 4
    assert [attempt.number for attempt in call.attempts] == list(range(1, len(call.attempts) + 1))


def test_a_run_that_outlived_its_time_limit_adds_nothing(telemetry: RecordingTelemetry) -> None:
    let_go, second = threading.Event(), threading.Event()
    runs: list[int] = []

    @fuseboard.tool(policy=Policy(timeout=0.2, retry=Retry(attempts=2, wait_initial=0),
                                  effects="none"))  # fmt: skip
    def ask() -> str:
        runs.append(1)
        if len(runs) == 2:
            let_go.set()
            assert second.wait(10)
            return "found"

        def wait_and_fail() -> str:
            assert let_go.wait(10)
            raise TimeoutError

        try:
            return str(tenacity.Retrying(stop=tenacity.stop_after_attempt(3))(wait_and_fail))
        finally:
            second.set()

    assert ask() == "found"
    call = only(telemetry)
    assert [attempt.number for attempt in call.attempts] == [1, 2]
    assert call.outcome is Outcome.OK


def test_outside_of_a_tool_nothing_is_recorded(telemetry: RecordingTelemetry) -> None:
    assert by_decorator(Flaky(2)) == "found"
    assert by_stamina(Flaky(2)) == "found"
    assert telemetry.calls == []


PATCHED = [
    (tenacity.BaseRetrying, "iter"), (tenacity.AsyncRetrying, "iter"),
    (tenacity.RetryCallState, "prepare_for_next_attempt"),
    (tenacity.RetryCallState, "set_exception"), (tenacity.RetryCallState, "set_result"),
]  # fmt: skip


def test_each_library_is_switched_by_itself(telemetry: RecordingTelemetry) -> None:
    wrapped = [vars(owner)[name] for owner, name in PATCHED]
    uninstrument_stamina()
    search(by_stamina, Flaky(2))
    search(by_decorator, Flaky(2))
    assert [len(call.attempts) for call in telemetry.calls] == [1, 3]
    instrument_stamina()
    uninstrument_tenacity()
    search(by_stamina, Flaky(2))
    search(by_decorator, Flaky(2))
    assert [len(call.attempts) for call in telemetry.calls[2:]] == [3, 1]
    uninstrument_stamina()
    restored = [vars(owner)[name] for owner, name in PATCHED]
    assert all(now is not then for now, then in zip(restored, wrapped, strict=True))
    assert not any(hasattr(function, "__wrapped__") for function in restored)
    search(by_decorator, Flaky(2))
    assert len(telemetry.last.attempts) == 1


def test_a_second_installation_counts_nothing_twice(telemetry: RecordingTelemetry) -> None:
    instrument_tenacity()
    search(by_decorator, Flaky(2))
    assert len(only(telemetry).attempts) == 3
