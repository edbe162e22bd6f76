"""HC-47 and HC-48 for every figure builder, and what each one draws."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import plotly.graph_objects as go
import pytest

from fuseboard_collector.store import Store
from fuseboard_dashboard import theme
from fuseboard_dashboard.charts import (
    answers,
    breaker_shares,
    breakers,
    calls,
    costs,
    dependencies,
    latency,
    rates,
    retries,
    sessions,
)
from fuseboard_dashboard.charts.base import MAX_POINTS, TimeAxis, label
from fuseboard_dashboard.charts.sparkline import sparkline
from fuseboard_dashboard.filters import Filters, Window
from fuseboard_dashboard.view import QUERY_PARAMETERS

from .conftest import SINCE, UNTIL, WINDOW

AXIS = TimeAxis(WINDOW, 60, UTC, "UTC")
HOSTILE = '<a href="javascript:alert(1)">x</a>'
LIMIT = (0.05, "5 % line")


def _bucket(minute: int) -> datetime:
    return (SINCE + timedelta(minutes=minute)).replace(tzinfo=None)


def _series() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "bucket": [_bucket(0), _bucket(1), _bucket(5)],
            "calls": [10.0, 20.0, 5.0], "judged": [10.0, 20.0, 5.0], "errors": [0.0, 4.0, 0.0],
            "attempted": [10.0, 20.0, 5.0], "retried": [0.0, 2.0, 1.0],
            "attempts_made": [10.0, 24.0, 6.0],
            "p50": [0.1, 0.2, 0.1], "p95": [0.3, 0.4, 0.2], "p99": [0.5, 3.0, 0.2],
            "slowest": [0.6, 60.0, 0.2], "mean": [0.2, 0.5, 0.1],
            "mean_attempt": [0.2, 0.3, 0.1], "mean_backoff": [0.0, 0.1, 0.0],
        }
    )  # fmt: skip


def _outcomes() -> pd.DataFrame:
    rows = [
        (_bucket(0), outcome, error_class, 1.0)
        for outcome, error_class in (
            *((o, None) for o in theme.OUTCOME_MARKS),
            *(("error", c) for c in theme.CLASS_MARKS),
        )
    ]
    return pd.DataFrame(rows, columns=["bucket", "outcome", "error_class", "calls"])


def _answers() -> pd.DataFrame:
    kinds = list(theme.ANSWER_MARKS)
    return pd.DataFrame({"bucket": _bucket(0), "kind": kinds, "calls": [1.0] * len(kinds)})


def _timeline() -> pd.DataFrame:
    edges = [_bucket(3 * i) for i in range(6)]
    return pd.DataFrame(
        {"breaker": HOSTILE, "state": list(theme.STATE_MARKS), "began": edges[:-1],
         "ended": edges[1:]}
    )  # fmt: skip


def _breaker_shares() -> pd.DataFrame:
    states = [state for state in theme.STATE_MARKS if state != "closed"]
    return pd.DataFrame(
        {"breaker": HOSTILE, "bucket": [_bucket(0)] * 4 + [_bucket(1)] * 4, "state": states * 2,
         "seconds": [15.0] * 4 + [0.5] * 4}
    )  # fmt: skip


def _latencies() -> pd.DataFrame:
    quantiles = {"p50": 0.1, "p95": 0.5, "p99": 2.0}
    attempts = {f"attempt_{key}": value / 2 for key, value in quantiles.items()}
    return pd.DataFrame([{"tool": HOSTILE, **quantiles, **attempts}, {"tool": "b", **quantiles}])


def _steps() -> pd.DataFrame:
    outcomes = [*theme.OUTCOME_MARKS, HOSTILE] * 5
    return pd.DataFrame(
        {"tool": [HOSTILE, *(f"tool-{n}" for n in range(39))], "outcome": outcomes[:40],
         "start": [_bucket(n % 15) for n in range(40)], "duration_seconds": 0.1}
    )  # fmt: skip


BUILDERS: dict[str, Callable[[], go.Figure]] = {
    "outcomes": lambda: calls.outcomes_over_time(_outcomes(), AXIS),
    "classes": lambda: calls.classes_over_time(_outcomes(), AXIS),
    "rates": lambda: rates.rates_over_time(_series(), AXIS, (rates.ERRORS, rates.RETRIES), LIMIT),
    "lines": lambda: rates.lines_by_name({HOSTILE: _series()}, AXIS, rates.RETRIES, LIMIT),
    "quantiles": lambda: latency.quantiles_over_time(_series(), AXIS, 5.0),
    "split": lambda: latency.split_over_time(_series(), AXIS),
    "heatmap": lambda: latency.heatmap(
        pd.DataFrame({"bucket": [_bucket(0), _bucket(1)], "step": [4, 31], "calls": [100.0, 1.0]}),
        AXIS,
    ),
    "by_tool": lambda: latency.quantiles_by_tool(_latencies(), 5.0),
    "amplification": lambda: retries.amplification_over_time(_series(), AXIS),
    "first_final": lambda: retries.first_and_final(
        pd.DataFrame({"tool": [HOSTILE], "attempted": [10.0], "first_try": [7.0],
                      "succeeded": [9.0]})
    ),
    "attempts": lambda: retries.failures_by_attempt(
        pd.DataFrame({"error_class": list(theme.CLASS_MARKS), "number": [1, 1, 2, 2, 3, 10],
                      "failures": [5] * 6})
    ),
    "sources": lambda: answers.sources_over_time(_answers(), AXIS),
    "ages": lambda: answers.ages_over_time(
        pd.DataFrame({"bucket": [_bucket(0), _bucket(2)], "answers": [3, 1], "p50": [0.0, 50.0],
                      "p95": [9.0, 50.0], "oldest": [9.5, 50.0]}),
        AXIS,
    ),
    "confidence": lambda: answers.confidence(
        _answers().assign(confidence=[None, "low", HOSTILE, "high", "medium", "low"])
    ),
    "costs": lambda: costs.costs_over_time(
        pd.DataFrame({"bucket": [_bucket(1)], "attempt_cost": [0.5], "failed_cost": [0.2]}), AXIS
    ),
    "upstream_errors": lambda: dependencies.errors_over_time(
        pd.DataFrame({"bucket": _bucket(0), "tool": [HOSTILE, *"abcdef"],
                      "errors": [3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]}),
        AXIS,
    ),
    "sessions": lambda: sessions.troubled(
        pd.DataFrame({"session": [HOSTILE, *"abc"], "repeats": [9, 0, 0, 0],
                      "faults": [0, 1, 0, 0], "retries": [0, 0, 1, 0], "calls": [9.0, 1, 1, 1],
                      "last_end": [_bucket(n) for n in range(4)]}),
        AXIS,
    ),
    "steps": lambda: sessions.steps(_steps(), pd.Series([True, False] * 20), AXIS),
    "context": lambda: sessions.context(
        pd.DataFrame({"start": [_bucket(0), _bucket(1)], "input_tokens": [10.0, None],
                      "output_tokens": [None, 5.0]}),
        AXIS,
    ),
    "breakers": lambda: breakers.states_above_rates(_timeline(), _series(), AXIS, LIMIT),
    "shares": lambda: breaker_shares.shares_above_rates(
        _breaker_shares(), [HOSTILE], AXIS, _series(), AXIS, LIMIT),
}  # fmt: skip


def _own(figure: go.Figure) -> dict[str, Any]:
    """Return the figure without its template: what we set ourselves."""
    figure = go.Figure(figure)
    figure.layout.template = None
    found: dict[str, Any] = json.loads(figure.to_json())
    return found


def _colours(node: object, key: str = "") -> list[tuple[str, str]]:
    if isinstance(node, dict):
        return [pair for name, child in node.items() for pair in _colours(child, name)]
    if isinstance(node, list):
        return [pair for child in node for pair in _colours(child, key)]
    return [(key, node)] if isinstance(node, str) and node.startswith("#") else []


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", BUILDERS)
def test_hc_48_a_figure_fixes_no_background_and_no_font_colour(name: str) -> None:
    own = _own(BUILDERS[name]())
    text = json.dumps(own["layout"])
    assert "paper_bgcolor" not in text
    assert "plot_bgcolor" not in text
    assert '"font"' not in text or '"color"' not in text.split('"font"', 1)[1][:80]


@pytest.mark.parametrize("name", BUILDERS)
def test_hc_48_every_colour_of_a_figure_is_legible_on_all_backgrounds(name: str) -> None:
    colours = _colours(_own(BUILDERS[name]()))
    assert colours
    for key, colour in colours:
        if key != "fillcolor":  # the faint shade of a gap
            assert all(contrast(colour, ground) >= 3 for ground in theme.BACKGROUNDS), colour


@pytest.mark.parametrize("name", BUILDERS)
def test_every_axis_has_a_unit(name: str) -> None:
    layout = _own(BUILDERS[name]())["layout"]
    for axis, settings in layout.items():
        if axis.startswith(("xaxis", "yaxis")) and settings.get("showticklabels") is not False:
            assert settings["title"]["text"], axis


@pytest.mark.parametrize("name", BUILDERS)
def test_foreign_names_can_not_become_markup(name: str) -> None:
    assert "<a href" not in BUILDERS[name]().to_json().replace("\\u003c", "<")


@pytest.mark.parametrize("name", BUILDERS)
def test_hc_47_no_trace_is_longer_than_a_browser_bears(name: str) -> None:
    for trace in BUILDERS[name]().data:
        assert len(trace.x if trace.x is not None else ()) <= MAX_POINTS


def test_hc_48_outcomes_differ_in_pattern_or_symbol_as_well_as_colour() -> None:
    for family in (theme.OUTCOME_MARKS, theme.CLASS_MARKS, theme.STATE_MARKS,
                   theme.ANSWER_MARKS):  # fmt: skip
        assert len({mark.symbol for mark in family.values()}) == len(family)
        assert len({(mark.pattern, mark.colour) for mark in family.values()}) == len(family)
        assert len({mark.pattern for mark in family.values()}) == len(family)


def test_hc_47_a_million_calls_keep_their_spike_and_their_error(store: Store) -> None:
    figures = [_million(store.path.parent, name) for name in ("page_series", "page_outcomes")]
    window = Window(UNTIL - timedelta(hours=6), UNTIL)
    axis = TimeAxis(window, window.bucket_seconds(), UTC, "UTC")
    drawn = latency.quantiles_over_time(figures[0], axis, 5.0)
    assert len(drawn.to_json()) < 1_000_000
    slowest = next(trace for trace in drawn.data if trace.name == "Slowest")
    assert max(v for v in slowest.y if not math.isnan(v)) == 60.0
    stacked = calls.outcomes_over_time(figures[1], axis)
    assert len(stacked.to_json()) < 1_000_000
    errors = next(trace for trace in stacked.data if "Error" in trace.name)
    assert sum(errors.y) == 1


def _million(folder: Path, name: str) -> pd.DataFrame:
    """Return a page query's rows over a million calls made inside DuckDB."""
    from fuseboard_collector.store import migrations, named_queries

    sql = named_queries.text(name)
    window = Window(UNTIL - timedelta(hours=6), UNTIL)
    values = {
        **Filters(range="6h").parameters(window),
        "bucket_us": window.bucket_seconds() * 1_000_000,
    }
    plain = {k: v.removesuffix("Z") if isinstance(v, str) else v for k, v in values.items()}
    with duckdb.connect() as connection:
        for part in migrations.SCHEMA_FILES:
            connection.execute(migrations.schema(part))
        connection.execute(
            """
            INSERT INTO tool_calls BY NAME
            SELECT 't' AS trace_id, 's' AS span_id, moment AS "start", moment AS "end",
                   moment AS received_at, 'alpha' AS tool, attempts, 1.0 AS weight,
                   CASE WHEN i = 333333 THEN 60.0 ELSE 0.1 + (i % 100) / 1000 END
                       AS duration_seconds,
                   CASE WHEN i = 777777 THEN 'error' ELSE 'ok' END AS outcome,
                   CASE WHEN i = 777777 THEN 'L4_persistent' END AS error_class
            FROM (SELECT i, 1 AS attempts,
                         TIMESTAMP '2026-01-05 12:15:00' - to_microseconds(i * 21600) AS moment
                  FROM range(1000000) r(i))
            """
        )
        wanted = {key: plain[key] for key in QUERY_PARAMETERS[name]}
        return connection.sql(sql, params=wanted).df()


