"""A dashboard for its own pages, behind the login that was asked for."""

from __future__ import annotations

from urllib.parse import urlsplit

from fuseboard_server.dispatch import AsgiApp
from fuseboard_server.login import Login
from fuseboard_server.login.cookies import CookieDoor
from fuseboard_server.login.gate import Gate
from fuseboard_server.login.oidc import Oidc
from fuseboard_server.login.own_pages import OwnPages
from fuseboard_server.login.round_trip import OPEN, RoundTrip


def guarded(app: AsgiApp, login: Login | None, address: str) -> AsgiApp:
    """Put a login in front of a dashboard, and shut out the pages of other sites.

    Args:
        app: The dashboard.
        login: None: everybody who reaches it sees it.
        address: As people open it, without a slash at its end.
    """
    return OwnPages(_behind(app, login, address), address)


def _behind(app: AsgiApp, login: Login | None, address: str) -> AsgiApp:
    if login is None:
        return app
    if isinstance(login, Oidc):
        parts = urlsplit(address)
        door = CookieDoor(login, f"{parts.scheme}://{parts.netloc}")
        gate = Gate(app, door, address, open_paths=OPEN)
        return RoundTrip(gate, address, login)
    return Gate(app, login, address)
