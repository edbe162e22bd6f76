"""Every page of the menu, light and dark, on demo data, an empty store and a hostile one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from tests.browser import hostile
from tests.browser.accessibility import violations
from tests.browser.recount import HEADLINES, Records, in_window, openings
from tests.browser.viewer import paused

from fuseboard_dashboard.markup import shorten
from fuseboard_dashboard.menu import MENU

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

PAGES = [entry.path for entry in MENU]
TITLES = {entry.path: entry.title() for entry in MENU}
STORES = ("demo", "empty", "hostile")
WIDTHS = (1280, 2560)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("store", STORES)
def test_a_page_is_sound_in_every_width_light_and_dark(
    store: str, name: str, served: Callable[[str], Any], viewer: Any
) -> None:
    """On demo data axe-core agrees, too: there everything is drawn that a page can draw."""
    viewer.page.emulate_media(color_scheme="light")
    viewer.open(f"{served(store).ui_url}/{name}?{paused()}")
    assert viewer.heading() == TITLES[name]
    viewer.assert_is_sound()
    if store == "demo":
        assert violations(viewer.page) == []
    for width in WIDTHS:
        viewer.resize(width)
        viewer.assert_fits()
        if store != "hostile":
            assert viewer.cut_words() == []
    light = background(viewer)
    viewer.page.emulate_media(color_scheme="dark")
    viewer.page.wait_for_function(
        "was => getComputedStyle(document.querySelector('[data-testid=stApp]'))"
        ".backgroundColor !== was",
        arg=light,
    )
    viewer.settle()
    viewer.assert_is_sound()
    if store == "demo":
        viewer.page.wait_for_timeout(400)  # colours fade from one scheme to the other
        assert violations(viewer.page) == []


def background(viewer: Any) -> str:
    return str(
        viewer.page.get_by_test_id("stApp").evaluate("e => getComputedStyle(e).backgroundColor")
    )


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_an_empty_store_says_what_to_do(name: str, empty_board: Any, viewer: Any) -> None:
    viewer.open(f"{empty_board.ui_url}/{name}")
    viewer.assert_is_sound()
    designed = '[data-testid="fb-first-run"], .fb-empty, .fb-notice, .fb-table'
    said = " ".join(viewer.page.locator(designed).all_inner_texts())
    assert said.strip()
    if name in ("board", "tool", "errors", "retries", "latency"):
        first = viewer.page.locator('[data-testid="fb-first-run"]').first.inner_text()
        assert "waiting" in first.lower()


@pytest.mark.parametrize(
    "query",
    [
        "tool=gone&region=nowhere",
        "tool=" + quote(hostile.NAMES[0]),
        "tool=" + quote(hostile.NAMES[7]) + "&region=" + quote(hostile.NAMES[8]),
        "tool=" + quote(hostile.MANY_HASHES) + "&class=L3_transient",
        "tool=" + quote(hostile.ONE_POINT),
        "tool=" + quote(hostile.SKEWED) + "&range=5m",
    ],
    ids=["deleted", "markup", "long", "hashes", "one-point", "skewed"],
)
def test_a_stale_or_hostile_address_has_an_answer(
    query: str, hostile_board: Any, viewer: Any
) -> None:
    for name in ("board", "errors"):
        viewer.open(
            f"{hostile_board.ui_url}/{name}?range=1h&{query}".replace("range=1h&range", "range")
        )
        assert viewer.heading() == TITLES[name]
        viewer.assert_is_sound()
        ignored = viewer.page.locator('[data-testid="fb-notice"]').all_inner_texts()
        assert len(ignored) == ("gone" in query)  # of 10,000 tools, not all are known to a filter
        if "gone" in query:
            assert viewer.page.get_by_test_id("fb-no-match").count() == 1


def test_a_name_with_markup_stays_a_name(hostile_board: Any, viewer: Any) -> None:
    """No hostile name becomes an element, a script or a link; each is read as it was sent."""
    viewer.open(f"{hostile_board.ui_url}/board?range=1h")
    shown = set(viewer.page.locator(".fb-fuse-top .fb-name").all_text_contents())
    for name in hostile.NAMES:
        plain = "".join(c if c.isprintable() else " " for c in shorten(name))
        assert (plain if plain.strip() else repr(name)) in shown
    assert viewer.page.locator(".fb script, .fb [onerror], .fb a[href^='javascript']").count() == 0
    images = viewer.page.locator(".fb img").evaluate_all("found => found.map(e => e.src)")
    assert all(source.startswith("data:image/svg+xml") for source in images)
    viewer.assert_is_sound()


def test_ten_thousand_tools_are_found_by_name(hostile_board: Any, viewer: Any) -> None:
    viewer.open(f"{hostile_board.ui_url}/board?range=1h&tool=tool+number+09999")
    fuse = viewer.page.locator('[data-testid="fb-fuse"]')
    assert fuse.get_attribute("data-tool") == "tool number 09999"
    assert viewer.stats()["calls"] == 1
    viewer.assert_is_sound()


@pytest.mark.parametrize("store", ["demo", "hostile"])
@pytest.mark.parametrize("name", PAGES)
def test_every_headline_number_equals_the_export(
    store: str, name: str, served: Callable[[str], Any], viewer: Any, exported: Any
) -> None:
    """Numbers of alerts, budgets and single traces have no recount: hand-computed stores have."""
    server = served(store)
    query = "" if store == "demo" else "&tool=" + quote(hostile.NAMES[3])
    viewer.open(f"{server.ui_url}/{name}?range=1h{query}")
    shown, window = viewer.stats(), viewer.window()
    wanted = in_window(exported(store, "calls"), window)
    if name == "tool":
        tool = viewer.page.locator(".fb-section h2").first.inner_text()
        wanted = [call for call in wanted if call["tool"] == tool]
    if store == "hostile":
        wanted = [call for call in wanted if call["tool"] == hostile.NAMES[3]]
    moves = in_window(exported(store, "transitions"), window, "time")
    for stat, value in shown.items():
        if stat in HEADLINES:
            expected = HEADLINES[stat](wanted)
            close = None if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-9)
            assert value == close, stat
    if store == "demo" and name == "breakers":
        assert (shown["openings"], shown["transitions"]) == (openings(moves), len(moves))


@pytest.fixture(scope="session")
def exported(request: pytest.FixtureRequest) -> Callable[[str, str], Records]:
    """Return a store's records, exported once."""
    found: dict[tuple[str, str], Records] = {}

    def get(store: str, kind: str) -> Records:
        server = request.getfixturevalue({"demo": "board", "hostile": "hostile_board"}[store])
        if (store, kind) not in found:
            found[store, kind] = server.export(kind)
        return found[store, kind]

    return get