def test_no_calls_is_a_gap_and_none_failed_is_a_line_at_zero() -> None:
    figure = rates.rates_over_time(_series(), AXIS, (rates.ERRORS,))
    values = list(figure.data[0].y)
    assert values[0] == 0.0
    assert values[1] == pytest.approx(0.2)
    assert math.isnan(values[2])
    assert figure.data[0].connectgaps is False
    gaps = [shape for shape in figure.layout.shapes if shape.name == "no calls"]
    assert len(gaps) == 2  # minutes 2 to 4, and 6 to the end


def test_breakers_and_rates_share_one_time_axis() -> None:
    figure = BUILDERS["breakers"]()
    assert figure.layout.xaxis.matches == "x2"
    assert list(figure.layout.xaxis.range) == list(figure.layout.xaxis2.range)
    states = [trace for trace in figure.data if trace.type == "bar"]
    assert [len(trace.base) for trace in states] == [1] * 5


def test_the_rates_below_the_breakers_shade_what_has_no_calls() -> None:
    gaps = [shape for shape in BUILDERS["breakers"]().layout.shapes if shape.name == "no calls"]
    assert gaps
    assert {(shape.xref, shape.yref) for shape in gaps} == {("x2", "y2 domain")}


def test_steps_of_many_tools_share_the_last_row_and_none_is_left_out() -> None:
    figure = sessions.steps(_steps().assign(outcome="ok"), pd.Series([False] * 40), AXIS)
    (dots,) = figure.data
    assert len(dots.x) == 40
    assert max(dots.y) == sessions.MAX_TOOLS - 1
    assert figure.layout.yaxis.ticktext[-1] == "11 others"


