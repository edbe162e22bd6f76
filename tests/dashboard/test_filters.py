"""Filters as a value: URL round trip, windows, buckets, and what makes no sense."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest

from fuseboard_dashboard.addresses import Known, parse
from fuseboard_dashboard.filters import (
    MAX_CHOICES,
    PRESETS,
    Filters,
    Window,
    rfc3339,
)

NOW = datetime(2026, 1, 5, 12, 15, 3, 500_000, tzinfo=UTC)
KNOWN = Known(tools=("alpha", "be ta", "<b>&amp;"), regions=("us-east", "unknown"))


def _round_trip(filters: Filters) -> tuple[Filters, list[str]]:
    query = filters.link("tool").partition("?")[2]
    return parse(parse_qs(query), KNOWN)


@pytest.mark.parametrize(
    "filters",
    [
        Filters(),
        Filters(range="30d"),
        Filters(to=datetime(2026, 1, 1, 3, 4, 5, 678_000, tzinfo=UTC)),
        Filters(range="6h", tools=("alpha", "be ta"), classes=("L3_transient", "unclassified")),
        Filters(tools=("<b>&amp;",), regions=("unknown",)),
    ],
)
def test_filters_survive_the_url(filters: Filters) -> None:
    assert _round_trip(filters) == (filters, [])


def test_defaults_leave_the_url_clean() -> None:
    assert Filters().link("errors") == "errors"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"colour": ["red"]}, "no filter 'colour'"),
        ({"range": ["3 weeks"]}, "no time range '3 weeks'"),
        ({"to": ["yesterday"]}, "'yesterday' is no moment"),
        ({"to": ["0001-01-01T00:00:00Z"]}, "is no moment"),
        ({"to": ["9999-12-31T23:59:59+00:00"]}, "is no moment"),
        ({"tool": ["gone"]}, "no tool 'gone'"),
        ({"class": ["L9_other"]}, "no class 'L9_other'"),
        ({"region": ["mars"]}, "no region 'mars'"),
    ],
)
def test_what_makes_no_sense_is_ignored_and_said(raw: dict[str, list[str]], words: str) -> None:
    filters, notices = parse(raw, KNOWN)
    assert filters == Filters()
    assert len(notices) == 1
    assert words in notices[0]


def test_good_values_beside_bad_ones_are_kept() -> None:
    filters, notices = parse({"tool": ["alpha", "gone"], "range": ["1h"]}, KNOWN)
    assert (filters.tools, filters.range, len(notices)) == (("alpha",), "1h", 1)


def test_parameters_of_single_pages_are_no_strangers() -> None:
    assert parse({"hash": ["v1:aa"]}, KNOWN) == (Filters(), [])


def test_a_store_that_is_away_accepts_any_name() -> None:
    assert parse({"tool": ["whatever"]}, Known())[0].tools == ("whatever",)


def test_a_link_can_not_grow_without_bound() -> None:
    filters, notices = parse({"tool": [f"t{i}" for i in range(1000)]}, Known())
    assert len(filters.tools) == MAX_CHOICES
    assert len(notices) == 1


def test_a_long_bad_value_is_cut_in_its_notice() -> None:
    _, notices = parse({"tool": ["x" * 5000]}, KNOWN)
    assert len(notices[0]) < 150


def test_a_live_window_ends_at_the_last_refresh_so_that_viewers_share_answers() -> None:
    window = Filters(range="5m").window(NOW)
    assert window.until == datetime(2026, 1, 5, 12, 15, tzinfo=UTC)
    assert window.length == timedelta(minutes=5)
    assert window == Filters(range="5m").window(NOW + timedelta(seconds=1))


def test_a_pinned_window_stays() -> None:
    end = datetime(2026, 1, 1, 1, 1, 1, tzinfo=UTC)
    filters = Filters(range="1h", to=end)
    assert filters.window(NOW) == Window(end - timedelta(hours=1), end)
    assert not filters.is_live


@pytest.mark.parametrize(
    ("key", "since"),
    [
        ("6h", datetime(2026, 1, 5, 11, 15, 4, tzinfo=UTC)),
        ("24h", datetime(2026, 1, 4, 17, tzinfo=UTC)),
        ("7d", datetime(2025, 12, 29, 12, tzinfo=UTC)),
        ("30d", datetime(2025, 12, 7, tzinfo=UTC)),
    ],
)
def test_a_long_window_begins_where_a_bar_of_its_charts_does(key: str, since: datetime) -> None:
    end = datetime(2026, 1, 5, 17, 15, 4, tzinfo=UTC)
    assert Filters(range=key, to=end).window(NOW) == Window(since, end)


@pytest.mark.parametrize("key", ["24h", "7d", "30d"])
@pytest.mark.parametrize("hour", range(24))
@pytest.mark.parametrize("most", [30, 60, 120])
def test_the_first_bar_of_a_long_window_is_whole(key: str, hour: int, most: int) -> None:
    window = Filters(range=key, to=datetime(2026, 1, 5, hour, 7, tzinfo=UTC)).window(NOW)
    assert window.since.timestamp() % window.bucket_seconds(most) == 0


def test_no_window_reaches_back_further_than_calls_are_kept() -> None:
    for hour in range(24):
        end = datetime(2026, 1, 5, hour, 7, tzinfo=UTC)
        window = Filters(range="30d", to=end).window(NOW)
        assert timedelta(days=29) < window.length <= timedelta(days=30)


def test_the_window_before_touches_this_one() -> None:
    filters = Filters()
    window = filters.window(NOW)
    before = filters.before(window)
    assert (before.until, before.length) == (window.since, window.length)


def test_the_week_before_has_the_same_hours_of_the_same_weekdays() -> None:
    filters = Filters(range="7d", to=datetime(2026, 1, 5, 17, 59, tzinfo=UTC))
    window = filters.window(NOW)
    week = timedelta(days=7)
    assert filters.before(window) == Window(window.since - week, window.until - week)


@pytest.mark.parametrize("key", PRESETS)
def test_every_range_is_cut_into_a_readable_number_of_buckets(key: str) -> None:
    window = Filters(range=key).window(NOW)
    buckets = window.length.total_seconds() / window.bucket_seconds(120)
    assert 30 <= buckets <= 120


def test_narrowing_replaces_single_values_only() -> None:
    filters = Filters(range="1h", tools=("alpha", "be ta"), regions=("us-east",))
    narrowed = filters.narrowed(tool="alpha", error_class="L1_input")
    assert narrowed.tools == ("alpha",)
    assert narrowed.classes == ("L1_input",)
    assert narrowed.regions == ("us-east",)
    assert narrowed.range == "1h"


def test_times_are_written_in_utc() -> None:
    berlin = datetime.fromisoformat("2026-07-01T12:00:00+02:00")
    assert rfc3339(berlin) == "2026-07-01T10:00:00Z"


def test_query_parameters_name_all_as_null() -> None:
    assert Filters().parameters(Window(NOW, NOW))["tools"] is None
    assert Filters(tools=("alpha",)).parameters(Window(NOW, NOW))["tools"] == ["alpha"]
