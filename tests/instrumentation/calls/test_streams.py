"""HC-01, 02, 03, 05, 23: a streaming tool's call lasts as long as its stream."""

from __future__ import annotations

import asyncio
import gc
import inspect
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

import anyio
import pytest

import fuseboard
from fuseboard import (
    AttemptTimeoutError,
    ConfigurationError,
    ErrorClass,
    Fallback,
    Limit,
    Outcome,
    Policy,
    Retry,
)


def talk(n: int = 3) -> Generator[Any, Any, str]:
    """Answer what is sent, survive one ValueError, return a value."""
    heard: list[Any] = []
    for i in range(n):
        try:
            heard.append((yield i))
        except ValueError as error:
            heard.append(str(error))
    return repr(heard)


async def talk_later(n: int = 3) -> AsyncGenerator[Any, Any]:
    for i in range(n):
        try:
            heard = yield i
        except ValueError as error:
            heard = str(error)
        if heard:
            yield f"heard {heard}"


def drain(make: Callable[[], Generator[Any, Any, Any]], steps: list[Any]) -> list[Any]:
    """Drive a generator by a list of steps and note all that comes out."""
    stream, out = make(), []
    for step in steps:
        try:
            if isinstance(step, Exception):
                out.append(stream.throw(step))
            elif step == "close":
                out.append(stream.close())
            else:
                out.append(stream.send(step))
        except BaseException as error:
            out.append((type(error), getattr(error, "value", None), str(error)))
            error.__traceback__ = None  # it would keep the stream alive
    return out


SCRIPTS = [
    [None, None, None, None, None],
    [None, "a", "b", "c"],
    [None, ValueError("odd"), None, None],
    [None, KeyError("unhandled"), None],
    [None, "close", None],
    ["too early"],
    ["close", None],
    [KeyError("before the start"), None],
]


@pytest.mark.parametrize("steps", SCRIPTS, ids=str)
def test_hc_02_generator_protocol_is_kept(telemetry: Any, steps: list[Any]) -> None:
    assert drain(fuseboard.wrap(talk), steps) == drain(talk, steps)


@pytest.mark.parametrize("steps", SCRIPTS, ids=str)
def test_hc_02_protocol_of_a_returned_generator_is_kept(telemetry: Any, steps: list[Any]) -> None:
    assert drain(fuseboard.wrap(lambda: talk(), name="talk"), steps) == drain(talk, steps)
    gc.collect()


async def drain_async(make: Callable[[], AsyncGenerator[Any, Any]], steps: list[Any]) -> list[Any]:
    stream, out = make(), []
    for step in steps:
        try:
            if isinstance(step, Exception):
                out.append(await stream.athrow(step))
            elif step == "close":
                out.append(await stream.aclose())
            else:
                out.append(await stream.asend(step))
        except BaseException as error:
            out.append((type(error), str(error)))
            error.__traceback__ = None  # it would keep the stream alive
    await stream.aclose()
    return out


@pytest.mark.parametrize("steps", SCRIPTS, ids=str)
@pytest.mark.parametrize("is_returned", [False, True])
async def test_hc_02_async_generator_protocol_is_kept(
    telemetry: Any, steps: list[Any], is_returned: bool
) -> None:
    tool = (
        fuseboard.wrap(lambda: talk_later(), name="talk_later")
        if is_returned
        else fuseboard.wrap(talk_later)
    )
    assert await drain_async(tool, steps) == await drain_async(talk_later, steps)
    gc.collect()


def test_hc_01_call_lasts_until_exhaustion(telemetry: Any, clock: Any) -> None:
    @fuseboard.tool
    def stream() -> Iterator[int]:
        for i in range(3):
            clock.move(0.05)
            yield i

    items = stream()
    assert telemetry.in_flight == {}, "nothing begins before the first item is asked for"
    assert next(items) == 0
    assert len(telemetry.in_flight) == 1
    assert list(items) == [1, 2]
    call = telemetry.last
    assert call.outcome is Outcome.OK
    assert call.stream_items == 3
    assert call.duration == pytest.approx(0.15)
    assert call.stream_first_item_seconds == pytest.approx(0.05)


@pytest.mark.parametrize("kind", ["async generator", "returns an async generator"])
async def test_hc_01_async_call_lasts_until_exhaustion(
    telemetry: Any, clock: Any, kind: str
) -> None:
    async def stream() -> AsyncIterator[int]:
        for i in range(3):
            clock.move(0.05)
            yield i

    tool = (
        fuseboard.wrap(stream)
        if kind == "async generator"
        else fuseboard.wrap(lambda: stream(), name="s")
    )
    assert [item async for item in tool()] == [0, 1, 2]
    assert [call.outcome for call in telemetry.calls] == [Outcome.OK]
    assert telemetry.last.stream_items == 3
    assert telemetry.last.duration == pytest.approx(0.15)


