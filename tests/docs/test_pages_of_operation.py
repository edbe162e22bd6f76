"""The pages on testing, workers, the file of policies and the log say what the code does."""

from __future__ import annotations

import inspect
import logging
import re
from pathlib import Path

import pytest
from tests.docs.running import run_python

import fuseboard
from fuseboard import testing, workers
from fuseboard.conventions import CALL_LOG_FIELDS, Outcome
from fuseboard.policy.file import read_policies
from fuseboard.record import CallRecord, ToolInfo
from fuseboard.telemetry.call_log import level_of
from fuseboard.telemetry.shared_gauges import _SUMMED

ROOT = Path(__file__).parents[2]
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
TESTING = (ROOT / "docs" / "testing.md").read_text()
WORKERS = (ROOT / "docs" / "workers.md").read_text()


def rows(text: str, first_header: str) -> list[list[str]]:
    start = text.index(f"| {first_header} |")
    lines = text[start:].splitlines()[2:]
    table = lines[: next((i for i, line in enumerate(lines) if not line.startswith("|")), None)]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def test_every_member_of_captured_calls_is_documented() -> None:
    said = {
        name
        for cell, *_ in rows(TESTING, "member of the captured calls")
        for name in re.findall(r"`(\w+)[`(]", cell)
    }
    inherited = {"index", "count"}
    written_by_us = {"began", "ended"}  # by the telemetry, not by tests
    members = {
        name for name, _ in inspect.getmembers(testing.CapturedCalls) if not name.startswith("_")
    }
    members |= {"transitions"}
    assert members - inherited - written_by_us <= said
    for name in testing.__all__:
        assert re.search(rf"\b{name}\b", TESTING) or name in {
            "CapturedCall", "CapturedAttempt", "ForcedFaults",
        }, name  # fmt: skip


def test_every_function_for_hosts_is_documented() -> None:
    table = rows(WORKERS, "function of `fuseboard.workers`")
    said = {cell.strip("`").split("(")[0] for cell, *_ in table}
    internal = {
        "finish_with_the_worker", "forget_this_worker", "shares_metrics", "warn_of_unseen_worker",
    }  # fmt: skip
    known = {
        name
        for name, found in vars(workers).items()
        if inspect.isfunction(found) and found.__module__ == workers.__name__
    }
    assert said == known - internal


FORKS = """
import os
import fuseboard
from fuseboard import Breaker, Budget, Cache, Limit, Policy

fetched = []

@fuseboard.tool(policy=Policy(cache=Cache(), effects="none"))
def cached():
    fetched.append(1)
    return len(fetched)

@fuseboard.tool(policy=Policy(breaker=Breaker(minimum_throughput=2)))
def broken():
    raise TimeoutError

def child():
    print("breaker", [str(one.state) for one in fuseboard.breakers()])
    print("cache", cached(), len(fetched))
    alone(child=lambda: print("limit", "free"))
    print("session", session.id, session.spent.requests)
    print("configured", changed())
    os._exit(0)

@fuseboard.tool(policy=Policy(limit=Limit(concurrency=1, wait=0)))
def alone(child):
    child()

@fuseboard.tool
def changed():
    raise LookupError

def fork():
    pid = os.fork()
    if pid == 0:
        child()
    assert os.waitpid(pid, 0)[1] == 0

fuseboard.configure("changed", Policy(fallback=lambda: "as it was"))
cached()
for _ in range(2):
    try:
        broken()
    except TimeoutError:
        pass
with fuseboard.session("s", budget=Budget(requests=9)) as session:
    alone(child=fork)
print("parent", session.spent.requests)
"""


def test_policies_are_in_a_forked_child_as_the_page_says(tmp_path: Path) -> None:
    said = {row[0]: row[2] for row in rows(WORKERS, "of a policy")}
    assert said["[breaker](policies/circuit-breaker.md)"] == "the state that it had"
    assert said["[limit](policies/limits.md)"] == "all slots free"
    assert said["[cache](policies/cache.md), memory"] == "the answers that it had"
    shown = run_python(
        f"import sys\nsys.stdout.reconfigure(line_buffering=True)\n{FORKS}", tmp_path
    )
    assert shown.splitlines() == [
        "breaker ['open']",
        "cache 1 1",
        "limit free",
        "session s 2",
        "configured as it was",
        "parent 1",
    ]


def test_gauges_add_up_as_the_page_says() -> None:
    (summed,) = [cell for cell, how in rows(WORKERS, "metrics") if how == "sum of the living"]
    assert set(re.findall(r"`(\w+)`", summed)) == _SUMMED


def test_every_field_of_the_log_is_documented() -> None:
    start = CONFIGURATION.index("## Logs of calls")
    section = CONFIGURATION[start : CONFIGURATION.index("\n## ", start + 5)]
    for name in CALL_LOG_FIELDS:
        assert f"`{name}`" in section, name


def test_every_outcome_is_logged_at_the_level_that_the_page_says() -> None:
    said: dict[str, str] = {}
    for outcomes, level in rows(CONFIGURATION, "outcome"):
        named = re.findall(r"`(\w+)`", outcomes)
        said.update(dict.fromkeys(named, re.split("[;,]", level)[0]))
    assert said.keys() == set(Outcome)
    for outcome in Outcome:
        call = CallRecord(ToolInfo("t"), None, None, 0, 0.0)
        call.outcome = outcome
        assert logging.getLevelName(level_of(call)) == said[outcome]


def test_the_file_on_the_page_is_legal_and_its_error_is_ours(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```toml\n(.*?)^```$", CONFIGURATION, flags=re.MULTILINE | re.DOTALL)
    path = tmp_path / "fuseboard.toml"
    path.write_text(block)
    found = read_policies(path, imports=False)
    assert set(found.tools) == {"search", "send mail"}
    example = r"^/etc/agent/fuseboard\.toml, line 9: (.*)$"
    (shown,) = re.findall(example, CONFIGURATION, re.MULTILINE)
    path.write_text("[tools.search.retry]\nattempts = 0")
    with pytest.raises(fuseboard.ConfigurationError) as caught:
        read_policies(path)
    assert str(caught.value) == f"{path}, line 2: {shown}"


def test_functions_that_change_policies_are_documented() -> None:
    assert "| `configure(tool, policy)` |" in CONFIGURATION
    assert "| `reload()` |" in CONFIGURATION
    assert list(inspect.signature(fuseboard.configure).parameters) == ["tool", "policy"]
    assert not inspect.signature(fuseboard.reload).parameters
