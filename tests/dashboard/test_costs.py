"""Costs on the page of retries: golden numbers, plain counting, and silence without prices."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from fuseboard_collector.store import Attempt, Batch, Store, ToolCall
from fuseboard_dashboard import theme

from .conftest import at, failed, html, open_page, serve, stat

Ask = Callable[..., list[dict[str, object]]]


def priced(tool: str, second: float, cost: float | None, **more: object) -> ToolCall:
    return ToolCall(tool, end=at(second), region="eu", cost=cost, **more)  # type: ignore[arg-type]


def attempt(call: ToolCall, number: int, cost: float, result: str = "failure") -> Attempt:
    made = failed(call, number, 0.01 * number)
    made.cost, made.result, made.span_id = cost, result, f"{number:016x}"
    return made


def world() -> Batch:
    """Return a paid tool: one call at once, one after a failure, one in vain, one degraded."""
    at_once = priced("paid", 60, 0.5)
    recovered = priced("paid", 120, 1.0, attempts=2)
    in_vain = priced("paid", 180, 0.75, attempts=2, outcome="error", error_class="L3_transient")
    degraded = priced("paid", 240, 0.5, outcome="degraded", error_class="L3_transient")
    attempts = [
        attempt(recovered, 1, 0.5), attempt(recovered, 2, 0.5, "success"),
        attempt(in_vain, 1, 0.5), attempt(in_vain, 2, 0.25), attempt(degraded, 1, 0.25),
    ]  # fmt: skip
    free = ToolCall("free", end=at(300), region="eu", attempts=2)
    return Batch(calls=[at_once, recovered, in_vain, degraded, free], attempts=attempts)


@pytest.fixture
def store(empty_store: Store) -> Store:
    empty_store.append(world()).result(30)
    return empty_store


def test_costs_of_tools_that_report_them(ask: Ask) -> None:
    assert ask("page_costs") == [
        {"tool": "paid", "calls": 4, "successful": 2, "cost": 2.75, "failed_cost": 1.5,
         "degraded_cost": 0.5, "error_cost": 0.75, "priced_successes": 2,
         "cost_per_success": 1.375},
    ]  # fmt: skip
    assert ask("page_costs", regions=["us"]) == []


def test_costs_per_bucket_are_of_attempts(ask: Ask) -> None:
    rows = ask("page_cost_series", bucket_us=2**61)
    assert [(r["attempt_cost"], r["failed_cost"]) for r in rows] == [(2.5, 1.5)]
    assert [r["failed_cost"] for r in ask("page_cost_series")] == [0, 0.5, 0.75, 0.25]


@pytest.mark.parametrize("outcome", ["abandoned", "interrupted", "cancelled"])
def test_a_call_that_nobody_waited_for_did_not_fail(store: Store, ask: Ask, outcome: str) -> None:
    left = priced("paid", 300, 4.0, attempts=1, outcome=outcome)
    store.append(Batch(calls=[left])).result(30)
    (row,) = ask("page_costs")
    assert (row["cost"], row["failed_cost"], row["error_cost"]) == (6.75, 1.5, 0.75)
    rows = ask("page_cost_series", bucket_us=2**61)
    assert [(r["attempt_cost"], r["failed_cost"]) for r in rows] == [(6.5, 1.5)]


def test_successes_that_tell_no_cost_do_not_make_the_others_cheaper(store: Store) -> None:
    untold = [priced("paid", 300 + second, None) for second in range(6)]
    store.append(Batch(calls=untold)).result(30)
    serve(store)
    app = open_page("retries")
    assert stat(app, "cost-per-success") == 1.375
    assert "ended ok or partial and tell" in html(app)


def test_the_page_tells_what_retries_and_failures_waste(store: Store) -> None:
    serve(store)
    app = open_page("retries")
    assert not app.exception
    assert "fb-problem" not in html(app)
    numbers = {name: stat(app, name) for name in (
        "cost", "cost-failed", "cost-degraded", "cost-errors", "cost-per-success")}  # fmt: skip
    assert numbers == {"cost": 2.75, "cost-failed": 1.5, "cost-degraded": 0.5,
                       "cost-errors": 0.75, "cost-per-success": 1.375}  # fmt: skip
    assert 'href="degradation?tool=paid"' in html(app)
    assert "fb-no-cost" not in html(app)


def test_without_prices_one_line_says_what_sets_them(empty_store: Store) -> None:
    empty_store.append(Batch(calls=[priced("free", 60, None, attempts=2)])).result(30)
    serve(empty_store)
    markup = html(open_page("retries"))
    assert "fb-no-cost" in markup
    assert "set_cost(0.01)" in markup
    assert 'data-stat="cost' not in markup


def test_costs_equal_those_counted_over_the_records(empty_store: Store) -> None:
    dice = random.Random(3)
    calls, attempts = [], []
    for _ in range(300):
        number = dice.randint(1, 3)
        is_good = dice.random() < 0.6
        made = priced(dice.choice("abc"), dice.uniform(5, 900), None, attempts=number,
                      outcome="ok" if is_good else dice.choice(["error", "degraded"]),
                      weight=dice.choice([1.0, 2.0]))  # fmt: skip
        own = [attempt(made, i + 1, dice.choice([0.25, 0.5]),
                       "success" if is_good and i == number - 1 else "failure")
               for i in range(number)]  # fmt: skip
        for item in own:
            item.weight = made.weight
        made.cost = sum(item.cost or 0.0 for item in own)
        calls.append(made)
        attempts += [] if number == 1 and is_good else own
    empty_store.append(Batch(calls=calls, attempts=attempts)).result(30)
    spent: Counter[str] = Counter()
    for call in calls:
        spent[call.tool] += (call.cost or 0.0) * call.weight  # type: ignore[assignment]
    wasted: Counter[str] = Counter()
    for item in attempts:
        if item.result == "failure":
            wasted[item.tool] += (item.cost or 0.0) * (item.weight or 1.0)  # type: ignore[assignment]
    serve(empty_store)
    app = open_page("retries")
    assert stat(app, "cost") == pytest.approx(sum(spent.values()))
    assert stat(app, "cost-failed") == pytest.approx(sum(wasted.values()))
    one = open_page("retries", {"tool": "a"})
    assert stat(one, "cost") == pytest.approx(spent["a"])
    assert stat(one, "cost-failed") == pytest.approx(wasted["a"])


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (1e-9, "1e-09"), (0.0123456, "0.0123"), (2.5, "2.50"),
     (1234.5, "1,234"), (float("nan"), "–")],
)  # fmt: skip
def test_amounts_keep_their_first_digits(value: float | None, text: str) -> None:
    assert theme.amount(value) == text
