"""The demo's MCP server, spoken to by the SDK's client."""

from __future__ import annotations

import json
import time
from pathlib import Path

from mcp.client.client import Client
from mcp.types import TextContent

from fuseboard_server.demo.advisory_server import TOOL, build
from fuseboard_server.demo.network import connected
from fuseboard_server.demo.plan import Plan

FAULT = (
    f'[[fault]]\ntool = "{TOOL}"\nregions = ["us-east"]\nfrom = 0\nuntil = 1e6\nkind = "is_error"\n'
)


def plan(folder: Path, faults: str = "") -> Plan:
    path = folder / "scenario.toml"
    path.write_text("length = 1e6\nloop_from = 0\n" + faults)
    return Plan(str(path), time.time(), 10.0, 1, str(folder), "")


async def test_it_gives_advice_on_known_cities(tmp_path: Path) -> None:
    async with Client(build(plan(tmp_path))) as client:
        good = await client.call_tool(TOOL, {"city": "Lima", "region": "us-east"})
        assert not good.is_error
        bad = await client.call_tool(TOOL, {"city": "Atlantis", "region": "us-east"})
        assert bad.is_error
        assert isinstance(bad.content[0], TextContent)
        assert "Atlantis" in bad.content[0].text


async def test_it_fails_by_the_scenario_in_that_region_only(tmp_path: Path) -> None:
    async with Client(build(plan(tmp_path, FAULT))) as client:
        results = {
            region: (await client.call_tool(TOOL, {"city": "Lima", "region": region})).is_error
            for region in ("us-east", "eu-west")
        }
    assert results == {"us-east": True, "eu-west": False}


async def test_the_agent_reaches_it_over_stdio(tmp_path: Path) -> None:
    run = plan(tmp_path)
    run.endpoints_path.write_text(json.dumps({}))
    async with connected(run) as network:
        result = await network.advise("Lima", "eu-west")
    assert not result.is_error
