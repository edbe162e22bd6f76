"""What is served instead of a stream: items from any source, and never an error of our own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import fuseboard
from fuseboard import ConfigurationError, Fallback, Outcome, Policy


class RefusedError(ConnectionRefusedError):
    """What the tool raises."""


async def awaited() -> list[int]:
    return [7, 8]


async def streamed() -> AsyncIterator[int]:
    yield 7
    yield 8


def made() -> Iterator[int]:
    yield 7
    yield 8


def listed() -> list[int]:
    return [7, 8]


def _named(fallback: Any) -> str:
    """Name a test's case the same in every process: a function's repr has its address."""
    return getattr(fallback, "__name__", repr(fallback))


@pytest.mark.parametrize(
    "fallback", [listed, made, Fallback(value=[7, 8]), Fallback(value=range(7, 9))], ids=_named
)
def test_items_from_any_source(telemetry: Any, fallback: Any) -> None:
    @fuseboard.tool(policy=Policy(fallback=fallback))
    def search() -> Iterator[int]:
        raise RefusedError
        yield 1

    assert list(search()) == [7, 8]
    assert telemetry.last.outcome is Outcome.DEGRADED


async def test_a_fallback_that_is_left_half_way_is_closed_at_once(telemetry: Any) -> None:
    closed = []

    async def held() -> AsyncIterator[int]:
        try:
            yield 7
            yield 8
        finally:
            closed.append(asyncio.current_task())

    @fuseboard.tool(policy=Policy(fallback=held))
    async def search() -> AsyncIterator[int]:
        raise RefusedError
        yield 1

    stream: Any = search()
    assert await anext(stream) == 7
    await stream.aclose()
    assert closed == [asyncio.current_task()]


async def test_a_fallback_that_is_not_served_is_closed_at_once(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(fallback=(lambda: {"isError": True}, Fallback(value=[7]))))
    async def search() -> AsyncIterator[int]:
        raise RefusedError
        yield 1

    tasks = []

    def make(loop: Any, work: Any, **options: Any) -> Any:
        tasks.append(work)
        return asyncio.Task(work, loop=loop, **options)

    asyncio.get_running_loop().set_task_factory(make)
    assert [item async for item in search()] == [7]
    for _ in range(3):
        await asyncio.sleep(0)
    assert tasks == []


@pytest.mark.parametrize(
    "fallback", [listed, made, awaited, streamed, Fallback(value=[7, 8])], ids=_named
)
async def test_items_from_any_source_for_an_async_stream(telemetry: Any, fallback: Any) -> None:
    @fuseboard.tool(policy=Policy(fallback=fallback))
    async def search() -> AsyncIterator[int]:
        raise RefusedError
        yield 1

    assert [item async for item in search()] == [7, 8]
    assert telemetry.last.outcome is Outcome.DEGRADED


@pytest.mark.parametrize("useless", [None, 5])
async def test_what_cannot_be_iterated_is_a_failed_fallback(telemetry: Any, useless: Any) -> None:
    policy = Policy(fallback=(lambda: useless, Fallback(lambda: useless, name="f")))

    @fuseboard.tool(policy=policy)
    def search() -> Iterator[int]:
        raise RefusedError
        yield 1

    @fuseboard.tool(policy=policy)
    async def search_later() -> AsyncIterator[int]:
        raise RefusedError
        yield 1

    with pytest.raises(RefusedError):
        list(search())
    with pytest.raises(RefusedError):
        await anext(search_later())
    for call in telemetry.calls:
        assert call.outcome is Outcome.ERROR
        assert call.layer_actions == (("fallback", "failed"),) * 2


@pytest.mark.parametrize("value", ["try later", b"later", {"text": "later"}, None, 5], ids=repr)
def test_a_value_that_is_no_collection_of_items_is_refused_at_decoration(value: Any) -> None:
    def search() -> Iterator[str]:
        yield "live"

    async def search_later() -> AsyncIterator[str]:
        yield "live"

    for function in (search, search_later):
        with pytest.raises(ConfigurationError, match="must be its items"):
            fuseboard.wrap(function, policy=Policy(fallback=Fallback(value=value)))


@pytest.mark.parametrize("fallback", [awaited, streamed])
def test_an_async_fallback_of_a_sync_stream_is_refused_at_decoration(fallback: Any) -> None:
    with pytest.raises(ConfigurationError, match="needs an async tool"):

        @fuseboard.tool(policy=Policy(fallback=fallback))
        def search() -> Iterator[int]:
            yield 1
