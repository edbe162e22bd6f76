"""The generated rules file: up to date, in the common subset, checked and tested by promtool."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

import fuseboard.conventions as names
from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.render import check, render_prometheus
from fuseboard_alerts.targets.prometheus import duration

ROOT = Path(__file__).parents[2]
RULES = ROOT / "alerts" / "generated" / "fuseboard.rules.yml"
DOCUMENT = yaml.safe_load(RULES.read_text(encoding="utf-8"))
EVERY = [rule for group in DOCUMENT["groups"] for rule in group["rules"]]
ALERTS = [rule for rule in EVERY if "alert" in rule]
RECORDED = {rule["record"]: rule["expr"] for rule in EVERY if "record" in rule}


def nodes(expression: str) -> list[Any]:
    found: list[Any] = []
    promql_parser.walk(promql_parser.parse(expression), found.append, lambda _: None)
    return found


def test_committed_rules_are_what_the_catalogue_renders() -> None:
    assert check(RULES) == []
    assert RULES.read_text(encoding="utf-8") == render_prometheus()


def test_check_shows_what_differs(tmp_path: Path) -> None:
    changed = tmp_path / "rules.yml"
    changed.write_text(render_prometheus().replace("> 0.05", "> 0.06"))
    assert any(line.startswith("-") and "0.06" in line for line in check(changed))
    assert "does not exist" in check(tmp_path / "missing.yml")[0]


def test_runbook_base_is_used() -> None:
    document = yaml.safe_load(render_prometheus("https://wiki.example/runbooks/"))
    urls = {
        rule["annotations"]["runbook_url"]
        for group in document["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    assert "https://wiki.example/runbooks/ToolCallSlow.md" in urls
    assert all(url.count("//") == 1 for url in urls)


def test_only_keys_that_every_prometheus_since_2_42_knows() -> None:
    assert {key for group in DOCUMENT["groups"] for key in group} == {"name", "interval", "rules"}
    known = {"alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"}
    assert {key for rule in EVERY for key in rule} <= known


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.get("alert") or rule["record"])
def test_expressions_parse_and_use_only_old_functions(rule: dict[str, Any]) -> None:
    functions = {
        node.func.name for node in nodes(rule["expr"]) if isinstance(node, promql_parser.Call)
    }
    assert functions <= {"increase", "max_over_time", "absent"}
    assert 'le="5"' not in rule["expr"]
    assert 'job="' not in rule["expr"], "a job of ours would match nobody's"


def test_every_divisor_is_guarded() -> None:
    divisions = [
        node
        for rule in EVERY
        for node in nodes(rule["expr"])
        if isinstance(node, promql_parser.BinaryExpr) and str(node.op) == "/"
    ]
    assert len(divisions) == 4
    assert all(re.fullmatch(r"\(.+ > 0\)", str(one.rhs)) for one in divisions)


def test_ratio_alerts_compare_ratio_calls_and_events() -> None:
    ratios = [rule for rule in ALERTS if "ratio" in rule["expr"]]
    assert len(ratios) == 5
    for rule in ratios:
        _, *counts = (line.rsplit(" ", 1)[-1] for line in rule["expr"].splitlines())
        assert len(counts) == 2
        assert all(count.endswith(".5") for count in counts)


def test_alerts_use_recorded_series_that_exist() -> None:
    used = {name for rule in EVERY for name in re.findall(r"job_tool_region:[\w:]+", rule["expr"])}
    assert used == RECORDED.keys()
    assert all(re.fullmatch(r"\w+:\w+:\w+", name) for name in RECORDED)


def test_raw_metrics_are_ours() -> None:
    exported = {value for key, value in vars(names).items() if key.startswith("METRIC_")}
    exported |= {f"{names.METRIC_CALL_DURATION}_{part}" for part in ("bucket", "count")}
    used = {
        node.name
        for rule in EVERY
        for node in nodes(rule["expr"])
        if isinstance(node, promql_parser.VectorSelector) and ":" not in node.name
    }
    assert used
    assert used <= exported


def test_labels_and_annotations() -> None:
    assert [(rule["alert"], rule["labels"]["severity"]) for rule in ALERTS] == [
        (rule.name, str(rule.severity)) for rule in CATALOGUE
    ]
    for rule in ALERTS:
        assert rule["labels"].keys() == {"severity"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        assert "{{" not in rule["annotations"]["summary"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(300, "5m"), (3600, "1h"), (90, "90s"), (0.5, "500ms"), (5400, "90m")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.prometheus
def test_promtool_accepts_the_rules(promtool: Path) -> None:
    subprocess.run(
        [str(promtool), "check", "rules", "--lint=all", "--lint-fatal", str(RULES)],
        check=True,
        capture_output=True,
        timeout=60,
    )


@pytest.mark.prometheus
@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests" / "promtool").glob("*.test.yml")), ids=lambda path: path.stem
)
def test_promtool_tests(promtool: Path, path: Path) -> None:
    result = subprocess.run(
        [str(promtool), "test", "rules", str(path)], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_is_seen_firing_and_silent_by_promtool() -> None:
    fires, silent = set(), set()
    for path in (ROOT / "tests" / "promtool").glob("*.test.yml"):
        for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
            for one in test["alert_rule_test"]:
                (fires if one["exp_alerts"] else silent).add(one["alertname"])
    assert fires == silent == {rule.name for rule in CATALOGUE}
