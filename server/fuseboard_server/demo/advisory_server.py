"""An MCP server over stdio with one tool; the demo agent starts it and talks to it."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from fuseboard_server.demo.plan import Plan
from fuseboard_server.demo.processes import die_with_parent
from fuseboard_server.demo.scenario import REGIONS
from fuseboard_server.demo.services import CITIES

TOOL = "travel_advisory"


def build(plan: Plan) -> MCPServer:
    """Return the server of one demo run."""
    scenario = plan.load_scenario()
    rngs = {region: plan.rng("advisory", region) for region in REGIONS}
    server = MCPServer("advisories", log_level="CRITICAL")

    @server.tool(name=TOOL)
    async def travel_advisory(city: str, region: str) -> dict[str, str]:
        """Tell what to know before a journey."""
        at = scenario.position(plan.elapsed())
        hits = [f for f in scenario.active(TOOL, region, at) if rngs[region].random() < f.ratio]
        await asyncio.sleep(plan.real(sum(f.latency(at) for f in hits if f.kind == "latency")))
        if any(fault.kind == "is_error" for fault in hits):
            raise ToolError("the advisory feed is being rewritten; no advice for this city")
        if city not in CITIES:
            raise ToolError(f"city {city!r} is not known")
        return {"city": city, "advice": "Carry a copy of your passport."}

    return server


def main() -> None:
    """Serve the plan given as the only argument over stdin and stdout."""
    die_with_parent(os.getppid())
    build(Plan.from_json(sys.argv[1])).run("stdio")


if __name__ == "__main__":
    main()
