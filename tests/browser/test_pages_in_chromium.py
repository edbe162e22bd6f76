"""Tables, fuses and filters in a real browser, held against the export of the same data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.browser.recount import HEADLINES, Record, Records, in_window, retry_ratio
from tests.browser.viewer import choose

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

BOARD = ("calls", "error-ratio", "retry-ratio", "amplification", "degraded-ratio", "p99")


def test_the_demo_shows_every_class_and_a_breaker_that_opened_and_closed(
    calls: Records, transitions: Records
) -> None:
    """Without this, the pages below could be right about nothing."""
    classes = Counter(call["error_class"] for call in calls)
    assert {"L1_input", "L2_access", "L3_transient", "L4_persistent", "L5_semantic"} <= set(classes)
    assert len({call["tool"] for call in calls}) >= 8
    assert len({call["region"] for call in calls}) == 3
    moves = {(move["from_state"], move["to_state"]) for move in transitions}
    assert {("closed", "open"), ("half_open", "closed")} <= moves


@pytest.mark.parametrize(
    ("query", "keep"),
    [
        ("", lambda call: True),
        ("&region=eu-west", lambda call: call["region"] == "eu-west"),
        ("&tool=weather", lambda call: call["tool"] == "weather"),
        (
            "&tool=weather&region=us-east",
            lambda call: (call["tool"], call["region"]) == ("weather", "us-east"),
        ),
    ],
)
def test_the_numbers_of_the_board_equal_the_export(
    query: str, keep: Callable[[Record], bool], board: Any, viewer: Any, calls: Records
) -> None:
    viewer.open(f"{board.ui_url}/?range=1h{query}")
    shown = viewer.stats()
    wanted = [call for call in in_window(calls, viewer.window()) if keep(call)]
    assert wanted
    for name in BOARD:
        value = HEADLINES[name](wanted)
        assert shown[name] == (None if value is None else pytest.approx(value, abs=1e-9)), name


def test_every_fuse_equals_the_export(board: Any, viewer: Any, calls: Records) -> None:
    viewer.open(f"{board.ui_url}/?range=1h")
    wanted = in_window(calls, viewer.window())
    fuses = viewer.page.locator('[data-testid="fb-fuse"]').all()
    shown = {
        (f.get_attribute("data-tool"), f.get_attribute("data-region")): (
            float(f.get_attribute("data-calls")),
            float(f.get_attribute("data-retried")),
            float(f.get_attribute("data-degraded")),
        )
        for f in fuses
    }
    assert len(shown) >= 24
    for (tool, region), numbers in shown.items():
        own = [c for c in wanted if (c["tool"], c["region"]) == (tool, region)]
        retried = sum(call["attempts"] > 1 for call in own)
        degraded = sum(call["outcome"] == "degraded" for call in own)
        assert numbers == (len(own), retried, degraded), (tool, region)
    assert len(shown) == len({(call["tool"], call["region"]) for call in wanted})


def test_the_matrix_of_errors_equals_the_export(board: Any, viewer: Any, calls: Records) -> None:
    viewer.open(f"{board.ui_url}/errors?range=1h&class=L3_transient&class=L5_semantic")
    wanted = in_window(calls, viewer.window())
    cells = viewer.page.locator('[data-testid="fb-cell"]').all()
    shown = Counter(
        {
            tuple(
                cell.get_attribute(f"data-{part}") for part in ("class", "tool", "region")
            ): float(cell.get_attribute("data-value") or 0)
            for cell in cells
        }
    )
    assert {key[0] for key, value in shown.items() if value} == {"L3_transient", "L5_semantic"}
    for (error_class, tool, region), value in shown.items():
        own = [
            call for call in wanted
            if (call["error_class"], call["tool"], call["region"]) == (error_class, tool, region)
        ]  # fmt: skip
        assert value == len(own), (error_class, tool, region)


def test_the_message_of_a_sample_call_is_seen_without_scrolling(board: Any, viewer: Any) -> None:
    """The grid names the columns in sight; one right of the message means it is there whole."""
    viewer.open(f"{board.ui_url}/errors?range=1h")
    grid = viewer.page.locator('[data-testid="stDataFrame"]').last
    grid.scroll_into_view_if_needed()
    titles = grid.locator("th")
    titles.filter(has_text="Message").wait_for(state="attached")
    seen = titles.all_inner_texts() or titles.all_text_contents()
    place = seen.index("Message")
    assert seen[place - 1] == "Error type"
    assert len(seen) > place + 1, seen


def test_breakers_are_listed_where_calls_passed_one(
    board: Any, viewer: Any, calls: Records, transitions: Records
) -> None:
    viewer.open(f"{board.ui_url}/breakers?range=1h")
    wanted = in_window(calls, viewer.window())
    guarded = {
        "/".join(part for part in (call["tool"], call["region"], call["upstream"]) if part)
        for call in wanted if call["breaker_state"]
    }  # fmt: skip
    assert guarded > {move["breaker"] for move in transitions}
    table = viewer.page.locator(".fb-table", has_text="Processes not closed").first
    shown = {row.inner_text() for row in table.locator("tbody td:first-child").all()}
    assert shown == guarded


def test_no_fuse_with_a_firing_alert_or_only_failures_is_green(board: Any, viewer: Any) -> None:
    viewer.open(f"{board.ui_url}/?range=1h")
    guarded = 0
    for fuse in viewer.page.locator('[data-testid="fb-fuse"]').all():
        level = fuse.get_attribute("data-level")
        judged, errors, wrong = (
            float(fuse.get_attribute(f"data-{part}"))
            for part in ("judged", "errors", "input-faults")
        )
        if fuse.get_attribute("data-alerts") or (judged and errors + wrong >= judged):
            assert level in ("tripped", "failing", "strained")
        guarded += bool(fuse.get_attribute("data-state"))
        assert bool(fuse.get_attribute("data-state")) == (
            fuse.locator(".fb-no-breaker").count() == 0
        )
    assert 0 < guarded < viewer.page.locator('[data-testid="fb-fuse"]').count()


def test_filters_are_chosen_by_hand_and_kept_in_the_address(
    board: Any, viewer: Any, calls: Records
) -> None:
    viewer.open(f"{board.ui_url}/?range=1h")
    for label, choice, key in (
        ("Tool", "weather", "tool"),
        ("Region", "us-east", "region"),
        ("Error class", "Transient", "class"),
    ):
        choose(viewer, label, choice)
        viewer.page.wait_for_function(f"() => location.search.includes('{key}=')")
    asked = parse_qs(urlsplit(viewer.page.url).query)
    assert (asked["tool"], asked["region"], asked["class"]) == (
        ["weather"], ["us-east"], ["L3_transient"],
    )  # fmt: skip
    viewer.page.locator('[data-testid="stSidebar"]').get_by_role("link", name="Retries").click()
    viewer.page.wait_for_url("**/retries?**")
    viewer.settle()
    assert parse_qs(urlsplit(viewer.page.url).query)["tool"] == ["weather"]
    viewer.page.reload()
    viewer.settle()
    viewer.assert_is_sound()
    wanted = [
        call for call in in_window(calls, viewer.window())
        if (call["tool"], call["region"]) == ("weather", "us-east")
    ]  # fmt: skip
    assert viewer.stats()["retry-ratio"] == pytest.approx(retry_ratio(wanted), abs=1e-9)


def test_unknown_parameters_are_ignored_with_a_notice(board: Any, viewer: Any) -> None:
    viewer.open(f"{board.ui_url}/?range=1h&colour=red&class=L9_cosmic")
    notice = " ".join(viewer.page.locator('[data-testid="fb-notice"]').all_inner_texts())
    assert "colour" in notice
    assert "L9_cosmic" in notice
    viewer.assert_is_sound()


def test_a_foreign_host_name_is_refused(board: Any, browser: Any) -> None:
    """A web page that rebinds its name to loopback gets nothing."""
    context = browser.new_context(extra_http_headers={"x-forwarded-host": "evil.example"})
    answer = context.request.get(board.ui_url, headers={"host": "evil.example"})
    assert answer.status in (400, 403, 421)
    context.close()
