"""Error budgets and burn rates, computed by hand."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import pytest

from fuseboard_dashboard.budgets import (
    KINDS,
    PAIRS,
    STATES,
    WINDOWS,
    budgets,
    burn_down,
    thresholds,
)
from fuseboard_dashboard.objectives import ObjectiveBook, Objectives

COLUMNS = ("tool", "calls", "judged", "errors", "answered", "unsound", "slow")
ONLY = Objectives(availability=0.99, latency=None, correctness=None)
BOOK = ObjectiveBook(ONLY)


def counted(*rows: tuple[str, float, float]) -> pd.DataFrame:
    """Return rows of ``page_slo``: tool, calls, errors; nothing slow or unsound."""
    return pd.DataFrame(
        [(tool, calls, calls, bad, calls, 0.0, 0.0) for tool, calls, bad in rows], columns=COLUMNS
    )


def judged(
    period: tuple[float, float], book: ObjectiveBook = BOOK, **windows: tuple[float, float]
) -> pd.Series:
    """Return the one row of a tool with calls and errors in the period and in windows."""
    frames = {
        name: counted(*([("a", *windows[f"w{name}"])] if f"w{name}" in windows else []))
        for name in WINDOWS
    }
    found = budgets(counted(("a", *period)), frames, book)
    assert len(found) == 1
    return found.iloc[0]


def test_a_budget_of_ten_bad_calls_of_which_four_were_made() -> None:
    row = judged((1000, 4))
    assert row["achieved"] == pytest.approx(0.996)
    assert row["left"] == pytest.approx(0.6)
    assert (row["state"], row["total"], row["bad"]) == ("fine", 1000, 4)


def test_few_calls_that_all_fail_are_no_lack_of_calls() -> None:
    """Less than one bad call was allowed of these 90; a verdict needs no more than they say."""
    row = judged((90, 90), w5m=(90, 90), w1h=(90, 90))
    assert row["state"] == "fast"
    assert judged((90, 90))["state"] == "gone"
    assert judged((90, 2), w5m=(90, 2), w1h=(90, 2))["state"] == "few"


def test_burn_rate_is_the_share_of_bad_calls_over_the_share_allowed() -> None:
    row = judged((1000, 4), w1h=(50, 1), w6h=(400, 2))
    assert row["burn_1h"] == pytest.approx(2.0)
    assert row["burn_6h"] == pytest.approx(0.5)
    assert pd.isna(row["burn_5m"])


def test_a_budget_that_burns_is_gone_when_the_bad_calls_of_the_last_hour_have_come_that_often() -> (
    None
):
    row = judged((1000, 4), w1h=(50, 3))
    assert row["seconds_left"] == pytest.approx(2 * 3600)  # six are left, three an hour
    assert pd.isna(judged((1000, 4), w1h=(50, 2))["seconds_left"])  # two tell nothing


@pytest.mark.parametrize("hour", [(300, 3), (300, 2), (0, 0)])
def test_at_a_burn_rate_of_one_or_less_it_lasts(hour: tuple[float, float]) -> None:
    assert pd.isna(judged((1000, 4), w1h=hour)["seconds_left"])


def test_the_workbooks_thresholds_for_thirty_days() -> None:
    assert [round(pair.threshold(timedelta(days=30)), 6) for pair in PAIRS] == [14.4, 6.0, 1.0]
    found = thresholds(timedelta(days=30))
    assert {name: round(value, 6) for name, value in found.items()} == {
        "1h": 14.4, "5m": 14.4, "6h": 6.0, "30m": 6.0, "3d": 1.0,
    }  # fmt: skip
    assert set(found) == set(WINDOWS)


def test_a_shorter_period_has_lower_thresholds_but_none_below_one() -> None:
    assert [round(pair.threshold(timedelta(days=7)), 6) for pair in PAIRS] == [3.36, 1.4, 1.0]


@pytest.mark.parametrize(
    ("windows", "state"),
    [
        ({"w1h": (100, 15), "w5m": (10, 2)}, "fast"),
        ({"w1h": (100, 14), "w5m": (10, 2)}, "fine"),  # 14 is not over 14.4
        ({"w1h": (100, 15), "w5m": (10, 1)}, "fine"),  # the trouble is over
        ({"w1h": (10, 2), "w5m": (10, 2)}, "fine"),  # two may be chance
        ({"w6h": (100, 7), "w30m": (10, 1)}, "fast"),
        ({"w3d": (300, 4), "w6h": (100, 2)}, "slow"),
        ({"w3d": (300, 4), "w6h": (100, 1)}, "fine"),
    ],
)
def test_a_pair_of_windows_makes_a_state(
    windows: dict[str, tuple[float, float]], state: str
) -> None:
    assert judged((100_000, 20), **windows)["state"] == state  # type: ignore[arg-type]


def test_a_spent_budget_is_gone_unless_it_burns_fast_which_comes_first() -> None:
    spent = judged((1000, 25), w3d=(300, 10), w6h=(100, 10))
    assert (spent["state"], spent["left"]) == ("gone", pytest.approx(-1.5))
    assert pd.isna(spent["seconds_left"])
    assert judged((1000, 25), w1h=(100, 20), w5m=(10, 2))["state"] == "fast"


@pytest.mark.parametrize(("calls", "state"), [(99, "few"), (100, "gone")])
def test_there_is_no_verdict_where_not_one_bad_call_is_allowed(calls: int, state: str) -> None:
    assert judged((calls, 1))["state"] == state


def test_each_objective_counts_its_own_calls() -> None:
    row = ("a", 1000.0, 900.0, 9.0, 800.0, 16.0, 100.0)
    frame = pd.DataFrame([row], columns=COLUMNS)
    found = budgets(frame, dict.fromkeys(WINDOWS, frame), ObjectiveBook()).set_index("kind")
    assert set(found.index) == set(KINDS)
    assert found["total"].to_dict() == {"availability": 900, "latency": 1000, "correctness": 800}
    assert found["bad"].to_dict() == {"availability": 9, "latency": 100, "correctness": 16}
    assert found["burn_5m"].round(6).to_dict() == {
        "availability": 2.0, "latency": 2.0, "correctness": 2.0,
    }  # fmt: skip


def test_a_tool_has_its_own_objectives_and_one_without_any_has_no_row() -> None:
    book = ObjectiveBook(ONLY, {"a": Objectives(0.9, None, 2.0, None),
                                "b": Objectives(None, None, 2.0, None)})  # fmt: skip
    frame = counted(("a", 1000, 4), ("b", 1000, 4), ("c", 1000, 4))
    found = budgets(frame, dict.fromkeys(WINDOWS, frame), book)
    assert dict(zip(found["tool"], found["target"], strict=True)) == {"c": 0.99, "a": 0.9}


def test_of_ten_thousand_tools_the_worst_come_first() -> None:
    rows = [(f"tool-{i:05d}", 1000.0, float(i % 10)) for i in range(10_000)]
    rows[5000] = ("worst", 1000.0, 500.0)
    period = counted(*rows)
    burning = counted(("tool-00007", 100.0, 90.0))
    windows = {name: burning if name in ("1h", "5m") else counted() for name in WINDOWS}
    found = budgets(period, windows, BOOK)
    assert list(found["tool"].head(2)) == ["tool-00007", "worst"]
    assert found["rank"].is_monotonic_increasing
    assert set(found["state"]) <= set(STATES)
    assert found["left"].iloc[2] == pytest.approx(0.1)


def test_no_calls_no_rows() -> None:
    assert len(budgets(counted(), dict.fromkeys(WINDOWS, counted()), BOOK)) == 0


def test_the_burn_down_ends_at_what_is_left() -> None:
    series = pd.DataFrame({"judged": [500.0, 0.0, 500.0], "errors": [1.0, 0.0, 3.0]})
    left = burn_down(series, "availability", 0.99)
    assert list(left.round(6)) == [0.9, 0.9, 0.6]
    assert judged((1000, 4))["left"] == pytest.approx(left.iloc[-1])
    assert burn_down(series * 0, "availability", 0.99).isna().all()
