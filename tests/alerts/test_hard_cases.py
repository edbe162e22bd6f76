"""HC-52 to HC-55: no traffic, little traffic, data that stop, restarts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from made_calls import (
    Seeded,
    at,
    beat,
    failed,
    judge,
    moved,
    only,
    run,
    states,
    steady,
)
from receivers import Inbox, wait_for

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.evaluator import Evaluator
from fuseboard_alerts.model import Absent
from fuseboard_alerts.targets.sql import observe, question
from fuseboard_collector.errors import StoreError

RETRY = "ToolCallRetryRateHigh/warning"
ERROR = "ToolCallErrorRatioHigh/warning"
RULES = {rule.id: rule for rule in CATALOGUE}
LISTED = {"breaker": "weather/eu-west", "tool": "weather", "region": "eu-west", "state": "open"}

# What makes each rule true, from second 0 to `end`.
FAULTS: dict[str, Any] = {
    "ToolCallRetryRateHigh/warning": {"attempts": 2},
    "ToolCallErrorRatioHigh/warning": failed(),
    "ToolCallErrorRatioHigh/critical": failed(),
    "ToolCallSlow/warning": {"duration_seconds": 8.0},
    "ToolCallSemanticErrorsHigh/warning": {"error_class": "L5_semantic", "outcome": "degraded"},
}


def break_tool(seeded: Seeded, rule_id: str, end: float) -> None:
    if rule_id in FAULTS:
        seeded.calls(steady(0, end, 1, special=500, **FAULTS[rule_id]))
    else:
        seeded.beats(beat(second, open_=[LISTED]) for second in range(0, int(end), 15))


WITH_TRAFFIC = [rule.id for rule in CATALOGUE if not isinstance(rule.condition, Absent)]


@pytest.mark.parametrize("rule_id", sorted(RULES))
def test_hc_52_no_traffic_is_no_data(seeded: Seeded, rule_id: str) -> None:
    rule = RULES[rule_id]
    rows = question(rule.condition, at(100)).ask(seeded.store)
    assert observe(rule, rows) == []
    assert run(judge(seeded, rule_id), 7, 7200, step=600) == []


@pytest.mark.parametrize("rule_id", WITH_TRAFFIC)
def test_hc_52_silence_while_firing_neither_resolves_nor_fires_again(
    seeded: Seeded, rule_id: str
) -> None:
    break_tool(seeded, rule_id, 1500)
    seen = states(run(judge(seeded, rule_id), 7, 9000, step=60), rule_id)
    assert seen == ["pending", "firing", "no_data"]


@pytest.mark.parametrize("rule_id", sorted(FAULTS))
@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_hc_52_rows_that_are_not_finite_decide_nothing(
    seeded: Seeded, rule_id: str, broken: float
) -> None:
    poison = {"weight": broken, **FAULTS[rule_id]}
    if "duration_seconds" in poison:
        poison = {"duration_seconds": broken}
    seeded.calls(steady(0, 3600, 1), steady(0, 3600, 1, special=1000, **poison))
    rule = RULES[rule_id]
    (seen,) = observe(rule, question(rule.condition, at(3600)).ask(seeded.store))
    assert seen.value == 0
    assert not seen.is_true


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_hc_52_a_value_that_is_not_finite_is_no_data(value: float | None) -> None:
    row = {"job": "j", "tool": "t", "region": "r", "calls": 1e6, "events": 1e6, "newest": at(0)}
    assert observe(RULES[ERROR], [{**row, "value": value}]) == []
    assert observe(RULES[ERROR], [{**row, "value": 0.5}])[0].is_true
    assert not observe(RULES[ERROR], [{**row, "value": 0.5, "calls": math.nan}])[0].is_true


def test_hc_53_one_failure_of_one_call_is_silent(seeded: Seeded) -> None:
    seeded.calls(steady(0, 1, 1, special=1000, **failed(attempts=3, duration_seconds=60.0)))
    assert run(Evaluator(seeded.store), 7, 300, step=30) == []


def test_hc_53_oscillation_around_the_threshold_fires_once(seeded: Seeded) -> None:
    seeded.calls(
        steady(0, 600, 2, special=200, **failed()),
        *(
            steady(
                600 + 60 * minute,
                660 + 60 * minute,
                2,
                special=80 if minute % 2 else 20,
                **failed(),
            )
            for minute in range(60)
        ),
        steady(4200, 6000, 2),
    )
    ratios = {
        question(RULES[ERROR].condition, at(second)).ask(seeded.store)[0]["value"] > 0.05
        for second in range(1200, 4200, 60)
    }
    assert ratios == {True, False}, "the ratio must cross the threshold for this test to mean much"
    seen = states(run(judge(seeded, ERROR), 7, 6000), ERROR)
    assert seen.count("firing") <= 1
    assert seen.count("resolved") <= 1


def test_hc_54_data_cut_for_thirty_minutes_never_resolves(seeded: Seeded) -> None:
    seeded.calls(steady(0, 900, 2, special=300, attempts=2))
    inbox = Inbox()
    evaluator = judge(seeded, RETRY, notifiers=[inbox])
    evaluator.start()
    evaluator.stop()
    evaluator = judge(seeded, RETRY, notifiers=[inbox], interval=3600)
    seen = only(run(evaluator, 7, 900 + 1800), RETRY)
    assert [state for _, state in seen] == ["pending", "firing", "no_data"]
    # The window drains for up to 5 minutes; then keep-firing runs for 5 more.
    assert 900 + 300 <= seen[-1][0] <= 900 + 600 + 15

    seeded.calls(steady(2700, 3600, 2))
    seen = only(run(evaluator, 2707, 3600), RETRY)
    assert [state for _, state in seen] == ["resolved"]


def test_hc_54_a_window_that_drains_is_no_evidence_of_health(seeded: Seeded) -> None:
    # While the last calls leave the window their number falls below the minimum: false to
    # Prometheus, but no newer call has said that the tool is well.
    seeded.calls(steady(0, 4000, 0.3, special=300, error_class="L5_semantic", outcome="error"))
    rule_id = "ToolCallSemanticErrorsHigh/warning"
    assert RULES[rule_id].keep_firing == 0
    assert states(run(judge(seeded, rule_id), 7, 12000, step=60), rule_id)[-1] == "no_data"


def test_hc_54_faulty_data_after_a_gap_fire_again_without_resolving(seeded: Seeded) -> None:
    seeded.calls(
        steady(0, 900, 2, special=300, attempts=2), steady(2700, 3600, 2, special=300, attempts=2)
    )
    seen = states(run(judge(seeded, RETRY), 7, 3600), RETRY)
    assert seen == ["pending", "firing", "no_data", "firing"]


class Failing:
    """A store whose queries of some names raise."""

    def __init__(self, seeded: Seeded) -> None:
        self.store = seeded.store
        self.store_id = seeded.store.store_id
        self.failing: set[str] = set()

    def query(self, name: str, parameters: Any = None) -> pa.Table:
        if name in self.failing:
            raise StoreError(f"{name} is locked")
        return self.store.query(name, parameters)

    def execute(self, name: str, parameters: Any = None) -> None:
        if name in self.failing:
            raise StoreError(f"{name} is locked")
        self.store.execute(name, parameters)

    def insert(self, table: str, rows: pa.Table) -> None:
        self.store.insert(table, rows)


def test_hc_54_a_failing_query_changes_nothing_and_is_counted(seeded: Seeded) -> None:
    seeded.calls(
        steady(0, 900, 2, special=300, attempts=2),
        steady(0, 3600, 2, special=300, tool="maps", **failed()),
    )
    store = Failing(seeded)
    rules = [RULES[RETRY], RULES[ERROR]]
    evaluator = Evaluator(store, rules=rules)
    run(evaluator, 7, 900)
    store.failing = {"alert_retry_rate"}
    seen = run(evaluator, 907, 3600)
    assert only(seen, RETRY) == []
    status = evaluator.status()
    assert status.evaluation_errors == {RETRY: math.ceil((3600 - 907) / 15)}
    assert "alert_retry_rate is locked" in str(status.last_error)
    store.failing = set()
    assert states(run(evaluator, 3607, 4200), RETRY) == ["no_data"]


def test_hc_54_memory_that_could_not_be_saved_is_saved_later(seeded: Seeded) -> None:
    seeded.calls(steady(0, 900, 2, special=300, attempts=2))
    store = Failing(seeded)
    evaluator = Evaluator(store, rules=[RULES[RETRY]])
    store.failing = {"alert_memory_save"}
    run(evaluator, 307, 500)
    assert evaluator.status().save_errors > 0
    store.failing = set()
    evaluator.tick(at(502))
    again = Evaluator(store, rules=[RULES[RETRY]])
    assert again.tick(at(517)) == []
    assert [row["state"] for row in seeded.history()] == ["pending", "firing"]


def test_hc_54_memory_that_can_not_be_read_yet_delays_evaluation(seeded: Seeded) -> None:
    seeded.calls(steady(0, 900, 2, special=300, attempts=2))
    store = Failing(seeded)
    store.failing = {"alert_memory_load"}
    evaluator = Evaluator(store, rules=[RULES[RETRY]])
    assert evaluator.tick(at(307)) == []
    assert evaluator.status().evaluation_errors == {"restore": 1}
    store.failing = set()
    assert [str(one.state) for one in evaluator.tick(at(322))] == ["pending"]


def story(seeded: Seeded) -> None:
    """Ten minutes of retries, health, then silence."""
    seeded.calls(steady(0, 600, 2, special=300, attempts=2), steady(600, 1800, 2))
    seeded.beats(
        beat(second, open_=[LISTED] if second < 600 else []) for second in range(0, 1800, 15)
    )
    seeded.moves([moved(602, "open", "closed")])


@pytest.mark.parametrize("killed_at", [37, 202, 307, 847, 1000])
def test_hc_55_restart_at_any_point_sends_what_no_restart_sends(
    seeded: Seeded, killed_at: int
) -> None:
    story(seeded)
    chosen = (RETRY, "ToolCallBreakerOpen/critical")
    whole = run(judge(seeded, *chosen), 7, 1300)
    seeded.store.execute("alert_memory_save", {"saved_at": at(0), "document": "{}"})

    first = judge(seeded, *chosen)
    split = run(first, 7, killed_at)
    split += run(judge(seeded, *chosen), 7 + 15 * math.ceil((killed_at - 7) / 15), 1300)
    assert split == whole
    assert [one.state for one in whole].count("firing") == 2
    assert [one.state for one in whole].count("resolved") == 2


def test_hc_55_hold_time_stands_still_during_an_outage(seeded: Seeded) -> None:
    seeded.calls(steady(0, 3600, 2, special=300, attempts=2))
    assert states(run(judge(seeded, RETRY), 307, 367), RETRY) == ["pending"]
    # Down for ten minutes with one minute of two served: the second is still to be served.
    seen = only(run(judge(seeded, RETRY), 967, 1300), RETRY)
    assert seen == [(967 + 60, "firing")]


def test_hc_55_after_a_long_outage_a_hold_begins_anew(seeded: Seeded) -> None:
    seeded.calls(steady(0, 12000, 1, special=300, attempts=2))
    run(judge(seeded, RETRY), 307, 367)
    later = 307 + 2 * 3600
    assert only(run(judge(seeded, RETRY), later, later + 300), RETRY) == [
        (later, "pending"),
        (later + 120, "firing"),
    ]
    assert [row["state"] for row in seeded.history()] == [
        "pending",
        "inactive",
        "pending",
        "firing",
    ]


def test_hc_55_an_empty_window_after_a_restart_does_not_resolve(seeded: Seeded) -> None:
    seeded.calls(steady(0, 600, 2, special=300, attempts=2))
    assert states(run(judge(seeded, RETRY), 7, 600), RETRY) == ["pending", "firing"]
    assert run(judge(seeded, RETRY), 4000, 4200) == []


def test_hc_55_cleared_meanwhile_resolves_once(seeded: Seeded) -> None:
    seeded.calls(steady(0, 600, 2, special=300, attempts=2), steady(3000, 4200, 2))
    run(judge(seeded, RETRY), 7, 600)
    assert states(run(judge(seeded, RETRY), 3600, 4200), RETRY) == ["resolved"]


def test_hc_55_damaged_memory_starts_anew_and_says_so(seeded: Seeded) -> None:
    seeded.calls(steady(0, 900, 2, special=300, attempts=2))
    document = '{"version": 1, "instances": [{"rule": 5}]}'
    seeded.store.execute("alert_memory_save", {"saved_at": at(0), "document": document})
    evaluator = judge(seeded, RETRY)
    assert states(run(evaluator, 307, 600), RETRY) == ["pending", "firing"]


def test_hc_55_alert_of_a_rule_that_is_gone_is_closed_in_the_history(seeded: Seeded) -> None:
    seeded.calls(steady(0, 900, 2, special=300, attempts=2))
    former = replace(RULES[RETRY], name="ToolCallFormer")
    run(Evaluator(seeded.store, rules=[former]), 307, 600)
    run(judge(seeded, ERROR), 607, 640)
    assert [(row["alert"], row["state"]) for row in seeded.history()] == [
        ("ToolCallFormer", "pending"),
        ("ToolCallFormer", "firing"),
        ("ToolCallFormer", "inactive"),
    ]


def test_hc_55_undelivered_notifications_are_delivered_after_a_restart(seeded: Seeded) -> None:
    seeded.calls(steady(0, 600, 2, special=300, attempts=2), steady(600, 1800, 2))
    down = Inbox()
    down.is_failing = True
    first = judge(seeded, RETRY, notifiers=[down])
    assert states(run(first, 7, 1500), RETRY) == ["pending", "firing", "resolved"]

    up = Inbox()
    second = judge(seeded, RETRY, notifiers=[up], interval=3600)
    second.start()
    wait_for(lambda: len(up.messages) == 2)
    second.stop()
    assert [state for _, state in up.summary()] == ["firing", "resolved"]

    third = Inbox()
    evaluator = judge(seeded, RETRY, notifiers=[third])
    evaluator.tick(at(1600))
    assert evaluator.status().receivers[0].waiting == 0
