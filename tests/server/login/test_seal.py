from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from tests.server.login.asking import Behind, ask, scope_of
from tests.server.login.test_cookies import KIM, LOGIN, ORIGIN, SECRET, USER, asked, cookies

from fuseboard_server.login.cookies import CookieDoor
from fuseboard_server.login.round_trip import RoundTrip
from fuseboard_server.login.seal import SEAL, read_claims
from fuseboard_server.login.verdict import Refusal, Viewer

DOOR = CookieDoor(LOGIN, ORIGIN)


def long(email: str) -> dict[str, Any]:
    groups = [sha256(f"{email}{number}".encode()).hexdigest() for number in range(200)]
    return {**KIM, "email": email, "groups": groups}


async def sealed(made: dict[str, str]) -> dict[str, str]:
    """Return the cookies that a browser has after the way back from the provider."""
    before = ("set-cookie", f'{USER}=""; Max-Age=0; Path=/')
    sent = [("set-cookie", f"{name}={value}; HttpOnly; Path=/") for name, value in made.items()]
    behind = Behind(302, (before, *sent, ("location", "/")))
    back = scope_of("/oauth2callback", query="code=x&state=y")
    answer = await ask(RoundTrip(behind, ORIGIN, LOGIN), behind, back)
    (seal,) = [one for one in answer.header("set-cookie") if one.startswith(f"{SEAL}=")]
    assert seal.endswith("; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure")
    return {**made, SEAL: seal.partition(";")[0].removeprefix(f"{SEAL}=")}


async def test_a_login_in_pieces_comes_back_whole_and_counts() -> None:
    made = await sealed(cookies(long("kim@example.com")))
    assert len(made) > 3
    assert DOOR.judge(asked(made)) == Viewer("kim@example.com")


async def test_pieces_of_two_logins_are_nobody() -> None:
    one = await sealed(cookies(long("kim@example.com")))
    other = await sealed(cookies(long("eve@example.com")))
    for spliced in (
        {**one, f"{USER}_1": other[f"{USER}_1"]},
        {**one, f"{USER}_1": other[f"{USER}_1"], SEAL: other[SEAL]},
        {**one, SEAL: other[SEAL]},
        {name: value for name, value in one.items() if name != SEAL},
        {**one, SEAL: create_signed_value(SECRET, USER, "0" * 64).decode()},
    ):
        assert read_claims(LOGIN, spliced, is_sealed=False), "each piece is signed"
        assert isinstance(DOOR.judge(asked(spliced)), Refusal)


async def test_a_login_in_one_piece_needs_no_seal_and_is_what_it_was() -> None:
    made = await sealed(cookies(KIM))
    assert json.loads(read_claims(LOGIN, made) or b"") == KIM
    assert DOOR.judge(asked({USER: made[USER]})) == Viewer("kim@example.com")
