"""Nobody gets past here who is not logged in: no page, no file, no websocket, no data.

The gate is around Streamlit, not in its scripts: it holds for whatever Streamlit serves, now and
in later versions. What is open is listed; all else is shut.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final
from urllib.parse import quote, urlsplit

from fuseboard_dashboard.source import VIEWER_HEADER
from fuseboard_server.dispatch import AsgiApp, Receive, Scope, Send
from fuseboard_server.login import answers
from fuseboard_server.login.ending import ENDED, Ending
from fuseboard_server.login.verdict import Door, Refusal, Viewer, Way

HEALTH: Final = ("/healthz", "/readyz", "/_stcore/health")
"""Open to everybody, below the dashboard's path: load balancers have no login."""
VIEWER: Final = VIEWER_HEADER.lower().encode()
"""Says who is logged in to the pages; what a client sends under this name is dropped."""
RECONNECTING: Final = "/_stcore/host-config"
"""What an open page asks for when it lost its websocket; it shows JSON that refuses it."""
ELSEWHERE: Final = (
    "this is the dashboard's port; OTLP and the read API have another, which the server's log names"
)
"""For a program that takes the port for the collector's; no addresses for strangers."""


class Gate:
    """Let those in whom the door knows.

    Args:
        app: The dashboard.
        door: Judges each request.
        address: The dashboard's, as people open it; requests are below its path already.
        open_paths: Further paths, below that path, that are open to everybody.
    """

    def __init__(
        self,
        app: AsgiApp,
        door: Door,
        address: str,
        *,
        open_paths: Collection[str] = (),
    ) -> None:
        self._app = app
        self._door = door
        self._address = address
        self._path = urlsplit(address).path
        self._open = frozenset(f"{self._path}{one}" for one in (*HEALTH, *open_paths))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, connection or lifespan."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if self._is_open(scope):
            await self._app(_as(scope, None), receive, send)
            return
        verdict = self._door.judge(scope)
        if not isinstance(verdict, Viewer):
            await self._refuse(verdict, scope, send)
        elif scope["type"] == "websocket" and verdict.ends is not None:
            await Ending(receive, send, verdict.ends).run(self._app, _as(scope, verdict))
        else:
            await self._app(_as(scope, verdict), receive, send)

    def _is_open(self, scope: Scope) -> bool:
        is_read = scope["type"] == "http" and scope["method"] in {"GET", "HEAD"}
        return is_read and scope["path"] in self._open

    async def _refuse(self, refusal: Refusal, scope: Scope, send: Send) -> None:
        if str(scope["path"]).endswith(RECONNECTING):
            await answers.send_error(scope, send, refusal.status, ENDED)
            return
        if not answers.wants_page(scope):
            hint = ELSEWHERE if self._is_for_the_collector(scope) else ""
            asides = "".join(f" ({one})" for one in (refusal.hint, hint) if one)
            message = f"{refusal.title}: {refusal.text}{asides}"
            await answers.send_error(scope, send, refusal.status, message)
            return
        label, href = self._way(refusal, scope)
        await answers.send_page(scope, send, refusal.status, answers.page(refusal, label, href))

    def _is_for_the_collector(self, scope: Scope) -> bool:
        return str(scope["path"]).removeprefix(self._path).startswith(("/v1/", "/api/"))

    def _way(self, refusal: Refusal, scope: Scope) -> tuple[str, str]:
        """Return the link of a refusal's page: its words and where it leads."""
        if refusal.way is Way.LOG_OUT:
            return "Log out", f"{self._address}/auth/logout"
        if refusal.way is Way.LOG_IN:
            return "Log in", _login_link(self._address, scope)
        return "", ""


def _login_link(address: str, scope: Scope) -> str:
    """Return where logging in begins that leads back to what was asked for."""
    asked = str(scope["path"])
    query = scope.get("query_string", b"").decode("latin-1")
    back = f"{quote(asked)}?{query}" if query else quote(asked)
    return f"{address}/login?next={quote(back, safe='')}"


def _as(scope: Scope, viewer: Viewer | None) -> Scope:
    """Return a request that says who is logged in, whatever its client claims."""
    # Under a name that somebody might take for ours, too.
    headers = [one for one in scope["headers"] if one[0].replace(b"_", b"-") != VIEWER]
    if viewer is not None:
        headers.append((VIEWER, quote(viewer.name).encode()))
    return {**scope, "headers": headers}
