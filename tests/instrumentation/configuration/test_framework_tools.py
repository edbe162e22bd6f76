"""Tools of frameworks get their policies from the file and at run time, like decorated ones."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

import fuseboard
from fuseboard import ConfigurationError, Fallback, Policy, Retry
from fuseboard.adapters.running import FrameworkCalls
from fuseboard.calls import from_file
from fuseboard.calls.invocation import Invocation
from fuseboard.testing import FakeClock, capture, forced_faults


class Framework:
    """Runs one tool, whose attempts fail until the last one asked for."""

    def __init__(self, *, is_async: bool) -> None:
        self.calls = FrameworkCalls("instrument_test")
        self.is_async = is_async
        self.failures = 0

    def _work(self) -> str:
        if self.failures:
            self.failures -= 1
            raise ConnectionResetError("reset")
        return "live"

    async def _work_async(self) -> str:
        return self._work()

    def run(self, failures: int = 0) -> Any:
        self.failures = failures
        invocation = Invocation("search", {"q": "x"})
        if self.is_async:
            return asyncio.run(self.calls.run_async(invocation, self._work_async))
        return self.calls.run(invocation, self._work)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def framework(request: pytest.FixtureRequest) -> Framework:
    return Framework(is_async=request.param)


def read(path: Path, text: str) -> None:
    path.write_text(text)
    from_file.use(from_file.prepare(path))


def test_a_file_guards_them_before_and_after_their_first_call(
    framework: Framework, tmp_path: Path
) -> None:
    path = tmp_path / "f.toml"
    with capture(clock=FakeClock()) as calls:
        with pytest.raises(ConnectionResetError):
            framework.run(failures=1)
        read(path, "[tools.search]\neffects = 'none'\n[tools.search.retry]\nattempts = 3")
        assert framework.run(failures=2) == "live"
        framework.calls.configure(Policy(fallback=Fallback(value="spare")))
        assert framework.run(failures=2) == "live"
        assert framework.run(failures=3) == "spare", "the adapter's own fallback stays"
        read(path, "")
        assert framework.run(failures=1) == "spare"
    assert [len(call.attempts) for call in calls] == [1, 3, 3, 3, 1]


def test_they_are_configured_by_name(framework: Framework) -> None:
    with capture(clock=FakeClock()):
        framework.run()
        fuseboard.configure("search", Policy(retry=Retry(attempts=2), effects="none"))
        assert framework.run(failures=1) == "live"
        fuseboard.configure("search", None)
        with pytest.raises(ConnectionResetError):
            framework.run(failures=1)


def test_a_line_in_a_file_does_not_stop_an_agent(
    framework: Framework, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "f.toml"
    read(path, "[tools.search]\neffects = 'none'\n[tools.search.cache]\nttl = 5\n")
    with caplog.at_level(logging.WARNING, "fuseboard"):
        assert framework.run() == "live"
    assert "line 1: [tools.search]: search(policy=...): a cache can't tell" in caplog.text
    assert "keeps the policy that its adapter gave it" in caplog.text


def test_what_does_not_go_with_them_is_refused_at_run_time(framework: Framework) -> None:
    framework.run()
    cached = Policy(cache=fuseboard.Cache(), effects="none")
    with pytest.raises(ConfigurationError, match="a cache can't tell"):
        fuseboard.configure("search", cached)
    with (
        pytest.raises(ConfigurationError, match="the framework runs 'search' itself"),
        forced_faults("search", [KeyError]),
    ):
        pass
    assert framework.run() == "live"
