"""The rules on the Alerts page: how close each series is, and with what a rule is evaluated."""

from __future__ import annotations

import html as markup
import re
from pathlib import Path

import pytest
import yaml

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.model import Ratio, Rule, StateFor
from fuseboard_collector.store import Batch, Store, ToolCall
from fuseboard_dashboard.rulebook import asked, distance, promql, sql, standings, threshold

from .conftest import UNTIL, at, html, open_page, serve

GENERATED = Path(__file__).parents[2] / "alerts/generated/fuseboard.rules.yml"
RULES = {rule.id: rule for rule in CATALOGUE}
WARNING = RULES["ToolCallErrorRatioHigh/warning"]


def row(tool: str, value: float, calls: float, events: float) -> dict[str, object]:
    return {"job": "agent", "tool": tool, "region": "eu", "value": value, "calls": calls,
            "events": events, "newest": UNTIL}  # fmt: skip


def test_the_series_closest_to_firing_comes_first_and_true_ones_before_all() -> None:
    rows = [row("calm", 0.01, 100, 1), row("few", 0.5, 10, 5), row("near", 0.04, 100, 4),
            row("over", 0.06, 100, 6)]  # fmt: skip
    found = standings(WARNING, rows)
    assert [one.labels["tool"] for one in found] == ["over", "few", "near", "calm"]
    assert [one.is_true for one in found] == [True, False, False, False]
    assert found[2].closeness == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("given", "words"),
    [(row("a", 0.042, 100, 5), "4.2 % against 5 %"),
     (row("a", 0.5, 12, 6), "50.0 % against 5 %; 12 of the 20 calls that it needs"),
     (row("a", 0.06, 50, 3), "6.0 % against 5 %; 3 of the 5 events that it needs")],
)  # fmt: skip
def test_what_keeps_a_rule_quiet_is_said(given: dict[str, object], words: str) -> None:
    (one,) = standings(WARNING, [given])
    assert distance(WARNING, one) == words


def test_rows_without_a_number_are_no_series() -> None:
    assert standings(WARNING, [row("a", float("nan"), 0, 0)]) == []


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.id)
def test_promql_is_what_the_render_command_writes(rule: Rule) -> None:
    shipped = yaml.safe_load(GENERATED.read_text(encoding="utf-8"))["groups"]
    records, alerts = (group["rules"] for group in shipped)
    shown = yaml.safe_load(promql(rule))["groups"]
    assert all(one in records for one in shown[0]["rules"] or [])
    (alert,) = shown[1]["rules"]
    assert alert in alerts
    used = set(re.findall(r"\w+:fuseboard\w+:\w+", alert["expr"]))
    assert used <= {one["record"] for one in shown[0]["rules"]}


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.id)
def test_the_shown_sql_runs_as_it_is_and_says_what_the_evaluator_sees(
    store: Store, rule: Rule
) -> None:
    """With the parameters of its own first lines."""
    text = sql(rule, UNTIL, 1.0)
    values = {name: value.strip("'") for name, value in re.findall(r"-- \$(\w+) = (.+)", text)}
    typed = {k: float(v) if k == "slower_than" else v for k, v in values.items()}
    with store._open_database().cursor() as cursor:
        shown = cursor.sql(text, params=typed).to_arrow_table().to_pylist()
    wanted = asked(rule, UNTIL, 1.0)
    assert shown == store.query(wanted.query, dict(wanted.parameters)).to_pylist()
    assert isinstance(threshold(rule), float)


def test_the_page_shows_every_rule_with_its_queries_and_the_value_against_the_threshold(
    store: Store,
) -> None:
    calls = [ToolCall("gamma", end=at(800 + i), region="eu", service="agent",
                      outcome="error" if i < 4 else "ok") for i in range(40)]  # fmt: skip
    store.append(Batch(calls=calls)).result(30)
    serve(store)
    app = open_page("alerts")
    assert not app.exception
    shown = re.search(r'data-testid="fb-standing" data-rule="ToolCallErrorRatioHigh/critical" '
                      r'data-tool="gamma"[^>]*>([^<]*)', html(app))  # fmt: skip
    assert shown is not None
    assert 'data-value="0.1" data-threshold="0.2" data-true="false"' in shown[0]
    assert markup.unescape(shown[1]) == "10.0 % against 20 %"
    codes = [block.value for block in app.code]
    assert len(codes) == 2 * len(CATALOGUE)
    assert all(any(f"alert: {rule.name}" in code for code in codes) for rule in CATALOGUE)
    queries = {rule.condition.query for rule in CATALOGUE}
    assert len([code for code in codes if "-- $since = " in code]) == len(CATALOGUE) >= len(queries)


def test_hostile_names_are_shown_as_text(store: Store) -> None:
    name = "<script>alert(1)</script>" + "x" * 470
    calls = [ToolCall(name, end=at(800 + i), region="<b>", outcome="error") for i in range(30)]
    store.append(Batch(calls=calls)).result(30)
    serve(store)
    shown = html(open_page("alerts"))
    assert "<script>alert" not in shown
    assert "&lt;script&gt;" in shown


def test_kinds_of_the_catalogue_are_all_put_into_words() -> None:
    assert any(isinstance(rule.condition, StateFor) for rule in CATALOGUE)
    for rule in CATALOGUE:
        value = 0.0 if not isinstance(rule.condition, Ratio) else 0.01
        given = row("a", value, 1000, 10)
        (one,) = standings(rule, [given])
        assert distance(rule, one)
