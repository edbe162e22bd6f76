from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.server.login.asking import Behind, ask, scope_of

from fuseboard_server.login import Oidc, TrustedHeader
from fuseboard_server.login.guarding import guarded
from fuseboard_server.login.round_trip import MAX_RETURN, RoundTrip, local_target

ADDRESS = "https://ops.example/fuse"
DEEP = "/fuse/errors?range=1h&tool=a%26b"
LOGGED_IN = ("set-cookie", "_streamlit_user=abc; HttpOnly; Max-Age=2592000; Path=/fuse")
HOME = ("location", "/fuse/")
OIDC = Oidc("https://id.example/", "f", "x", "c00kie-s3cret-c00kie", admits_anyone=True)


def returning(*more: tuple[str, str], query: str = "code=x&state=y") -> dict[str, Any]:
    return scope_of("/fuse/oauth2callback", *more, query=query)


def remembered(target: str) -> tuple[str, str]:
    return ("Cookie", f"fuseboard_return={quote(target, safe='/')}")


async def through(
    scope: dict[str, Any], *headers: tuple[str, str], status: int = 302, address: str = ADDRESS
) -> Any:
    behind = Behind(status, headers)
    return await ask(RoundTrip(behind, address, OIDC), behind, scope)


@pytest.mark.parametrize(
    "target",
    ["/fuse/", DEEP, "/fuse/trace?id=1#x", "/fuse/a%20b", "/fuse/v1.2",
     "/fuse/errors?tool=..%2fauth/logout", "/fuse/errors?next=https://evil.example",
     "/fuse/errors?from=2026-01-05T12:00:00Z"],
)  # fmt: skip
def test_a_page_of_ours_may_be_returned_to(target: str) -> None:
    assert local_target(target, "/fuse") == target


@pytest.mark.parametrize(
    "target",
    ["", "/", "/fuse", "/fusee/", "//evil.example/fuse/", "https://evil.example/fuse/",
     "https://ops.example/fuse/", "/fuse/\\evil.example", "/\\evil.example", "fuse/errors",
     "javascript:alert(1)", "/fuse/errors\r\nset-cookie: a=b", "/fuse/errors\x00", "/fuse/a b",
     "/fuse/../admin", "/fuse/x/../../admin", "/fuse/é", "/fuse/login?next=/fuse/",
     "/fuse/auth/logout", "/fuse/oauth2callback?code=1", "/fuse/auth/login",
     "/fuse/auth/./logout", "/fuse/auth/%6cogout",
     "/fuse/x/%2e%2e/auth/logout", "/fuse/x/%2E./auth/logout", "/fuse/./auth/logout",
     "/fuse/auth%2flogout", "/fuse/auth//logout", "/fuse//auth/logout", "/fuse/auth/logout/",
     "/fuse/auth/%2e/logout", "/fuse/x%5c..%5cauth/logout", "/fuse/%6fauth2callback?code=1",
     "/fuse/errors?" + "a" * MAX_RETURN, "/fuse/<script>"],
)  # fmt: skip
def test_any_other_address_leads_home(target: str) -> None:
    assert local_target(target, "/fuse") == "/fuse/"


@pytest.mark.parametrize(
    ("target", "leads"),
    [
        ("/errors?range=1h", "/errors?range=1h"), ("//evil.example", "/"), ("/\\evil", "/"),
        ("///evil.example", "/"), ("https://evil.example", "/"), ("/auth/logout", "/"),
    ],
)  # fmt: skip
def test_without_a_prefix_no_other_site_is_led_to_either(target: str, leads: str) -> None:
    assert local_target(target, "") == leads


async def test_who_logged_in_comes_back_to_the_page_that_was_asked_for() -> None:
    answer = await through(returning(remembered(DEEP)), HOME, LOGGED_IN)
    assert (answer.status, answer.header("location")) == (302, [DEEP])
    user, forgotten = answer.header("set-cookie")
    assert user.startswith("_streamlit_user=abc")
    assert forgotten.startswith("fuseboard_return=;")
    assert "Max-Age=0" in forgotten


@pytest.mark.parametrize("target", ["", "https://evil.example/", "//evil.example"])
async def test_a_forged_memory_leads_home(target: str) -> None:
    answer = await through(returning(remembered(target)), HOME, LOGGED_IN)
    assert answer.header("location") == ["/fuse/"]


@pytest.mark.parametrize("query", ["code=x&state=y", "error=access_denied&state=y"])
async def test_a_login_that_went_wrong_is_said_with_the_way_to_try_again(query: str) -> None:
    gone = ("set-cookie", "_streamlit_user=; Max-Age=0; Path=/fuse")
    answer = await through(returning(remembered(DEEP), query=query), HOME, gone)
    assert answer.status == 502
    assert "Logging in did not work" in answer.body
    assert f'href="{ADDRESS}/login?next={quote(DEEP, safe="")}"' in answer.body
    assert "behind" not in answer.body
    assert len(answer.header("set-cookie")) == 1


async def test_coming_back_from_logging_out_is_no_failure() -> None:
    answer = await through(returning(query=""), HOME)
    assert (answer.status, answer.header("location")) == (302, ["/fuse/"])
    assert answer.reached == []


async def test_a_provider_that_is_away_is_said() -> None:
    asked = scope_of("/fuse/auth/login", remembered(DEEP), query="provider=x")
    answer = await through(asked, status=400)
    assert answer.status == 502
    assert "provider does not answer" in answer.body
    assert quote(DEEP, safe="") in answer.body
    passed = await through(asked, ("location", "https://id.example/authorize"))
    assert (passed.status, passed.body) == (302, "behind")


@pytest.mark.parametrize(("address", "is_secure"), [(ADDRESS, True), ("http://[::1]/fuse", False)])
async def test_cookies_stay_off_plain_http_where_the_dashboard_is_on_https(
    address: str, is_secure: bool
) -> None:
    already = ("set-cookie", "a=b; secure")
    answer = await through(scope_of("/fuse/"), LOGGED_IN, already, status=200, address=address)
    user, other = answer.header("set-cookie")
    assert user.endswith("; Secure") is is_secure
    assert other == "a=b; secure"


async def test_what_is_remembered_is_kept_from_scripts_other_sites_and_other_paths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "streamlit.user_info.generate_login_redirect_url", lambda name: f"/fuse/auth/login?{name}"
    )
    for wanted, kept in ((DEEP, quote(DEEP, safe="/")), ("https://evil.example", "/fuse/")):
        answer = await through(scope_of("/fuse/login", query=f"next={quote(wanted, safe='')}"))
        assert answer.header("location") == ["/fuse/auth/login?default"]
        (cookie,) = answer.header("set-cookie")
        assert cookie == (
            f"fuseboard_return={kept}; Path=/fuse; Max-Age=900; HttpOnly; SameSite=Lax; Secure"
        )
        assert answer.reached == []


async def test_websockets_and_the_lifespan_pass() -> None:
    for scope in (scope_of("/fuse/_stcore/stream", kind="websocket"), {"type": "lifespan"}):
        answer = await through(scope)
        assert answer.reached == [scope]


async def test_a_dashboard_is_behind_the_login_that_was_asked_for() -> None:
    for login, status in ((None, 200), (TrustedHeader("X-User"), 401), (OIDC, 401)):
        behind = Behind()
        answer = await ask(guarded(behind, login, ADDRESS), behind, scope_of("/fuse/errors"))
        assert answer.status == status
