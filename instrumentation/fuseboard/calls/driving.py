"""Run a guarded call to its end: the same steps for functions and coroutine functions."""

from __future__ import annotations

from collections.abc import Callable
from sys import exception
from types import ModuleType
from typing import Any, Final

from fuseboard.calls.bare import UNFINISHED
from fuseboard.calls.bounded import bound_async, bound_sync, first_limit
from fuseboard.calls.falling_back import fall_back, fall_back_async
from fuseboard.calls.first_try import FirstTry
from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.queueing import admit, async_admit
from fuseboard.calls.recording import begin, leave
from fuseboard.calls.registration import Tool
from fuseboard.policy.config import Policy
from fuseboard.policy.timeout import OverrunError, await_within
from fuseboard.policy.workers import THREADS
from fuseboard.runtime import RUNTIME

_NO_POLICY: Final = Policy()


def guard_sync(tool: Tool, policy: Policy, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs ``function`` under a policy."""
    uses_threads = first_limit(policy) is not None
    first = FirstTry(tool, policy, uses_threads=uses_threads)
    attempt = bound_sync(tool.info.name, policy, function)

    def guarded(*args: Any, **kwargs: Any) -> Any:
        replaced = tool.replaced
        if replaced is not None and replaced is not guarded:
            return replaced(*args, **kwargs)
        ambient = exception()
        permit = first.permit()
        if permit is None or (uses_threads and THREADS.is_full()):
            run = GuardedRun(tool, policy, args, kwargs, ambient, uses_threads=True)
            return drive_sync(run, function)
        call, entered = begin(tool, args, kwargs)
        try:
            value = attempt(*args, **kwargs)
        except BaseException as error:
            leave(entered)
            run = first.hand_over(call, permit, args, kwargs, ambient)
            if run.raised(error):
                raise
        else:
            leave(entered)
            if type(value) in UNFINISHED:
                return _follow(first.hand_over(call, permit, args, kwargs, ambient), value)
            if first.ends(call, permit, value):
                return value
            run = first.hand_over(call, permit, args, kwargs, ambient)
            if run.returned(value):
                return value
        return drive_sync(run, function) if wait(run) else fall_back(run)

    return guarded


def guard_async(tool: Tool, policy: Policy, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine function that awaits ``function`` under a policy, in the same task."""
    first = FirstTry(tool, policy)
    attempt = bound_async(tool.info.name, policy, function)

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        replaced = tool.replaced
        if replaced is not None and replaced is not guarded:
            return await replaced(*args, **kwargs)
        ambient = exception()
        permit = first.permit()
        if permit is None:
            return await drive_async(GuardedRun(tool, policy, args, kwargs, ambient), function)
        call, entered = begin(tool, args, kwargs)
        try:
            value = await attempt(*args, **kwargs)
        except BaseException as error:
            leave(entered)
            run = first.hand_over(call, permit, args, kwargs, ambient)
            if run.raised(error):
                raise
        else:
            leave(entered)
            if first.ends(call, permit, value):
                return value
            run = first.hand_over(call, permit, args, kwargs, ambient)
            if run.returned(value):
                return value
        if await async_wait(run):
            return await drive_async(run, function)
        return await fall_back_async(run)

    return guarded


def drive_bare_sync(
    tool: Tool,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ambient: BaseException | None,
) -> Any:
    """Run a tool without a policy in a session that may reject its calls."""
    return drive_sync(GuardedRun(tool, _NO_POLICY, args, kwargs, ambient), function)


async def drive_bare_async(
    tool: Tool,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ambient: BaseException | None,
) -> Any:
    """Do the same for an async tool, in the caller's task."""
    return await drive_async(GuardedRun(tool, _NO_POLICY, args, kwargs, ambient), function)


def drive_sync(run: GuardedRun, function: Callable[..., Any]) -> Any:
    """Make the attempts of a call that are left; return the answer, live or not."""
    while admit(run):
        entered = run.enter()
        try:
            value = _run_sync(run, function)
        except BaseException as error:
            leave(entered)
            if run.raised(error):
                raise
        else:
            leave(entered)
            if type(value) in UNFINISHED:
                return _follow(run, value)
            if run.returned(value):
                return value
        if not wait(run):
            break
    return fall_back(run)


async def drive_async(run: GuardedRun, function: Callable[..., Any]) -> Any:
    """Do what :func:`drive_sync` does, for coroutine functions."""
    while await async_admit(run):
        entered = run.enter()
        try:
            value = await _run_async(run, function)
        except BaseException as error:
            leave(entered)
            if run.raised(error):
                raise
        else:
            leave(entered)
            if run.returned(value):
                return value
        if not await async_wait(run):
            break
    return await fall_back_async(run)


def _follow(run: GuardedRun, value: Any) -> Any:
    from fuseboard.calls.adopted import follow  # imports this module

    return follow(run, value)


def _correcting() -> ModuleType:
    from fuseboard.calls import correcting  # few tools have it

    return correcting


def wait(run: GuardedRun) -> bool:
    """Wait before the next attempt, or have it corrected; return False if there is none."""
    if run.wants_correction and _correcting().correct(run):
        return True
    delay = run.delay
    if delay is None:
        return False
    began = RUNTIME.clock.monotonic()
    try:
        RUNTIME.clock.sleep(delay)
    except BaseException as error:
        run.waited(RUNTIME.clock.monotonic() - began)
        run.interrupted(error)
        raise
    run.waited(delay)
    return True


async def async_wait(run: GuardedRun) -> bool:
    """Suspend before the next attempt, or have it corrected; return False if there is none."""
    if run.wants_correction and await _correcting().async_correct(run):
        return True
    delay = run.delay
    if delay is None:
        return False
    began = RUNTIME.clock.monotonic()
    try:
        await RUNTIME.clock.async_sleep(delay)
    except BaseException as error:
        run.waited(RUNTIME.clock.monotonic() - began)
        run.interrupted(error)
        raise
    run.waited(delay)
    return True


async def await_limited(run: GuardedRun, awaitable: Any) -> Any:
    """Await something of the tool's within the attempt's time limit, in the same task."""
    limit = run.time_limit
    if limit is None:
        return await awaitable
    try:
        return await await_within(limit, awaitable)
    except OverrunError as late:
        raise run.overrun() from late.__cause__


def _run_sync(run: GuardedRun, function: Callable[..., Any]) -> Any:
    value, poll = _run_limited(run, function), run.policy.poll
    # What is still to come is no ticket.
    if poll is None or type(value) in UNFINISHED:
        return value
    return _polling().await_result(run, poll, value)


def _run_limited(run: GuardedRun, function: Callable[..., Any]) -> Any:
    limit = run.time_limit
    if limit is None:
        return function(*run.args, **run.kwargs)
    try:
        return THREADS.run(limit, run.leave_behind, function, *run.args, **run.kwargs)
    except OverrunError:
        raise run.overrun() from None


async def _run_async(run: GuardedRun, function: Callable[..., Any]) -> Any:
    value = await await_limited(run, function(*run.args, **run.kwargs))
    poll = run.policy.poll
    return value if poll is None else await _polling().async_await_result(run, poll, value)


def _polling() -> ModuleType:
    from fuseboard.calls import polling  # few tools have it

    return polling
