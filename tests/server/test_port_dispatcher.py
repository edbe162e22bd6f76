from __future__ import annotations

import json
from typing import Any

import pytest

from fuseboard_server.dispatch import PortDispatcher
from fuseboard_server.hosts import HostAllowList

UI, OTLP = 8501, 4318


class Recorder:
    """An application that only remembers what reached it."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)


class World:
    def __init__(self) -> None:
        self.ui, self.collector = Recorder(), Recorder()
        self.app = PortDispatcher(self.ui, self.collector, OTLP, HostAllowList("127.0.0.1"))
        self.sent: list[Any] = []

    async def ask(self, kind: str, port: int, *hosts: str) -> None:
        scope = {
            "type": kind,
            "server": ("127.0.0.1", port),
            "headers": [(b"host", host.encode()) for host in hosts],
        }
        await self.app(scope, self._receive, self._send)

    async def _receive(self) -> Any:
        return {"type": "websocket.connect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_each_port_reaches_its_own_application(kind: str) -> None:
    world = World()
    await world.ask(kind, UI, "localhost:8501")
    assert (len(world.ui.scopes), len(world.collector.scopes)) == (1, 0)
    await world.ask(kind, OTLP, "127.0.0.1:4318")
    assert (len(world.ui.scopes), len(world.collector.scopes)) == (1, 1)
    assert world.sent == []


async def test_the_lifespan_is_the_dashboards() -> None:
    world = World()
    await world.app({"type": "lifespan"}, world._receive, world._send)
    assert (len(world.ui.scopes), len(world.collector.scopes)) == (1, 0)


@pytest.mark.parametrize("port", [UI, OTLP])
@pytest.mark.parametrize("hosts", [(), ("evil.example",), ("localhost", "evil.example")])
async def test_a_foreign_missing_or_doubled_host_is_refused(
    port: int, hosts: tuple[str, ...]
) -> None:
    world = World()
    await world.ask("http", port, *hosts)
    assert world.ui.scopes == world.collector.scopes == []
    start, body = world.sent
    assert start["status"] == 421
    assert "--allow-host" in json.loads(body["body"])["error"]


async def test_a_websocket_from_a_foreign_host_is_closed_before_it_opens() -> None:
    world = World()
    await world.ask("websocket", UI, "evil.example")
    assert world.ui.scopes == []
    assert [message["type"] for message in world.sent] == ["websocket.close"]
