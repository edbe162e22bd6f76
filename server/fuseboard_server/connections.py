"""HTTP connections that are not waited for without end."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 20.0
"""How long a request's head may take, and how long a new connection may stay silent."""


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's protocol, closing connections on which no request becomes complete.

    uvicorn itself waits for ever for the rest of a request's head; bodies are the receiver's
    business.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to watch the connection."""
        super().connection_made(transport)
        self._watch(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._timer.cancel()
        super().connection_lost(exc)

    def _watch(self, seen: Any) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self._look, seen)

    def _look(self, seen: Any) -> None:
        """Close the connection if no request has begun since the last look and none runs."""
        if self not in self.connections:
            return  # closed, or a web socket now
        cycle = self.cycle
        is_between = cycle is None or cycle.response_complete
        # An idle connection between two requests is uvicorn's to close.
        is_idle = self.timeout_keep_alive_task is not None
        if is_between and cycle is seen and not is_idle:
            self.transport.close()
            return
        self._watch(cycle)
