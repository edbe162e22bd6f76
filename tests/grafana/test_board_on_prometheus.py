"""Every query of the boards and every rule, run on a real Prometheus that scraped the shim."""

from __future__ import annotations

import math
import re
import time
from typing import Any

import board_rules
import pytest
from live_prometheus import Prometheus, wait_for

pytestmark = pytest.mark.prometheus

RATE_INTERVAL = "4s"  # four scrapes, as Grafana computes it


def filled_in(expression: str) -> str:
    """Do what Grafana does with every variable at "All"."""
    expression = re.sub(r"\$(job|instance|tool|region)\b", ".+", expression)
    return expression.replace("$__rate_interval", RATE_INTERVAL)


def has_finite_values(found: list[dict[str, Any]]) -> bool:
    values = [float(value) for series in found for _, value in series["values"]]
    return bool(values) and all(math.isfinite(value) for value in values)


def test_every_query_returns_data(prometheus: Prometheus, board: dict[str, Any]) -> None:
    waiting = {where: filled_in(expression) for where, expression in board_rules.expressions(board)}
    assert waiting

    def all_answered() -> bool:
        for where, expression in list(waiting.items()):
            if has_finite_values(prometheus.matrix(expression, 30)):
                del waiting[where]
        return not waiting

    try:
        wait_for(all_answered, "data in every panel")
    except AssertionError:
        pytest.fail(f"no data for {waiting}")


def test_every_variable_offers_what_the_agent_has(
    prometheus: Prometheus, board: dict[str, Any]
) -> None:
    offered = {
        name: prometheus.get(f"label/{name}/values", **{"match[]": filled_in(selector)})
        for name, selector in board_rules.selectors_of_variables(board)
    }
    assert offered["job"] == ["trip"]
    assert len(offered["instance"]) == 1
    assert {"weather", "flights", "search"} <= set(offered["tool"])
    assert {"eu-west", "us-east"} <= set(offered["region"])


def test_breaker_timeline_shows_known_levels_of_the_guarded_tool(
    prometheus: Prometheus, board: dict[str, Any]
) -> None:
    (panel,) = (one for one in board_rules.panels(board) if one["type"] == "state-timeline")
    (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
    expression = filled_in(panel["targets"][0]["expr"])

    def seen() -> set[str]:
        return {
            value
            for series in prometheus.matrix(expression, 60)
            if series["metric"] == {"tool": "flights", "region": "us-east"}
            for _, value in series["values"]
        }

    wait_for(lambda: {"0", "2"} <= seen(), "an open and a closed breaker")
    assert seen() <= set(mapping["options"])


def test_latency_has_exemplars_that_name_traces(
    prometheus: Prometheus, board: dict[str, Any]
) -> None:
    expressions = [
        target["expr"]
        for panel in board_rules.panels(board)
        for target in panel["targets"]
        if target["exemplar"]
    ]
    assert expressions

    def found() -> list[dict[str, Any]]:
        now = time.time()
        return prometheus.get(
            "query_exemplars", query=filled_in(expressions[0]), start=now - 60, end=now
        )

    wait_for(lambda: bool(found()), "exemplars")
    labels = found()[0]["exemplars"][0]["labels"]
    assert set(labels) == {"trace_id"}
    assert re.fullmatch(r"[0-9a-f]{32}", labels["trace_id"])


def test_rules_run_and_find_the_faulty_tools(prometheus: Prometheus) -> None:
    def states() -> dict[tuple[str, str, str], str]:
        return {
            (
                alert["labels"]["alertname"],
                alert["labels"]["severity"],
                alert["labels"]["tool"],
            ): alert["state"]
            for alert in prometheus.get("alerts")["alerts"]
        }

    expected = {
        ("ToolCallRetryRateHigh", "warning", "weather"),
        ("ToolCallErrorRatioHigh", "warning", "search"),
        ("ToolCallErrorRatioHigh", "critical", "search"),
        ("ToolCallBreakerOpen", "critical", "flights"),
    }
    wait_for(lambda: expected <= states().keys(), f"{expected}")
    assert not [key for key in states() if key[0] == "ToolCallTelemetryAbsent"]

    groups = prometheus.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) >= 19
    assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []


def test_every_recorded_series_has_values(prometheus: Prometheus) -> None:
    groups = prometheus.get("rules")["groups"]
    recorded = [
        rule["name"] for group in groups for rule in group["rules"] if rule["type"] == "recording"
    ]
    assert len(recorded) == 12
    for name in recorded:
        wait_for(
            lambda name=name: has_finite_values(prometheus.matrix(f"{name}", 30)),
            f"values of {name}",
        )
