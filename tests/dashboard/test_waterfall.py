"""Geometry and order of the waterfall, on rows as odd as clocks and networks make them."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fuseboard_dashboard import scales, waterfall
from fuseboard_dashboard.scales import Scale
from fuseboard_dashboard.waterfall import CALL, CHANGE, SPAN, Row

T0 = datetime(2026, 1, 5, 12)


def moment(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def calls(*rows: tuple[str, str | None, float, float], **more: object) -> pd.DataFrame:
    """Return calls of (span, parent, begin, seconds)."""
    values: dict[str, object] = {"tool": "t", "outcome": "ok", "error_class": None, "attempts": 1,
                                 **more}  # fmt: skip
    columns = ["span_id", "parent_span_id", "start", "end", *values]
    return pd.DataFrame(
        [
            {"span_id": span, "parent_span_id": parent, "start": moment(begin),
             "end": moment(begin + length), **values}
            for span, parent, begin, length in rows
        ],
        columns=columns,
    )  # fmt: skip


def attempts(*rows: tuple[str, int, float, float, float], span: str = "x") -> pd.DataFrame:
    """Return attempts of (call, number, begin, seconds, delay)."""
    return pd.DataFrame(
        [
            {"call_span_id": call, "span_id": f"{span}{number}", "number": number,
             "start": moment(begin), "end": moment(begin + length), "duration_seconds": length,
             "delay_seconds": delay, "result": "failure"}
            for call, number, begin, length, delay in rows
        ]
    )  # fmt: skip


def spans(*rows: tuple[str, str | None, float, float]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"span_id": span, "parent_span_id": parent, "start": moment(begin),
             "duration_seconds": length, "name": span}
            for span, parent, begin, length in rows
        ]
    )  # fmt: skip


def changes(*rows: tuple[str | None, float]) -> pd.DataFrame:
    return pd.DataFrame([{"span_id": span, "time": moment(when)} for span, when in rows])


def tree(*frames: pd.DataFrame) -> list[tuple[str, int]]:
    """Return name and depth of each row."""
    filled = [*frames, *[pd.DataFrame()] * (4 - len(frames))]
    return [
        (row.data.span_id or "none", row.depth) if row.kind != CHANGE else ("change", row.depth)
        for row in waterfall.rows(*filled)
    ]


def test_children_follow_their_parents_in_time() -> None:
    found = tree(
        calls(("b", "root", 2, 1), ("a", "root", 1, 1), ("inner", "a", 1.5, 0.2)),
        pd.DataFrame(),
        spans(("root", None, 0, 5)),
    )
    assert found == [("root", 0), ("a", 1), ("inner", 2), ("b", 1)]


def test_what_lies_in_an_attempt_is_its_calls_and_so_is_a_change_of_a_breaker() -> None:
    found = tree(
        calls(("a", None, 1, 3), ("sub", "x2", 2.2, 0.5)),
        attempts(("a", 1, 1, 0.5, 0), ("a", 2, 2, 1, 0.5)),
        pd.DataFrame(),
        changes(("x2", 3.0), ("unknown", 0.5)),
    )
    assert found == [("change", 0), ("a", 0), ("sub", 1), ("change", 1)]


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "a", 0, 1)],
        [("a", "b", 0, 1), ("b", "a", 1, 1)],
        [("a", "gone", 0, 1), ("b", "a", -5, 1)],
        [("same", None, 0, 1), ("same", None, 1, 1), ("child", "same", 2, 1)],
    ],
    ids=["its-own-parent", "each-others-parents", "parent-missing-and-child-earlier", "duplicates"],
)
def test_every_row_is_drawn_once_however_odd_its_parents(
    rows: list[tuple[str, str | None, float, float]],
) -> None:
    found = tree(calls(*rows))
    assert sorted(name for name, _ in found) == sorted(row[0] for row in rows)


@given(
    some.lists(
        some.tuples(some.integers(0, 9), some.none() | some.integers(0, 9), some.floats(-1e4, 1e4)),
        max_size=40,
    )
)
def test_any_graph_of_parents_becomes_a_tree(rows: list[tuple[int, int | None, float]]) -> None:
    made = [(str(span), None if up is None else str(up), begin, 1.0) for span, up, begin in rows]
    found = tree(calls(*made))
    assert sorted(name for name, _ in found) == sorted(row[0] for row in made)
    depths = [depth for _, depth in found]
    assert all(after <= before + 1 for before, after in pairwise([-1, *depths]))


def test_a_deep_chain_needs_no_recursion() -> None:
    chain = [(str(n), str(n - 1) if n else None, float(n), 1.0) for n in range(3000)]
    assert tree(calls(*chain))[-1] == ("2999", 2999)


def test_orphans_are_counted_roots_are_not() -> None:
    found = waterfall.rows(
        calls(("a", None, 0, 1), ("b", "gone", 1, 1), ("c", "x1", 1, 1)),
        attempts(("a", 1, 0, 1, 0)), pd.DataFrame(), pd.DataFrame(),
    )  # fmt: skip
    assert waterfall.orphans(found) == 1


def row(begin: float, length: float, kind: str = CALL, **more: object) -> Row:
    frame = calls(("a", None, begin, length), **more)
    (found,) = waterfall.known(frame)
    return Row(kind, found.start, found.end, found)


def test_the_scale_reaches_from_the_first_call_to_the_last() -> None:
    scale = scales.scale([row(1, 1), row(4, 2)])
    assert (scale.start, scale.length) == (moment(1), timedelta(seconds=5))
    assert scale.place(moment(3.5)) == 50
    assert scale.bar(moment(1), moment(2)) == (0, 20)
    assert scale.bar(moment(-9), moment(99)) == (0, 100)


def test_a_span_that_is_far_away_does_not_make_calls_hairlines() -> None:
    scale = scales.scale([row(0, 10), row(-100_000, 100_010, SPAN), row(50_000, 9e5, SPAN)])
    assert scale.length < timedelta(hours=2, seconds=11)


def test_an_attempt_of_another_clock_does_not_decide_about_the_scale() -> None:
    (skewed,) = waterfall.rows(
        calls(("a", None, 0, 1)), attempts(("a", 1, -5000, 1, 0)), pd.DataFrame(), pd.DataFrame()
    )
    assert scales.scale([skewed]).length <= timedelta(seconds=3)
    assert waterfall.is_skewed(skewed)
    assert any("before its call" in words for words in waterfall.oddities(skewed))


def test_a_call_of_no_length_has_a_scale() -> None:
    scale = scales.scale([row(0, 0)])
    assert scale.length > timedelta(0)
    assert scale.bar(moment(0), moment(0)) == (0, 0)


def test_ends_before_the_start_draw_nothing_negative() -> None:
    scale = Scale(moment(0), timedelta(seconds=10))
    assert scale.bar(moment(5), moment(2)) == (50, 0)


@given(some.floats(0.001, 10_000_000))
def test_lines_of_the_grid_are_few_and_within(seconds: float) -> None:
    scale = Scale(T0, timedelta(seconds=seconds))
    ticks = scale.ticks()
    assert ticks[0] == (0, 0)
    assert all(0 <= place <= 100.001 for _, place in ticks)
    assert len(ticks) <= 8 or seconds > 86400 * 6


def test_waits_end_where_their_attempt_begins_also_if_clocks_say_otherwise() -> None:
    (one,) = waterfall.rows(
        calls(("a", None, 0, 3), attempts=2),
        attempts(("a", 1, 0, 2, 0), ("a", 2, 1, 0.5, 0.25)), pd.DataFrame(), pd.DataFrame(),
    )  # fmt: skip
    ((attempt, begin, end),) = waterfall.waits(one)
    assert (attempt.number, begin, end) == (2, moment(0.75), moment(1))


def test_attempts_that_are_missing_are_said() -> None:
    (one,) = waterfall.rows(
        calls(("a", None, 0, 3), attempts=3), attempts(("a", 1, 0, 1, 0)), pd.DataFrame(),
        pd.DataFrame(),
    )  # fmt: skip
    assert waterfall.oddities(one) == ["2 of 3 attempts have not reached the store."]


def test_hc_47_of_many_rows_faults_and_retries_are_drawn_in_their_order() -> None:
    rows = [row(n, 0.1) for n in range(5000)]
    rows[4321] = row(4321, 0.001, outcome="error", error_class="L4_persistent")
    rows[17] = row(17, 0.001, attempts=2)
    drawn = waterfall.worth_drawing(rows)
    assert len(drawn) == waterfall.MAX_DRAWN
    assert rows[4321] in drawn
    assert rows[17] in drawn
    assert [r.start for r in drawn] == sorted(r.start for r in drawn)
    assert waterfall.worth_drawing(rows[:3]) == rows[:3]
