"""HC-44: a refresh keeps filters, adds no elements, and survives errors."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from fuseboard_collector.store import Store
from fuseboard_dashboard.data import CACHE
from fuseboard_dashboard.menu import MENU

from .conftest import FlakyReader, go_to, html, open_page, serve, stat

PAGES = tuple(entry.path for entry in MENU)


def _elements(app: AppTest) -> int:
    return len(app.html) + len(app.dataframe) + len(app.get("plotly_chart"))


def test_hc_44_filters_survive_refreshes_page_changes_and_a_reconnect(store: Store) -> None:
    serve(store)
    app = open_page()
    app.multiselect(key="fb_tools").select("alpha").run()
    app.multiselect(key="fb_classes").select("L3_transient").run()
    app.selectbox(key="fb_range").select("1h").run()
    before = _elements(app)
    for _ in range(5):
        app.run()
        assert _elements(app) == before
    go_to(app, "errors")
    go_to(app, "")
    assert app.multiselect(key="fb_tools").value == ["alpha"]
    assert _elements(app) == before
    again = open_page("", dict(app.query_params))  # a new session from the same URL
    assert again.multiselect(key="fb_tools").value == ["alpha"]
    assert again.multiselect(key="fb_classes").value == ["L3_transient"]
    assert again.selectbox(key="fb_range").value == "1h"


def test_hc_44_a_page_change_that_drops_the_url_keeps_the_filters(store: Store) -> None:
    serve(store)
    app = open_page("", {"tool": "beta"})
    app.query_params = {}
    go_to(app, "latency")
    assert app.query_params == {"tool": "beta"}
    assert stat(app, "calls") == 4


@pytest.mark.parametrize("page", PAGES)
def test_hc_44_an_error_is_shown_in_place_and_the_next_refresh_recovers(
    flaky: FlakyReader, page: str
) -> None:
    serve(flaky)
    app = open_page(page)
    assert "fb-problem" not in html(app)
    CACHE.clear()
    flaky.failing = "page_"
    app.run()
    assert not app.exception
    said = "The store did not answer: the disk has gone for a walk. The next refresh"
    assert said in html(app)
    assert "data as of" in html(app)
    flaky.failing = None
    app.run()
    assert "fb-problem" not in html(app)


def test_hc_44_one_broken_panel_leaves_the_others(flaky: FlakyReader) -> None:
    serve(flaky)
    flaky.failing = "page_error_kinds"
    app = open_page("errors")
    assert html(app).count('data-testid="fb-problem"') == 1
    assert 'data-testid="fb-cell"' in html(app)
    assert len(app.dataframe) == 1


def test_hc_44_live_pages_refresh_and_paused_ones_do_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    import streamlit as st

    intervals: list[object] = []
    real = st.fragment

    def spy(*args: object, run_every: object = None, **options: object) -> object:
        intervals.append(run_every)
        return real(*args, run_every=run_every, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(st, "fragment", spy)
    serve(store)
    app = open_page()
    app.selectbox(key="fb_range").select("30d").run()
    app.toggle(key="fb_live").set_value(False).run()
    assert intervals == [5.0, 60.0, None]


def test_pausing_pins_the_window_in_the_url(store: Store) -> None:
    serve(store)
    app = open_page()
    app.toggle(key="fb_live").set_value(False).run()
    assert app.query_params["to"] == "2026-01-05T12:15:00Z"
    assert "Paused" in html(app)
    app.toggle(key="fb_live").set_value(True).run()
    assert "to" not in app.query_params


def test_unknown_parameters_are_ignored_with_a_notice(store: Store) -> None:
    serve(store)
    app = open_page("", {"tool": ["alpha", "nope"], "colour": "red"})
    assert html(app).count('data-testid="fb-notice"') == 2
    assert stat(app, "calls") == 8
    assert app.query_params == {"tool": "alpha"}


def test_reset_forgets_everything(store: Store) -> None:
    serve(store)
    app = open_page("", {"tool": "alpha", "region": "us-east", "range": "6h"})
    next(b for b in app.sidebar.button if b.label == "Reset filters").click().run()
    assert app.query_params == {}
    assert stat(app, "calls") == 12
