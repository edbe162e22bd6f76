"""FastMCP, the framework of that name: calls that its clients make, and tools its servers run.

The FastMCP that is part of MCP's own SDK, version 1, is :mod:`fuseboard.adapters.mcp`'s.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

from fuseboard.adapters.functions import with_function
from fuseboard.adapters.installing import Installation, Target
from fuseboard.adapters.mcp import client_targets, error_result, judged
from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.running import FrameworkCalls, OnError, Policies
from fuseboard.calls.invocation import Invocation
from fuseboard.calls.packets import ErrorPacket, words_of

PACKAGE: Final = Package("fastmcp", extra="fastmcp", oldest="3.0", below="5")

_OWNER: Final = "instrument_fastmcp"


def _answer(invocation: Invocation, packet: ErrorPacket) -> Any:
    from fastmcp.exceptions import ToolError

    if invocation.is_remote:
        return error_result(packet)
    raise ToolError(words_of(packet))


_CALLS: Final = FrameworkCalls(_OWNER, _answer)
_INSTALLATION: Final = Installation(_OWNER)
_MISSING: Final = frozenset({"NotFoundError", "DisabledError"})
_SEEN: Final = "__fuseboard_seen__"


def instrument_fastmcp(
    policy: Policies = None,
    *,
    on_error: OnError = "raise",
    client: bool = True,
    server: bool = True,
) -> None:
    """Record the tool calls that FastMCP's clients make and those that its servers run.

    A policy guards a tool on either side. A second call changes policies and sides.

    Args:
        policy: One policy for all tools, or a mapping of tools' names to policies.
        on_error: ``raise`` (the default), or ``packet``: answer a fault with an
            :class:`fuseboard.ErrorPacket`, as a result with ``isError``.
        client: Whether calls of clients are recorded.
        server: Whether calls that servers get are recorded.

    Raises:
        ConfigurationError: If fastmcp is missing or too old, or an argument is wrong.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    _CALLS.configure(policy, on_error)
    targets = client_targets(_CALLS) if client else []
    if server:
        targets += _server_targets()
    _INSTALLATION.remove()  # a side that is left out now may have been wrapped before
    _INSTALLATION.install(targets)


def uninstrument_fastmcp() -> None:
    """Let FastMCP's clients and servers work as before.

    Since 0.1.
    """
    _INSTALLATION.remove()


def _server_targets() -> list[Target]:
    import fastmcp.tools

    module = fastmcp.tools.Tool.__module__  # not the same one in every release
    return [
        Target(module, "Tool._run", _run),
        Target("fastmcp.server.server", "FastMCP.call_tool", _call_tool),
    ]


async def _run(original: Any, tool: Any, arguments: Any, *args: Any, **kwargs: Any) -> Any:
    is_task = any(one is not None for one in (*args, *kwargs.values()))
    if is_task or _CALLS.is_recorded(tool.name):
        return await original(tool, arguments, *args, **kwargs)
    invocation = Invocation(tool.name, arguments)
    if not _has_function(tool):
        return await _run_whole(invocation, original, tool, arguments)
    with _CALLS.offer(invocation):
        is_async = inspect.iscoroutinefunction(tool.fn)
        observed = with_function(_CALLS, tool, judged, is_async=is_async)
        result = await original(observed, arguments)
        if not invocation.is_claimed:
            _CALLS.interrupt(invocation)
        return result


async def _run_whole(invocation: Invocation, original: Any, tool: Any, arguments: Any) -> Any:
    """Run a tool without a function: one of another server, say."""

    async def proceed() -> Any:
        return judged(await original(tool, arguments))

    result = await _CALLS.run_async(invocation, proceed)
    convert = getattr(tool, "convert_result", None)  # what a fallback gave is no result yet
    return convert(result) if convert is not None else result


def _has_function(tool: Any) -> bool:
    from fastmcp.tools.function_tool import FunctionTool

    return isinstance(tool, FunctionTool)


async def _call_tool(original: Any, server: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Note the names that no tool has; servers within servers pass the exception on."""
    try:
        return await original(server, name, *args, **kwargs)
    except Exception as error:
        if type(error).__name__ in _MISSING and not hasattr(error, _SEEN):
            setattr(error, _SEEN, True)
            arguments = args[0] if args else kwargs.get("arguments")
            _CALLS.refuse_unknown(Invocation(name, arguments))
        raise
