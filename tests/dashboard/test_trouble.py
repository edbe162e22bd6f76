"""Levels and order of fuses; alerts and conditions in words."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_dashboard import alerting, headline, thresholds
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.screens.alerts import condition_words
from fuseboard_dashboard.trouble import LEVELS, Fuse, fuses

CALM = Fuse("t", "r", calls=200, judged=200, attempted=200, p99=0.5)
COLUMNS = ("tool", "region", "calls", "judged", "errors", "degraded", "faults", "attempted",
           "retried", "p99")  # fmt: skip


@pytest.mark.parametrize(
    ("change", "level"),
    [
        ({}, "fine"),
        ({"state": "open"}, "tripped"),
        ({"state": "isolated"}, "tripped"),
        ({"state": "half_open"}, "strained"),
        ({"state": "unknown"}, "fine"),
        ({"errors": 41.0}, "failing"),
        ({"errors": 40.0}, "strained"),  # at the critical line, not above it
        ({"errors": 10.0}, "fine"),  # at the warning line
        ({"errors": 11.0}, "strained"),
        ({"errors": 4.0, "judged": 8.0}, "fine"),  # half of them, but fewer than five
        ({"retried": 10.0}, "fine"),
        ({"retried": 11.0}, "strained"),
        ({"retried": 2.0, "attempted": 4.0}, "fine"),
        ({"p99": 5.1}, "strained"),
        ({"p99": 5.1, "calls": 99.0}, "fine"),
        ({"calls": 0.0, "judged": 0.0, "attempted": 0.0, "p99": None}, "idle"),
    ],
)
def test_levels_follow_the_lines_and_guards_of_the_alerts(
    change: dict[str, object], level: str
) -> None:
    assert replace(CALM, **change).level == level  # type: ignore[arg-type]


def test_fuses_are_sorted_by_trouble() -> None:
    rows = pd.DataFrame(
        [
            ("calm", "r", 200, 200, 0, 0, 0, 200, 0, 0.1),
            ("failing", "r", 200, 200, 90, 0, 90, 200, 0, 0.1),
            ("worse", "r", 200, 200, 120, 0, 90, 200, 0, 0.1),
            ("retrying", "r", 200, 200, 0, 0, 0, 200, 60, 0.1),
            ("tripped", "r", 200, 200, 0, 0, 0, 200, 0, float("nan")),
        ],
        columns=list(COLUMNS),
    ).astype(dict.fromkeys(COLUMNS[2:], float))
    breakers = pd.DataFrame(
        [("tripped", "r", "open"), ("tripped", "r", "closed"), ("gone", "r", "closed")],
        columns=["tool", "region", "state"],
    ).assign(since_time=pd.Timestamp("2026-01-05"))
    found = fuses(rows, breakers)
    assert [fuse.tool for fuse in found] == ["tripped", "worse", "failing", "retrying", "calm"]
    assert [LEVELS.index(fuse.level) for fuse in found] == [0, 1, 1, 2, 3]
    assert found[0].p99 is None


def test_ratios_of_an_idle_fuse_are_absent() -> None:
    idle = Fuse("t", "r")
    assert (idle.success_ratio, idle.retry_ratio, idle.degraded_ratio) == (None, None, None)


def test_lines_come_from_the_catalogue() -> None:
    assert thresholds.RETRY_RATIO == 0.05
    assert (thresholds.ERROR_RATIO, thresholds.ERROR_RATIO_CRITICAL) == (0.05, 0.20)
    assert thresholds.SLOW_SECONDS == 5.0


@pytest.mark.parametrize(
    ("labels", "words", "tool"),
    [
        ('{"job": "a", "region": "r", "tool": "t"}', "t · r (a)", "t"),
        ('{"breaker": "b", "tool": "t"}', "t · breaker=b", "t"),
        ("{}", "everything", None),
        ("not json", "not json", None),
        ("[1]", "everything", None),
    ],
)
def test_labels_of_alerts_in_words(labels: str, words: str, tool: str | None) -> None:
    assert alerting.label_words(labels) == words
    assert alerting.alert_tool(labels) == tool


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.id)
def test_every_rule_has_words(rule: object) -> None:
    assert len(condition_words(rule)) > 10  # type: ignore[arg-type]


def test_a_headline_number_over_its_line_is_flagged() -> None:
    row = {"errors": 3.0, "judged": 10.0, "retried": 1.0, "attempted": 20.0, "p99": 6.0}
    before = {"errors": 0.0, "judged": 0.0, "retried": 0.0, "attempted": 0.0, "p99": float("nan")}
    filters = Filters(tools=("t",))
    assert headline.errors(row, before, filters).tone == "bad"
    assert headline.retries(row, before, filters).tone == ""  # 5 % is at the line, not above it
    assert headline.retries({**row, "retried": 2.0}, before, filters).tone == "bad"
    assert headline.quantile(row, before, "p99", filters).tone == "warn"
    assert headline.errors(row, before, filters).href == "errors?tool=t"
