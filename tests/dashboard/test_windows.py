"""Custom windows: the URL's words, what makes no sense, steps, and the sidebar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as some
from streamlit.testing.v1 import AppTest
from tests.dashboard.conftest import SINCE, UNTIL, go_to, html, open_page, serve, stat

from fuseboard_collector.store import Store
from fuseboard_dashboard.addresses import Known, parse
from fuseboard_dashboard.filters import PRESETS, Filters
from fuseboard_dashboard.timecharts import dragged_window
from fuseboard_dashboard.windows import LONGEST, Window

NOW = datetime(2026, 1, 5, 12, 15, tzinfo=UTC)
HOUR = timedelta(hours=1)
CUSTOM = {"from": "2026-01-05T12:01:30Z", "to": "2026-01-05T12:04:30Z"}


@given(
    key=some.sampled_from(list(PRESETS)),
    until=some.datetimes(datetime(2001, 1, 1), datetime(2026, 1, 5)),
    length=some.none() | some.timedeltas(timedelta(seconds=1), LONGEST),
    is_live=some.booleans(),
    tools=some.lists(some.text(min_size=1, max_size=9), unique=True, max_size=3),
)
def test_any_filters_survive_the_url(
    key: str, until: datetime, length: timedelta | None, is_live: bool, tools: list[str]
) -> None:
    end = until.replace(tzinfo=UTC)
    filters = Filters(range=key, tools=tuple(tools))
    if length is not None:
        filters = filters.zoomed(Window(end - length, end))
    elif not is_live:
        filters = Filters(range=key, to=end, tools=tuple(tools))
    query = filters.link("tool").partition("?")[2]
    assert parse(parse_qs(query), Known(), NOW) == (filters, [])


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"from": "2026-01-05T12:00:00Z", "to": "2026-01-05T11:00:00Z"}, "must be earlier"),
        ({"from": "2026-01-05T12:00:00Z", "to": "2026-01-05T12:00:00Z"}, "must be earlier"),
        ({"from": "2027-01-05T12:00:00Z", "to": "2027-01-05T13:00:00Z"}, "is in the future"),
        ({"from": "noon", "to": "2026-01-05T13:00:00Z"}, "'noon' is no moment in time for 'from'"),
        ({"from": "2026-01-05T12:00:00Z", "to": "late"}, "'late' is no moment in time for 'to'"),
    ],
)
def test_a_window_that_can_not_be_is_said(raw: dict[str, str], words: str) -> None:
    filters, notices = parse({name: [value] for name, value in raw.items()}, Known(), NOW)
    assert not filters.is_custom
    assert len(notices) == 1
    assert words in notices[0]


@pytest.mark.parametrize(
    ("raw", "window", "words"),
    [
        ({"from": "2026-01-05T12:00:00Z", "to": "2026-02-01T00:00:00Z"},
         Window(NOW - HOUR / 4, NOW), "ends now"),
        ({"from": "2025-01-01T00:00:00Z", "to": "2026-01-05T12:00:00Z"},
         Window(NOW - HOUR / 4 - LONGEST, NOW - HOUR / 4), "longer than 30 days"),
    ],
)  # fmt: skip
def test_a_window_that_is_too_large_is_cut_and_said(
    raw: dict[str, str], window: Window, words: str
) -> None:
    filters, notices = parse({name: [value] for name, value in raw.items()}, Known(), NOW)
    assert filters.window(NOW) == window
    assert len(notices) == 1
    assert words in notices[0]


def test_a_begin_alone_starts_a_window_of_the_range() -> None:
    filters, notices = parse({"from": ["2026-01-05T08:00:00+02:00"], "range": ["1h"]}, Known(), NOW)
    begin = datetime(2026, 1, 5, 6, tzinfo=UTC)
    assert (filters.window(NOW), notices) == (Window(begin, begin + HOUR), [])


def test_a_long_custom_window_begins_where_it_is_asked_to_and_follows_the_one_before() -> None:
    window = Window(NOW - timedelta(days=9, minutes=7), NOW - timedelta(minutes=1))
    filters = Filters().zoomed(window)
    assert filters.window(NOW) == window
    assert filters.before(window) == Window(window.since - window.length, window.since)


def test_steps_lead_back_and_forth_and_end_at_the_clock() -> None:
    live = Filters(range="1h")
    earlier = live.moved(-1, NOW)
    assert earlier.window(NOW) == live.before(live.window(NOW))
    assert earlier.moved(1, NOW) == live
    custom = live.zoomed(Window(NOW - 2 * HOUR, NOW - HOUR / 2))
    assert custom.moved(-1, NOW).moved(1, NOW) == custom
    assert custom.moved(1, NOW).window(NOW) == Window(NOW - 1.5 * HOUR, NOW)
    assert custom.as_range() == live


def test_zooming_out_doubles_as_far_as_it_can() -> None:
    assert Window(NOW - 4 * HOUR, NOW - 2 * HOUR).doubled(NOW) == Window(NOW - 5 * HOUR, NOW - HOUR)
    assert Window(NOW - 2 * HOUR, NOW).doubled(NOW) == Window(NOW - 4 * HOUR, NOW)
    assert Window(NOW - LONGEST, NOW).doubled(NOW).length == LONGEST


def test_a_dragged_range_is_wall_time_of_the_viewer_in_either_direction() -> None:
    zone = timezone(2 * HOUR)
    event = {"selection": {"box": [{"x": ["2026-01-05 14:09:59.25", "2026-01-05 14:01"]}]}}
    found = dragged_window(event, zone)
    assert found == Window(
        datetime(2026, 1, 5, 12, 1, tzinfo=UTC),
        datetime(2026, 1, 5, 12, 9, 59, 250_000, tzinfo=UTC),
    )
    assert found.outward(NOW) == Window(found.since, datetime(2026, 1, 5, 12, 10, tzinfo=UTC))


@pytest.mark.parametrize(
    "event", [None, {}, {"selection": {"box": []}}, {"selection": {"box": [{"x": ["soon"]}]}},
              {"selection": {"box": [{"y": [1, 2]}]}}, {"selection": {"box": [{"x": []}]}}],
)  # fmt: skip
def test_what_is_no_range_chooses_none(event: object) -> None:
    assert dragged_window(event, UTC) is None


def test_hc_44_a_custom_window_survives_refresh_and_page_change(store: Store) -> None:
    serve(store)
    app = open_page("", CUSTOM)
    assert stat(app, "calls") == 3
    for page in ("errors", "tool", ""):
        go_to(app, page)
        app.run()
        assert app.query_params == CUSTOM
        assert "Paused" in html(app)
    assert stat(app, "calls") == 3


def test_a_window_without_calls_names_its_ends(store: Store) -> None:
    serve(store)
    app = open_page("", {"from": "2025-12-01T10:00:00Z", "to": "2025-12-01T10:05:00Z"})
    assert "between 01 Dec 2025 10:00:00 and 10:05:00" in html(app)


def _press(app: AppTest, key: str) -> None:
    app.button(key=key).click().run()
    assert not app.exception


def test_the_sidebar_moves_a_window_and_leads_back(store: Store) -> None:
    serve(store)
    app = open_page()
    _press(app, "fb_earlier")
    assert app.query_params == {"to": "2026-01-05T12:00:00Z"}
    _press(app, "fb_later")
    assert app.query_params == {}
    app.selectbox(key="fb_range").select("custom").run()
    ends = {"from": "2026-01-05T12:00:00Z", "to": "2026-01-05T12:15:00Z"}
    assert app.query_params == ends
    app.datetime_input(key="fb_from_input").set_value(datetime(2026, 1, 5, 12, 20)).run()
    assert app.query_params == ends
    assert "must be earlier" in html(app)
    app.datetime_input(key="fb_from_input").set_value(datetime(2026, 1, 5, 12, 5)).run()
    assert app.query_params == {**ends, "from": "2026-01-05T12:05:00Z"}
    _press(app, "fb_out")
    assert app.query_params == {**ends, "from": "2026-01-05T11:55:00Z"}
    _press(app, "fb_presets")
    assert app.query_params == {}
    assert stat(app, "calls") == 12
    assert PRESETS["15m"][1] == UNTIL - SINCE
