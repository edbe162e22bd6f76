"""The matrix of answers, the picture of dependencies, and where they lead, in a real browser."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.browser.recount import Records, answers, errors, in_window, of

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

SOURCES = {"default": ("degraded", "default"), "fallback": ("degraded", "fallback"),
           "stale": ("degraded", "cache"), "cache": ("ok", "cache")}  # fmt: skip


def test_every_cell_of_degradation_equals_the_export(
    board: Any, viewer: Any, calls: Records
) -> None:
    viewer.open(f"{board.ui_url}/degradation?range=1h")
    wanted = in_window(calls, viewer.window())
    seen = Counter[str]()
    for cell in viewer.page.get_by_test_id("fb-answer-cell").all():
        kind, tool, region = (cell.get_attribute(f"data-{k}") for k in ("kind", "tool", "region"))
        own = [call for call in wanted if (call["tool"], call["region"]) == (tool, region)]
        expected = len(of(own, "partial")) if kind == "partial" else answers(own, *SOURCES[kind])
        assert float(cell.get_attribute("data-value")) == expected, (kind, tool, region)
        seen[kind] += 1
    assert set(seen) == {"default", "fallback", "stale", "partial", "cache"}


def test_a_cell_of_degradation_leads_to_its_calls(board: Any, viewer: Any) -> None:
    viewer.open(f"{board.ui_url}/degradation?range=1h")
    viewer.page.locator('[data-kind="stale"]').first.click()
    viewer.page.wait_for_selector('[data-testid="fb-narrowed"]')
    viewer.settle()
    assert viewer.asked()["answer"] == ["stale"]
    assert viewer.asked()["tool"] == ["exchange_rate"]
    viewer.assert_is_sound()


def test_every_node_of_the_dependencies_equals_the_export(
    board: Any, viewer: Any, calls: Records
) -> None:
    viewer.open(f"{board.ui_url}/dependencies?range=1h")
    wanted = in_window(calls, viewer.window())
    columns = {
        "caller": lambda call: call["agent"] or call["service"],
        "tool": lambda call: call["tool"],
        "upstream": lambda call: call["upstream"],
    }
    nodes = viewer.page.get_by_test_id("fb-node").all()
    assert len(nodes) >= 1 + 9 + 8
    for node in nodes:
        column, name = node.get_attribute("data-column"), node.get_attribute("data-name")
        own = [call for call in wanted if columns[column](call) == name]
        numbers = [float(node.get_attribute(f"data-{key}")) for key in ("calls", "errors")]
        assert numbers == [len(own), len(errors(own))], (column, name)


def test_nodes_are_reached_by_keyboard_and_choose_an_upstream(board: Any, viewer: Any) -> None:
    viewer.open(f"{board.ui_url}/dependencies?range=1h")
    node = viewer.page.locator('[data-column="upstream"][data-name="kb-api"]')
    node.focus()
    viewer.page.keyboard.press("Enter")
    viewer.page.wait_for_selector('.is-chosen[data-name="kb-api"]')
    viewer.settle()
    assert viewer.asked()["upstream"] == ["kb-api"]
    assert viewer.stats()["impact-tools"] == 1
    viewer.page.locator('[data-column="tool"][data-name="weather"]').click()
    viewer.page.wait_for_selector('[data-testid="fb-tool"]')
    assert viewer.asked()["tool"] == ["weather"]


def test_edges_end_at_the_nodes_that_they_join(board: Any, viewer: Any) -> None:
    """The picture of edges and the links above it are laid out apart: they must agree."""
    viewer.open(f"{board.ui_url}/dependencies?range=1h")
    for width in (1280, 2560):
        viewer.resize(width)
        plot = viewer.page.locator(".fb-graph-plot").bounding_box()
        picture = viewer.page.locator(".fb-edges").bounding_box()
        assert picture == plot
        for column, share in (("caller", 0.0), ("tool", 0.38), ("upstream", 0.76)):
            box = viewer.page.locator(f'[data-column="{column}"]').first.bounding_box()
            assert box["x"] == pytest.approx(plot["x"] + share * plot["width"], abs=1.5)
            assert box["width"] == pytest.approx(0.24 * plot["width"], abs=1.5)
