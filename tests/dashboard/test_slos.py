"""The page of objectives: its numbers equal plain counting, and each leads to its calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from fuseboard_collector.store import Batch, Store, ToolCall, open_store
from fuseboard_dashboard import bounded
from fuseboard_dashboard.budgeted import period_of
from fuseboard_dashboard.objectives import ObjectiveBook, Objectives
from fuseboard_dashboard.windows import Window

from .conftest import UNTIL, go_to, html, open_page, serve, stat

DAY = timedelta(days=1)


def calls() -> list[ToolCall]:
    """Return calls of four tools over 20 days: burning now, spent, fine, and new."""
    made = []
    for number in range(2000):
        end = UNTIL - timedelta(minutes=14 * number)
        burning = number < 3
        made.append(
            ToolCall("burning", end=end, duration_seconds=0.2, region="us-east",
                     outcome="error" if burning else "ok", attempts=1,
                     error_class="L3_transient" if burning else None, layer="timeout")
        )  # fmt: skip
        if number % 2:
            made.append(
                ToolCall("spent", end=end - timedelta(days=4), duration_seconds=3.0,
                         outcome="degraded" if number % 20 == 1 else "ok")
            )  # fmt: skip
            made.append(ToolCall("fine", end=end, duration_seconds=0.1))
    made += [
        ToolCall("burning", end=UNTIL - timedelta(seconds=n), duration_seconds=0.1, attempts=1,
                 region="us-east", outcome="error", error_class="L3_transient", layer="timeout")
        for n in range(1, 6)
    ]  # fmt: skip
    return [*made, ToolCall("new", end=UNTIL, outcome="error")]


@pytest.fixture
def slo_store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "slo" / "fuseboard.duckdb", retention_days=None)
    store.append(Batch(calls=calls())).result(60)
    yield store
    store.close()


def rows(page: str) -> list[dict[str, str]]:
    """Return the hooks of every row of budgets."""
    found = re.findall(r'data-testid="fb-budget" ([^>]*)>', page)
    return [dict(re.findall(r'data-(\w+)="([^"]*)"', hooks)) for hooks in found]


def test_a_period_begins_with_a_whole_day() -> None:
    period = period_of(UNTIL, ObjectiveBook())
    assert period == Window(UNTIL.replace(hour=0, minute=0) - 29 * DAY, UNTIL)
    midnight = UNTIL.replace(hour=0, minute=0)
    assert period_of(midnight, ObjectiveBook(period_days=7)).since == midnight - 7 * DAY


def test_the_numbers_equal_plain_counting(slo_store: Store) -> None:
    serve(slo_store)
    app = open_page("slos")
    assert not app.exception
    assert "fb-problem" not in html(app)
    found = {(row["tool"], row["kind"]): row for row in rows(html(app))}
    assert len(found) == 11  # the new tool never answered: nothing to be correct
    made = calls()
    for (tool, kind), row in found.items():
        mine = [call for call in made if call.tool == tool]
        bad = {
            "availability": [c for c in mine if c.outcome == "error"],
            "latency": [c for c in mine if c.duration_seconds > 2.0],
            "correctness": [c for c in mine if c.outcome == "degraded"],
        }[kind]
        total = [c for c in mine if kind != "correctness" or c.outcome != "error"]
        assert (float(row["total"]), float(row["bad"])) == (len(total), len(bad)), (tool, kind)
        target = Objectives().target(kind)
        assert target is not None
        left = 1 - len(bad) / ((1 - target) * len(total))
        assert float(row["left"]) == pytest.approx(left)


def test_what_burns_comes_first_and_too_few_calls_have_no_verdict(slo_store: Store) -> None:
    serve(slo_store)
    app = open_page("slos")
    order = [(row["tool"], row["kind"], row["state"]) for row in rows(html(app))]
    assert order[0] == ("burning", "availability", "fast")
    assert order[1:3] == [("spent", "latency", "gone"), ("spent", "correctness", "gone")]
    assert {state for tool, _, state in order if tool == "new"} == {"few"}
    assert "no verdict: not one bad call is allowed yet" in html(app)
    for state in ("fast", "gone", "slow", "fine", "few"):
        assert stat(app, f"budgets-{state}") == sum(1 for each in order if each[2] == state)
    assert "gone in" in html(app)
    assert "The oldest call that is kept began" in html(app)


def test_a_count_leads_to_its_calls_in_its_window(slo_store: Store) -> None:
    serve(slo_store)
    page = html(open_page("slos"))
    hour = "errors?from=2026-01-05T11%3A15%3A00Z&amp;to=2026-01-05T12%3A15%3A00Z&amp;tool=burning"
    assert f'href="{hour}"' in page
    app = open_page("errors", {"from": "2026-01-05T11:15:00Z", "to": "2026-01-05T12:15:00Z",
                               "tool": "burning"})  # fmt: skip
    assert stat(app, "errors") == 8


def test_a_count_of_all_classes_leads_to_all_of_them(slo_store: Store) -> None:
    serve(slo_store)
    page = html(open_page("slos", {"class": "L1_input"}))
    hour = "errors?from=2026-01-05T11%3A15%3A00Z&amp;to=2026-01-05T12%3A15%3A00Z&amp;tool=burning"
    assert f'href="{hour}"' in page


def test_a_layer_leads_to_its_calls(slo_store: Store) -> None:
    serve(slo_store)
    page = html(open_page("slos"))
    assert 'data-layer="timeout" data-value="7.0"' in page
    assert 'data-layer="tool" data-value="1.0"' in page
    assert 'href="slos?layer=timeout"' in page
    app = open_page("slos", {"layer": "timeout"})
    assert set(app.dataframe[0].value["tool"]) == {"burning"}
    assert len(app.dataframe[0].value) == 7
    app = open_page("slos", {"layer": "<b>nonsense"})
    assert "No such call in this window." in html(app)
    assert "<b>nonsense" not in html(app)


def test_tools_have_their_own_objectives(slo_store: Store) -> None:
    own = Objectives(availability=None, latency_seconds=0.15, correctness=None)
    serve(slo_store, objectives=ObjectiveBook(tools={"burning": own}))
    found = [row for row in rows(html(open_page("slos"))) if row["tool"] == "burning"]
    assert [(row["kind"], float(row["bad"])) for row in found] == [("latency", 2000.0)]


def test_objectives_of_tools_without_calls_are_told_of(slo_store: Store) -> None:
    serve(slo_store, objectives=ObjectiveBook(tools={"serach": Objectives(), "fine": Objectives()}))
    assert "1 tool has objectives and no calls: serach." in html(open_page("slos"))


def test_of_too_many_calls_the_layers_of_the_last_are_counted(
    slo_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(slo_store)
    monkeypatch.setattr(bounded.bounded, "__defaults__", (1,))
    page = html(open_page("slos", {"range": "24h"}))
    assert "Counted in the last 5 min only" in page
    assert 'data-layer="timeout" data-value="6.0"' in page


def test_one_tool_is_chosen_by_its_link(slo_store: Store) -> None:
    serve(slo_store)
    page = html(open_page("slos", {"tool": "fine"}))
    assert {row["tool"] for row in rows(page)} == {"fine"}
    assert "What is left of the budgets of fine" in page
    assert "No call spent a budget" in page


def test_of_many_tools_the_rest_is_folded(tmp_path: Path) -> None:
    store = open_store(tmp_path / "many" / "fuseboard.duckdb", retention_days=None)
    many = [ToolCall(f"<i>tool {n:04d}", end=UNTIL - timedelta(minutes=1), duration_seconds=0.1)
            for n in range(400)]  # fmt: skip
    store.append(Batch(calls=many)).result(60)
    try:
        serve(store)
        app = open_page("slos")
        assert not app.exception
        assert app.expander[0].label == "1155 more rows"
        assert len(rows(html(app))) == 300
        assert "The worst 300 of 1,200" in app.caption[0].value
        assert "<i>tool" not in html(app)
    finally:
        store.close()


def test_filters_survive_and_elements_do_not_pile_up(slo_store: Store) -> None:
    serve(slo_store)
    app = open_page("slos", {"tool": "burning", "region": "us-east", "class": "L2_access"})
    assert "Only calls in the chosen regions count." in html(app)
    assert "The filter of error classes does not apply here." in html(app)
    number = len(app.main)
    for _ in range(3):
        app.run()
    assert len(app.main) == number
    go_to(app, "errors")
    go_to(app, "slos")
    assert app.query_params["tool"] in ("burning", ["burning"])
