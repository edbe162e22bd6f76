"""Generator tools: the call lasts until the stream is exhausted, fails or is left.

Wrappers are generator functions themselves, so ``inspect`` sees no difference, and pass
``send``, ``throw``, ``close`` and the return value on. Every step of the tool's code runs in the
consumer's own task. A retry is possible until the first item has been delivered; what follows
would repeat items.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
)
from contextlib import asynccontextmanager
from sys import exception
from typing import Any, Final, NamedTuple

from fuseboard import guard
from fuseboard.calls.collecting import COLLECTOR
from fuseboard.calls.driving import async_wait, await_limited, wait
from fuseboard.calls.falling_back import ask, failed, serves
from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.queueing import admit, async_admit
from fuseboard.calls.recording import leave
from fuseboard.calls.registration import Tool
from fuseboard.policy.config import Policy

# A policy is asked for anew by each call: an async generator can't hand its calls on to another.
_NO_POLICY: Final = Policy()


class _Opening(NamedTuple):
    """What came of starting a stream.

    Attributes:
        stream: The tool's generator, or what a fallback gave; None if it has already ended.
        item: Its first item, or the return value of one without items.
        is_live: Whether it is the tool's own.
    """

    stream: Any
    item: Any = None
    is_live: bool = True


class _Dropped:
    """Ends the call of an async generator that is freed without being told to close.

    So it happens where the event loop that it ran in was closed before.
    """

    __slots__ = ("_run",)

    def __init__(self, run: GuardedRun) -> None:
        self._run = run

    def __del__(self) -> None:
        self._run.left()


def stream_sync(tool: Tool) -> Callable[..., Any]:
    """Return a generator function that passes on what the tool's target yields."""
    COLLECTOR.watch()

    def streaming(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        run = GuardedRun(tool, tool.policy or _NO_POLICY, args, kwargs, exception())
        opening = _open(run, tool.target)
        if opening.stream is None:
            return opening.item
        if not opening.is_live:
            return (yield from _resume(opening.stream, opening.item))
        return (yield from relay(run, opening.stream, opening.item))

    return streaming


def stream_async(tool: Tool) -> Callable[..., Any]:
    """Return an async generator function that passes on what the tool's target yields."""

    async def streaming(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        run = GuardedRun(tool, tool.policy or _NO_POLICY, args, kwargs, exception())
        _dropped = _Dropped(run)  # lives as long as this frame
        opening = await _open_async(run, tool.target)
        stream, item = opening.stream, opening.item
        if stream is None:
            return
        if not opening.is_live:
            async with _closing(stream):
                yield item
                async for item in stream:
                    yield item
            return
        # The relay of the sync case once more: an async generator can't delegate.
        while True:
            run.delivered()
            thrown: BaseException | None = None
            sent: Any = None
            try:
                sent = yield item
            except GeneratorExit:
                await close_async(run, stream)
                raise
            except BaseException as error:
                thrown = error
            step = stream.asend(sent) if thrown is None else stream.athrow(thrown)
            del thrown
            advanced = await advance_async(run, step)
            if advanced is None:
                return
            (item,) = advanced

    return streaming


def relay(run: GuardedRun, stream: Any, item: Any) -> Generator[Any, Any, Any]:
    """Yield the items of a started generator and pass everything on that the consumer does.

    Args:
        run: The call.
        stream: The tool's generator.
        item: What it yielded last.

    Returns:
        The generator's return value.
    """
    COLLECTOR.watch()
    while True:
        run.delivered()
        step: Callable[[Any], Any] = stream.send
        try:
            argument = yield item
        except GeneratorExit:
            _close(run, stream)
            raise
        except BaseException as thrown:
            step, argument = stream.throw, thrown
        entered = run.enter()
        try:
            item = step(argument)
        except StopIteration as stop:
            leave(entered)
            run.exhausted()
            return stop.value
        except BaseException as error:
            leave(entered)
            run.raised(error, is_last=True)
            raise
        finally:
            argument = None  # may be an exception, whose traceback holds this frame
        leave(entered)


async def advance_async(run: GuardedRun, step: Any) -> tuple[Any] | None:
    """Await the next item of a stream; return None at its end."""
    run.renew_time_limit()
    entered = run.enter()
    try:
        item = await await_limited(run, step)
    except StopAsyncIteration:
        leave(entered)
        run.exhausted()
        return None
    except BaseException as error:
        leave(entered)
        run.raised(error, is_last=True)
        raise
    leave(entered)
    return (item,)


async def close_async(run: GuardedRun, stream: Any) -> None:
    """Close the tool's async generator because the consumer left."""
    entered = run.enter()
    try:
        await stream.aclose()
    except BaseException as error:
        leave(entered)
        run.raised(error, is_last=True)
        raise
    leave(entered)
    run.left()


def _close(run: GuardedRun, stream: Any) -> None:
    if COLLECTOR.runs_here():
        _close_collected(run, stream)
        return
    entered = run.enter()
    try:
        stream.close()
    except BaseException as error:
        leave(entered)
        run.raised(error, is_last=True)
        raise
    leave(entered)
    run.left()


def _close_collected(run: GuardedRun, stream: Any) -> None:
    """Close without making the call current: the collector runs in anybody's context."""
    try:
        stream.close()
    except BaseException as error:
        run.raised(error, is_last=True)
        raise
    run.left()


def _open(run: GuardedRun, function: Callable[..., Any]) -> _Opening:
    """Start the tool's generator, again if the policy says so, up to its first item."""
    while admit(run):
        entered = run.enter()
        try:
            stream = function(*run.args, **run.kwargs)
            item = next(stream)
        except StopIteration as stop:
            leave(entered)
            if run.exhausted(stop.value, is_last=False):
                return _Opening(None, stop.value)
        except BaseException as error:
            leave(entered)
            if run.raised(error):
                raise
        else:
            leave(entered)
            return _Opening(stream, item)
        if not wait(run):
            break
    return _serve(run)


async def _open_async(run: GuardedRun, function: Callable[..., Any]) -> _Opening:
    while await async_admit(run):
        entered = run.enter()
        try:
            stream = function(*run.args, **run.kwargs)
            item = await await_limited(run, anext(stream))
        except StopAsyncIteration:
            leave(entered)
            if run.exhausted(is_last=False):
                return _Opening(None)
        except BaseException as error:
            leave(entered)
            if run.raised(error):
                raise
        else:
            leave(entered)
            return _Opening(stream, item)
        if not await async_wait(run):
            break
    return await _serve_async(run)


def _serve(run: GuardedRun) -> _Opening:
    """Serve the items of the first fallback that gives any; raise if none does."""
    for fallback in run.fallbacks():
        entered = run.enter_fallback()
        try:
            value = ask(run, fallback)
            opening = _first_of(iter(value))
        except BaseException as error:
            leave(entered)
            if failed(run, error):
                raise
            continue
        leave(entered)
        if serves(run, fallback, value, is_empty=opening.stream is None):
            return opening
    return _Opening(None, run.conclude())


async def _serve_async(run: GuardedRun) -> _Opening:
    for fallback in run.fallbacks():
        entered = run.enter_fallback()
        try:
            value = ask(run, fallback)
            if inspect.isawaitable(value):
                value = await value
            items = aiter(value) if isinstance(value, AsyncIterable) else _as_async(iter(value))
            opening = await _first_of_async(items)
        except BaseException as error:
            leave(entered)
            if failed(run, error):
                raise
            continue
        leave(entered)
        if serves(run, fallback, value, is_empty=opening.stream is None):
            return opening
        await _let_go(opening.stream)
    return _Opening(None, run.conclude())


def _first_of(items: Iterator[Any]) -> _Opening:
    # A fallback has been of use only once it has given something.
    try:
        return _Opening(items, next(items), is_live=False)
    except StopIteration as stop:
        return _Opening(None, stop.value)


async def _first_of_async(items: AsyncIterator[Any]) -> _Opening:
    try:
        return _Opening(items, await anext(items), is_live=False)
    except StopAsyncIteration:
        return _Opening(None)


def _resume(items: Any, item: Any) -> Generator[Any, Any, Any]:
    """Yield what a fallback gives after its first item, and pass everything on, as far as it goes.

    Args:
        items: An iterator that has given its first item, perhaps a generator.
        item: That item.
    """
    while True:
        try:
            argument = yield item
        except GeneratorExit:
            getattr(items, "close", _nothing)()
            raise
        except BaseException as thrown:
            step, argument = getattr(items, "throw", None), thrown
            if step is None:
                raise
        else:
            if argument is None:
                return (yield from items)
            step = items.send
        try:
            item = step(argument)
        except StopIteration as stop:
            return stop.value
        finally:
            argument = None  # may be an exception, whose traceback holds this frame


@asynccontextmanager
async def _closing(stream: Any) -> AsyncGenerator[None, None]:
    """Close an async generator, if it is one, when its consumer leaves."""
    try:
        yield
    finally:
        if hasattr(stream, "aclose"):
            await stream.aclose()


async def _let_go(stream: Any) -> None:
    """Close a stream that was opened and is not served; the garbage collector needs a task."""
    try:
        async with _closing(stream):
            pass
    except Exception as fault:
        guard.swallow("closing a fallback that was not served", fault)


def _nothing() -> None:
    """Close what has nothing to close."""


async def _as_async(items: Iterator[Any]) -> AsyncGenerator[Any, None]:
    for item in items:
        yield item
