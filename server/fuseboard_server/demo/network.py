"""How the demo's tools reach their services: HTTP by httpx, one MCP server over stdio."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
from mcp import StdioServerParameters, stdio_client
from mcp.client.client import Client
from mcp.types import CallToolResult

from fuseboard_server.demo.plan import Plan

CLIENT_TIMEOUT = 4.0
"""Scenario seconds after which the HTTP clients give up by themselves."""


class ServiceError(httpx.HTTPStatusError):
    """An error as the SDKs of services raise it: with the service's own words at hand.

    Attributes:
        body: The parsed body of the error response.
    """

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(
            f"{response.status_code} from the service", request=response.request, response=response
        )
        self.body: object = response.json()


class Network:
    """The connections of one agent.

    Args:
        plan: The run, for the addresses and the pace.
        advisories: The connected MCP client.
    """

    def __init__(self, plan: Plan, advisories: Client) -> None:
        self._endpoints: Mapping[str, str] = json.loads(plan.endpoints_path.read_text())
        self._advisories = advisories
        timeout = httpx.Timeout(plan.real(CLIENT_TIMEOUT))
        limits = httpx.Limits(max_connections=100)
        # Services are on loopback: a proxy from the environment must not see their calls.
        self._sync = httpx.Client(timeout=timeout, limits=limits, trust_env=False)
        self._async = httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=False)

    def _url(self, tool: str, region: str) -> str:
        return self._endpoints[f"{region}/{tool}"]

    def get(self, tool: str, region: str, **parameters: str) -> dict[str, object]:
        """Ask a service and return its JSON; raise httpx's errors as they are."""
        return _body(self._sync.get(self._url(tool, region), params=parameters))

    def post(self, tool: str, region: str, **body: str) -> dict[str, object]:
        """Ask a service to do something and return its JSON."""
        return _body(self._sync.post(self._url(tool, region), json=body))

    async def aget(self, tool: str, region: str, **parameters: str) -> dict[str, object]:
        """Ask a service without blocking and return its JSON."""
        return _body(await self._async.get(self._url(tool, region), params=parameters))

    async def search(self, region: str, query: str) -> dict[str, object]:
        """Search the web as that service's SDK would."""
        response = await self._async.get(self._url("web_search", region), params={"query": query})
        if response.is_error:
            raise ServiceError(response)
        return _body(response)

    async def advise(self, city: str, region: str) -> CallToolResult:
        """Call the MCP server's tool and return its result as it is."""
        return await self._advisories.call_tool("travel_advisory", {"city": city, "region": region})

    async def close(self) -> None:
        """Close the HTTP connections."""
        self._sync.close()
        await self._async.aclose()


def _body(response: httpx.Response) -> dict[str, object]:
    response.raise_for_status()
    body: dict[str, object] = response.json()
    return body


@asynccontextmanager
async def connected(plan: Plan) -> AsyncIterator[Network]:
    """Start the MCP server, connect everything, and close it again at the end."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "fuseboard_server.demo.advisory_server", plan.to_json()],
        # Only a few variables are handed on unasked; the server must find the agent's own code.
        env={name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
    )
    async with Client(stdio_client(server)) as advisories:
        network = Network(plan, advisories)
        try:
            yield network
        finally:
            await network.close()
