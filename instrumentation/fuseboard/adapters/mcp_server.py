"""The tools that servers of MCP's Python SDK run, high-level servers and low-level ones."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.propagate import extract

from fuseboard.adapters.functions import Judge, with_function
from fuseboard.adapters.installing import Target
from fuseboard.adapters.running import FrameworkCalls
from fuseboard.calls.invocation import Invocation

_METHOD = "tools/call"


def targets(
    calls: FrameworkCalls, judge: Judge, as_result: Callable[[Any], Any], is_first: bool
) -> list[Target]:
    """Return what the tools of a server pass through.

    Args:
        calls: Where they are recorded.
        judge: Looks at what tools return.
        as_result: Makes a result of what a fallback gave.
        is_first: Whether it is version 1 of the SDK.
    """
    server = _Server(calls, judge, as_result)
    package = "mcp.server.fastmcp" if is_first else "mcp.server.mcpserver"
    low_level = "mcp.server.lowlevel.server"
    return [
        Target(f"{package}.tools.base", "Tool.run", server.run_tool),
        Target(f"{package}.tools.tool_manager", "ToolManager.call_tool", server.find_tool),
        Target(low_level, "Server._handle_request", server.handle_request)
        if is_first
        else Target(low_level, "Server.get_request_handler", server.find_handler),
    ]


class _Server:
    """What is called in place of the SDK's own functions."""

    def __init__(
        self, calls: FrameworkCalls, judge: Judge, as_result: Callable[[Any], Any]
    ) -> None:
        self._calls = calls
        self._judge = judge
        self._as_result = as_result

    async def run_tool(
        self, original: Any, tool: Any, arguments: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Run a tool of a high-level server."""
        calls = self._calls
        if calls.is_recorded(tool.name):
            return await original(tool, arguments, *args, **kwargs)
        invocation = Invocation(tool.name, arguments)
        with calls.offer(invocation):
            observed = with_function(calls, tool, self._judge, is_async=tool.is_async)
            result = await original(observed, arguments, *args, **kwargs)
            if not invocation.is_claimed:  # a dependency of the tool asks the user first
                calls.interrupt(invocation)
            return result

    async def find_tool(
        self, original: Any, manager: Any, name: str, *args: Any, **kwargs: Any
    ) -> Any:
        """Note the names that no tool of a high-level server has."""
        if manager.get_tool(name) is None:
            arguments = args[0] if args else kwargs.get("arguments")
            self._calls.refuse_unknown(Invocation(name, arguments))
        return await original(manager, name, *args, **kwargs)

    def find_handler(self, original: Any, server: Any, method: str) -> Any:
        """Return the function that runs the tools of a server of version 2, followed."""
        entry = original(server, method)
        if method != _METHOD or entry is None or _is_high_level(entry.handler):
            return entry

        async def handle(context: Any, params: Any) -> Any:
            return await self._handle(params, lambda: entry.handler(context, params))

        return dataclasses.replace(entry, handler=handle)

    async def handle_request(
        self, original: Any, server: Any, message: Any, request: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Handle a request to a server of version 1, within the trace of its client."""
        if getattr(request, "method", None) != _METHOD:
            return await original(server, message, request, *args, **kwargs)
        token = otel_context.attach(_trace_of(request))
        try:
            observed = self._observed(server, type(request))
            return await original(observed, message, request, *args, **kwargs)
        finally:
            otel_context.detach(token)

    def _observed(self, server: Any, kind: type) -> Any:
        """Return the same server with another function that runs its tools."""
        handler = server.request_handlers.get(kind)
        if handler is None or _is_high_level(handler):
            return server

        async def handle(request: Any) -> Any:
            import mcp.types

            result = await self._handle(request.params, lambda: handler(request))
            is_bare = isinstance(result, mcp.types.CallToolResult)
            return mcp.types.ServerResult(result) if is_bare else result  # type: ignore[operator]

        observed = copy.copy(server)
        observed.request_handlers = {**server.request_handlers, kind: handle}
        return observed

    async def _handle(self, params: Any, handle: Callable[[], Awaitable[Any]]) -> Any:
        returned: Any = None

        async def proceed() -> Any:
            nonlocal returned
            returned = await handle()
            return self._judge(returned)

        # A low-level server has one function for all names, and only that knows which there are.
        invocation = Invocation(params.name, params.arguments, is_known=None)
        value = await self._calls.run_async(invocation, proceed)
        return value if value is returned else self._as_result(value)


def _trace_of(request: Any) -> otel_context.Context:
    """Return the context of the client's call, as far as the request tells it."""
    meta = getattr(request.params, "meta", None)
    told = {} if meta is None else meta.model_dump()
    return extract({key: text for key, text in told.items() if isinstance(text, str)})


def _is_high_level(handler: Any, depth: int = 3) -> bool:
    """Tell whether it is a high-level server that handles calls, which are recorded there."""
    owner = getattr(handler, "__self__", None)
    if hasattr(owner, "_tool_manager") or type(owner).__module__.startswith("fastmcp."):
        return True
    cells = [cell.cell_contents for cell in getattr(handler, "__closure__", None) or ()]
    return depth > 0 and any(_is_high_level(one, depth - 1) for one in cells if callable(one))
