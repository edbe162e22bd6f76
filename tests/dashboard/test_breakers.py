"""Which breakers are drawn where there are more than fit, and how long their openings look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import plotly.graph_objects as go
import pytest

from fuseboard_collector.store import Batch, BreakerTransition, Store, ToolCall
from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import breaker_shares
from fuseboard_dashboard.charts.base import TimeAxis
from fuseboard_dashboard.charts.breakers import MAX_BREAKERS
from fuseboard_dashboard.filters import Window
from fuseboard_dashboard.screens.breakers import worth_drawing

from .conftest import UNTIL, heartbeats, open_page, serve

SINCE = datetime(2026, 1, 5, 12, tzinfo=UTC)


def frame(*rows: tuple[str, str, timedelta | None]) -> pd.DataFrame:
    """Make rows of ``page_breaker_states``; times are told from the window's start."""
    start = SINCE.replace(tzinfo=None)
    times = [start + after if after else None for *_, after in rows]
    return pd.DataFrame(
        {"breaker": [name for name, *_ in rows], "state": [row[1] for row in rows],
         "since_time": pd.Series(times, dtype="datetime64[us]")}
    )  # fmt: skip


def test_breakers_with_something_to_see_are_drawn_before_those_that_fell_silent_or_stayed() -> None:
    minute = timedelta(minutes=1)
    silent = [(f"silent-{number}", "unknown", -minute) for number in range(MAX_BREAKERS)]
    moved, still = ("reopened", "closed", minute), ("never", "closed", None)
    states = frame(("open", "open", -minute), *silent, moved, still)
    drawn = worth_drawing(states, SINCE)
    assert drawn[:2] == ["open", "reopened"]
    assert drawn[2:] == [name for name, *_ in silent][: MAX_BREAKERS - 2]


def test_all_are_drawn_where_they_fit() -> None:
    states = frame(("b", "closed", None), ("a", "closed", None))
    assert worth_drawing(states, SINCE) == ["b", "a"]


HOUR = timedelta(hours=1)
DAY_AXIS = TimeAxis(Window(SINCE, SINCE + 24 * HOUR), 3600, UTC, "UTC")


def drawn(*rows: tuple[int, str, float], axis: TimeAxis = DAY_AXIS) -> go.Figure:
    """Draw hours of one breaker's shares: number of the hour, state, seconds."""
    start = SINCE.replace(tzinfo=None)
    shares = pd.DataFrame(
        {"breaker": "b", "bucket": [start + hour * HOUR for hour, *_ in rows],
         "state": [state for _, state, _ in rows], "seconds": [row[2] for row in rows]}
    )  # fmt: skip
    columns = ("bucket", "calls", "errors", "judged", "retried", "attempted")
    series = pd.DataFrame(columns=columns).astype({"bucket": "datetime64[us]"})
    return breaker_shares.shares_above_rates(shares, ["b"], axis, series, axis, (0.05, "5 %"))


def named(figure: go.Figure, state: str, kind: str = "bar") -> object:
    label = theme.STATE_MARKS[state].label
    return next(one for one in figure.data if one.type == kind and label in one.name)


def test_a_bar_is_as_high_as_the_share_of_its_time() -> None:
    figure = drawn((0, "open", 3600), (1, "open", 900), (2, "open", 1800), (2, "half_open", 900))
    bars = named(figure, "open")
    heights = [-height for height in bars.y]  # type: ignore[attr-defined]
    assert heights == pytest.approx([0.78, 0.78 / 4, 0.78 / 2])
    assert bars.width == 3_600_000  # type: ignore[attr-defined]
    probing = named(figure, "half_open")
    assert probing.base[0] == pytest.approx(bars.base[2] + bars.y[2])  # type: ignore[attr-defined]


