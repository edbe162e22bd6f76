"""Websockets are for our own pages, whether or not anybody has to log in: pages can write."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from fuseboard_server.dispatch import AsgiApp, Receive, Scope, Send
from fuseboard_server.login import answers
from fuseboard_server.login.verdict import FORBIDDEN, values_of

FOREIGN: Final = "this websocket was asked for by a page of another site"


class OwnPages:
    """Refuse the websockets that pages of other sites ask for.

    Args:
        app: The dashboard.
        address: As people open it.
    """

    def __init__(self, app: AsgiApp, address: str) -> None:
        self._app = app
        parts = urlsplit(address)
        self._origin = f"{parts.scheme}://{parts.netloc}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, connection or lifespan."""
        if scope["type"] == "websocket" and not self._is_ours(scope):
            await answers.send_error(scope, send, FORBIDDEN, FOREIGN)
        else:
            await self._app(scope, receive, send)

    def _is_ours(self, scope: Scope) -> bool:
        """Tell whether a websocket is asked for by our own page, or by no page at all.

        A browser sends cookies, and what a proxy knows somebody by, for any page. Streamlit's own
        check takes every page of this machine for ours, and every port of the proxy's.
        """
        found = values_of(scope, b"origin")
        if not found:
            return True
        scheme, _, place = found[0].partition("://")
        is_same = scheme in {"http", "https"} and values_of(scope, b"host") == [place]
        return len(found) == 1 and (found[0] == self._origin or is_same)
