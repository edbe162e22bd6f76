"""Run the function behind a framework's tool as a call, where the tool can be copied.

Frameworks check arguments and turn results and errors into their own form around the function;
a copy of the tool with another function leaves all of that to them.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Final

from fuseboard.adapters.running import FrameworkCalls, is_own_tool
from fuseboard.calls.invocation import RUNNING

Judge = Callable[[Any], Any]
"""Returns the value it gets, or raises ``ReturnedFault`` or ``JudgedEnd`` in its place."""

# By the address of a tool. Frameworks keep what they find out about a function, so that each
# tool must be given the same one every time.
_observed: Final[dict[int, tuple[weakref.ref[Any], Any, Any]]] = {}


def with_function(
    calls: FrameworkCalls, tool: Any, judge: Judge, *, name: str = "fn", is_async: bool
) -> Any:
    """Return a copy of a tool whose function runs as a call of ``calls``.

    Args:
        calls: The calls of the framework.
        tool: A pydantic model with a function in it.
        judge: Looks at what the function returns.
        name: The field that holds the function.
        is_async: Whether the framework awaits it.

    Returns:
        The copy. A function that is fuseboard's already records its calls itself; a packet that
        it returns is put into the framework's form.
    """
    function = getattr(tool, name)
    key = id(tool)
    reference, known, observed = _observed.get(key, (None, None, None))
    if reference is None or reference() is not tool or known is not function:
        make = _observe_async if is_async else _observe
        observed = make(calls, function, judge)
        forget = functools.partial(_forget, key)
        _observed[key] = (weakref.ref(tool, forget), function, observed)
    return tool.model_copy(update={name: observed})


def _forget(key: int, reference: weakref.ref[Any]) -> None:
    if _observed.get(key, (None,))[0] is reference:
        _observed.pop(key, None)


def _observe(calls: FrameworkCalls, function: Any, judge: Judge) -> Any:
    is_own = is_own_tool(function)

    # Without annotations of its own, which would stand in for those that a partial lacks.
    @functools.wraps(function)
    def observed(*args, **kwargs):  # type: ignore[no-untyped-def]
        invocation = RUNNING.get()
        if invocation is None or invocation.is_claimed:
            return function(*args, **kwargs)
        if is_own:
            return calls.in_form(invocation, function(*args, **kwargs))
        return calls.run(invocation, lambda: judge(function(*args, **kwargs)))

    return observed


def _observe_async(calls: FrameworkCalls, function: Any, judge: Judge) -> Any:
    is_own = is_own_tool(function)

    @functools.wraps(function)
    async def observed(*args, **kwargs):  # type: ignore[no-untyped-def]
        invocation = RUNNING.get()
        if invocation is None or invocation.is_claimed:
            return await function(*args, **kwargs)
        if is_own:
            return calls.in_form(invocation, await function(*args, **kwargs))

        async def proceed() -> Any:
            return judge(await function(*args, **kwargs))

        return await calls.run_async(invocation, proceed)

    return observed
