from __future__ import annotations

from ipaddress import ip_network

import pytest
from tests.server.login.asking import scope_of

from fuseboard_server.login import TrustedHeader
from fuseboard_server.login.trusted_header import parse_name, parse_network
from fuseboard_server.login.verdict import MAX_NAME, Refusal, Viewer

NAME = "X-Forwarded-User"
LOGIN = TrustedHeader(NAME)


@pytest.mark.parametrize(
    ("value", "who"),
    [
        ("kim", "kim"), (" kim@ops.example ", "kim@ops.example"), ("Jürgen Groß", "Jürgen Groß"),
        ("<b>kim</b>", "<b>kim</b>"), ("k" * MAX_NAME, "k" * MAX_NAME),
    ],
)  # fmt: skip
def test_whom_the_proxy_names_is_who_asks(value: str, who: str) -> None:
    assert LOGIN.judge(scope_of("/", (NAME, value))) == Viewer(who)
    assert LOGIN.judge(scope_of("/", (NAME.upper(), value), kind="websocket")) == Viewer(who)


def test_a_name_in_an_older_encoding_is_read() -> None:
    scope = scope_of()
    scope["headers"].append((NAME.lower().encode(), "Jürgen".encode("latin-1")))
    assert LOGIN.judge(scope) == Viewer("Jürgen")


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ([], "no header X-Forwarded-User"),
        ([(NAME, "kim"), (NAME, "eve")], "more than one"),
        ([(NAME, "kim"), (NAME.lower(), "kim")], "more than one"),
        ([("X_Forwarded_User", "eve")], "no header"),
        ([("X-Forwarded-User-", "eve")], "no header"),
        ([(NAME, "")], "printable"),
        ([(NAME, "  ")], "printable"),
        ([(NAME, "eve, kim")], "comma"),
        ([(NAME, "k" * (MAX_NAME + 1))], str(MAX_NAME)),
        ([(NAME, "kim\teve")], "printable"),
        ([(NAME, "kim\x1b[31m")], "printable"),
        ([(NAME, "kim\u202eeve")], "printable"),
    ],
)
def test_a_header_that_is_missing_doubled_or_no_name_is_nobody(
    headers: list[tuple[str, str]], words: str
) -> None:
    for kind in ("http", "websocket"):
        verdict = LOGIN.judge(scope_of("/", *headers, kind=kind))
        assert isinstance(verdict, Refusal)
        assert (verdict.status, verdict.title) == (401, "Not logged in")
        assert words in verdict.hint


@pytest.mark.parametrize(
    ("proxies", "peer", "is_believed"),
    [
        ([], "127.0.0.1", True), ([], "127.8.8.8", True), ([], "::1", True),
        ([], "::ffff:127.0.0.1", True), ([], "10.0.0.7", False), ([], "::ffff:10.0.0.7", False),
        (["10.0.0.0/24"], "10.0.0.7", True), (["10.0.0.0/24"], "10.0.1.7", False),
        (["10.0.0.0/24"], "127.0.0.1", False), (["fd00::/8"], "fd00::7", True),
        (["fd00::/8"], "10.0.0.7", False), (["10.0.0.7", "::1"], "::1", True),
        ([], "kim.example", False), ([], "", False),
    ],
)  # fmt: skip
def test_only_a_trusted_proxy_is_believed(proxies: list[str], peer: str, is_believed: bool) -> None:
    login = TrustedHeader(NAME, tuple(map(ip_network, proxies))) if proxies else LOGIN
    verdict = login.judge(scope_of("/", (NAME, "kim"), peer=(peer, 1)))
    assert isinstance(verdict, Viewer) is is_believed
    if not is_believed:
        assert "--trusted-proxy" in verdict.hint
        told = f"{verdict.text} {verdict.hint}"
        assert not [one for one in proxies if one in told], "a stranger learns no addresses"


def test_a_peer_that_is_unknown_or_told_by_a_header_is_not_believed() -> None:
    assert isinstance(LOGIN.judge(scope_of("/", (NAME, "kim"), peer=None)), Refusal)
    spoofed = scope_of("/", (NAME, "eve"), ("X-Forwarded-For", "127.0.0.1"), peer=("10.0.0.7", 1))
    assert isinstance(LOGIN.judge({**spoofed, "client": ("127.0.0.1", 0)}), Refusal)


@pytest.mark.parametrize(
    "name",
    [
        NAME,
        "Remote-User",
        "X-Auth-Request-Email",
        "CF",
        "Tailscale-User-Login",
        "X-Forwarded-Email",
        "Cf-Access-Authenticated-User-Email",
        "X-Forwarded-Preferred-Username",
        "X-Authentik-Username",
        "X-Goog-Authenticated-User-Email",
        "X-Amzn-Oidc-Identity",
        "X-Remote-User",
        "SSO-User",
    ],
)
def test_names_of_headers(name: str) -> None:
    assert parse_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "X_Forwarded_User", "X-", "-X", "X--Y", "X Y", "X:Y", "Ü", "Host", "cookie", "ORIGIN",
     "X-Forwarded-For", "Authorization", "Accept-Language", "Accept-Encoding", "X-Real-IP", "Via",
     "Sec-Fetch-Site", "Sec-Fetch-Dest", "sec-ch-ua", "Sec-WebSocket-Key", "If-None-Match",
     "Cache-Control", "Priority", "DNT", "X-Request-ID", "CF-Connecting-IP", "X-Forwarded-Port",
     "X-Fuseboard-Viewer", "Proxy-Authorization", "Upgrade-Insecure-Requests"],
)  # fmt: skip
def test_names_that_can_not_be_trusted_are_refused_with_an_example(name: str) -> None:
    with pytest.raises(ValueError, match="X-Forwarded-User"):
        parse_name(name)


@pytest.mark.parametrize("text", ["10.0.0.7/24", "10.0.0", "kim", "", "0.0.0.0/0", "::/0"])
def test_networks_that_are_none_or_everybodys_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/24|anybody"):
        parse_network(text)
    assert parse_network(" 10.0.0.7 ") == ip_network("10.0.0.7/32")


def test_it_says_what_is_on() -> None:
    assert LOGIN.words == "header X-Forwarded-User of a proxy at this machine"
    other = TrustedHeader(NAME, (ip_network("10.0.0.0/24"),))
    assert other.words == "header X-Forwarded-User of a proxy at 10.0.0.0/24"
