"""What only a browser shows of windows and downloads: dragging, the address, and the file."""

from __future__ import annotations

import csv
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

pytestmark = [pytest.mark.browser, pytest.mark.e2e]


def _ends(viewer: Any) -> tuple[datetime, datetime]:
    since, until = (datetime.fromisoformat(end) for end in viewer.window())
    return since, until


def _wait_for_other(viewer: Any, window: tuple[str, str]) -> None:
    viewer.page.wait_for_function(
        """since => document.querySelector('[data-testid="fb-window"]')
            ?.getAttribute('data-since') !== since""",
        arg=window[0], timeout=30_000,
    )  # fmt: skip
    viewer.settle()


def _wait_for(viewer: Any, since: str) -> None:
    viewer.page.wait_for_function(
        """since => document.querySelector('[data-testid="fb-window"]')
            ?.getAttribute('data-since') === since""",
        arg=since, timeout=30_000,
    )  # fmt: skip
    viewer.settle()


def _address(viewer: Any) -> dict[str, list[str]]:
    return parse_qs(urlsplit(viewer.page.url).query)


def _drag(viewer: Any, start: float, end: float) -> None:
    """Drag across the first chart, and again where a refresh drew it anew meanwhile."""
    plot = viewer.page.locator(".js-plotly-plot .nsewdrag").first
    for _ in range(4):
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        y = box["y"] + box["height"] / 2
        viewer.page.mouse.move(box["x"] + box["width"] * start, y)
        viewer.page.mouse.down()
        viewer.page.mouse.move(box["x"] + box["width"] * end, y, steps=8)
        viewer.page.mouse.up()
        with suppress(PlaywrightTimeout):
            viewer.page.wait_for_url("**from=**", timeout=15_000)
            return
    raise AssertionError("dragging across the chart chose no window")


def test_dragging_in_a_chart_zooms_and_the_arrows_move(board: Any, viewer: Any) -> None:
    viewer.open(f"{board.ui_url}/errors?range=1h")
    whole = _ends(viewer)
    _drag(viewer, 0.75, 0.9)
    _wait_for(viewer, _address(viewer)["from"][0])
    since, until = _ends(viewer)
    length = whole[1] - whole[0]
    assert (since - whole[0]) / length == pytest.approx(0.75, abs=0.02)
    assert (until - whole[0]) / length == pytest.approx(0.9, abs=0.02)
    assert {name: _address(viewer)[name] for name in ("from", "to")} == {
        "from": [viewer.window()[0]], "to": [viewer.window()[1]]
    }  # fmt: skip
    viewer.assert_is_sound()

    shown = viewer.window()
    viewer.page.get_by_role("button", name="‹").click()
    _wait_for_other(viewer, shown)
    assert _ends(viewer) == (since - (until - since), since)
    shown = viewer.window()
    viewer.page.get_by_role("button", name="›").click()
    _wait_for_other(viewer, shown)
    assert _ends(viewer) == (since, until)
    viewer.assert_is_sound()


def test_a_download_has_the_rows_that_are_shown(board: Any, viewer: Any, tmp_path: Path) -> None:
    viewer.open(f"{board.ui_url}/retries?range=1h")
    table = viewer.page.locator("table", has_text="Not recovered").first
    cells = [row.locator("td").all_inner_texts()[:2] for row in table.locator("tbody tr").all()]
    button = viewer.page.locator(".st-key-fb_download_retries_tools_csv").get_by_role("button")
    with viewer.page.expect_download() as started:
        button.click()
    name = started.value.suggested_filename
    assert name.startswith("fuseboard-retries-tools-2")
    assert name.endswith("-UTC.csv")
    started.value.save_as(tmp_path / name)
    with (tmp_path / name).open(newline="", encoding="utf-8") as file:
        rows = [[row["tool"], row["region"]] for row in csv.DictReader(file)]
    assert cells
    assert rows == cells
    viewer.assert_is_sound()
