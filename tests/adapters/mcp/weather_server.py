"""A server in a process of its own, instrumented, that talks over its standard streams."""

from __future__ import annotations

from importlib.metadata import version

import fuseboard
from fuseboard.adapters import instrument_mcp

if version("mcp").startswith("1."):
    from mcp.server.fastmcp import FastMCP as Server
else:
    from mcp.server.mcpserver import MCPServer as Server

fuseboard.init(service="meteo")
instrument_mcp(client=False)
server = Server("meteo")


@server.tool()
def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


if __name__ == "__main__":
    server.run("stdio")
