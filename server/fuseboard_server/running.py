"""uvicorn as our commands run it: quiet, patient within bounds, ended by signals without noise."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from websockets import http11

from fuseboard_server.connections import PatientProtocol
from fuseboard_server.stopping import stop_signals

if TYPE_CHECKING:
    from fuseboard_server.dispatch import AsgiApp, Receive, Scope, Send

SHUTDOWN_SECONDS = 5
"""How long open requests may take to finish after a stop was asked for."""
KEEP_ALIVE_SECONDS = 65
"""How long a connection may lie idle: longer than agents pause between their batches."""

MAX_HEADER: Final = 32768
"""Bytes of a websocket's header: the cookies of a login are more than the 8 KiB of the library."""
PEER: Final = "fuseboard.peer"
"""Of a request's scope: host and port of the connection, which no header can change."""


class PeerKept:
    """Say of each request where its connection comes from, before a proxy's headers are read.

    uvicorn puts what ``X-Forwarded-For`` says in the place of the peer on connections from this
    machine, so that a proxy's clients do not count as this machine.

    Args:
        app: The application.
        config: Says whose headers are read.
    """

    def __init__(self, app: AsgiApp, config: uvicorn.Config) -> None:
        self._app: Any = ProxyHeadersMiddleware(cast("Any", app), config.forwarded_allow_ips)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand one request, connection or lifespan on."""
        scope[PEER] = scope.get("client")
        await self._app(scope, receive, send)


def configured(app: AsgiApp) -> uvicorn.Config:
    """Return uvicorn's configuration for an application."""
    http11.MAX_LINE_LENGTH = max(http11.MAX_LINE_LENGTH, MAX_HEADER)
    config = uvicorn.Config(
        app,
        proxy_headers=False,
        ws="websockets-sansio",
        log_level="warning",
        access_log=False,
        server_header=False,
        http=PatientProtocol,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        lifespan="on",
    )
    config.app = cast("Any", PeerKept(app, config))
    return config


class Server(uvicorn.Server):
    """Tells when it is ready.

    Args:
        config: uvicorn's.
        is_ready: Called when requests are answered.
    """

    running: ClassVar[Server | None] = None

    def __init__(self, config: uvicorn.Config, is_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._is_ready = is_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        Server.running = self
        await super().startup(sockets)
        if self.started and not self.should_exit:
            self._is_ready()


@contextmanager
def stopping_quietly() -> Iterator[None]:
    """End in silence on a signal: before the server runs by exiting, afterwards by uvicorn.

    uvicorn raises the signals that it caught once more after it has stopped, with the
    handlers that it found. These do nothing then, so that a stop that was asked for ends with
    exit code 0 and no traceback. It does not know SIGHUP.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        if Server.running is None:
            sys.exit(0)
        Server.running.should_exit = True

    before = {number: signal.signal(number, handle) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
