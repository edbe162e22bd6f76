"""Who is logged in, as the cookies say that Streamlit signed after the provider's answer."""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.requests import cookie_parser

from fuseboard_server.dispatch import Scope
from fuseboard_server.login.oidc import Oidc
from fuseboard_server.login.seal import ends_at, read_claims
from fuseboard_server.login.verdict import (
    FORBIDDEN,
    MAX_NAME,
    UNAUTHORISED,
    Refusal,
    Verdict,
    Viewer,
    Way,
    values_of,
)

NOBODY: Final = Refusal(
    UNAUTHORISED,
    "Log in",
    "This dashboard is for people who are logged in. You will come back to the page that you "
    "asked for, with its filters.",
    way=Way.LOG_IN,
)
NO_ACCESS: Final = (
    "You are logged in as {who}, who has no access to this dashboard. Ask whoever runs it, or log "
    "out and come back as somebody else."
)
NO_ACCESS_HINT: Final = (
    "allowed_domains and allowed_emails of --oidc-config say who has access; the provider has to "
    "tell an e-mail address and that it verified it (email_verified); where it never says so, and "
    "people can't choose their address there, trust_unverified_email = true takes it."
)


class CookieDoor:
    """Judges requests by their cookies.

    Args:
        login: The provider, and whom of its people to let in.
        origin: Of the dashboard as people open it; cookies made for another one don't count.
    """

    def __init__(self, login: Oidc, origin: str) -> None:
        self._login = login
        self._origin = origin

    def judge(self, scope: Scope) -> Verdict:
        """Tell who asks, as the provider said."""
        cookies = read_cookies(scope)
        claims = self._claims(cookies)
        if claims is None:
            return NOBODY
        who = _name(claims)
        if self._login.admits(claims):
            return Viewer(who, ends_at(self._login, cookies))
        words = NO_ACCESS.format(who=who)
        return Refusal(FORBIDDEN, "No access", words, NO_ACCESS_HINT, Way.LOG_OUT)

    def _claims(self, cookies: dict[str, str]) -> dict[str, Any] | None:
        """Return what the provider's token said of who is logged in; None: nobody is."""
        signed = read_claims(self._login, cookies)
        try:
            claims = json.loads(signed or b"null")
        except ValueError:
            return None
        is_ours = (
            isinstance(claims, dict)
            and claims.get("is_logged_in") is True
            and claims.get("origin") == self._origin
        )
        return claims if is_ours else None


def read_cookies(scope: Scope) -> dict[str, str]:
    """Return the cookies of a request; one that another program made badly spoils no other."""
    return cookie_parser("; ".join(values_of(scope, b"cookie")))


def _name(claims: dict[str, Any]) -> str:
    """Return how to call somebody, in printable characters."""
    found = (claims.get(key) for key in ("email", "preferred_username", "name", "sub"))
    text = str(next((one for one in found if one), "somebody without a name"))
    return "".join(c if c.isprintable() else " " for c in text)[:MAX_NAME]