def test_an_opening_of_seconds_in_an_hour_is_a_mark_and_says_how_long_it_was() -> None:
    figure = drawn((3, "open", 20.0))
    assert [one.type for one in figure.data if "Open" in one.name] == ["scatter"]
    mark = named(figure, "open", "scatter")
    assert mark.hovertext[0].startswith("b: open 20.0 s (0.6 %) of 1 h from")  # type: ignore[attr-defined]
    assert mark.marker.symbol == "circle-open"  # type: ignore[attr-defined]
    assert "under 6 % of the bar" in mark.name  # type: ignore[attr-defined]


def test_a_bar_has_one_mark_and_none_beside_what_is_drawn() -> None:
    """The probe that ends each opening would hide the opening."""
    figure = drawn((3, "open", 20.0), (3, "half_open", 1.0), (4, "open", 1800.0),
                   (4, "half_open", 2.0))  # fmt: skip
    marks = [one for one in figure.data if one.type == "scatter" and "under" in one.name]
    assert [(one.name, len(one.x)) for one in marks] == [("Open, under 6 % of the bar", 1)]
    assert "open 20.0 s (0.6 %), half-open 1.00 s (< 0.1 %) of 1 h" in marks[0].hovertext[0]
    assert "open 30 min (50.0 %), half-open 2.00 s" in named(figure, "open").hovertext[0]  # type: ignore[attr-defined]


def test_closed_breakers_have_a_line_of_their_own() -> None:
    lines = [shape for shape in drawn((3, "open", 20.0)).layout.shapes if shape.y0 == shape.y1]
    assert 0.39 in [shape.y0 for shape in lines]


def test_the_first_bar_is_measured_by_what_the_window_has_of_it() -> None:
    """Else a breaker that was open throughout would look half closed at both ends."""
    half = TimeAxis(Window(SINCE + HOUR / 2, SINCE + 24 * HOUR), 3600, UTC, "UTC")
    bars = named(drawn((0, "open", 1800), axis=half), "open")
    assert list(bars.y) == pytest.approx([-0.78])  # type: ignore[attr-defined]
    assert "open 30 min (100 %) of 30 min from 05 Jan 12:30" in bars.hovertext[0]  # type: ignore[attr-defined]


def test_states_and_rates_of_long_windows_zoom_together() -> None:
    figure = drawn((0, "open", 3600))
    assert figure.layout.xaxis.matches == "x2"
    assert figure.layout.xaxis2.range == figure.layout.xaxis.range


@pytest.mark.parametrize(("window", "query"), [("6h", "timeline"), ("24h", "shares")])
def test_long_windows_are_drawn_from_shares(store: Store, window: str, query: str) -> None:
    asked: list[tuple[str, object]] = []

    class Noting:
        store_id = store.store_id

        def query(self, name: str, parameters: dict[str, object]) -> object:
            asked.append((name, parameters.get("breakers")))
            return store.query(name, parameters)

    serve(Noting())
    app = open_page("breakers", {"range": window})
    assert not app.exception
    drawn = [name for name, chosen in asked if chosen is not None]
    assert drawn == [f"page_breaker_{query}"]


def test_transitions_lead_to_the_trace_that_caused_them(store: Store) -> None:
    serve(store)
    shown = next(f.value for f in open_page("breakers").dataframe if "reason" in f.value)
    assert shown["trace"].iloc[0].startswith(f"trace?trace={'ab' * 16}&at=2026-01-05T12%3A04%3A20Z")
    untraced = BreakerTransition(UNTIL - timedelta(seconds=5), "b", "b", "closed", "open")
    store.append(Batch(transitions=[untraced])).result(30)
    serve(store, now=UNTIL)
    store.append(heartbeats("x", UNTIL)).result(30)
    store.append(Batch(calls=[ToolCall("b", end=UNTIL, breaker_state="open")])).result(30)
    fresh = next(f.value for f in open_page("breakers", {"range": "5m"}).dataframe
                 if "reason" in f.value)  # fmt: skip
    assert fresh["trace"].iloc[0] == ""
