"""Which slice explains a rise: pure numbers, then the query, then the panel."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from fuseboard_collector.store import Batch, Store, ToolCall
from fuseboard_dashboard import changed
from fuseboard_dashboard.changes import MEASURES, Change, changes
from fuseboard_dashboard.slices import DIMENSIONS, Cells

from .conftest import SINCE, UNTIL, html, open_page, serve

ERRORS, RETRIES, SLOW = MEASURES
TOOLS, REGIONS = tuple(f"tool_{n:02d}" for n in range(20)), ("eu", "us", "ap")
Where = Callable[[dict[str, str | None]], bool]


def cells_of(
    rates: Callable[[dict[str, str | None], bool], float],
    calls: int = 100,
    column: str = "errors",
    classes: Callable[[dict[str, str | None]], str] = lambda _: "L3_transient",
    seed: int = 0,
) -> pd.DataFrame:
    """Return cells of 20 tools, 3 regions and 4 arguments, with a rate of events each.

    Args:
        rates: Of a cell, before (False) and now (True).
        calls: Of each cell in each window.
        column: What happens.
        classes: The class of a cell's errors.
        seed: Of the numbers of events.
    """
    random = np.random.default_rng(seed)
    rows = []
    for tool, region, number in itertools.product(TOOLS, REGIONS, range(4)):
        cell: dict[str, str | None] = {
            "tool": tool, "region": region, "agent": f"agent-{number % 2}", "service": "s",
            "upstream": f"{tool}.example.org", "error_class": None,
            "args_hash": f"v1:{tool}{number}" if number else None,
        }  # fmt: skip
        before, now = (int(random.binomial(calls, rates(cell, when))) for when in (False, True))
        base = {"errors": "judged", "retried": "attempted", "slow": "calls"}[column]
        counted = ("calls", "judged", "attempted", "errors", "retried", "slow")
        empty = {f"{name}{end}": 0.0 for name in counted for end in ("", "_before")}
        failed = {**cell, **empty, base: now, f"{base}_before": before, column: now,
                  f"{column}_before": before}  # fmt: skip
        good = {**cell, **empty, base: calls - now, f"{base}_before": calls - before}
        failed["error_class"] = classes(cell) if column == "errors" else None
        rows += [failed, good]
    return pd.DataFrame(rows)


def steady(_: dict[str, str | None], __: bool) -> float:
    return 0.02


def rises(where: Where, to: float = 0.2) -> Callable[[dict[str, str | None], bool], float]:
    return lambda cell, is_now: to if is_now and where(cell) else 0.02


def found(cells: pd.DataFrame) -> list[Change]:
    return [change for change in changes(Cells(cells), ERRORS) if change.is_sure]


def told_of(change: Change) -> dict[str, str]:
    return {name: value for name, value in change.where.items() if name != "error_class"}


@pytest.mark.parametrize("seed", range(20))
def test_where_nothing_changed_nothing_is_sure(seed: int) -> None:
    assert found(cells_of(steady, seed=seed)) == []


def test_no_calls_are_no_change() -> None:
    columns = [*DIMENSIONS, "judged", "judged_before", "errors", "errors_before"]
    assert changes(Cells(pd.DataFrame(columns=columns)), ERRORS) == []


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        (lambda c: c["tool"] == "tool_07", {"tool": "tool_07"}),
        (lambda c: c["region"] == "us", {"region": "us"}),
        (lambda c: c["agent"] == "agent-1", {"agent": "agent-1"}),
        (
            lambda c: (c["tool"], c["region"]) == ("tool_07", "us"),
            {"tool": "tool_07", "region": "us"},
        ),
        (
            lambda c: c["args_hash"] == "v1:tool_072",
            {"tool": "tool_07", "args_hash": "v1:tool_072"},
        ),
        (
            lambda c: (c["args_hash"], c["region"]) == ("v1:tool_072", "us"),
            {"tool": "tool_07", "region": "us", "args_hash": "v1:tool_072"},
        ),
    ],
    ids=["tool", "region", "agent", "tool and region", "argument", "argument and region"],
)  # fmt: skip
def test_the_slice_is_neither_wider_nor_narrower_than_the_cause(
    where: Where, wanted: dict[str, str]
) -> None:
    best = found(cells_of(rises(where)))[0]
    assert told_of(best) == wanted
    assert best.rate == pytest.approx(0.2, abs=0.06)
    assert best.before == pytest.approx(0.02, abs=0.03)
    assert best.share > 0.2


def test_one_class_everywhere_is_told_as_the_class() -> None:
    cells = cells_of(steady)
    expired = cells[cells["error_class"].notna()].copy()
    expired[["errors", "judged"]] = 5.0
    expired[["errors_before", "judged_before"]] = 0.0
    expired["error_class"] = "L2_access"
    best = found(pd.concat([cells, expired], ignore_index=True))[0]
    assert best.where == {"error_class": "L2_access"}
    assert best.before == 0


def test_two_causes_are_told_apart_and_what_one_explains_is_not_told_twice() -> None:
    def rates(cell: dict[str, str | None], is_now: bool) -> float:
        if is_now and (cell["tool"], cell["region"]) == ("tool_03", "eu"):
            return 0.5
        return 0.2 if is_now and cell["tool"] == "tool_11" else 0.02

    told = [told_of(change) for change in found(cells_of(rates))]
    assert sorted(told, key=len) == [{"tool": "tool_11"}, {"tool": "tool_03", "region": "eu"}]


def test_several_causes_at_once_are_not_told_as_all_that_they_have_in_common() -> None:
    """All calls are of one service; that it fails more often helps nobody."""
    causes = {("tool_02", "eu"), ("tool_05", "us"), ("tool_09", "ap"), ("tool_13", "eu")}
    cells = cells_of(rises(lambda c: (c["tool"], c["region"]) in causes, to=0.5))
    told = {tuple(told_of(change).values()) for change in found(cells)}
    assert told == causes


@pytest.mark.parametrize(("measure", "column"), [(RETRIES, "retried"), (SLOW, "slow")])
def test_retries_and_slow_calls_are_told_too(measure: object, column: str) -> None:
    cells = cells_of(rises(lambda c: c["tool"] == "tool_07"), column=column)
    best = changes(Cells(cells), measure)[0]  # type: ignore[arg-type]
    assert best.is_sure
    assert best.where["tool"] == "tool_07"
    assert best.mostly is None
    assert changes(Cells(cells), ERRORS) == []


def test_a_fall_is_no_rise() -> None:
    cells = cells_of(lambda cell, is_now: 0.02 if is_now else 0.2)
    assert changes(Cells(cells), ERRORS) == []


def test_a_tool_that_always_fails_is_not_blamed_for_new_faults_elsewhere() -> None:
    def rates(cell: dict[str, str | None], is_now: bool) -> float:
        if cell["tool"] == "tool_00":
            return 0.9
        return 0.15 if is_now and (cell["tool"], cell["region"]) == ("tool_05", "ap") else 0.01

    best = found(cells_of(rates))[0]
    assert best.where["tool"] == "tool_05"
    assert best.where["region"] == "ap"


def batch() -> Batch:
    """Return two windows: in the second, alpha in eu-west fails for one argument."""
    calls = []
    for number in range(600):
        for is_now in (False, True):
            end = UNTIL - timedelta(minutes=0 if is_now else 15) - timedelta(seconds=number)
            tool, region = ("alpha", "beta")[number % 2], ("us-east", "eu-west")[number // 2 % 2]
            args_hash = f"v1:{number // 4 % 5:016x}"
            poisoned = (tool, region, number // 4 % 5) == ("alpha", "eu-west", 3)
            fails = (is_now and poisoned) or number % 97 == 0
            calls.append(
                ToolCall(
                    tool, end=end, region=region, args_hash=args_hash, agent="planner",
                    outcome="error" if fails else "ok",
                    error_class="L4_persistent" if fails else None,
                    attempts=3 if fails else 1, duration_seconds=2.0 if fails else 0.1,
                )
            )  # fmt: skip
    return Batch(calls=calls)


def test_the_query_counts_both_windows(empty_store: Store) -> None:
    empty_store.append(batch()).result(30)
    before = SINCE - (UNTIL - SINCE)
    given = {
        "since": SINCE.isoformat(), "until": UNTIL.isoformat(), "before_since": before.isoformat(),
        "before_until": SINCE.isoformat(), "tools": None, "regions": None,
    }  # fmt: skip
    cells = empty_store.query("page_changes", given).to_pandas()
    assert cells["calls"].sum() == 600
    assert cells["calls_before"].sum() == 600
    poisoned = cells[cells["args_hash"] == f"v1:{3:016x}"]
    assert set(cells["args_hash"].dropna()) >= {f"v1:{3:016x}"}
    here = poisoned[(poisoned["tool"] == "alpha") & (poisoned["region"] == "eu-west")]
    assert here["errors"].sum() == 30
    assert here["errors_before"].sum() < 3
    assert here["retried"].sum() == 30
    assert here["slow"].sum() == 30, "slower than the 95th percentile of the window before"
    narrowed = empty_store.query("page_changes", {**given, "tools": ["beta"]}).to_pandas()
    assert set(narrowed["tool"]) == {"beta"}


def test_the_board_names_the_cause_and_leads_to_its_calls(empty_store: Store) -> None:
    empty_store.append(batch()).result(30)
    serve(empty_store)
    page = html(open_page(""))
    assert "fb-problem" not in page
    first = page.split('data-testid="fb-change"')[1]
    assert 'data-tool="alpha"' in first
    assert 'data-region="eu-west"' in first
    assert f'data-args-hash="v1:{3:016x}"' in first
    before = page.split('data-testid="fb-change"')[0]
    assert "hash=v1" in first or "hash=v1" in before


def test_a_board_with_a_single_call_has_nothing_to_compare_with(empty_store: Store) -> None:
    empty_store.append(Batch(calls=[ToolCall("alpha", end=UNTIL)])).result(30)
    serve(empty_store)
    assert "nothing to compare with" in html(open_page(""))


def test_in_the_first_minutes_a_window_is_compared_with_its_own_first_half(
    empty_store: Store,
) -> None:
    calls = [
        ToolCall(
            tool, end=UNTIL - timedelta(seconds=number),
            outcome="error" if tool == "beta" and number < 60 else "ok",
            error_class="L2_access" if tool == "beta" and number < 60 else None,
        )
        for number in range(240) for tool in ("alpha", "beta")
    ]  # fmt: skip
    empty_store.append(Batch(calls=calls)).result(30)
    serve(empty_store)
    page = html(open_page(""))
    assert 'data-tool="beta"' in page.split('data-testid="fb-change"')[1]
    assert "No calls before this window: since 12:1" in page


def test_a_window_of_too_many_calls_says_where_to_look_instead(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed, "MOST_CALLS", 10)
    serve(store)
    assert "choose a shorter time" in html(open_page(""))