def test_hc_01_items_are_not_kept(telemetry: Any) -> None:
    @fuseboard.tool
    def stream() -> Iterator[bytes]:
        for _ in range(100_000):
            yield bytes(1000)

    tracemalloc.start()
    try:
        count = sum(1 for _ in stream())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 100_000
    assert peak < 5_000_000


@pytest.mark.parametrize("kind", ["generator", "returned generator", "returned coroutine"])
def test_hc_02_never_started_leaves_nothing_open(telemetry: Any, kind: str) -> None:
    async def work() -> None:
        pass

    if kind == "generator":
        unstarted: Any = fuseboard.wrap(talk)()
    elif kind == "returned generator":
        unstarted = fuseboard.wrap(lambda: talk(), name="t")()
    else:
        inner = work()
        unstarted = fuseboard.wrap(lambda: inner, name="t")()
        unstarted.close()
        inner.close()
    del unstarted
    gc.collect()
    assert telemetry.in_flight == {}
    assert [call.outcome for call in telemetry.calls] == [Outcome.ABANDONED] * (kind != "generator")


@pytest.mark.parametrize("make", [talk, lambda: talk()])
def test_hc_02_started_then_dropped_is_abandoned(telemetry: Any, make: Any) -> None:
    stream = fuseboard.wrap(make, name="talk")()
    next(stream)
    del stream
    gc.collect()
    assert telemetry.last.outcome is Outcome.ABANDONED
    assert telemetry.last.fault is None
    assert telemetry.last.stream_items == 1


async def test_hc_02_async_stream_dropped_is_abandoned(telemetry: Any) -> None:
    async for _ in fuseboard.wrap(talk_later)():
        break
    gc.collect()
    async with asyncio.timeout(5):
        while not telemetry.calls:  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0)  # the loop closes dropped async generators in a task
    assert telemetry.last.outcome is Outcome.ABANDONED


@pytest.mark.parametrize(
    "policy", [None, Policy(limit=Limit(concurrency=1))], ids=["bare", "limit"]
)
def test_hc_02_async_stream_dropped_after_its_loop_was_closed_is_abandoned(
    telemetry: Any, policy: Policy | None
) -> None:
    tool = fuseboard.wrap(talk_later, policy=policy)

    async def begin() -> AsyncGenerator[Any, Any]:
        stream = tool()
        await anext(stream)
        return stream

    for _ in range(2):  # the second time its place at the limit is free again
        loop = asyncio.new_event_loop()
        stream = loop.run_until_complete(begin())
        loop.close()
        del stream
        gc.collect()
    assert [call.outcome for call in telemetry.calls] == [Outcome.ABANDONED] * 2


def test_hc_03_breaking_half_way_is_an_error(telemetry: Any) -> None:
    error = ConnectionResetError(104, "lost")

    @fuseboard.tool
    def stream() -> Iterator[int]:
        yield 1
        yield 2
        raise error

    got = []
    with pytest.raises(ConnectionResetError) as caught:
        for item in stream():
            got.append(item)
    assert caught.value is error
    assert got == [1, 2]
    call = telemetry.last
    assert (call.outcome, call.stream_items) == (Outcome.ERROR, 2)
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT


async def test_hc_03_cancelled_after_two_items_is_cancelled(telemetry: Any) -> None:
    @fuseboard.tool
    async def stream() -> AsyncIterator[int]:
        yield 1
        yield 2
        await asyncio.sleep(60)
        yield 3

    got: list[int] = []

    async def consume() -> None:
        async for item in stream():
            got.append(item)

    task = asyncio.create_task(consume())
    while len(got) < 2:  # noqa: ASYNC110 - nothing to wait on
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (telemetry.last.outcome, telemetry.last.stream_items) == (Outcome.CANCELLED, 2)


async def test_hc_03_async_break_half_way_raises_the_same_object(telemetry: Any) -> None:
    error = KeyError("half")

    @fuseboard.tool
    async def stream() -> AsyncIterator[int]:
        yield 1
        raise error

    with pytest.raises(KeyError) as caught:
        async for _ in stream():
            pass
    assert caught.value is error
    assert telemetry.last.outcome is Outcome.ERROR


