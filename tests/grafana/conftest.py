"""A real agent process, scraped by a real Prometheus, and the boards as they are shipped."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from live_prometheus import Prometheus, wait_for  # noqa: E402

ROOT = HERE.parents[1]
BOARDS = ROOT / "grafana" / "dashboards"
RULES = ROOT / "alerts" / "generated" / "fuseboard.rules.yml"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(params=sorted(BOARDS.glob("*.json")), ids=lambda path: path.stem)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    return json.loads(request.param.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def agent_address() -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, str(HERE / "metrics_agent.py"), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "serving"
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def prometheus(
    prometheus_binary: Path, agent_address: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    rules = folder / "rules.yml"
    # The shipped rules, only evaluated each second so that the test need not wait for minutes.
    rules.write_text(RULES.read_text(encoding="utf-8").replace("interval: 15s", "interval: 1s"))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "trip", "static_configs": [{"targets": [agent_address]}]}],
    }
    flags = ["--enable-feature=exemplar-storage"]
    with Prometheus.running(
        prometheus_binary, folder, port=free_port(), config=config, flags=flags
    ) as server:
        wait_for(lambda: len(server.matrix("fuseboard_build_info", 5)) == 1, "the first scrape")
        yield server
