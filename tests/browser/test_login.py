"""Logging in as people do: through a provider, back to the page they asked for, and out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.conftest import Viewer, new_viewer
from tests.docs.pages import ROOT, blocks
from tests.nginx import Nginx
from tests.oidc_provider import CLIENT_SECRET, Provider
from tests.processes import Server, free_port

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(400)]

COOKIE_SECRET = "c00kie-s3cret-c00kie-s3cret-c00kie"
DEEP = "errors?range=1h&tool=weather"
ASKED = {"range": ["1h"], "tool": ["weather"]}
VISITOR = '[data-testid="fb-visitor"]'
PEOPLE: dict[str, dict[str, Any]] = {
    # With groups, as large providers send them: cookies come in pieces.
    "kim": {"email": "Kim@Example.com", "email_verified": True,
            "groups": [token_hex(16) for _ in range(200)]},
    "eve": {"email": "eve@evil.example", "email_verified": True},
    "ann": {"email": "ann@example.com", "email_verified": False},
}  # fmt: skip


@dataclass
class Place:
    """A dashboard that asks a provider, behind nginx."""

    provider: Provider
    server: Server
    nginx: Nginx

    @property
    def url(self) -> str:
        return self.nginx.url


@pytest.fixture(scope="module")
def place(
    board: Server, nginx_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """Serve a copy of the demo's data to people of a provider, with the file of the page."""
    folder = tmp_path_factory.mktemp("login")
    data = board.copy_data(folder)
    port = free_port()
    url = f"http://127.0.0.1:{port}/fuseboard"
    provider = Provider(PEOPLE, redirect_uri=f"{url}/oauth2callback").start()
    (oidc,) = blocks((ROOT / "docs" / "reverse-proxy.md").read_text(), "toml")
    ours = oidc.replace(
        "https://id.example/.well-known/openid-configuration", provider.metadata_url
    )
    (folder / "oidc.toml").write_text(ours)
    (folder / "client-secret").write_text(f"{CLIENT_SECRET}\n")
    (folder / "cookie-secret").write_text(f"{COOKIE_SECRET}\n")
    server = Server(
        data, folder / "serve.log",
        options=("--ui-url", url, "--oidc-config", str(folder / "oidc.toml")),
    )  # fmt: skip
    nginx = Nginx(nginx_binary, folder / "nginx", server.ui_port, port)
    server.start()
    yield Place(provider, server, nginx.start())
    nginx.stop()
    server.end()
    provider.stop()


@pytest.fixture
def somebody(browser: Browser, place: Place) -> Iterator[Callable[[], Viewer]]:
    """Return windows that share no cookies; fail if the log tells a secret."""
    contexts = []

    def fresh() -> Viewer:
        contexts.append(browser.new_context(viewport={"width": 1440, "height": 900}))
        return new_viewer(contexts[-1])

    yield fresh
    for context in contexts:
        context.close()
    log = place.server.log.read_text()
    assert CLIENT_SECRET not in log
    assert COOKIE_SECRET not in log


def log_in(viewer: Viewer, name: str) -> None:
    viewer.page.get_by_role("link", name="Log in").click()
    viewer.page.get_by_role("heading", name="Who are you?").wait_for()
    viewer.page.get_by_role("link", name=name).click()


def asking_for_deep(place: Place, somebody: Callable[[], Viewer], name: str) -> Viewer:
    """Ask for a deep link in a window of its own, and log in on the way."""
    viewer = somebody()
    viewer.page.goto(f"{place.url}/{DEEP}")
    log_in(viewer, name)
    return viewer


def test_who_logs_in_comes_back_to_the_page_with_its_filters(
    place: Place, somebody: Callable[[], Viewer]
) -> None:
    viewer = somebody()
    sockets: list[str] = []
    viewer.page.on("websocket", lambda socket: sockets.append(socket.url))
    viewer.page.goto(f"{place.url}/{DEEP}")
    expect(viewer.page.get_by_role("heading", name="Log in")).to_be_visible()
    assert "weather" not in viewer.page.locator("main").inner_text()
    assert sockets == []
    log_in(viewer, "kim")
    viewer.page.wait_for_url(f"{place.url}/{DEEP}")
    viewer.complaints.clear()  # the browser's own on the 401
    viewer.settle()
    assert viewer.page.locator("h1").first.inner_text() == "Errors"
    assert parse_qs(urlsplit(viewer.page.url).query) == ASKED
    expect(viewer.page.locator(VISITOR)).to_have_text("Logged in as Kim@Example.com")
    assert len(sockets) == 1
    cookies = {one["name"]: one for one in viewer.page.context.cookies()}
    pieces = [one for name, one in cookies.items() if name.startswith("_streamlit_user")]
    assert sum(len(one["value"]) for one in pieces) > 8192, "more than a websocket may send"
    for one in pieces:
        assert (one["httpOnly"], one["sameSite"], one["path"]) == (True, "Lax", "/fuseboard")
    assert "fuseboard_return" not in cookies

    viewer.page.locator('[data-testid="stSidebar"]').get_by_role("link", name="Retries").click()
    viewer.page.wait_for_url(f"{place.url}/retries?**")
    viewer.settle()
    viewer.open(f"{place.url}/?range=1h")
    assert viewer.stats()["calls"]
    viewer.assert_is_sound()


