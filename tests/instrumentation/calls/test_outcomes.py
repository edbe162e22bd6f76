"""Every ending of a call is one outcome, and the caller sees what the tool did."""

from __future__ import annotations

import asyncio
import sys
import traceback
from typing import Any

import pytest

import fuseboard
from fuseboard import ErrorClass, Outcome, Policy, Retry
from fuseboard.conventions import Layer, ResultSource, RetryStrategy

QUICK = Policy(retry=Retry(wait_initial=0), effects="none", fallback=lambda *a, **k: "instead")
POLICIES = pytest.mark.parametrize("policy", [None, QUICK, Policy(timeout=30)])


class Halt(BaseException):
    """Not an Exception, and unknown to every classifier."""


ENDINGS = [
    (asyncio.CancelledError("gone"), Outcome.CANCELLED),
    (KeyboardInterrupt(), Outcome.CANCELLED),
    (SystemExit(0), Outcome.OK),
    (SystemExit(None), Outcome.OK),
    (SystemExit(3), Outcome.ERROR),
    (SystemExit("failed"), Outcome.ERROR),
    (GeneratorExit(), Outcome.ABANDONED),
    (Halt("no exception"), Outcome.ERROR),
]
ENDING_IDS = [repr(error) for error, _ in ENDINGS]


@POLICIES
@pytest.mark.parametrize(("error", "outcome"), ENDINGS, ids=ENDING_IDS)
def test_hc_04_sync_call_ends_once_whatever_is_raised(
    telemetry: Any, policy: Policy | None, error: BaseException, outcome: Outcome
) -> None:
    @fuseboard.tool(policy=policy)
    def ends() -> None:
        raise error

    with pytest.raises(BaseException) as caught:
        ends()
    assert caught.value is error
    assert [call.outcome for call in telemetry.calls] == [outcome]
    (attempt,) = telemetry.last.attempts  # neither retried nor replaced
    assert (attempt.result == "success") is (outcome is Outcome.OK)
    assert (attempt.fault is None) is (outcome is not Outcome.ERROR)
    assert (telemetry.last.fault is None) is (outcome is not Outcome.ERROR)


@pytest.mark.parametrize("policy", [None, QUICK])
@pytest.mark.parametrize(("error", "outcome"), ENDINGS, ids=ENDING_IDS)
def test_hc_04_async_call_ends_once_whatever_is_raised(
    telemetry: Any, policy: Policy | None, error: BaseException, outcome: Outcome
) -> None:
    @fuseboard.tool(policy=policy)
    async def ends() -> None:
        raise error

    # Driven by hand: a loop treats KeyboardInterrupt and SystemExit in ways of its own.
    coroutine = ends()
    with pytest.raises(BaseException) as caught:
        coroutine.send(None)
    assert caught.value is error
    assert [call.outcome for call in telemetry.calls] == [outcome]


@POLICIES
async def test_hc_04_cancelled_task_is_cancelled_and_no_error(
    telemetry: Any, policy: Policy | None
) -> None:
    entered = asyncio.Event()

    @fuseboard.tool(policy=policy)
    async def hangs() -> None:
        entered.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(hangs())
    await entered.wait()
    task.cancel("enough")
    with pytest.raises(asyncio.CancelledError, match="enough"):
        await task
    assert task.cancelled()
    assert telemetry.last.outcome is Outcome.CANCELLED
    assert telemetry.last.fault is None


async def test_hc_04_cancelled_before_it_ran_leaves_nothing(telemetry: Any) -> None:
    @fuseboard.tool
    async def never() -> None:
        raise AssertionError("must not run")

    task = asyncio.create_task(never())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert telemetry.calls == []


async def test_hc_04_cancelled_while_backing_off(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(retry=Retry(wait_initial=25, wait_max=25), effects="none"))
    async def flaky() -> None:
        failed.set()
        raise ConnectionRefusedError

    failed = asyncio.Event()
    task = asyncio.create_task(flaky())
    await failed.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    call = telemetry.last
    assert call.outcome is Outcome.CANCELLED
    assert call.layer is Layer.RETRY
    assert [attempt.result for attempt in call.attempts] == ["failure"]
    assert call.retry_end == "none"


