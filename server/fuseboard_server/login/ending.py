"""A websocket ends with the login that it was opened by, however long its page stays open."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from fuseboard_server.dispatch import POLICY_VIOLATION, AsgiApp, Message, Receive, Scope, Send

ENDED: Final = "Your login has ended. Reload this page to log in again; its filters are kept."


class Ending:
    """One websocket that closes at a moment.

    Args:
        receive: The connection's.
        send: The connection's.
        ends: Unix seconds.
    """

    def __init__(self, receive: Receive, send: Send, ends: float) -> None:
        self._receive = receive
        self._send = send
        self._ends = ends
        self._is_closed = False

    async def run(self, app: AsgiApp, scope: Scope) -> None:
        """Have an application answer until then."""
        closing = asyncio.create_task(self._close_in_time())
        try:
            await app(scope, self._hear, self._say)
        finally:
            closing.cancel()
            with suppress(asyncio.CancelledError):
                await closing

    async def _close_in_time(self) -> None:
        await asyncio.sleep(max(0.0, self._ends - time.time()))
        self._is_closed = True
        # Where the connection is gone by itself there is nobody to tell.
        with suppress(OSError, RuntimeError):
            await self._send(_message("close"))

    async def _hear(self) -> Message:
        """Return what the client says; that it left, once it has been shut out."""
        if self._is_over():
            return _message("disconnect")
        message = await self._receive()
        return _message("disconnect") if self._is_over() else message

    async def _say(self, message: Message) -> None:
        """Tell the client, while it may still hear it."""
        if not self._is_over():
            await self._send(message)

    def _is_over(self) -> bool:
        return self._is_closed or time.time() >= self._ends


def _message(what: str) -> Message:
    return {"type": f"websocket.{what}", "code": POLICY_VIOLATION, "reason": ENDED}
