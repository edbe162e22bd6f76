"""Ids of traces, the links to and from one, and where one is looked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace
from urllib.parse import parse_qsl

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fuseboard_dashboard import sessions, traces
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.windows import Window, parse_moment

from .conftest import UNTIL, WINDOW, at

ID = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    "text",
    [
        ID, ID.upper(), f"  {ID}\n", f'"{ID}"', f"00-{ID}-00f067aa0ba902b7-01",
        "4bf92f35-77b3-4da6-a3ce-929d0e0e4736",
    ],
)  # fmt: skip
def test_an_id_is_understood_in_every_form_that_is_pasted(text: str) -> None:
    assert traces.parse_id(text) == ID


@pytest.mark.parametrize(
    "text",
    ["", " ", "0" * 32, ID[:-1], ID + "0", "g" * 32, f"00-{ID}-01", "4bf9" * 500, "٣" * 32,
     f"00-{'0' * 32}-00f067aa0ba902b7-01"],
)  # fmt: skip
def test_what_is_no_id_is_none(text: str) -> None:
    assert traces.parse_id(text) is None


@given(some.text(max_size=80))
def test_any_text_is_an_id_or_none(text: str) -> None:
    found = traces.parse_id(text)
    assert found is None or traces.parse_id(found) == found


def test_a_link_keeps_the_filters_and_names_the_moment() -> None:
    filters = Filters(range="1h", tools=("a b",), classes=("L1_input",))
    page, _, query = traces.link(filters, ID, datetime(2026, 1, 5, 12)).partition("?")
    assert page == "trace"
    assert parse_qsl(query) == [
        ("range", "1h"), ("tool", "a b"), ("class", "L1_input"), ("trace", ID),
        ("at", "2026-01-05T12:00:00Z"),
    ]  # fmt: skip
    assert parse_moment(dict(parse_qsl(query))["at"]) == datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_rows_without_a_trace_have_no_link() -> None:
    ids, moments = pd.Series([ID, None, float("nan")]), pd.Series([pd.Timestamp(2026, 1, 5)] * 3)
    found = list(traces.links(Filters(), ids, moments))
    assert found[0] is not None
    assert found[1:] == [None, None]


def test_the_whole_time_that_is_kept_is_searched_once_and_newest_first() -> None:
    first = UNTIL - timedelta(days=25)
    windows = list(traces.strides(UNTIL, first))
    assert windows[0].until > UNTIL
    assert windows[-1].since < first
    for newer, older in pairwise(windows):
        assert older.until == newer.since
    assert [w.length > timedelta(days=6) for w in windows] == [False, False, True]


def test_what_began_today_is_searched_in_one_step() -> None:
    assert len(list(traces.strides(UNTIL, UNTIL - timedelta(hours=2)))) == 1


def call(**more: object) -> SimpleNamespace:
    values = {"end": at(100).replace(tzinfo=None), "tool": "alpha", "region": "us-east",
              "error_class": None, "args_hash": None, "attempts": 1, "session": None,
              "breaker_state": None}  # fmt: skip
    return SimpleNamespace(**{**values, **more})


def test_ways_lead_where_there_is_something_to_see() -> None:
    plain = traces.ways(Filters(), WINDOW, call(), UNTIL)
    assert [href for _, href in plain] == ["tool?tool=alpha&region=us-east"]
    full = call(error_class="L3_transient", args_hash="v1:aa", attempts=3, session="s",
                breaker_state="open")  # fmt: skip
    pages = [href.partition("?")[0] for _, href in traces.ways(Filters(), WINDOW, full, UNTIL)]
    assert pages == ["tool", "errors", "errors", "retries", "sessions", "breakers"]


def test_ways_from_a_call_outside_the_window_lead_to_a_window_that_has_it() -> None:
    old = call(end=(UNTIL - timedelta(days=3)).replace(tzinfo=None))
    (_, href), *_ = traces.ways(Filters(classes=("L1_input",)), WINDOW, old, UNTIL)
    query = dict(parse_qsl(href.partition("?")[2]))
    since, until = (parse_moment(query[name]) for name in ("from", "to"))
    assert since is not None
    assert until is not None
    assert since < old.end.replace(tzinfo=UTC) <= until
    assert "class" not in query


@given(some.datetimes(datetime(2001, 1, 1), datetime(2026, 1, 5, 12, 15)))
def test_the_window_near_a_call_has_the_call(end: datetime) -> None:
    window = Window(UNTIL - timedelta(minutes=15), UNTIL)
    near = traces.filters_near(Filters(), window, end, UNTIL).window(UNTIL)
    assert near.since < end.replace(tzinfo=UTC) <= near.until


def test_a_session_is_linked_by_its_name_whatever_that_is() -> None:
    name = "<b>&session=x é/?"
    query = dict(parse_qsl(sessions.link(Filters(), name, UNTIL).partition("?")[2]))
    assert query == {"session": name, "at": "2026-01-05T12:15:00Z"}
