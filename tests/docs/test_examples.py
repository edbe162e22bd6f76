"""Every example runs; the agent with all its guards ends as it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT
from tests.docs.running import run_python

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_runs_and_is_named_on_a_page(example: Path, tmp_path: Path) -> None:
    run_python(example.read_text(), tmp_path)
    if example.stem != "quickstart":  # which the README shows in full
        assert any(f"(examples/{example.name})" in page.read_text() for page in PAGES)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the agent printed: the replies to the model, then the calls on record."""
    example = (ROOT / "examples" / "guarded_agent.py").read_text()
    return run_python(example, tmp_path_factory.mktemp("agent")).splitlines()


def test_the_model_gets_an_answer_to_every_call(shown: list[str]) -> None:
    replies = [json.loads(line) for line in shown if line.startswith("{")]
    skies = [reply.get("sky") for reply in replies]
    assert skies == ["clear", "clear", "rain", None, None, *["unknown"] * 4]
    wrong, refused = replies[3], replies[4]
    assert (wrong["error_code"], wrong["recoverable"]) == ("invalid_request", True)
    assert (refused["error_code"], refused["recoverable"]) == ("no_access", False)
    for packet in (wrong, refused):
        assert "debug_info" not in packet
        assert "14 nights" not in json.dumps(packet)


def test_every_guard_is_on_record(shown: list[str]) -> None:
    calls = [
        tuple(re.split(r"\s+|=", line)[i] for i in (0, 1, 3, 5, 7))
        for line in shown
        if "attempts=" in line
    ]
    assert calls == [
        ("weather", "ok", "1", "tool", "-"),
        ("weather", "ok", "0", "cache", "-"),
        ("weather", "ok", "2", "retry", "-"),
        ("book", "error", "1", "tool", "L1_input"),
        ("book", "error", "1", "tool", "L2_access"),
        ("weather", "degraded", "2", "fallback", "L3_transient"),
        ("weather", "degraded", "1", "fallback", "L3_transient"),
        ("weather", "degraded", "0", "fallback", "L3_transient"),
        ("weather", "degraded", "0", "fallback", "L3_transient"),
    ]
    assert shown[-1] == "breakers: {'weather/weather.example': 'open'}"
