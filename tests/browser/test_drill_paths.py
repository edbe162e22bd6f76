"""Every way from a number to the calls behind it, clicked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from tests.browser.recount import Records, in_window
from tests.browser.viewer import paused

from fuseboard_dashboard.filters import SESSION
from fuseboard_dashboard.menu import MENU

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

TITLES = {entry.path: entry.title() for entry in MENU}
MAIN = '[data-testid="stMain"]'
SESSIONS = "sessions"
LEAST_KINDS = 15


@dataclass(frozen=True)
class Drill:
    """One link of a page.

    Attributes:
        page: Where it is.
        href: As written there.
        url: As the browser reads it.
    """

    page: str
    href: str
    url: str

    @property
    def target(self) -> str:
        return urlsplit(self.url).path.strip("/") or "board"

    @property
    def title(self) -> str:
        """Return the heading there: one session has its own."""
        is_one = self.target == SESSIONS and SESSION in self.asked
        return "Session" if is_one else TITLES[self.target]

    @property
    def asked(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.url).query, keep_blank_values=True)

    @property
    def kind(self) -> tuple[str, frozenset[str]]:
        """Links to one page with one set of parameters are one way to draw it."""
        return self.target, frozenset(self.asked)


def drills(viewer: Any, page: str, base: str) -> Iterator[Drill]:
    """Yield the links of the page that is open, those to other places left out."""
    links = viewer.page.locator(f"{MAIN} a[href]")
    for href in dict.fromkeys(links.evaluate_all("all => all.map(a => a.getAttribute('href'))")):
        url = urljoin(viewer.page.url, href)
        if url.startswith(base) and not href.startswith("#"):
            yield Drill(page, href, url)


def follow(viewer: Any, drill: Drill) -> None:
    """Click a link and wait for the page it names."""
    quoted = drill.href.replace("\\", "\\\\").replace('"', '\\"')
    link = viewer.page.locator(f'{MAIN} a[href="{quoted}"]').first
    link.scroll_into_view_if_needed()
    link.click()
    viewer.page.wait_for_url(lambda url: urlsplit(url).path == urlsplit(drill.url).path)
    viewer.page.wait_for_function(
        "title => document.querySelector('.fb-head h1')?.textContent === title",
        arg=drill.title,
    )
    viewer.settle()


@pytest.fixture(scope="module")
def seen() -> set[tuple[str, frozenset[str]]]:
    """Remember the kinds of links that were followed from an earlier page."""
    return set()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("page", TITLES)
def test_every_kind_of_link_leads_where_it_says_and_keeps_the_filters(
    page: str, board: Any, viewer: Any, seen: set[tuple[str, frozenset[str]]]
) -> None:
    """Kinds that an earlier page of the menu has, too, are followed there."""
    start = f"{board.ui_url}/{page}?{paused()}"
    viewer.open(start)
    fresh = [drill for drill in drills(viewer, page, board.ui_url) if drill.kind not in seen]
    for drill in {drill.kind: drill for drill in reversed(fresh)}.values():
        seen.add(drill.kind)
        if viewer.page.url != start:
            viewer.open(start)
        follow(viewer, drill)
        viewer.assert_is_sound()
        there = viewer.asked()
        assert {name: there.get(name) for name in drill.asked} == drill.asked, drill
        assert viewer.page.get_by_test_id("fb-notice").count() == 0, drill
        assert viewer.page.get_by_test_id("fb-no-match").count() == 0, drill


def test_there_were_links_to_follow(seen: set[tuple[str, frozenset[str]]]) -> None:
    """Without this, pages without any link would pass above."""
    assert len(seen) >= LEAST_KINDS
    targets = {target for target, _ in seen}
    assert targets >= {"tool", "errors", "breakers", "retries", "latency", "trace"}


def test_from_the_matrix_to_one_trace(board: Any, viewer: Any, calls: Records) -> None:
    """Cell → the same number of faulty calls → their kinds and arguments → one call → its trace."""
    viewer.open(f"{board.ui_url}/errors?{paused()}")
    window = viewer.window()
    cell = max(
        viewer.page.get_by_test_id("fb-cell").all(),
        key=lambda one: float(one.get_attribute("data-value") or 0),
    )
    where = {part: cell.get_attribute(f"data-{part}") for part in ("class", "tool", "region")}
    count = float(cell.get_attribute("data-value"))
    cell.click()
    viewer.page.wait_for_url("**/errors?**class=**")
    viewer.settle()
    assert viewer.stats()["faults"] == count
    behind = [
        call for call in in_window(calls, window)
        if (call["error_class"], call["tool"], call["region"])
        == (where["class"], where["tool"], where["region"])
    ]  # fmt: skip
    assert len(behind) == count

    hashes = viewer.page.locator(f"{MAIN} a[href*='hash=']")
    hashes.first.click()
    viewer.page.wait_for_url("**hash=**")
    viewer.settle()
    chosen = viewer.asked()["hash"][0]
    assert {"class", "tool"} <= set(viewer.asked())
    assert chosen in {call["args_hash"] for call in behind}

    traces = {call["trace_id"] for call in behind if call["args_hash"] == chosen}
    grid = viewer.page.get_by_test_id("stDataFrame").last
    grid.scroll_into_view_if_needed()
    grid.locator("td").first.wait_for(state="attached")
    shown = grid.locator("td").all_text_contents()
    links = [text for text in shown if "trace?" in text or any(t in text for t in traces)]
    assert links, shown
    address = next(text for text in links if any(t in text for t in traces))
    found = next(t for t in traces if t in address)
    viewer.open(
        urljoin(f"{board.ui_url}/", address if "trace?" in address else f"trace?trace={found}")
    )
    assert viewer.heading() == TITLES["trace"]
    assert found[:8] in viewer.page.locator(MAIN).inner_text()
    viewer.assert_is_sound()
