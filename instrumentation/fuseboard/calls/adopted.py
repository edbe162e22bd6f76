"""Plain functions that return a generator or a coroutine: the work is still to come.

The caller gets an object of the same type, through which the call is followed to its end.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Generator
from types import AsyncGeneratorType, GeneratorType
from typing import Any, Final

from fuseboard.calls.driving import await_limited
from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.recording import leave
from fuseboard.calls.registration import Tool
from fuseboard.calls.streams import advance_async, close_async, relay
from fuseboard.policy.config import Policy
from fuseboard.record import AttemptRecord, CallRecord

_NO_POLICY: Final = Policy()


def adopt(
    tool: Tool,
    call: CallRecord,
    attempt: AttemptRecord,
    value: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ambient: BaseException | None,
) -> Any:
    """Return an object like ``value`` that ends the call when it ends.

    Args:
        tool: The tool.
        call: Its call, still open.
        attempt: The call's attempt, still open.
        value: A generator, async generator or coroutine.
        args: Positional arguments of the call.
        kwargs: Keyword arguments of the call.
        ambient: What the caller was handling when the call began.
    """
    return follow(
        GuardedRun(tool, _NO_POLICY, args, kwargs, ambient, call=call, attempt=attempt), value
    )


def follow(run: GuardedRun, value: Any) -> Any:
    """Return an object like ``value`` that ends the call of ``run`` when it ends.

    What has been handed out can't be tried again: a policy's retry and fallback end here, its
    breaker learns of the end.
    """
    followed: Any
    if isinstance(value, GeneratorType):
        followed = _follow(run, value)
    elif isinstance(value, AsyncGeneratorType):
        followed = _follow_async(run, value)
    else:
        followed = _follow_coroutine(run, value)
    followed.__name__, followed.__qualname__ = value.__name__, value.__qualname__
    # One that is never started and dropped runs no code of its own that could say so.
    weakref.finalize(followed, run.left).atexit = False
    return followed


def _follow(run: GuardedRun, stream: Any) -> Generator[Any, Any, Any]:
    entered = run.enter()
    try:
        item = next(stream)
    except StopIteration as stop:
        leave(entered)
        run.exhausted(stop.value)
        return stop.value
    except BaseException as error:
        leave(entered)
        run.raised(error, is_last=True)
        raise
    leave(entered)
    return (yield from relay(run, stream, item))


async def _follow_async(run: GuardedRun, stream: Any) -> AsyncGenerator[Any, Any]:
    advanced = await advance_async(run, anext(stream))
    while advanced is not None:
        run.delivered()
        thrown: BaseException | None = None
        sent: Any = None
        try:
            sent = yield advanced[0]
        except GeneratorExit:
            await close_async(run, stream)
            raise
        except BaseException as error:
            thrown = error
        step = stream.asend(sent) if thrown is None else stream.athrow(thrown)
        del thrown
        advanced = await advance_async(run, step)


async def _follow_coroutine(run: GuardedRun, work: Any) -> Any:
    run.renew_time_limit()
    entered = run.enter()
    try:
        value = await await_limited(run, work)
    except BaseException as error:
        leave(entered)
        run.raised(error, is_last=True)
        raise
    leave(entered)
    run.returned(value, is_last=True)
    return value
