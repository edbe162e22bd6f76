"""HC-45 in a real browser: pages work below a prefix of nginx, and outlive a lost websocket."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.browser.viewer import choose
from tests.nginx import Nginx
from tests.processes import Server, free_port

from fuseboard_dashboard.menu import MENU

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(400)]

PAGES = tuple(entry.path for entry in MENU)
FIRST = PAGES[0]
CHOSEN = {"range": ["1h"], "tool": ["weather"], "region": ["us-east"]}


@pytest.fixture(scope="module")
def nginx(
    board: Server, nginx_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nginx]:
    """Serve a copy of the demo's data behind nginx."""
    folder = tmp_path_factory.mktemp("proxied")
    data = board.copy_data(folder)
    port = free_port()
    server = Server(
        data, folder / "serve.log",
        options=("--ui-url", f"http://127.0.0.1:{port}/fuseboard"),
    )  # fmt: skip
    proxy = Nginx(nginx_binary, folder / "nginx", server.ui_port, port)
    server.start()
    yield proxy.start()
    proxy.stop()
    server.end()


class Traffic:
    """Every answer that a page got, to see where it asked."""

    def __init__(self, page: Any) -> None:
        self._answers: list[tuple[int, str]] = []
        page.on("response", lambda answer: self._answers.append((answer.status, answer.url)))

    def assert_stays_below(self, nginx: Nginx) -> None:
        assert self._answers
        assert any(url.endswith(".woff2") for _, url in self._answers)
        for status, url in self._answers:
            assert url.startswith((f"{nginx.url}/", "data:", "blob:")), url
            # Opened by a deep link, Streamlit finds its base path by asking below the page first.
            is_probe = "/_stcore/" in url and status == 404
            assert status < 400 or is_probe, (status, url)


def hrefs(viewer: Any) -> set[str]:
    """Return every link of the page as the browser resolves it."""
    return set(viewer.page.locator("a[href]").evaluate_all("all => all.map(one => one.href)"))


def query(url: str) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url).query)


def link(viewer: Any, name: str) -> Any:
    return viewer.page.locator('[data-testid="stSidebar"]').get_by_role("link", name=name)


@pytest.mark.parametrize("name", PAGES)
def test_hc_45_a_page_draws_below_the_prefix(name: str, nginx: Nginx, viewer: Any) -> None:
    traffic = Traffic(viewer.page)
    viewer.open(f"{nginx.url}/{'' if name == FIRST else name}?range=1h")
    viewer.assert_is_sound()
    assert viewer.page.locator("h1").first.inner_text().lower().startswith(name)
    links = hrefs(viewer)
    assert len(links) >= len(PAGES)
    assert all(href.startswith(f"{nginx.url}/") for href in links), links
    traffic.assert_stays_below(nginx)


def test_hc_45_filters_and_links_stay_below_the_prefix(nginx: Nginx, viewer: Any) -> None:
    traffic = Traffic(viewer.page)
    viewer.open(f"{nginx.url}/?range=1h")
    everything = viewer.stats()["calls"]
    choose(viewer, "Tool", "weather")
    viewer.page.wait_for_function("() => location.search.includes('tool=weather')")
    viewer.settle()
    assert 0 < viewer.stats()["calls"] < everything
    link(viewer, "Errors").click()
    viewer.page.wait_for_url(f"{nginx.url}/errors?**")
    viewer.settle()
    assert query(viewer.page.url) == {"range": ["1h"], "tool": ["weather"]}
    link(viewer, "Board").click()
    viewer.page.wait_for_function("() => !location.pathname.includes('errors')")
    viewer.settle()
    assert urlsplit(viewer.page.url).path == f"/fuseboard/{FIRST}"
    ours = viewer.page.locator("a.fb-stat, .fb a").first
    leads_to = str(ours.evaluate("one => one.href"))
    assert leads_to.startswith(f"{nginx.url}/")
    ours.click()
    viewer.page.wait_for_url(leads_to)
    viewer.settle()
    viewer.page.go_back()
    viewer.page.wait_for_url(f"{nginx.url}/{FIRST}?**")
    viewer.settle()
    assert query(viewer.page.url) == {"range": ["1h"], "tool": ["weather"]}
    viewer.assert_is_sound()
    traffic.assert_stays_below(nginx)


def test_hc_45_a_table_is_downloaded_below_the_prefix(
    nginx: Nginx, viewer: Any, tmp_path: Path
) -> None:
    traffic = Traffic(viewer.page)
    viewer.open(f"{nginx.url}/retries?range=1h&tool=weather")
    with viewer.page.expect_download() as started:
        viewer.page.locator(".st-key-fb_download_retries_tools_csv").get_by_role("button").click()
    started.value.save_as(tmp_path / "tools.csv")
    with (tmp_path / "tools.csv").open(newline="", encoding="utf-8") as file:
        assert {row["tool"] for row in csv.DictReader(file)} == {"weather"}
    viewer.assert_is_sound()
    traffic.assert_stays_below(nginx)


def test_hc_45_and_44_a_dropped_websocket_loses_no_filters(nginx: Nginx, viewer: Any) -> None:
    viewer.open(f"{nginx.url}/?range=1h")
    choose(viewer, "Tool", "weather")
    choose(viewer, "Region", "us-east")
    viewer.page.wait_for_function("() => location.search.includes('region=us-east')")
    assert query(viewer.page.url) == CHOSEN
    shown = viewer.stats()["calls"]
    assert shown
    viewer.assert_is_sound()

    nginx.stop()
    viewer.page.get_by_role("dialog").wait_for(timeout=30_000)
    assert "Connection error" in viewer.page.get_by_role("dialog").inner_text()
    with viewer.page.expect_websocket(timeout=60_000):
        nginx.start()
    viewer.page.get_by_role("dialog").wait_for(state="detached", timeout=30_000)
    viewer.page.wait_for_selector('[data-test-connection-state="CONNECTED"]', timeout=30_000)
    viewer.settle()
    viewer.complaints.clear()  # the browser's own on a server that was away

    assert query(viewer.page.url) == CHOSEN
    chosen = viewer.page.locator('[data-testid="stSidebar"]').inner_text()
    assert "weather" in chosen
    assert "us-east" in chosen
    assert viewer.stats()["calls"] == shown
    link(viewer, "Retries").click()
    viewer.page.wait_for_url(f"{nginx.url}/retries?**")
    viewer.settle()
    assert query(viewer.page.url) == CHOSEN
    viewer.assert_is_sound()
