"""Logfire's own instrumentations of the OpenAI Agents SDK and of MCP.

Both give spans a template as their name. MCP's requests and responses are kept whole, and a
failure is in the response only. (Pydantic AI under Logfire is Pydantic AI.)
"""

from __future__ import annotations

from fuseboard_collector.normalise.dialects.dialect import Dialect

OPENAI_AGENTS = Dialect(
    name="logfire_openai_agents",
    tool=(("name",),),
    call_id=(),
    arguments=(("input",),),
    result=(("output",),),
    message=(("error",),),
    prefixes=("Function: ",),
)
MCP = Dialect(
    name="logfire_mcp",
    tool=(("request", "params", "name"),),
    call_id=(),
    arguments=(("request", "params", "arguments"),),
    result=(("response",),),
    prefixes=("MCP request: tools/call ",),
)
MARKS = {"rpc.method": {"tools/call": MCP}}
NAMES = {
    "Function: {name}": OPENAI_AGENTS,
    "MCP server handle request: tools/call": MCP,
}
