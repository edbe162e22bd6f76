from __future__ import annotations

import json
from secrets import token_hex
from typing import Any

import pytest
from streamlit.auth_util import set_cookie_with_chunks
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from tests.server.login.asking import scope_of

from fuseboard_server.login import Oidc
from fuseboard_server.login.cookies import CookieDoor, read_cookies
from fuseboard_server.login.seal import SEAL, sealing
from fuseboard_server.login.verdict import MAX_NAME, Refusal, Viewer, Way

ORIGIN = "https://ops.example"
SECRET = "c00kie-s3cret-c00kie-s3cret-c00kie"
LOGIN = Oidc("https://id.example/", "fuseboard", "x", SECRET, frozenset({"example.com"}))
USER = "_streamlit_user"
KIM = {
    "email": "kim@example.com", "email_verified": True, "is_logged_in": True, "origin": ORIGIN,
    "provider": "default",
}  # fmt: skip
DOOR = CookieDoor(LOGIN, ORIGIN)


def cookies(claims: Any, secret: str = SECRET) -> dict[str, str]:
    """Return the cookies that Streamlit makes."""
    made: dict[str, str] = {}

    def sign(name: str, value: str) -> bytes:
        return create_signed_value(secret, name, value)

    def keep(name: str, value: str) -> None:
        made[name] = sign(name, value).decode()

    set_cookie_with_chunks(keep, sign, USER, claims, cookie_attr_size=60)
    return made


def asked(made: dict[str, str], kind: str = "http") -> dict[str, Any]:
    text = "; ".join(f"{name}={value}" for name, value in made.items())
    return scope_of("/", ("Cookie", text), kind=kind)


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_whom_the_provider_named_is_who_asks(kind: str) -> None:
    assert DOOR.judge(asked(cookies(KIM), kind)) == Viewer("kim@example.com")


def test_a_cookie_in_pieces_is_put_together() -> None:
    made = cookies({**KIM, "groups": [token_hex(8) for _ in range(400)]})
    assert len(made) > 2
    headers = [(b"set-cookie", f"{name}={value}".encode()) for name, value in made.items()]
    ((_, seal),) = sealing(LOGIN, headers, "")
    made[SEAL] = seal.decode().partition(";")[0].removeprefix(f"{SEAL}=")
    assert DOOR.judge(asked(made)) == Viewer("kim@example.com")
    del made[f"{USER}_2"]
    assert isinstance(DOOR.judge(asked(made)), Refusal)


def test_who_is_logged_in_and_not_on_the_list_is_told_as_whom() -> None:
    verdict = DOOR.judge(asked(cookies({**KIM, "email": "eve@evil.example"})))
    assert isinstance(verdict, Refusal)
    assert (verdict.status, verdict.way) == (403, Way.LOG_OUT)
    assert "eve@evil.example" in verdict.text
    assert "allowed_domains" in verdict.hint


def test_unsigned_foreign_or_other_cookies_are_nobody() -> None:
    good = cookies(KIM)[USER]
    other = create_signed_value(SECRET, "_streamlit_user_tokens", json.dumps(KIM)).decode()
    for value in (
        "", json.dumps(KIM), good[:-9] + good[-8:], f"x{good}", other,
        cookies(KIM, "another-s3cret-another-s3cret-another")[USER],
        cookies({**KIM, "origin": "https://evil.example"})[USER],
        cookies({**KIM, "is_logged_in": False})[USER],
        cookies({**KIM, "is_logged_in": "yes"})[USER],
        cookies(["kim"])[USER], cookies(None)[USER],
        create_signed_value(SECRET, USER, "no json").decode(),
    ):  # fmt: skip
        verdict = DOOR.judge(asked({USER: value}))
        assert isinstance(verdict, Refusal), value
        assert (verdict.status, verdict.way) == (401, Way.LOG_IN)
    assert isinstance(DOOR.judge(scope_of("/")), Refusal)


def test_a_login_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cookies(KIM)
    import itsdangerous.timed as timed

    now = timed.time.time()
    monkeypatch.setattr(timed.time, "time", lambda: now + LOGIN.session_seconds - 5)
    assert isinstance(DOOR.judge(asked(made)), Viewer)
    monkeypatch.setattr(timed.time, "time", lambda: now + LOGIN.session_seconds + 5)
    assert isinstance(DOOR.judge(asked(made)), Refusal)


def test_somebody_is_called_by_what_the_provider_tells_of_them_within_bounds() -> None:
    anyone = Oidc("https://id.example/", "f", "x", SECRET, admits_anyone=True)
    door = CookieDoor(anyone, ORIGIN)
    known = {"is_logged_in": True, "origin": ORIGIN}
    for claims, name in (
        ({"name": "Kim", "sub": "17"}, "Kim"),
        ({"preferred_username": "kim", "name": "Kim"}, "kim"),
        ({"sub": "17"}, "17"),
        ({}, "somebody without a name"),
        ({"email": "k\x1b[1m\nim@x"}, "k [1m im@x"),
        ({"name": "k" * 999}, "k" * MAX_NAME),
    ):
        assert door.judge(asked(cookies({**known, **claims}))) == Viewer(name)


@pytest.mark.parametrize(
    "other", ['theme={"dark": true}', "a b=c", "=x", "\x00=1", "é=ü", 'open="', "session", ";;"]
)
def test_a_cookie_of_another_program_spoils_no_login(other: str) -> None:
    text = f"{other}; {USER}={cookies(KIM)[USER]}"
    assert DOOR.judge(scope_of("/", ("Cookie", text))) == Viewer("kim@example.com")


def test_cookies_may_come_in_several_headers() -> None:
    assert read_cookies(scope_of("/", ("Cookie", "a=1; b=2"))) == {"a": "1", "b": "2"}
    assert read_cookies(scope_of("/", ("Cookie", "a=1"), ("Cookie", "b=2"))) == {"a": "1", "b": "2"}
    assert read_cookies(scope_of("/")) == {}
