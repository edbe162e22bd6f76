"""Levels and order of fuses; alerts and conditions in words."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from fuseboard_alerts.catalogue import CATALOGUE, rule_names
from fuseboard_dashboard import alerting, headline, thresholds
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.rule_pages import condition_words
from fuseboard_dashboard.trouble import LEVELS, Firing, Fuse, fuses
from fuseboard_dashboard.vocabulary import reason_words

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
        ({"errors": 4.0, "judged": 8.0}, "few"),  # half of them, but fewer than five
        ({"judged": 19.0}, "few"),
        ({"judged": 20.0}, "fine"),
        ({"errors": 1.0, "judged": 1.0}, "strained"),  # not one succeeded
        ({"input_faults": 200.0}, "strained"),  # nor here
        ({"input_faults": 199.0}, "fine"),
        ({"judged": 0.0}, "few"),  # all were cancelled
        ({"alerts": (Firing("ToolCallSlow", "warning"),)}, "strained"),
        ({"alerts": (Firing("ToolCallErrorRatioHigh", "critical"),)}, "failing"),
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
            ("alerting", "r", 200, 200, 0, 0, 0, 200, 0, 0.1),
            ("unsure", "r", 2, 2, 0, 0, 0, 2, 0, 0.1),
            ("never", "r", 1, 1, 1, 0, 1, 1, 0, 0.1),
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
    found = fuses(rows.assign(input_faults=0.0), breakers, firing("alerting"))
    assert [fuse.tool for fuse in found] == [
        "tripped", "alerting", "worse", "failing", "never", "retrying", "unsure", "calm",
    ]  # fmt: skip
    assert [LEVELS.index(fuse.level) for fuse in found] == [0, 1, 1, 1, 2, 2, 3, 4]
    assert found[0].p99 is None
    assert (found[0].state, found[-1].state) == ("open", None)


def firing(tool: str) -> pd.DataFrame:
    """Return alerts as the store tells them: one about nobody, two severities, one pending."""
    labels = json.dumps({"job": "j", "region": "r", "tool": tool})
    moment = pd.Timestamp("2026-01-05")
    rows = [
        ("ToolCallTelemetryAbsent", "warning", "{}", "firing", moment),
        ("ToolCallSlow", "critical", labels, "firing", moment),
        ("ToolCallSlow", "warning", labels, "firing", moment),
        ("ToolCallErrorRatioHigh", "critical", labels, "pending", None),
    ]
    return pd.DataFrame(rows, columns=["alert", "severity", "labels", "state", "fired_at"])


def test_a_firing_alert_weighs_on_its_fuse_once_with_its_worst_severity() -> None:
    counts = dict.fromkeys(("calls", "judged", "attempted"), 100.0)
    nothing = dict.fromkeys(("errors", "input_faults", "degraded", "faults", "retried"), 0.0)
    rows = pd.DataFrame([{"tool": "t", "region": "r", "p99": 0.1} | counts | nothing])
    breakers = pd.DataFrame(columns=["tool", "region", "state", "since_time"])
    (fuse,) = fuses(rows, breakers, firing("t"))
    assert [(a.alert, a.severity) for a in fuse.alerts] == [("ToolCallSlow", "critical")]
    assert fuse.level == "failing"
    (other,) = fuses(rows, breakers, firing("other"))
    assert (other.alerts, other.level) == ((), "fine")


def test_faults_of_the_request_are_no_success() -> None:
    half = replace(CALM, input_faults=100.0)
    assert (half.success_ratio, half.error_ratio) == (0.5, 0.0)
    assert replace(CALM, judged=0.0).success_ratio is None


def test_ratios_of_an_idle_fuse_are_absent() -> None:
    idle = Fuse("t", "r")
    assert (idle.success_ratio, idle.retry_ratio, idle.degraded_ratio) == (None, None, None)


def test_lines_come_from_the_catalogue() -> None:
    assert thresholds.RETRY_RATIO == 0.05
    assert (thresholds.ERROR_RATIO, thresholds.ERROR_RATIO_CRITICAL) == (0.05, 0.20)
    assert thresholds.SLOW_SECONDS == 5.0


@pytest.mark.parametrize(
    ("labels", "words", "link"),
    [
        ('{"job": "a", "region": "r", "tool": "t"}', "t · r (a)", "tool?range=1h&tool=t&region=r"),
        ('{"breaker": "b", "tool": "t"}', "t · breaker=b", "tool?range=1h&tool=t"),
        ("{}", "everything", "alerts?range=1h"),
        ("not json", "not json", "alerts?range=1h"),
        ("[1]", "everything", "alerts?range=1h"),
    ],
)
def test_labels_of_alerts_in_words(labels: str, words: str, link: str) -> None:
    assert alerting.label_words(labels) == words
    assert alerting.cause_link("SomebodyElses", labels, Filters(range="1h")) == link


def test_every_alert_leads_to_the_page_where_its_runbook_begins() -> None:
    assert set(alerting.CAUSES) == set(rule_names())
    labels = '{"job": "a", "region": "r", "tool": "t"}'
    live = Filters(tools=("other",), classes=("L1_input",))
    assert alerting.cause_link("ToolCallRetryRateHigh", labels, live) == "retries?tool=t&region=r"
    assert (
        alerting.cause_link("ToolCallSemanticErrorsHigh", labels, live)
        == "errors?tool=t&class=L5_semantic&region=r"
    )


@pytest.mark.parametrize(
    ("alert", "value", "words"),
    [
        ("ToolCallRetryRateHigh", 0.0866, "8.7 %"),
        ("ToolCallErrorRatioHigh", 0.0, "0 %"),
        ("ToolCallBreakerOpen", 1.0, ""),
        ("ToolCallTelemetryAbsent", 1.0, ""),
        ("SomebodyElses", 0.5, ""),
        ("ToolCallSlow", float("nan"), "–"),
        ("ToolCallSlow", None, ""),
    ],
)
def test_values_of_alerts_have_the_unit_of_their_rule(
    alert: str, value: object, words: str
) -> None:
    assert alerting.value_words(alert, value) == words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("probe_succeeded", "probes succeeded"),
        ("slow_call_ratio", "too many slow calls"),
        ("a_reason_of_tomorrow", "a reason of tomorrow"),
        (None, ""),
        (float("nan"), ""),
    ],
)
def test_reasons_of_breakers_in_words(reason: object, words: str) -> None:
    assert reason_words(reason) == words


@pytest.mark.parametrize("rule", CATALOGUE, ids=lambda rule: rule.id)
def test_every_rule_has_words(rule: object) -> None:
    assert len(condition_words(rule)) > 10  # type: ignore[arg-type]


def test_a_headline_number_over_its_line_is_flagged() -> None:
    row = {"errors": 3.0, "judged": 10.0, "retried": 1.0, "attempted": 20.0, "p99": 6.0,
           "input_faults": 0.0}  # fmt: skip
    before = {"errors": 0.0, "judged": 0.0, "retried": 0.0, "attempted": 0.0, "p99": float("nan")}
    filters = Filters(tools=("t",))
    assert headline.errors(row, before, filters).tone == "bad"
    assert headline.retries(row, before, filters).tone == ""  # 5 % is at the line, not above it
    assert headline.retries({**row, "retried": 2.0}, before, filters).tone == "bad"
    assert headline.quantile(row, before, "p99", filters).tone == "warn"
    assert headline.errors({**row, "input_faults": 2.0}, before, filters).note == "+ 2 input faults"
    assert headline.errors(row, before, filters).href == "errors?tool=t"
