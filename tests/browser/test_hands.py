"""What hands do: the keyboard, a page that refreshes under them, and a phone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.browser.viewer import paused

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

FOCUSED = """() => {
    const e = document.activeElement, style = getComputedStyle(e);
    const ring = x => x && (getComputedStyle(x).outlineStyle !== 'none'
        && parseFloat(getComputedStyle(x).outlineWidth) > 0
        || getComputedStyle(x).boxShadow !== 'none');
    return {
        tag: e.tagName, href: e.href || '', role: e.getAttribute('role') || '',
        label: e.getAttribute('aria-label') || e.textContent.slice(0, 40),
        ours: !!e.closest('.fb'), fuse: !!e.closest('[data-testid="fb-fuse"]'),
        stat: e.matches('[data-testid="fb-stat"]'),
        sidebar: !!e.closest('[data-testid="stSidebar"]'), visible: !!ring(e),
    };
}"""
MOST_TABS = 90
FIRST_FUSE = """() => document.querySelector('[data-testid="fb-fuse"]')
    .getBoundingClientRect().top"""
SIDEBAR_ENDS = """() => document.querySelector('[data-testid="stSidebar"]')
    .getBoundingClientRect().right"""


def test_the_keyboard_reaches_pages_filters_numbers_and_fuses(board: Any, viewer: Any) -> None:
    viewer.open(f"{board.ui_url}/board?{paused()}")
    steps: list[dict[str, Any]] = []
    for _ in range(MOST_TABS):
        viewer.page.keyboard.press("Tab")
        steps.append(viewer.page.evaluate(FOCUSED))
        if steps[-1]["fuse"]:
            break
    hrefs = [step["href"] for step in steps if step["sidebar"]]
    assert any("/errors" in href for href in hrefs)
    assert {"Time", "Tool", "Region"} <= {
        word for step in steps for word in ("Time", "Tool", "Region") if word in step["label"]
    }
    assert any(step["stat"] for step in steps)
    assert steps[-1]["fuse"], steps[-1]
    assert [step for step in steps if step["ours"] and not step["visible"]] == []
    viewer.page.keyboard.press("Enter")
    viewer.page.wait_for_url("**/tool?**")
    viewer.settle()
    assert viewer.heading() == "Tool"
    assert "tool" in viewer.asked()
    viewer.assert_is_sound()


def refreshed(viewer: Any, times: int) -> None:
    """Wait for refreshes of a live page."""
    for _ in range(times):
        shown = viewer.window()
        viewer.page.wait_for_function(
            """until => document.querySelector('[data-testid="fb-window"]')
                ?.getAttribute('data-until') !== until""",
            arg=shown[1], timeout=40_000,
        )  # fmt: skip
        viewer.settle()


def test_hc_44_a_refresh_keeps_the_place_and_what_was_typed(board: Any, viewer: Any) -> None:
    viewer.open(f"{board.ui_url}/board?range=1h")
    box = viewer.page.get_by_placeholder("Find by tool or region")
    box.fill("e")
    box.press("Enter")
    viewer.settle()
    fuses = viewer.page.get_by_test_id("fb-fuse").count()
    box.press_sequentially("u-")  # typed, not yet sent
    main = viewer.page.get_by_test_id("stMain")
    main.evaluate("e => e.scrollTo(0, 420)")
    assert main.evaluate("e => e.scrollTop") > 200
    place = viewer.page.evaluate(FIRST_FUSE)
    refreshed(viewer, 2)
    # An alert that came above may move the page under the window, never what is looked at.
    assert viewer.page.evaluate(FIRST_FUSE) == pytest.approx(place, abs=2)
    assert box.input_value() == "eu-"
    assert viewer.page.get_by_test_id("fb-fuse").count() == fuses
    assert viewer.page.evaluate("document.activeElement.tagName") == "INPUT"
    viewer.assert_is_sound()


def test_hc_44_a_refresh_keeps_a_selected_cell(board: Any, viewer: Any) -> None:
    viewer.open(f"{board.ui_url}/errors?range=1h")
    grid = viewer.page.get_by_test_id("stDataFrame").last
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    viewer.page.mouse.click(box["x"] + 160, box["y"] + 60)
    selected = grid.locator('td[aria-selected="true"]')
    selected.first.wait_for(state="attached")
    chosen = selected.first.text_content()
    refreshed(viewer, 2)
    assert selected.first.text_content() == chosen
    viewer.assert_is_sound()


@pytest.mark.parametrize("store", ["demo", "hostile"])
def test_the_board_fits_a_phone(store: str, served: Any, viewer: Any) -> None:
    viewer.page.set_viewport_size({"width": 390, "height": 844})
    viewer.open(f"{served(store).ui_url}/board?{paused()}")
    viewer.assert_is_sound()
    if store == "demo":
        assert viewer.cut_words() == []
    assert viewer.page.evaluate(SIDEBAR_ENDS) <= 40
    heading = viewer.page.locator(".fb-head h1").bounding_box()
    assert heading["y"] > 40  # below Streamlit's bar, not under it
    boxes = [fuse.bounding_box() for fuse in viewer.page.get_by_test_id("fb-fuse").all()[:12]]
    assert len({round(box["x"]) for box in boxes}) == 1
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    viewer.page.get_by_test_id("stExpandSidebarButton").click()
    viewer.page.wait_for_function(f"() => ({SIDEBAR_ENDS})() > 200")