def test_a_session_is_drawn_once_by_its_worst_trouble() -> None:
    figure = BUILDERS["sessions"]()
    assert [len(trace.x) for trace in figure.data] == [1, 1, 1, 1]
    assert figure.data[-1].name == "Repeated calls"  # on top


def test_a_class_that_is_alone_is_named_too() -> None:
    moment = pd.Timestamp(UNTIL.replace(tzinfo=None) - timedelta(minutes=5))
    alone = pd.DataFrame({"bucket": [moment], "outcome": ["degraded"],
                          "error_class": ["L3_transient"], "calls": [3.0]})  # fmt: skip
    figure = calls.classes_over_time(alone, AXIS)
    assert figure.layout.showlegend is True
    assert [trace.name for trace in figure.data] == ["↻ L3 transient"]


def test_times_are_the_viewers_wall_time() -> None:
    from zoneinfo import ZoneInfo

    tokyo = TimeAxis(WINDOW, 60, ZoneInfo("Asia/Tokyo"), "Asia/Tokyo")
    figure = rates.rates_over_time(_series(), tokyo, (rates.ERRORS,))
    assert figure.data[0].x[0] == datetime(2026, 1, 5, 21, 0, 30)
    assert "Asia/Tokyo" in figure.layout.xaxis.title.text


