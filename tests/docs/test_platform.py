"""The snippets for Prometheus are accepted by Prometheus' own tool."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "platform.md").read_text()
README = (ROOT / "README.md").read_text()


def block(language: str, word: str) -> str:
    """Return the one block of a language that has a word in it."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    (one,) = [text for text in found if word in text]
    return str(one)


@pytest.fixture
def prepared(tmp_path: Path, promtool: Path) -> Path:
    """Do in an empty folder what the page says, word by word."""
    (tmp_path / "prometheus.yml").write_text(block("yaml", "scrape_configs"))
    path = os.pathsep.join([str(Path(sys.executable).parent), str(promtool.parent)])
    environment = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    for line in block("sh", "promtool").splitlines():
        done = subprocess.run(
            shlex.split(line), cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        if "promtool" in line:
            assert "SUCCESS" in done.stdout + done.stderr
    return tmp_path


def test_promtool_accepts_the_configuration_and_its_rules(prepared: Path) -> None:
    config = yaml.safe_load((prepared / "prometheus.yml").read_text())
    (rules,) = config["rule_files"]
    groups = yaml.safe_load((prepared / rules).read_text())["groups"]
    urls = {
        rule["annotations"]["runbook_url"] for group in groups for rule in group["rules"]
        if "alert" in rule
    }  # fmt: skip
    assert urls
    assert all(url.startswith("https://wiki.example/runbooks/ToolCall") for url in urls)
    assert "https://wiki.example/runbooks/ToolCallSlow.md" in PAGE
    assert "https://wiki.example/runbooks/ToolCallSlow.md" in urls


def test_the_port_is_the_one_that_the_agent_is_told() -> None:
    (job,) = yaml.safe_load(block("yaml", "scrape_configs"))["scrape_configs"]
    (target,) = job["static_configs"]
    (address,) = target["targets"]
    port = address.rpartition(":")[2]
    assert f"metrics_port={port}" in block("python", "metrics_port")
    assert f"metrics_port={port}" in README


def test_the_shipped_rules_name_runbooks_as_the_page_says() -> None:
    shipped = (ROOT / "alerts" / "generated" / "fuseboard.rules.yml").read_text()
    assert "runbook_url: alerts/runbooks/ToolCallSlow.md" in shipped


def test_the_trace_store_that_provisioning_names_is_named_on_the_page() -> None:
    folder = ROOT / "grafana" / "provisioning"
    (source,) = yaml.safe_load((folder / "datasources" / "prometheus.yml").read_text())[
        "datasources"
    ]
    for destination in source["jsonData"].get("exemplarTraceIdDestinations", []):
        assert f"uid `{destination['datasourceUid']}`" in PAGE
    (provider,) = yaml.safe_load((folder / "dashboards" / "fuseboard.yml").read_text())["providers"]
    assert provider["options"]["path"] in PAGE
