"""What holds a login together whose cookie came in pieces.

Streamlit signs each piece of a long cookie alone: pieces of two logins would pass for a third one.
A cookie more signs all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from starlette.requests import cookie_parser

from fuseboard_server.login.answers import Header
from fuseboard_server.login.oidc import DAY, Oidc

SEAL: Final = "fuseboard_seal"
"""The cookie with the digest of what the provider said."""


def read_claims(login: Oidc, cookies: Mapping[str, str], *, is_sealed: bool = True) -> bytes | None:
    """Return what the provider said, put together; None: nothing that was signed as a whole.

    Args:
        login: Whose cookies they are.
        cookies: Of a request, or of the answer that makes them.
        is_sealed: Whether pieces need the seal; only who makes it asks for less.
    """
    from streamlit.auth_util import get_cookie_with_chunks
    from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
    from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

    def one(name: str) -> bytes | None:
        if name not in cookies:
            return None
        days = login.session_seconds / DAY
        return decode_signed_value(login.cookie_secret, name, cookies[name], days)

    found = get_cookie_with_chunks(one, USER_COOKIE_NAME)
    if found is None or not is_sealed or found == one(USER_COOKIE_NAME):
        return found
    return found if compare_digest(one(SEAL) or b"", _digest(found)) else None


def ends_at(login: Oidc, cookies: Mapping[str, str]) -> float:
    """Return until when a login holds, in Unix seconds.

    Args:
        login: Whose cookies they are.
        cookies: Of a request whose claims were read.
    """
    from itsdangerous import URLSafeTimedSerializer
    from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

    signer = URLSafeTimedSerializer(login.cookie_secret, salt=USER_COOKIE_NAME)
    _, signed_at = signer.loads(cookies[USER_COOKIE_NAME], return_timestamp=True)
    return float(signed_at.timestamp()) + login.session_seconds


def sealing(login: Oidc, headers: Iterable[Header], path: str) -> list[Header]:
    """Return the cookie that seals those of an answer.

    Args:
        login: Whose cookies they are.
        headers: Of Streamlit's answer to somebody who just logged in.
        path: The dashboard's.
    """
    from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

    made = (value.partition(b";")[0].decode("latin-1") for value in _kept(headers))
    claims = read_claims(login, cookie_parser("; ".join(made)), is_sealed=False)
    if claims is None:
        return []
    signed = create_signed_value(login.cookie_secret, SEAL, _digest(claims)).decode()
    seconds = int(login.session_seconds)
    value = f"{SEAL}={signed}; Path={path or '/'}; Max-Age={seconds}; HttpOnly; SameSite=Lax"
    return [(b"set-cookie", value.encode())]


def _kept(headers: Iterable[Header]) -> Iterable[bytes]:
    return (value for name, value in headers if name == b"set-cookie" and b"Max-Age=0" not in value)


def _digest(claims: bytes) -> bytes:
    return sha256(claims).hexdigest().encode()
