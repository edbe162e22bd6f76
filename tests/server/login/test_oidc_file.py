from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuseboard_server.login import Oidc
from fuseboard_server.login.oidc_file import KEYS, read

SECRET = "cl1ent-s3cret"
COOKIE = "c00kie-s3cret-c00kie-s3cret-c00kie"
GOOD = {
    "server_metadata_url": '"https://id.example/.well-known/openid-configuration"',
    "client_id": '"fuseboard"',
    "client_secret": f'"{SECRET}"',
    "cookie_secret": f'"{COOKIE}"',
    "allowed_domains": '["Example.com"]',
}
VERIFIED = {"email_verified": True}
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a good file with some keys changed, or left out where they are None."""

    def written(**changes: str | None) -> Path:
        path = tmp_path / "oidc.toml"
        keys = {**GOOD, **changes}
        lines = [f"{key} = {value}" for key, value in keys.items() if value is not None]
        path.write_text("\n".join(["[auth]", *lines]), encoding="utf-8")
        return path

    return written


def test_a_file_is_read(write: Write) -> None:
    found = read(write(allowed_emails='["Kim@partner.example"]', session='"12h"'))
    assert found == Oidc(
        metadata_url="https://id.example/.well-known/openid-configuration", client_id="fuseboard",
        client_secret=SECRET, cookie_secret=COOKIE, domains=frozenset({"example.com"}),
        emails=frozenset({"kim@partner.example"}), session_seconds=12 * 3600,
    )  # fmt: skip
    assert found.words == "OpenID Connect at id.example"
    userinfo = replace(found, metadata_url="https://u:s3cret@id.example:8443/x")
    assert userinfo.words == "OpenID Connect at id.example", "whoever made it"
    assert SECRET not in repr(found)
    assert COOKIE not in repr(found)


def test_secrets_are_read_from_files_beside_it(write: Write, tmp_path: Path) -> None:
    (tmp_path / "client").write_text(f"{SECRET}\n")
    (tmp_path / "cookie").write_text(f"  {COOKIE}\n")
    found = read(write(
        client_secret=None, client_secret_file='"client"',
        cookie_secret=None, cookie_secret_file=f'"{tmp_path / "cookie"}"',
    ))  # fmt: skip
    assert (found.client_secret, found.cookie_secret) == (SECRET, COOKIE)


def test_without_a_cookie_secret_every_start_has_one_of_its_own(write: Write) -> None:
    one, other = (read(write(cookie_secret=None)).cookie_secret for _ in range(2))
    assert len(one) == len(other) == 64
    assert one != other


def test_what_streamlit_is_told_follows_from_the_address(write: Write) -> None:
    found = read(write(client_kwargs='{ prompt = "login" }'))
    assert found.secrets("https://ops.example/fuseboard") == {"auth": {
        "redirect_uri": "https://ops.example/fuseboard/oauth2callback",
        "cookie_secret": COOKIE, "client_id": "fuseboard", "client_secret": SECRET,
        "server_metadata_url": "https://id.example/.well-known/openid-configuration",
        "client_kwargs": {"prompt": "login"},
    }}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"client_id": None}, "client_id is missing"),
        ({"client_id": "7"}, "client_id has to be a text"),
        ({"server_metadata_url": None}, "server_metadata_url is missing"),
        ({"server_metadata_url": '"http://id.example/x"'}, "https://id.example/"),
        ({"server_metadata_url": '"https://"'}, "https://id.example/"),
        ({"server_metadata_url": '"https://u:s3cret@id.example/x"'}, "without a user"),
        ({"server_metadata_url": '"ftp://u:s3cret@id.example/x"'}, "without a user"),
        ({"server_metadata_url": '"https://u:s3cret@[id/x"'}, "without a user"),
        ({"client_secret": None}, "either client_secret or client_secret_file"),
        ({"client_secret_file": '"x"'}, "either client_secret or client_secret_file"),
        ({"client_secret": None, "client_secret_file": '"gone"'}, "can't read"),
        ({"cookie_secret": '"short-s3cret"'}, "openssl rand -hex 32"),
        ({"allowed_domains": None}, "say who is let in"),
        ({"allowed_domains": "[]"}, "say who is let in"),
        ({"allow_anyone": "true"}, "say who is let in"),
        ({"allowed_domains": None, "allow_anyone": "1"}, "allow_anyone has to be true or false"),
        ({"trust_unverified_email": '"yes"'}, "trust_unverified_email has to be true or false"),
        ({"allowed_domains": '"example.com"'}, "list of texts"),
        ({"allowed_domains": '["@example.com"]'}, "can't be in allowed_domains"),
        ({"allowed_domains": '["*.example.com"]'}, "can't be in allowed_domains"),
        ({"allowed_domains": '["m\u00fcller.example"]'}, "xn--"),
        ({"allowed_domains": '[""]'}, "can't be in allowed_domains"),
        ({"allowed_emails": '["example.com"]'}, "can't be in allowed_emails"),
        ({"allowed_mails": '["kim@example.com"]'}, "allowed_mails"),
        ({"session": '"soon"'}, "no duration"),
        ({"session": '"31d"'}, "30d is the most"),
        ({"redirect_uri": '"https://ops.example/"'}, "/oauth2callback"),
        ({"client_kwargs": "{ prompt = 7 }"}, "table of texts"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_with_the_remedy_and_without_a_secret(
    changes: dict[str, Any], words: str, write: Write
) -> None:
    path = write(**changes)
    with pytest.raises(ValueError, match=r".+") as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert words in message
    assert "s3cret" not in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"auth", "no TOML"), (b"[auth", "no TOML"), (b"", "no table [auth]"),
        (b"auth = 1", "no table [auth]"), (b'[auth]\nx = "s3cret\n', "no TOML"),
        (b'[auth]\nclient_secret = s3cret', "no TOML"), (b"\xff", "UTF-8"),
    ],
)  # fmt: skip
def test_what_is_no_such_file_is_said(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "oidc.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r".+") as caught:
        read(path)
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ValueError, match="can't read"):
        read(tmp_path / "gone.toml")


def test_keys_of_streamlits_own_file_are_known() -> None:
    own = {"redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url"}
    assert own <= set(KEYS)


@pytest.mark.parametrize(
    ("claims", "is_let_in"),
    [
        ({"email": "kim@example.com"}, False),
        ({"email": "Kim@EXAMPLE.com", "email_verified": True}, True),
        ({"email": "kim@example.com", "email_verified": "true"}, True),
        ({"email": "kim@example.com", "email_verified": False}, False),
        ({"email": "kim@example.com", "email_verified": "false"}, False),
        ({"email": "kim@example.com", "email_verified": None}, False),
        ({"email": "pat@partner.example", **VERIFIED}, True),
        ({"email": "kim@partner.example", **VERIFIED}, False),
        ({"email": "\u212aim@example.com", **VERIFIED}, False),
        ({"email": "dr.\u212aay@partner.example", **VERIFIED}, False),
        ({"email": "dr.kay@partner.example", **VERIFIED}, True),
        ({"email": "kim@sub.example.com", **VERIFIED}, False),
        ({"email": "kim@evilexample.com", **VERIFIED}, False),
        ({"email": "example.com", **VERIFIED}, False),
        ({"email": "eve@evil.example@example.com", **VERIFIED}, False),
        ({"email": "", **VERIFIED}, False),
        ({"email": ["kim@example.com"], **VERIFIED}, False),
        ({"name": "kim@example.com", "sub": "kim@example.com", **VERIFIED}, False),
    ],
    ids=str,
)
def test_who_is_let_in(claims: dict[str, Any], is_let_in: bool, write: Write) -> None:
    found = read(write(allowed_emails='["pat@partner.example", "Dr.Kay@partner.example"]'))
    assert found.admits(claims) is is_let_in
    everybody = read(write(allowed_domains=None, allow_anyone="true"))
    assert everybody.admits(claims)


@pytest.mark.parametrize(("said", "is_let_in"), [({}, True), (VERIFIED, True),
    ({"email_verified": False}, False), ({"email_verified": None}, False),
])  # fmt: skip
def test_an_address_of_which_nothing_is_said_counts_where_the_file_says_so(
    said: dict[str, Any], is_let_in: bool, write: Write
) -> None:
    found = read(write(trust_unverified_email="true"))
    assert found.admits({"email": "kim@example.com", **said}) is is_let_in
