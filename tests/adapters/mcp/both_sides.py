"""A client and a server of either version of the SDK, connected in memory."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from typing import Any

from mcp import ClientSession

IS_FIRST = version("mcp").startswith("1.")

if IS_FIRST:
    from mcp.server.fastmcp import Context, FastMCP
    from mcp.server.fastmcp.exceptions import ToolError
    from mcp.server.lowlevel import Server
    from mcp.shared.exceptions import McpError
    from mcp.shared.memory import create_connected_server_and_client_session
    from mcp.types import CallToolResult, TextContent, Tool
else:
    from mcp.client import Client
    from mcp.server.lowlevel import Server
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as FastMCP
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.shared.exceptions import MCPError as McpError
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

__all__ = ["IS_FIRST", "Context", "FastMCP", "McpError", "ToolError"]


@contextlib.asynccontextmanager
async def connected(server: Any) -> AsyncIterator[ClientSession]:
    """Connect a client's session with a server, high-level or low-level."""
    if IS_FIRST:
        inner = getattr(server, "_mcp_server", server)
        async with create_connected_server_and_client_session(inner) as session:
            yield session
    else:
        async with Client(server) as client:
            yield client.session


def is_error(result: Any) -> bool:
    """Tell whether a result reports an error."""
    return bool(getattr(result, "is_error", None) or getattr(result, "isError", None))


def text_of(result: Any) -> str:
    """Return the text of a result."""
    return str(result.content[0].text)


def error_result(text: str, **structured: Any) -> CallToolResult:
    """Return a result that reports an error."""
    flag = {"isError": True} if IS_FIRST else {"is_error": True}
    if structured:
        flag["structuredContent" if IS_FIRST else "structured_content"] = structured
    return CallToolResult(content=[TextContent(type="text", text=text)], **flag)


def low_level(run: Callable[[str, dict[str, Any]], Any]) -> Any:
    """Return a low-level server with one tool, ``weather``, that is run by a function."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    key = "inputSchema" if IS_FIRST else "input_schema"
    listed = [Tool(name="weather", description="Tell the weather.", **{key: schema})]
    if IS_FIRST:
        server = Server("low")

        @server.list_tools()
        async def list_tools() -> list[Tool]:
            return listed

        @server.call_tool()
        async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
            return run(name, arguments)

        return server

    async def on_list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def on_call_tool(context: Any, params: Any) -> CallToolResult:
        content = run(params.name, params.arguments or {})
        return content if isinstance(content, CallToolResult) else CallToolResult(content=content)

    return Server("low", on_list_tools=on_list_tools, on_call_tool=on_call_tool)
