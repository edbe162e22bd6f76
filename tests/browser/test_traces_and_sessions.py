"""From a list into a trace or a session and on, as a hand does it, with numbers from the export."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.browser.recount import Records

pytestmark = [pytest.mark.browser, pytest.mark.e2e]


def test_a_trace_is_reached_read_by_keyboard_and_left_for_the_tool(
    board: Any, calls: Records, viewer_in_scheme: Any
) -> None:
    viewer, page = viewer_in_scheme, viewer_in_scheme.page
    viewer.open(f"{board.ui_url}/trace?range=1h")
    page.locator(".fb-table a").first.click()
    page.get_by_test_id("fb-waterfall").wait_for()
    viewer.settle()
    trace = page.get_by_test_id("fb-trace").get_attribute("data-trace")
    assert viewer.asked()["trace"] == [trace]
    own = [call for call in calls if call["trace_id"] == trace]
    assert page.get_by_test_id("fb-call").count() == len(own) == viewer.stats()["trace-calls"]
    assert viewer.stats()["trace-attempts"] == sum(call["attempts"] for call in own)
    viewer.assert_is_sound()
    viewer.resize(1280)
    viewer.assert_fits()
    assert viewer.cut_words() == []

    closed = page.locator('[data-testid="fb-call"]:not([open])').first
    tool = closed.get_attribute("data-tool")
    span = closed.get_attribute("data-span")
    closed.locator("summary").focus()
    page.keyboard.press("Enter")
    call = page.locator(f'[data-span="{span}"]')
    assert call.get_by_test_id("fb-story").is_visible()
    viewer.assert_fits()
    call.locator(".fb-ways a").first.click()
    page.get_by_test_id("fb-tool").wait_for()
    viewer.settle()
    assert viewer.asked()["tool"] == [tool]
    assert viewer.asked()["range"] == ["1h"]


def test_a_call_that_was_opened_stays_open_while_the_page_refreshes(
    board: Any, viewer: Any
) -> None:
    page = viewer.page
    viewer.open(f"{board.ui_url}/trace?range=1h")
    page.locator(".fb-table a").first.click()
    page.get_by_test_id("fb-waterfall").wait_for()
    viewer.settle()
    page.locator('[data-testid="fb-call"]:not([open]) summary').first.click()
    is_open = page.locator('[data-testid="fb-call"][open]').count()
    read_at = page.get_by_test_id("fb-read-at").inner_text()
    page.wait_for_function(
        "was => (document.querySelector('[data-testid=fb-read-at]')?.innerText ?? was) !== was",
        arg=read_at, timeout=30_000,
    )  # fmt: skip
    assert page.locator('[data-testid="fb-call"][open]').count() == is_open


def test_a_session_in_circles_is_found_and_leads_to_its_trace(
    board: Any, calls: Records, viewer_in_scheme: Any
) -> None:
    viewer, page = viewer_in_scheme, viewer_in_scheme.page
    viewer.open(f"{board.ui_url}/sessions?range=1h")
    assert viewer.stats()["sessions"] == len({call["session"] for call in calls})
    viewer.assert_is_sound()
    again = Counter((c["session"], c["tool"], c["args_hash"]) for c in calls)
    looping = {session for (session, *_), times in again.items() if times >= 3}
    assert viewer.stats()["sessions-repeating"] == len(looping) > 0
    first = page.get_by_test_id("fb-session").first
    name = first.get_attribute("data-session")
    assert name in looping
    first.click()
    page.get_by_test_id("fb-session-head").wait_for()
    viewer.settle()
    assert viewer.asked()["session"] == [name]
    circle = page.get_by_test_id("fb-circle").first
    key = (name, circle.get_attribute("data-tool"), circle.get_attribute("data-args-hash"))
    assert int(str(circle.get_attribute("data-calls"))) == again[key]
    assert viewer.stats()["session-growth"] > 1
    viewer.assert_is_sound()
    circle.locator("a").first.click()
    page.get_by_test_id("fb-waterfall").wait_for()
    viewer.settle()
    assert f"sessions?range=1h&session={name}" in str(
        page.locator(".fb-trace a").first.get_attribute("href")
    )