@pytest.mark.parametrize("ending", ["exhausted", "break", "timeout"])
async def test_hc_05_every_step_runs_in_the_callers_task(telemetry: Any, ending: str) -> None:
    """asyncio only: the shim's policies do not support trio (docs/policies)."""
    tasks = set()

    @fuseboard.tool(policy=Policy(timeout=0.2 if ending == "timeout" else 30))
    async def stream() -> AsyncIterator[int]:
        tasks.add(asyncio.current_task())
        try:
            # Scopes that only the task which entered them may leave.
            with anyio.CancelScope():
                for i in range(3):
                    tasks.add(asyncio.current_task())
                    if ending == "timeout" and i == 1:
                        async with anyio.create_task_group() as group:
                            group.start_soon(anyio.sleep, 60)
                    yield i
        finally:
            tasks.add(asyncio.current_task())

    items = stream()
    if ending == "exhausted":
        assert [item async for item in items] == [0, 1, 2]
    elif ending == "break":
        async for _ in items:
            break
        await items.aclose()  # type: ignore[attr-defined]
    else:
        with pytest.raises(AttemptTimeoutError):
            async for _ in items:
                pass
    assert tasks == {asyncio.current_task()}
    expected = {"exhausted": Outcome.OK, "break": Outcome.ABANDONED, "timeout": Outcome.ERROR}
    assert telemetry.last.outcome is expected[ending]


async def test_hc_05_timed_out_function_runs_in_the_callers_task(telemetry: Any) -> None:
    tasks = []

    @fuseboard.tool(policy=Policy(timeout=0.05))
    async def tool() -> None:
        async with anyio.create_task_group():
            tasks.append(asyncio.current_task())
            try:
                await anyio.sleep(60)
            finally:
                tasks.append(asyncio.current_task())

    with pytest.raises(AttemptTimeoutError):
        await tool()
    assert tasks == [asyncio.current_task()] * 2
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


def flaky_stream(failures: int, after: int) -> Callable[[], Iterator[int]]:
    """Return a generator function that fails so often, after so many items."""
    left = [failures]

    def stream() -> Iterator[int]:
        for i in (1, 2, 3):
            if i == after + 1 and left[0]:
                left[0] -= 1
                raise ConnectionResetError
            yield i

    return stream


RETRYING = Policy(retry=Retry(attempts=3, wait_initial=0), effects="none")


def test_hc_23_retries_until_the_first_item(telemetry: Any) -> None:
    assert list(fuseboard.wrap(flaky_stream(2, 0), policy=RETRYING)()) == [1, 2, 3]
    assert len(telemetry.last.attempts) == 3
    assert telemetry.last.retry_end == "recovered"


def test_hc_23_never_after_the_first_item(telemetry: Any) -> None:
    got = []
    with pytest.raises(ConnectionResetError):
        for item in fuseboard.wrap(flaky_stream(1, 2), policy=RETRYING)():
            got.append(item)
    assert got == [1, 2]
    assert len(telemetry.last.attempts) == 1


async def test_hc_23_async_retries_until_the_first_item(telemetry: Any) -> None:
    plain = flaky_stream(2, 0)

    @fuseboard.tool(policy=RETRYING)
    async def stream() -> AsyncIterator[int]:
        for item in plain():
            yield item

    assert [item async for item in stream()] == [1, 2, 3]
    assert len(telemetry.last.attempts) == 3


def test_hc_23_what_a_generator_cannot_do_is_refused_at_decoration() -> None:
    with pytest.raises(ConfigurationError, match="can't be interrupted"):
        fuseboard.tool(policy=Policy(timeout=1))(talk)


async def test_fallback_of_a_stream_that_never_began(telemetry: Any) -> None:
    sync_policy = Policy(fallback=Fallback(value=[7, 8]))
    assert list(fuseboard.wrap(flaky_stream(9, 0), policy=sync_policy)()) == [7, 8]

    async def other() -> AsyncIterator[int]:
        yield 9

    @fuseboard.tool(policy=Policy(fallback=other))
    async def stream() -> AsyncIterator[int]:
        raise ConnectionResetError
        yield 1

    assert [item async for item in stream()] == [9]
    assert [call.outcome for call in telemetry.calls] == [Outcome.DEGRADED] * 2


async def test_what_a_guarded_function_returns_is_followed_to_its_end(telemetry: Any) -> None:
    async def work() -> dict[str, bool]:
        return {"ok": False}

    tool = fuseboard.wrap(lambda: work(), name="work", policy=RETRYING)
    assert await tool() == {"ok": False}
    assert (telemetry.last.outcome, len(telemetry.last.attempts)) == (Outcome.ERROR, 1)
    failing = fuseboard.wrap(lambda: flaky_stream(1, 2)(), name="stream", policy=RETRYING)
    with pytest.raises(ConnectionResetError):
        list(failing())
    assert (telemetry.last.outcome, telemetry.last.stream_items) == (Outcome.ERROR, 2)


async def test_coroutine_returned_by_a_plain_function_is_followed(telemetry: Any) -> None:
    async def work() -> dict[str, bool]:
        return {"ok": False}

    pending = fuseboard.wrap(lambda: work(), name="work")()
    assert inspect.iscoroutine(pending)
    assert (pending.__name__, pending.__qualname__.endswith("<locals>.work")) == ("work", True)
    assert telemetry.calls == []
    assert await pending == {"ok": False}
    assert telemetry.last.outcome is Outcome.ERROR
