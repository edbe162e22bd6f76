"""An agent in a loop: the same tool with the same arguments again and again."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import fuseboard
from fuseboard import (
    Cache,
    CallRejectedError,
    ConfigurationError,
    ErrorClass,
    Outcome,
    Policy,
    RepeatedCallError,
    Repeats,
    Retry,
)
from fuseboard.conventions import Layer, Origin, RetryStrategy
from fuseboard.sessions import accounts


class Search:
    def __init__(self, **options: Any) -> None:
        self.runs = 0

        @fuseboard.tool(name="search", **options)
        def search(query: str, request: int = 0) -> str:
            self.runs += 1
            return f"pages about {query}"

        self.tool = search


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if "in a loop" in r.getMessage()]


def test_loop_is_rejected_with_words_that_help_the_model(
    telemetry: Any, caplog: pytest.LogCaptureFixture
) -> None:
    search = Search()
    with fuseboard.session("s1", repeats=Repeats(limit=3, action="reject")):
        for _ in range(3):
            search.tool("fuses")
        for times in (4, 5):
            with pytest.raises(RepeatedCallError, match="same arguments") as caught:
                search.tool("fuses")
            assert caught.value.times == times
        search.tool("breakers")
        search.tool(query="breakers")
    assert search.runs == 5
    assert isinstance(caught.value, CallRejectedError)
    call = telemetry.calls[3]
    assert (call.outcome, call.layer, call.attempts) == (Outcome.REJECTED, Layer.LIMIT, [])
    assert call.layer_actions == (("limit", "rejected"),)
    verdict = call.fault.verdict
    assert verdict.error_class is ErrorClass.L1_INPUT
    assert verdict.origin is Origin.ORCHESTRATION
    assert not verdict.retryable
    assert call.retry_strategy is RetryStrategy.FEEDBACK
    (warning,) = warnings_of(caplog)
    assert "'search' was called more than 3 times" in warning
    assert "'s1'" in warning


def test_loop_is_only_warned_of_by_default(
    telemetry: Any, caplog: pytest.LogCaptureFixture
) -> None:
    search = Search()
    with caplog.at_level(logging.WARNING), fuseboard.session(repeats=Repeats()):
        for _ in range(30):
            search.tool("fuses")
    assert search.runs == 30
    assert len(warnings_of(caplog)) == 1
    assert {call.outcome for call in telemetry.calls} == {Outcome.OK}


def test_retries_are_no_repeats(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(retry=Retry(attempts=5, wait_initial=0), effects="none"))
    def flaky(query: str) -> None:
        raise ConnectionResetError

    with fuseboard.session(repeats=Repeats(limit=1, action="reject")):
        with pytest.raises(ConnectionResetError):
            flaky("x")
        with pytest.raises(RepeatedCallError):
            flaky("x")


def test_ignored_arguments_make_no_difference(telemetry: Any) -> None:
    search = Search(ignore_arguments=["request"])
    with fuseboard.session(repeats=Repeats(limit=1, action="reject")):
        search.tool("fuses", request=1)
        with pytest.raises(RepeatedCallError):
            search.tool("fuses", request=2)


def test_tools_without_a_hash_are_left_out(telemetry: Any) -> None:
    search = Search(hash_arguments=False)
    with fuseboard.session(repeats=Repeats(limit=1, action="reject")):
        search.tool("fuses")
        search.tool("fuses")
    assert search.runs == 2


def test_calls_by_hand_count_and_each_session_counts_its_own(telemetry: Any) -> None:
    for _ in range(2):
        with fuseboard.session(repeats=Repeats(limit=1, action="reject")):
            with fuseboard.call("search", {"query": "fuses"}):
                pass
            with (
                pytest.raises(RepeatedCallError),
                fuseboard.call("search", {"query": "fuses"}),
            ):
                raise AssertionError("the block must not run")


def test_memory_is_bounded_and_the_latest_are_kept(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "MAX_KINDS", 10)
    search = Search()
    opened = fuseboard.session(repeats=Repeats(limit=1, action="reject"))
    with opened:
        for number in range(50):
            search.tool(str(number))
        assert opened._repeats is not None
        assert len(opened._repeats._counts) == 10
        with pytest.raises(RepeatedCallError):
            search.tool("49")
        search.tool("0")


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1.5}, {"action": "stop"}], ids=repr)
def test_wrong_settings_are_named(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ConfigurationError, match=rf"Repeats\({name}="):
        Repeats(**wrong)


def test_loop_that_a_cache_answers_is_noticed(
    telemetry: Any, caplog: pytest.LogCaptureFixture
) -> None:
    search = Search(policy=Policy(cache=Cache(ttl=60), effects="none"))
    with fuseboard.session(repeats=Repeats(limit=3)):
        for _ in range(5):
            search.tool("fuses")
    assert search.runs == 1
    assert len(warnings_of(caplog)) == 1
