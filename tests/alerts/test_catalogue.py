"""The catalogue says what the contract says, and everything it promises exists."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import fuseboard.conventions as names
from fuseboard_alerts.catalogue import CATALOGUE, rule_names
from fuseboard_alerts.model import (
    Absent,
    CatalogueError,
    Ratio,
    Rule,
    Selector,
    SlowShare,
    StateFor,
    percentage,
)
from fuseboard_collector.store.named_queries import load

ROOT = Path(__file__).parents[2]
RUNBOOKS = ROOT / "alerts" / "runbooks"
M, H = 60, 3600

# above, window, for, keep firing, minimum calls, minimum events: as published.
PUBLISHED = {
    "ToolCallRetryRateHigh/warning": (0.05, 5 * M, 2 * M, 5 * M, 20, 3),
    "ToolCallErrorRatioHigh/warning": (0.05, 5 * M, 5 * M, 5 * M, 20, 5),
    "ToolCallErrorRatioHigh/critical": (0.20, 5 * M, 2 * M, 5 * M, 20, 5),
    "ToolCallSlow/warning": (0.01, 15 * M, 5 * M, 5 * M, 100, 5),
    "ToolCallSemanticErrorsHigh/warning": (0.005, H, 5 * M, 0, 200, 3),
}


def test_ratios_have_their_published_numbers() -> None:
    found = {
        rule.id: (
            rule.condition.above,
            rule.condition.window,
            rule.hold,
            rule.keep_firing,
            rule.condition.minimum_calls,
            rule.condition.minimum_events,
        )
        for rule in CATALOGUE
        if isinstance(rule.condition, Ratio | SlowShare)
    }
    assert found == PUBLISHED


def test_the_other_rules_have_their_published_numbers() -> None:
    others = {rule.id: rule for rule in CATALOGUE if rule.id not in PUBLISHED}
    breaker, absent = (
        others["ToolCallBreakerOpen/critical"],
        others["ToolCallTelemetryAbsent/warning"],
    )
    assert len(others) == 2
    assert isinstance(breaker.condition, StateFor)
    assert (breaker.condition.states, breaker.condition.window) == (("open", "half_open"), M)
    assert (breaker.hold, breaker.keep_firing) == (2 * M, 0)
    assert isinstance(absent.condition, Absent)
    assert (absent.hold, absent.labels) == (15 * M, ())


def test_slow_is_over_five_seconds_exactly() -> None:
    (slow,) = (rule.condition for rule in CATALOGUE if isinstance(rule.condition, SlowShare))
    assert slow.slower_than == 5.0


def test_ids_are_unique_and_names_speak_alike() -> None:
    assert len({rule.id for rule in CATALOGUE}) == len(CATALOGUE)
    assert all(re.fullmatch(r"ToolCall[A-Z][A-Za-z]+", name) for name in rule_names())
    assert rule_names() == tuple(sorted(set(rule_names())))


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.id)
def test_texts_are_sentences_and_name_only_known_labels(rule: Rule) -> None:
    assert "{" not in rule.summary
    assert rule.summary.endswith(".")
    assert rule.description.endswith(".")
    known = {*rule.labels, "value"}
    assert set(re.findall(r"\{(\w+)\}", rule.description)) <= known


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.id)
def test_every_rule_has_its_query_and_known_metrics(rule: Rule) -> None:
    assert load(rule.condition.query).reads_only
    exported = {value for key, value in vars(names).items() if key.startswith("METRIC_")}
    condition = rule.condition
    used = (
        {condition.events.metric, condition.calls.metric}
        if isinstance(condition, Ratio)
        else {condition.metric}
    )
    assert used <= exported


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == set(rule_names())


@pytest.mark.parametrize("name", rule_names())
def test_runbooks_have_the_four_parts_with_real_help(name: str) -> None:
    text = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert [part.splitlines()[0] for part in parts] == [
        "Meaning",
        "Impact",
        "Diagnosis",
        "Mitigation",
    ]
    assert all(len(part.split()) > 20 for part in parts)
    pages = "Board|Tool|Errors|Breakers|Retries|Latency|Alerts"
    assert re.search(rf"\*\*({pages})\*\* page", text), "a runbook leads to the dashboard"


@pytest.mark.parametrize("name", rule_names())
def test_runbooks_spell_classes_and_alerts_as_they_are(name: str) -> None:
    text = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
    classes = {str(one) for one in names.ErrorClass}
    assert set(re.findall(r"`(L\d_\w+)`", text)) <= classes
    assert set(re.findall(r"\bToolCall[A-Z]\w+", text)) <= set(rule_names())


def test_bound_that_is_no_bucket_is_refused() -> None:
    (slow,) = (rule for rule in CATALOGUE if isinstance(rule.condition, SlowShare))
    with pytest.raises(CatalogueError, match=r"slower_than=4\.0 is not a bucket bound"):
        replace(slow, condition=replace(slow.condition, slower_than=4.0))


@pytest.mark.parametrize("above", [-0.1, 1.0, 5])
def test_threshold_that_is_no_ratio_is_refused(above: float) -> None:
    rule = next(rule for rule in CATALOGUE if isinstance(rule.condition, Ratio))
    with pytest.raises(CatalogueError, match="above="):
        replace(rule, condition=replace(rule.condition, above=above))


def test_selector_needs_no_matchers() -> None:
    assert Selector("x").matchers == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.051, "5.1%"), (1 / 6, "16.67%"), (1, "100%"), (0, "0%"), (0.000123456, "0.01235%")],
)
def test_percentages_read_as_in_prometheus(value: float, text: str) -> None:
    assert percentage(value) == text