def test_back_off_that_is_broken_off_counts_as_far_as_it_went(
    telemetry: Any, clock: Any, full_wait: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(seconds: float) -> None:
        clock.move(seconds / 4)
        raise KeyboardInterrupt

    monkeypatch.setattr(clock, "sleep", break_off)

    @fuseboard.tool(policy=Policy(retry=Retry(wait_initial=8)))
    def refused() -> None:
        raise ConnectionRefusedError

    with pytest.raises(KeyboardInterrupt):
        refused()
    assert (telemetry.last.duration, telemetry.last.backoff_seconds) == (2, 2)


def test_hc_04_coroutine_closed_by_hand_is_abandoned(telemetry: Any) -> None:
    @fuseboard.tool
    async def waits() -> None:
        await asyncio.Future(loop=loop)

    loop = asyncio.new_event_loop()
    coroutine = waits()
    coroutine.send(None)
    coroutine.close()
    loop.close()
    assert telemetry.last.outcome is Outcome.ABANDONED


def test_value_is_the_same_object(telemetry: Any) -> None:
    value = {"rooms": [1, 2]}

    @fuseboard.tool
    def find() -> dict[str, list[int]]:
        return value

    assert find() is value
    call = telemetry.last
    assert (call.outcome, call.layer, call.result_source) == (
        Outcome.OK, Layer.TOOL, ResultSource.LIVE,
    )  # fmt: skip
    assert call.result is None, "results are not recorded unless asked for"
    assert call.arguments is None


@pytest.mark.parametrize("policy", [None, Policy(), Policy(timeout=30)])
def test_exception_is_the_same_object_with_the_tools_traceback(
    telemetry: Any, policy: Policy | None
) -> None:
    error = KeyError("price")

    @fuseboard.tool(policy=policy)
    def breaks() -> None:
        raise error

    with pytest.raises(KeyError) as caught:
        breaks()
    assert caught.value is error
    assert error.__cause__ is None
    assert error.__context__ is None
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[0] == "test_exception_is_the_same_object_with_the_tools_traceback"
    assert names[-1] == "breaks"
    assert telemetry.last.fault.error_type == "KeyError"
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L4_PERSISTENT


def test_exception_after_retries_is_the_last_ones_object(telemetry: Any) -> None:
    errors = [ConnectionRefusedError(n) for n in range(3)]
    remaining = iter(errors)

    def no_fallback() -> None:
        raise LookupError("the fallback fails, too")

    @fuseboard.tool(policy=Policy(retry=Retry(wait_initial=0), fallback=no_fallback))
    def refused() -> None:
        raise next(remaining)

    with pytest.raises(ConnectionRefusedError) as caught:
        refused()
    assert caught.value is errors[2]
    assert caught.value.__context__ is None, "earlier attempts do not show up in its context"
    names = [frame.name for frame in traceback.extract_tb(errors[2].__traceback__)]
    assert names[-1] == "refused"


def test_argument_error_is_the_callers_and_a_type_error_within_is_the_tools(
    telemetry: Any,
) -> None:
    @fuseboard.tool
    def add(a: int, b: int) -> int:
        return a + b

    with pytest.raises(TypeError, match="missing 1 required"):
        add(1)  # type: ignore[call-arg]
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert telemetry.last.retry_strategy is RetryStrategy.FEEDBACK
    with pytest.raises(TypeError, match="unsupported operand"):
        add(1, "2")  # type: ignore[arg-type]
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L4_PERSISTENT


async def test_argument_error_of_a_coroutine_function(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(retry=Retry()))
    async def greet(name: str) -> str:
        return name

    with pytest.raises(TypeError):
        await greet(nam="x")  # type: ignore[call-arg]
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L1_INPUT
    assert len(telemetry.last.attempts) == 1


def test_what_the_caller_handles_is_not_the_tools_fault(telemetry: Any) -> None:
    @fuseboard.tool
    def strange() -> None:
        raise RuntimeError("?")

    try:
        raise ConnectionResetError("of the caller")
    except ConnectionResetError:
        with pytest.raises(RuntimeError):
            strange()
    assert telemetry.last.fault.verdict.error_class is ErrorClass.UNCLASSIFIED


def test_failing_value_is_returned_and_counts_as_an_error(telemetry: Any) -> None:
    packet = {"ok": False, "message": "no such hotel"}

    @fuseboard.tool
    def book() -> dict[str, object]:
        return packet

    assert book() is packet
    call = telemetry.last
    assert call.outcome is Outcome.ERROR
    assert call.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
    assert call.fault.message == "no such hotel"
    assert call.attempts[0].fault is call.fault


def test_partial_failures_are_partial_and_counted(telemetry: Any) -> None:
    @fuseboard.tool
    def many() -> dict[str, object]:
        return {"items": [1], "partial_failures": [{"item": 2}, {"item": 3}]}

    many()
    call = telemetry.last
    assert call.outcome is Outcome.PARTIAL
    assert call.partial_failures == 2
    assert call.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
    assert call.attempts[0].fault is None, "a partial answer is a live one"
    assert ("validation", "partial") in call.layer_actions


def test_durations_are_monotonic_and_split(telemetry: Any, clock: Any, full_wait: None) -> None:
    @fuseboard.tool(policy=Policy(retry=Retry(wait_initial=2), effects="none"))
    def slow() -> str:
        clock.move(3)
        if len(telemetry.in_flight) and clock.slept:
            return "done"
        raise TimeoutError

    assert slow() == "done"
    call = telemetry.last
    assert call.duration == 8
    assert call.backoff_seconds == 2
    assert [attempt.duration for attempt in call.attempts] == [3, 3]
    assert [attempt.delay for attempt in call.attempts] == [0, 2]
    assert call.attempts[1].started_unix_ns - call.attempts[0].started_unix_ns == 5_000_000_000


def test_nothing_of_a_failed_call_is_kept_alive(telemetry: Any) -> None:
    class Payload:
        pass

    @fuseboard.tool(policy=Policy(retry=Retry(wait_initial=0)))
    def fails(payload: Payload) -> None:
        raise ConnectionRefusedError

    payload = Payload()
    before = sys.getrefcount(payload)
    with pytest.raises(ConnectionRefusedError):
        fails(payload)
    telemetry.calls.clear()
    import gc

    gc.collect()
    assert sys.getrefcount(payload) <= before


def _fall_short() -> None:
    raise LookupError("the fallback fails, too")


def _context_of(error: BaseException) -> list[str]:
    names, link = [], error.__context__
    while link is not None:
        names.append(type(link).__name__)
        link = link.__context__
    return names


@pytest.mark.parametrize(
    "policy",
    [
        None,
        Policy(retry=Retry(wait_initial=0, attempts=2), effects="none"),
        Policy(timeout=30),
        Policy(fallback=_fall_short),
        Policy(timeout=30, fallback=_fall_short),
    ],
    ids=["bare", "retry", "thread", "fallback", "thread and fallback"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_root_cause_stays_in_the_context_also_while_the_caller_handles_something(
    telemetry: Any, policy: Policy | None, is_async: bool
) -> None:
    def look_up() -> None:
        try:
            raise KeyError("root cause")
        except KeyError:
            raise ConnectionRefusedError("the tool's own")  # noqa: B904 - chained by itself

    @fuseboard.tool(name="sync", policy=policy)
    def sync_tool() -> None:
        look_up()

    @fuseboard.tool(name="async", policy=policy)
    async def async_tool() -> None:
        look_up()

    async def run() -> None:
        try:
            raise TimeoutError("what the agent handles")
        except TimeoutError:
            await async_tool() if is_async else sync_tool()

    with pytest.raises(ConnectionRefusedError) as caught:
        asyncio.run(run())
    assert _context_of(caught.value) == ["KeyError", "TimeoutError"]
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "__enter__" not in names
    assert "__exit__" not in names
