"""The pages below the path that a reverse proxy gives them, whether it keeps the path or strips it.

Streamlit serves everything below its base path and nothing elsewhere. Requests without it come
from proxies that strip it, from health checks, and from whoever opens the port itself: they mean
the same pages.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from fuseboard_server.dispatch import AsgiApp, Receive, Scope, Send

STREAM: Final = "/_stcore/stream"
UPGRADE_REQUIRED: Final = 426
NOT_UPGRADED: Final = (
    "this is a websocket, and the request did not ask for one: the reverse proxy in front has to "
    "pass on the headers Upgrade and Connection (docs/reverse-proxy.md). Until it does, the "
    "dashboard stays empty."
)
logger = logging.getLogger("fuseboard.dashboard")


class BelowPath:
    """Bring every request below the base path of an application.

    Args:
        app: What is served there.
        path: As in :class:`~fuseboard_server.public.PublicAddress`; empty: nothing is changed.
    """

    def __init__(self, app: AsgiApp, path: str) -> None:
        self._app = app
        self._path = path
        self._has_warned = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, connection or lifespan."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and str(scope["path"]).endswith(STREAM):
            self._warn()
            await _say_not_upgraded(send)
        else:
            await self._app(self._moved(scope), receive, send)

    def _moved(self, scope: Scope) -> Scope:
        path = str(scope["path"])
        # Two slashes in front are left to those who refuse them.
        is_below = path == self._path or path.startswith((f"{self._path}/", "//"))
        if not self._path or is_below:
            return scope
        raw = scope.get("raw_path")
        moved = {"path": f"{self._path}{path}"}
        return {**scope, **moved, "raw_path": None if raw is None else self._path.encode() + raw}

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("%s: %s", STREAM, NOT_UPGRADED)


async def _say_not_upgraded(send: Send) -> None:
    body = json.dumps({"error": NOT_UPGRADED, "kind": "UpgradeRequired"}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"upgrade", b"websocket"),
        (b"connection", b"upgrade"),
    ]
    await send({"type": "http.response.start", "status": UPGRADE_REQUIRED, "headers": headers})
    await send({"type": "http.response.body", "body": body})
