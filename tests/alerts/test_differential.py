"""The same events in a real Prometheus and in the store: the same conditions.

Two hours of calls of three tools, busy to rare, with faults that come and go, a silence and a
restart of the process, are written as the counters that a scrape every 15 s would have seen.
The expressions are those of the shipped rules file.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_prometheus import Prometheus, wait_for
from made_calls import START, Row, Seeded, at, call

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.model import Ratio, Rule, SlowShare
from fuseboard_alerts.targets.sql import question

pytestmark = pytest.mark.prometheus

RULES = Path(__file__).parents[2] / "alerts" / "generated" / "fuseboard.rules.yml"
SPAN, SCRAPE, RESTART = 7200, 15, 3605
OFFSET, STEP = 7, 37  # never a multiple of the scrape interval
BASE = START.timestamp()

# Largest errors of counters sampled every 15 s that were measured on such data.
COUNT_TOLERANCE = 0.30
RATIO_TOLERANCE = 0.03


def made_up_calls() -> list[Row]:
    chance = random.Random(20260301)
    rows = []
    for tool, per_second in (("busy", 2.0), ("calm", 0.3), ("rare", 0.02)):
        second = 0.0
        while (second := second + chance.expovariate(per_second)) < SPAN:
            if 5400 < second < 5800:
                continue
            rows.append(call(second, tool=tool, **_fate(chance, second)))
    return rows


def _fate(chance: random.Random, second: float) -> Row:
    is_faulty = 1200 < second < 2100 or 3300 < second < 4200
    if chance.random() < (0.6 if is_faulty else 0.004):
        error_class = chance.choice(["L1_input", "L3_transient", "L3_transient", "L5_semantic"])
        outcome = chance.choice(["error", "rejected", "degraded"])
        attempts = 0 if outcome == "rejected" else chance.choice([1, 3])
        return {"outcome": outcome, "error_class": error_class, "attempts": attempts}
    attempts = 2 if chance.random() < (0.3 if is_faulty else 0.01) else 1
    is_slow = chance.random() < (0.2 if 4500 < second < 5300 else 0.001)
    outcome = "cancelled" if chance.random() < 0.02 else "ok"
    return {"outcome": outcome, "attempts": attempts, "duration_seconds": 8.0 if is_slow else 0.2}


def increments(row: Row) -> Iterator[str]:
    labels = f'job="trip",instance="a",tool="{row["tool"]}",region="eu-west"'
    error_class = row["error_class"] or "none"
    outcome = f'outcome="{row["outcome"]}",error_class="{error_class}"'
    yield f"fuseboard_tool_calls_total{{{labels},{outcome}}}"
    yield f"fuseboard_tool_call_duration_seconds_count{{{labels}}}"
    if row["duration_seconds"] <= 5.0:
        yield f'fuseboard_tool_call_duration_seconds_bucket{{{labels},le="5.0"}}'
    if row["attempts"]:
        retry = "none" if row["attempts"] == 1 else "recovered"
        yield f'fuseboard_tool_attempted_calls_total{{{labels},retry="{retry}"}}'


def exposition(rows: list[Row]) -> str:
    """Write the counters as OpenMetrics with times; all exist at 0 from the start."""
    ordered = sorted(rows, key=lambda row: row["end"])
    names = sorted({name for row in rows for name in increments(row)})
    values: Counter[str] = Counter()
    lines, position = [], 0
    for second in range(0, SPAN + 1, SCRAPE):
        if second == RESTART - RESTART % SCRAPE + SCRAPE:
            values.clear()
            while position < len(ordered) and ordered[position]["end"] <= at(RESTART):
                position += 1
        while position < len(ordered) and ordered[position]["end"] <= at(second):
            values.update(increments(ordered[position]))
            position += 1
        lines += [f"{name} {values[name]} {BASE + second:.0f}" for name in names]
    return "\n".join([*lines, "# EOF", ""])


def inlined() -> dict[tuple[str, str], str]:
    """Return each alert's expression with the recorded series written out."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    recorded = {rule["record"]: rule["expr"] for rule in rules if "record" in rule}

    def expand(expression: str) -> str:
        return re.sub(
            r"job_tool_region:[\w:]+", lambda name: f"({expand(recorded[name[0]])})", expression
        )

    return {
        (rule["alert"], rule["labels"]["severity"]): expand(rule["expr"])
        for rule in rules
        if "alert" in rule
    }


@dataclass(frozen=True)
class Instant:
    rule: str
    tool: str
    second: int
    in_store: bool
    in_prometheus: bool
    is_near: bool


def is_near(rule: Rule, row: dict[str, Any]) -> bool:
    """Tell whether sampling alone may decide."""
    condition = rule.condition
    assert isinstance(condition, Ratio | SlowShare)
    band = min(RATIO_TOLERANCE, condition.above / 2)
    return (
        abs(row["value"] - condition.above) <= band
        or abs(row["calls"] / condition.minimum_calls - 1) <= COUNT_TOLERANCE
        or abs(row["events"] - condition.minimum_events) <= 1.5
    )


def compare(seeded: Seeded, prometheus: Prometheus) -> list[Instant]:
    from fuseboard_alerts.targets.sql import observe

    expressions = inlined()
    instants = []
    for rule in CATALOGUE:
        if not isinstance(rule.condition, Ratio | SlowShare):
            continue
        found = prometheus.get(
            "query_range",
            query=expressions[rule.name, str(rule.severity)],
            start=BASE + OFFSET,
            end=BASE + SPAN,
            step=STEP,
        )["result"]
        true_at = {
            (series["metric"]["tool"], round(moment - BASE))
            for series in found
            for moment, _ in series["values"]
        }
        for second in range(OFFSET, SPAN, STEP):
            rows = question(rule.condition, at(second)).ask(seeded.store)
            seen = {dict(one.labels)["tool"]: one.is_true for one in observe(rule, rows)}
            instants += [
                Instant(
                    rule.id,
                    row["tool"],
                    second,
                    seen[row["tool"]],
                    (row["tool"], second) in true_at,
                    is_near(rule, row),
                )
                for row in rows
            ]
    return instants


@pytest.fixture
def backfilled(prometheus_binary: Path, promtool: Path, tmp_path: Path, free_port: int) -> Any:
    rows = made_up_calls()
    source = tmp_path / "metrics.om"
    source.write_text(exposition(rows))
    subprocess.run(
        [str(promtool), "tsdb", "create-blocks-from", "openmetrics", source, tmp_path / "data"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    with Prometheus.running(
        prometheus_binary,
        tmp_path,
        port=free_port,
        config={"global": {"scrape_interval": "15s"}},
        flags=["--storage.tsdb.retention.time=100y"],
    ) as server:
        wait_for(lambda: server.get("labels") is not None, "Prometheus to start")
        yield server, rows


def test_conditions_are_the_same_in_prometheus_and_in_the_store(
    backfilled: tuple[Prometheus, list[Row]], seeded: Seeded
) -> None:
    prometheus, rows = backfilled
    seeded.calls(rows)
    instants = compare(seeded, prometheus)
    assert len(instants) > 1500

    clear = [one for one in instants if not one.is_near]
    assert [one for one in clear if one.in_store != one.in_prometheus] == []
    for rule_id in {one.rule for one in instants}:
        truths = Counter(one.in_store for one in clear if one.rule == rule_id)
        assert min(truths[True], truths[False]) >= 10, f"{rule_id} was not exercised: {truths}"

    agreeing = sum(one.in_store == one.in_prometheus for one in instants)
    assert agreeing / len(instants) >= 0.98