def test_the_grid_covers_the_window_whatever_its_alignment() -> None:
    odd = Window(SINCE + timedelta(seconds=7), UNTIL + timedelta(seconds=7))
    grid = TimeAxis(odd, 60, UTC, "UTC").grid()
    assert len(grid) == 16
    assert grid[0] == pd.Timestamp(SINCE.replace(tzinfo=None))


@pytest.mark.parametrize(
    ("width", "words"),
    [(1, "s"), (10, "10 s"), (60, "min"), (300, "5 min"), (3600, "h"), (86400, "day")],
)
def test_bucket_widths_in_words(width: int, words: str) -> None:
    assert TimeAxis(WINDOW, width, UTC, "UTC").bucket_label == words


def test_empty_frames_draw_empty_figures() -> None:
    nothing = _series().head(0)
    assert rates.rates_over_time(nothing, AXIS, (rates.ERRORS,)).data
    assert latency.quantiles_over_time(nothing, AXIS).data


def test_labels_are_short_and_escaped() -> None:
    assert label("<b>") == "&lt;b&gt;"
    assert len(label("x" * 500)) <= 34
    assert label("a" * 300 + "1") != label("a" * 300 + "2")


def test_a_sparkline_shows_one_error_among_thousands_and_marks_empty_buckets() -> None:
    from base64 import b64decode

    image = sparkline([1000, 0, 1000], [1, 0, 0])
    svg = b64decode(image.split("base64,")[1].split('"')[0]).decode()
    assert theme.ERROR_COLOUR in svg
    assert theme.GREY in svg
    assert (
        theme.ERROR_COLOUR
        not in b64decode(sparkline([5, 5], [0, 0]).split("base64,")[1].split('"')[0]).decode()
    )
