"""`fuseboard dashboard`: the pages in one process, the collector in another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import FUSEBOARD, Server, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
TOKEN = {"FUSEBOARD_READ_TOKEN": "r3ad"}
AGENT = Path(__file__).parents[1] / "e2e" / "steady_agent.py"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Server]:
    """A collector that wants a token for reading."""
    server = Server(tmp_path / "data", tmp_path / "serve.log", environment=TOKEN)
    yield server.start()
    server.end()


@pytest.fixture
def show(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Start `fuseboard dashboard` and return its address when it is ready."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*options: str, **environment: str) -> str:
        log = tmp_path / f"dashboard-{len(running)}.log"
        command = [str(FUSEBOARD), "dashboard", "--ui-port", "0", *options]
        with log.open("ab") as output:
            running.append(subprocess.Popen(
                command, stdout=output, stderr=output,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            ))  # fmt: skip

        def is_ready() -> bool:
            assert running[-1].poll() is None, log.read_text()
            return "Ctrl-C stops it." in log.read_text()

        wait_until(is_ready, seconds=60, what="readiness of the dashboard")
        (line,) = [one for one in log.read_text().splitlines() if "Dashboard  " in one]
        return line.split()[-1]

    yield start
    for process in running:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def steady(total: int, per_second: int, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(AGENT), str(total), str(per_second), url],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def board_with(viewer: Any, calls: int, url: str) -> bool:
    viewer.open(f"{url}/?range=15m")
    return bool(viewer.stats().get("calls") == calls)


def test_hc_40_receiver_and_dashboard_are_two_processes(
    guarded: Server, show: Callable[..., str], viewer: Any
) -> None:
    url = show("--collector", guarded.otlp_url, **TOKEN)
    agent = steady(240, 40, guarded.otlp_url)
    pages = 0
    while agent.poll() is None:
        for page in ("", "tool", "errors", "latency", "alerts"):
            viewer.open(f"{url}/{page}?range=15m")
            viewer.assert_is_sound()
            pages += 1
    out, err = agent.communicate()
    assert agent.returncode == 0, out + err
    assert pages >= 5
    wait_until(lambda: board_with(viewer, 240, url), seconds=60, what="all calls on the board")
    assert "count" in viewer.page.inner_text("body")
    viewer.assert_is_sound()


@pytest.mark.long
def test_hc_40_a_minute_of_ingest_and_page_loads_in_two_processes(
    guarded: Server, show: Callable[..., str], viewer: Any
) -> None:
    url = show("--collector", guarded.otlp_url, **TOKEN)
    agent = steady(6000, 100, guarded.otlp_url)
    while agent.poll() is None:
        for page in ("", "tool", "errors", "breakers", "retries", "latency", "alerts"):
            viewer.open(f"{url}/{page}?range=1h")
            viewer.assert_is_sound()
    out, err = agent.communicate()
    assert agent.returncode == 0, out + err
    assert "lock" not in guarded.log.read_text().lower()


def test_a_collector_that_is_away_is_said_on_the_page_and_the_page_heals(
    guarded: Server, show: Callable[..., str], viewer: Any
) -> None:
    url = show("--collector", guarded.otlp_url, **TOKEN)
    guarded.stop()
    viewer.open(f"{url}/?range=15m")
    assert guarded.otlp_url in viewer.page.locator('[data-testid="fb-problem"]').first.inner_text()
    assert _status(f"{url}/healthz") == 200
    assert _status(f"{url}/readyz") == 503
    guarded.start()
    assert _status(f"{url}/readyz") == 200
    viewer.open(f"{url}/?range=15m")
    assert viewer.page.locator('[data-testid="fb-problem"]').count() == 0


def test_a_wrong_token_is_said_on_the_page_with_what_to_do(
    guarded: Server, show: Callable[..., str], viewer: Any
) -> None:
    for environment, word in (({"FUSEBOARD_READ_TOKEN": "wr0ng"}, "another"), ({}, "a token")):
        url = show("--collector", guarded.otlp_url, **environment)
        viewer.open(f"{url}/?range=15m")
        said = viewer.page.locator('[data-testid="fb-problem"]').first.inner_text()
        assert word in said
        assert "--read-token" in said
        assert "wr0ng" not in said


def test_the_alerts_and_their_time_scale_are_the_collectors(
    tmp_path: Path, show: Callable[..., str], viewer: Any
) -> None:
    options = ("--alert-time-scale", "0.01")
    server = Server(tmp_path / "scaled", tmp_path / "scaled.log", options=options)
    server.start()
    try:
        url = show("--collector", server.otlp_url)

        def is_told() -> bool:
            viewer.open(f"{url}/alerts")
            return "0.01" in viewer.page.inner_text("body")

        wait_until(is_told, seconds=60, what="the time scale on the page")
    finally:
        server.end()


def test_many_viewers_use_few_connections(
    guarded: Server, show: Callable[..., str], viewer: Any
) -> None:
    url = show("--collector", guarded.otlp_url, **TOKEN)
    for page in ("", "tool", "errors", "breakers", "retries", "latency", "alerts"):
        viewer.open(f"{url}/{page}?range=15m")
    assert _connections_to(guarded.otlp_port) <= 12


def _connections_to(port: int) -> int:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    remote = [line.split() for line in lines]
    established = "01"
    return sum(fields[2].endswith(f":{port:04X}") and fields[3] == established for fields in remote)


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