def test_who_logs_out_is_out_here_and_at_the_provider(
    place: Place, somebody: Callable[[], Viewer]
) -> None:
    viewer = somebody()
    viewer.page.goto(f"{place.url}/?range=1h")
    log_in(viewer, "kim")
    viewer.settle()
    before = len(place.provider.logged_out)
    viewer.page.get_by_role("button", name="Log out").click()
    expect(viewer.page.get_by_role("heading", name="Log in")).to_be_visible(timeout=30_000)
    (asked,) = place.provider.logged_out[before:]
    assert asked["id_token_hint"].count(".") == 2
    names = {one["name"] for one in viewer.page.context.cookies()}
    assert not [name for name in names if name.startswith("_streamlit_user")]
    viewer.page.goto(f"{place.url}/{DEEP}")
    expect(viewer.page.get_by_role("heading", name="Log in")).to_be_visible()


@pytest.mark.parametrize("name", ["eve", "ann"])
def test_who_has_no_access_is_told_and_sees_nothing(
    name: str, place: Place, somebody: Callable[[], Viewer]
) -> None:
    viewer = somebody()
    sockets: list[str] = []
    viewer.page.on("websocket", lambda socket: sockets.append(socket.url))
    viewer.page.goto(f"{place.url}/{DEEP}")
    log_in(viewer, name)
    expect(viewer.page.get_by_role("heading", name="No access")).to_be_visible()
    assert str(PEOPLE[name]["email"]) in viewer.page.locator("main").inner_text()
    assert viewer.page.locator(".fb-head").count() == 0
    assert sockets == []
    viewer.page.get_by_role("link", name="Log out").click()
    expect(viewer.page.get_by_role("heading", name="Log in")).to_be_visible()
    log_in(viewer, "kim")
    viewer.settle()
    expect(viewer.page.locator(VISITOR)).to_have_text("Logged in as Kim@Example.com")


def test_a_login_that_goes_wrong_is_said_and_can_be_tried_again(
    place: Place, somebody: Callable[[], Viewer]
) -> None:
    viewer = asking_for_deep(place, somebody, "cancel")
    expect(viewer.page.get_by_role("heading", name="Logging in did not work")).to_be_visible()
    place.provider.forges = True
    viewer.page.get_by_role("link", name="Try again").click()
    viewer.page.get_by_role("link", name="kim").click()
    expect(viewer.page.get_by_role("heading", name="Logging in did not work")).to_be_visible()
    place.provider.forges = False
    viewer.page.get_by_role("link", name="Try again").click()
    viewer.page.get_by_role("link", name="kim").click()
    viewer.page.wait_for_url(f"{place.url}/{DEEP}")
    viewer.settle()


def test_a_provider_that_is_away_is_said(place: Place, somebody: Callable[[], Viewer]) -> None:
    viewer = somebody()
    viewer.page.goto(f"{place.url}/{DEEP}")
    place.provider.stop()
    viewer.page.get_by_role("link", name="Log in").click()
    expect(viewer.page.get_by_role("heading", name="provider does not answer")).to_be_visible()
    place.provider.start()
    viewer.page.get_by_role("link", name="Try again").click()
    viewer.page.get_by_role("link", name="kim").click()
    viewer.page.wait_for_url(f"{place.url}/{DEEP}")


def test_a_login_outlives_a_restart_and_a_dropped_websocket(
    place: Place, somebody: Callable[[], Viewer]
) -> None:
    viewer = asking_for_deep(place, somebody, "kim")
    viewer.settle()
    place.server.kill()
    viewer.page.get_by_role("dialog").wait_for(timeout=30_000)
    with viewer.page.expect_websocket(timeout=60_000):
        place.server.start()
    viewer.page.wait_for_selector('[data-test-connection-state="CONNECTED"]', timeout=30_000)
    viewer.page.get_by_role("dialog").wait_for(state="detached", timeout=30_000)
    viewer.settle()
    assert parse_qs(urlsplit(viewer.page.url).query) == ASKED
    expect(viewer.page.locator(VISITOR)).to_have_text("Logged in as Kim@Example.com")


def test_a_page_whose_login_has_ended_says_so_and_comes_back(
    place: Place, somebody: Callable[[], Viewer]
) -> None:
    viewer = asking_for_deep(place, somebody, "kim")
    viewer.settle()
    viewer.page.context.clear_cookies()
    place.nginx.stop()
    place.nginx.start()
    expect(viewer.page.get_by_role("dialog")).to_contain_text(
        "Your login has ended. Reload this page", timeout=30_000
    )
    viewer.page.reload()
    log_in(viewer, "kim")
    viewer.page.wait_for_url(f"{place.url}/{DEEP}")
    viewer.settle()
