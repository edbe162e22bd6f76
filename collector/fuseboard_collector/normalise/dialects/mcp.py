"""OpenTelemetry's MCP conventions, as the Python SDK and FastMCP write them.

The SDK's client span has no name of a tool but in its own name, and doesn't tell of a result
that is an error: the server's span does.
"""

from __future__ import annotations

from dataclasses import replace

from fuseboard_collector.normalise.dialects import genai

DIALECT = replace(
    genai.DIALECT,
    name="mcp",
    # Never jsonrpc.request.id: it starts at 1 again with each connection.
    server=(("fastmcp.server.name",),),
    error_type=(("rpc.response.status_code",),),
    prefixes=("MCP send tools/call ", "tools/call ", *genai.DIALECT.prefixes),
)
MARKS = {"mcp.method.name": {"tools/call": DIALECT}}
