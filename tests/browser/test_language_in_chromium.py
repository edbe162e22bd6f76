"""What only a browser shows of languages: that it is asked, told, and kept over links."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Browser
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from tests.browser.viewer import Viewer, new_viewer, paused

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

TITLES = {
    "board": "看板",
    "errors": "错误",
    "breakers": "熔断器",
    "latency": "延迟",
    "alerts": "告警",
}


@pytest.fixture
def chinese(browser: Browser) -> Iterator[Viewer]:
    """Open a window of a browser that speaks Chinese, of 1280 pixels."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="zh-CN")
    yield new_viewer(context)
    context.close()


def _tag(viewer: Viewer) -> str:
    return str(viewer.page.evaluate("document.documentElement.lang"))


def _choose_language(viewer: Viewer, name: str) -> None:
    """Pick a language; a click that meets the moment of a redraw is lost, as in ``choose``."""
    field = viewer.page.get_by_test_id("stSidebar").get_by_label("Language · 语言")
    for _ in range(3):
        field.click()
        with suppress(PlaywrightTimeout):
            viewer.page.get_by_role("option", name=name).click(timeout=5_000)
            break
    viewer.page.wait_for_url("**lang=**", timeout=60_000)
    viewer.settle()


@pytest.mark.parametrize("page", TITLES)
def test_a_chinese_browser_reads_chinese_and_nothing_is_cut(
    page: str, board: Any, chinese: Viewer
) -> None:
    chinese.open(f"{board.ui_url}/{page}?{paused()}")
    assert chinese.heading() == TITLES[page]
    assert _tag(chinese) == "zh-Hans"
    assert "lang" not in chinese.asked()
    assert chinese.cut_words() == []
    chinese.assert_is_sound()


def test_a_choice_is_kept_over_links_and_leaves_all_others(board: Any, chinese: Viewer) -> None:
    chosen = f"{paused()}&tool=weather&class=L3_transient"
    chinese.open(f"{board.ui_url}/tool?{chosen}")
    faulty = chinese.page.get_by_role("radio", name="故障")
    faulty.click()
    chinese.settle()
    before = chinese.asked()
    _choose_language(chinese, "English")
    assert chinese.heading() == "Tool"
    assert _tag(chinese) == "en"
    assert chinese.asked() == before | {"lang": ["en"]}
    side = chinese.page.get_by_test_id("stSidebar")
    assert side.get_by_role("combobox", name="Time").input_value() == "Last hour"
    assert chinese.page.get_by_role("radio", name="Faulty").get_attribute("aria-checked") == "true"
    side.get_by_role("link", name="Errors").click()
    chinese.page.get_by_role("heading", name="Errors", exact=True).first.wait_for()
    chinese.settle()
    assert chinese.asked()["lang"] == ["en"]
    chinese.page.get_by_test_id("fb-cell").first.click()
    chinese.page.wait_for_url("**region=**")
    chinese.settle()
    assert chinese.heading() == "Errors"
    chinese.assert_is_sound()
