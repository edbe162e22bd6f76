"""One ASGI application for two ports: the dashboard on one, OTLP and the read API on the other."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fuseboard_server.hosts import HostAllowList

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

MISDIRECTED = 421
POLICY_VIOLATION = 1008


class PortDispatcher:
    """Send a request to the application of the port it came in on.

    Args:
        ui: The dashboard; also gets the lifespan.
        collector: OTLP receiver and read API.
        collector_port: Port of ``collector``; every other port is the dashboard's.
        hosts: The ``Host`` headers that are answered.
    """

    def __init__(
        self, ui: AsgiApp, collector: AsgiApp, collector_port: int, hosts: HostAllowList
    ) -> None:
        self._ui = ui
        self._collector = collector
        self._collector_port = collector_port
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, connection or lifespan."""
        if scope["type"] == "lifespan":
            await self._ui(scope, receive, send)
            return
        header = _host_header(scope)
        if not self._hosts.allows(header):
            await _refuse(scope, receive, send, header)
            return
        is_collector = scope["server"][1] == self._collector_port
        await (self._collector if is_collector else self._ui)(scope, receive, send)


def _host_header(scope: Scope) -> str:
    values = [value for name, value in scope["headers"] if name == b"host"]
    # Two Host headers are a smuggling attempt, none is no browser's doing.
    return str(values[0].decode("latin-1")) if len(values) == 1 else ""


async def _refuse(scope: Scope, receive: Receive, send: Send, header: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        return
    message = (
        f"this server does not answer to the host name {header[:100]!r}; "
        "open it by the address it printed, or start it with --allow-host NAME"
    )
    body = json.dumps({"error": message, "kind": "MisdirectedRequest"}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": MISDIRECTED, "headers": headers})
    await send({"type": "http.response.body", "body": body})
