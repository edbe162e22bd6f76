"""`alerts render|check` and `grafana render` write what other tools load."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from click.testing import CliRunner

from fuseboard_server.cli import root
from fuseboard_server.exits import Exit


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(root, list(arguments), prog_name="fuseboard")
    return result.exit_code, result.output


def test_rules_are_written_and_then_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rules.yml"
    assert run("alerts", "render", "--output", str(path))[0] == 0
    rules = [
        rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]
    ]
    assert "ToolCallRetryRateHigh" in {rule.get("alert") for rule in rules}
    assert run("alerts", "check", str(path))[0] == 0
    code, text = run("alerts", "render")
    assert code == 0
    assert text == path.read_text()


def test_a_changed_file_is_shown_with_its_difference(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    run("alerts", "render", "--output", str(path))
    path.write_text(path.read_text().replace("ToolCallRetryRateHigh", "Renamed"))
    code, text = run("alerts", "check", str(path))
    assert code == Exit.FAILED
    assert "Renamed" in text
    code, text = run("alerts", "check", str(tmp_path / "none.yml"))
    assert code == Exit.FAILED
    assert "render" in text


def test_the_address_of_the_runbooks_can_be_ones_own(tmp_path: Path) -> None:
    base = "https://wiki.example/runbooks"
    code, text = run("alerts", "render", "--runbook-base", base)
    assert code == 0
    assert base in text
    path = tmp_path / "rules.yml"
    path.write_text(text)
    assert run("alerts", "check", str(path), "--runbook-base", base)[0] == 0
    assert run("alerts", "check", str(path))[0] == Exit.FAILED


def test_boards_are_written_as_json(tmp_path: Path) -> None:
    code, text = run("grafana", "render", "--output", str(tmp_path / "boards"))
    assert code == 0
    written = list((tmp_path / "boards").glob("*.json"))
    assert written
    for path in written:
        assert str(path) in text
        assert json.loads(path.read_text())["panels"]
