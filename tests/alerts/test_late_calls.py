"""HC-39: calls whose telemetry is late, over many evaluations of the embedded evaluator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from made_calls import Row, Seeded, Seen, at, call, failed, judge, run, states, steady

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.evaluator import Evaluator
from fuseboard_alerts.model import Ratio, SlowShare
from fuseboard_collector.store.lateness import GRACE_SECONDS
from fuseboard_collector.store.rows import Batch, ToolCall

ERRORS = "ToolCallErrorRatioHigh/critical"
RETRIES = "ToolCallRetryRateHigh/warning"
EVERY = replace(
    next(rule for rule in CATALOGUE if rule.id == ERRORS),
    hold=0.0,
    condition=replace(
        next(rule.condition for rule in CATALOGUE if rule.id == ERRORS),
        above=0.0, minimum_calls=1, minimum_events=1,
    ),
)  # fmt: skip
"""Fires at the first failed call that is seen."""
DELAYS = (0, 60, 180, 3600)


def delayed(rows: Iterable[Row], seconds: float) -> list[Row]:
    return [{**row, "received_at": row["end"] + (at(seconds) - at(0))} for row in rows]


def arriving(seeded: Seeded, rows: list[Row], evaluator: Evaluator, end: float) -> list[Seen]:
    """Evaluate for ``end`` seconds, and for as long an hour later; rows come when they arrive."""
    seen: list[Seen] = []
    waiting = sorted(rows, key=lambda row: row["received_at"])
    for second in (*range(7, int(end), 30), *range(3607, 3600 + int(end), 30)):
        due = [row for row in waiting if row["received_at"] <= at(second)]
        if due:
            waiting = waiting[len(due) :]
            calls = [ToolCall(**row) for row in due]
            seeded.store.append(Batch(calls=calls)).result(20)
        seen += run(evaluator, second, second + 1)
    assert not waiting
    return seen


def refused(begin: float, end: float, **fields: Any) -> list[Row]:
    return steady(
        begin, end, 0.5, special=1000, **failed(error_class="L2_access", attempts=2, **fields)
    )


def test_the_grace_is_the_shortest_window_of_calls() -> None:
    windows = [
        rule.condition.window for rule in CATALOGUE if isinstance(rule.condition, Ratio | SlowShare)
    ]
    assert min(windows) >= GRACE_SECONDS + 60


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("rule_id", [ERRORS, RETRIES])
def test_hc_39_a_fault_is_told_once_if_it_arrives_within_the_grace(
    seeded: Seeded, rule_id: str, delay: float
) -> None:
    rows = delayed(refused(0, 300), delay)
    seen = states(arriving(seeded, rows, judge(seeded, rule_id), 900), rule_id)
    is_late = delay > GRACE_SECONDS
    assert seen.count("firing") == (0 if is_late else 1)
    assert seeded.store.stats.get("late_rows", "tool_calls") == (len(rows) if is_late else 0)


@pytest.mark.parametrize("delay", DELAYS)
def test_hc_39_what_arrives_late_of_a_window_that_was_told_is_not_told_again(
    seeded: Seeded, delay: float
) -> None:
    rows = refused(0, 60) + delayed(refused(1, 61), delay)
    seen = states(arriving(seeded, rows, Evaluator(seeded.store, rules=[EVERY]), 900), ERRORS)
    assert seen.count("firing") == 1


@pytest.mark.parametrize("delay", [0, 60, 180, 239])
def test_hc_39_each_failure_within_the_grace_is_in_some_evaluation(
    seeded: Seeded, delay: float
) -> None:
    rows = [call(second, **failed(error_class="L2_access")) for second in (100, 107, 114)]
    evaluator = Evaluator(seeded.store, rules=[EVERY])
    assert states(arriving(seeded, delayed(rows, delay), evaluator, 500), ERRORS)[0] == "firing"


def test_hc_39_a_long_call_is_late_only_if_its_end_is(seeded: Seeded) -> None:
    long = call(700, **failed(error_class="L2_access"), duration_seconds=650.0)
    rows = [{**long, "trace_id": f"{n:032x}"} for n in range(1, 4)]
    seen = states(arriving(seeded, rows, Evaluator(seeded.store, rules=[EVERY]), 900), ERRORS)
    assert seen[0] == "firing"
    assert seeded.store.stats.get("late_rows", "tool_calls") == 0


def test_hc_39_charts_of_the_past_have_what_came_late(seeded: Seeded) -> None:
    rows = delayed(refused(0, 60), 3600)
    arriving(seeded, rows, Evaluator(seeded.store, rules=[EVERY]), 300)
    since, until = at(0).replace(tzinfo=None), at(60).replace(tzinfo=None)
    found = seeded.store.query("export_calls", {"since": since, "until": until}).num_rows
    assert found == len(rows)
