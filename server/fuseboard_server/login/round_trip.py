"""The way to the provider and back to the page that was asked for.

Streamlit starts at ``auth/login``, comes back to ``oauth2callback`` and then always shows the first
page. Around that, ``login`` remembers where somebody wanted to go, and the way back leads there.
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from fuseboard_server.dispatch import AsgiApp, Message, Receive, Scope, Send
from fuseboard_server.login import answers
from fuseboard_server.login.answers import Header
from fuseboard_server.login.cookies import read_cookies
from fuseboard_server.login.oidc import CALLBACK, Oidc
from fuseboard_server.login.seal import sealing
from fuseboard_server.login.verdict import Refusal

BEGIN: Final = "/login"
PROVIDER: Final = "/auth/login"
LEAVE: Final = "/auth/logout"
OPEN: Final = (BEGIN, PROVIDER, LEAVE, CALLBACK)
"""What must be open to whoever is not logged in yet."""
RETURN: Final = "fuseboard_return"
"""The cookie with the page that was asked for."""
RETURN_SECONDS: Final = 900
"""How long somebody may take at the provider."""
MAX_RETURN: Final = 3500
USER: Final = b"_streamlit_user="
ASKED: Final = frozenset({"state", "error"})
"""One of them is in every answer of a provider's to a login."""
FAILED: Final = Refusal(
    HTTPStatus.BAD_GATEWAY,
    "Logging in did not work",
    "The provider refused, or what it answered could not be used. Try again.",
    "the server's log says why.",
)
AWAY: Final = Refusal(
    HTTPStatus.BAD_GATEWAY,
    "The provider does not answer",
    "Logging in takes a provider, and it could not be asked. Try again in a moment.",
    "the server's log says why; server_metadata_url has to be reachable from the server.",
)


class RoundTrip:
    """Lead people to the provider and back.

    Args:
        app: The dashboard behind its gate, with Streamlit's routes for logging in.
        address: The dashboard's, as people open it; requests are below its path already.
        login: The provider.
    """

    def __init__(self, app: AsgiApp, address: str, login: Oidc) -> None:
        self._app = app
        self._login = login
        self._address = address
        self._path = urlsplit(address).path
        self._is_https = urlsplit(address).scheme == "https"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, connection or lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = self._shut_cookies(send)
        asked = str(scope["path"]).removeprefix(self._path)
        if asked == BEGIN:
            await self._begin(scope, send)
        elif asked == PROVIDER:
            await self._app(scope, receive, self._explaining(scope, send))
        elif asked == CALLBACK and not ASKED & set(_query(scope)):
            # Providers come back here after logging out, too; that is no login that went wrong.
            await answers.send_elsewhere(scope, send, f"{self._path}/")
        elif asked == CALLBACK:
            await self._app(scope, receive, self._returning(scope, send))
        else:
            await self._app(scope, receive, send)

    async def _begin(self, scope: Scope, send: Send) -> None:
        """Remember where to come back to, and go on to Streamlit's route."""
        from streamlit.user_info import generate_login_redirect_url

        wanted = _query(scope).get("next", [""])[0]
        headers = [self._remember(local_target(wanted, self._path))]
        await answers.send_elsewhere(scope, send, generate_login_redirect_url("default"), headers)

    def _remember(self, back: str, seconds: int = RETURN_SECONDS) -> Header:
        value = f"{RETURN}={quote(back, safe='/')}; Path={self._path or '/'}; Max-Age={seconds}"
        return (b"set-cookie", f"{value}; HttpOnly; SameSite=Lax".encode())

    def _explaining(self, scope: Scope, send: Send) -> Send:
        """Put a page in the place of Streamlit's bare error where the provider is away."""
        is_away = False

        async def explained(message: Message) -> None:
            nonlocal is_away
            if message["type"] == "http.response.start":
                is_away = message["status"] >= HTTPStatus.BAD_REQUEST
                if is_away:
                    body = answers.page(AWAY, "Try again", self._again(scope))
                    await answers.send_page(scope, send, AWAY.status, body)
            if not is_away:
                await send(message)

        return explained

    def _returning(self, scope: Scope, send: Send) -> Send:
        """Lead back to the page that was asked for, or say that logging in did not work."""
        is_replaced = False

        async def returned(message: Message) -> None:
            nonlocal is_replaced
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                if _is_logged_in(headers):
                    kept = [(name, value) for name, value in headers if name != b"location"]
                    here = (b"location", self._back(scope).encode())
                    made = [here, self._remember("", 0), *sealing(self._login, kept, self._path)]
                    message = {**message, "headers": [*kept, *made]}
                else:
                    is_replaced = True
                    body = answers.page(FAILED, "Try again", self._again(scope))
                    cleared = [one for one in headers if one[0] == b"set-cookie"]
                    await answers.send_page(scope, send, FAILED.status, body, cleared)
            if not is_replaced:
                await send(message)

        return returned

    def _back(self, scope: Scope) -> str:
        return local_target(unquote(read_cookies(scope).get(RETURN, "")), self._path)

    def _again(self, scope: Scope) -> str:
        return f"{self._address}{BEGIN}?next={quote(self._back(scope), safe='')}"

    def _shut_cookies(self, send: Send) -> Send:
        """Keep cookies off plain HTTP where the dashboard is on HTTPS: Streamlit can't know."""
        if not self._is_https:
            return send

        async def shut(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [_secured(one) for one in message["headers"]]}
            await send(message)

        return shut


def _query(scope: Scope) -> dict[str, list[str]]:
    return parse_qs(scope["query_string"].decode("latin-1"))


def local_target(wanted: str, path: str) -> str:
    """Return an address of ours that somebody may be sent to; the first page for any other.

    Args:
        wanted: A path with a query, from outside.
        path: The dashboard's path.
    """
    home = f"{path}/"
    is_local = wanted.startswith(home) and not wanted.startswith("//")
    is_plain = wanted.isascii() and wanted.isprintable() and not set(wanted) & set('\\ "<>')
    is_page = is_local and is_plain and _is_page(urlsplit(wanted).path.removeprefix(path))
    return wanted if is_page and len(quote(wanted)) <= MAX_RETURN else home


def _is_page(place: str) -> bool:
    """Tell whether a path leads to a page, however proxies and browsers tidy it on the way."""
    segments = [one for one in unquote(place).split("/") if one]
    is_straight = not {".", ".."} & set(segments) and "\\" not in unquote(place)
    return is_straight and f"/{'/'.join(segments)}" not in OPEN


def _is_logged_in(headers: Iterable[Header]) -> bool:
    """Tell whether an answer of Streamlit's makes the cookie of somebody who is logged in."""
    return any(
        name == b"set-cookie" and value.startswith(USER) and b"Max-Age=0" not in value
        for name, value in headers
    )


def _secured(header: Header) -> Header:
    name, value = header
    is_bare = name == b"set-cookie" and b"; secure" not in value.lower()
    return (name, value + b"; Secure") if is_bare else header
