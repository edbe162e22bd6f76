"""The collector goes away and comes back; afterwards every call is there exactly once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


def test_a_server_down_for_20_seconds_loses_nothing(
    make_server: Callable[..., Any], run_agent: Callable[..., Any]
) -> None:
    server = make_server().start()
    agent = run_agent("steady_agent.py", "600", "40", server.otlp_url)
    assert agent.stdout.readline() == "begun\n"
    time.sleep(2)
    assert server.stop() == 0, server.log.read_text()
    time.sleep(20)
    assert agent.poll() is None
    server.start()
    out, err = agent.communicate(timeout=150)
    assert agent.returncode == 0, out + err
    server.assert_each_call_once(600)


def test_a_server_killed_between_commit_and_acknowledgement_doubles_nothing(
    make_server: Callable[..., Any],
    make_proxy: Callable[..., Any],
    run_agent: Callable[..., Any],
) -> None:
    """The answer to one committed request never reaches the agent, which sends it again."""
    server = make_server().start()
    lost: list[int] = []

    def script(number: int, path: str) -> str:
        if path == "/v1/traces" and number >= 2 and not lost:
            lost.append(number)
            return "lose"
        return "pass"

    proxy = make_proxy(server.otlp_port, script)
    proxy.after_commit = server.kill
    agent = run_agent("steady_agent.py", "400", "40", proxy.url)
    deadline = time.monotonic() + 60
    while not lost or server.process.poll() is None:
        assert time.monotonic() < deadline, "the server was not killed"
        time.sleep(0.05)
    before = server.export_at_rest("calls")
    assert before, "nothing was committed before the kill"
    server.start()
    out, err = agent.communicate(timeout=150)
    assert agent.returncode == 0, out + err
    server.assert_each_call_once(400)


def test_a_call_is_on_record_when_the_agent_ends_right_after_it(
    make_server: Callable[..., Any], run_agent: Callable[..., Any]
) -> None:
    server = make_server().start()
    agent = run_agent("steady_agent.py", "1", "1000", server.otlp_url)
    out, err = agent.communicate(timeout=60)
    assert agent.returncode == 0, out + err
    server.assert_each_call_once(1)
