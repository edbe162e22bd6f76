"""What the pages of policies say that a call leaves on record, it leaves on record."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.docs.pages import POLICY_PAGES, section

import fuseboard
from fuseboard import (
    AskUserError,
    Breaker,
    Budget,
    Cache,
    Fallback,
    Feedback,
    Limit,
    Pending,
    Policy,
    Poll,
    Repeats,
    Retry,
    Validation,
)
from fuseboard.testing import CapturedCall, FakeClock, capture, forced_faults

Act = Callable[[FakeClock], Any]
READS = "none"


@dataclass(frozen=True)
class Case:
    """Something that happens to a call, and what the page says is then on record."""

    page: str
    act: Act
    outcome: str
    layer: str
    said: dict[str, str] = field(default_factory=dict)
    """Fields of the captured call whose values the page names."""
    actions: tuple[tuple[str, str], ...] = ()


def made(policy: Policy | None, body: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return fuseboard.tool(name="lookup", policy=policy, **options)(body)


def fails(*_: object) -> object:
    raise ConnectionResetError


def empty(*_: object) -> str:
    return ""


def times_out(*_: object) -> object:
    raise TimeoutError


def calls(policy: Policy, body: Callable[..., Any] = fails, times: int = 1) -> Act:
    """Make calls of a tool with this policy, whatever they raise."""

    def act(clock: FakeClock) -> None:
        tool = made(policy, body)
        for _ in range(times):
            with contextlib.suppress(Exception):
                tool()

    return act


def stale(clock: FakeClock) -> None:
    tool = made(Policy(cache=Cache(ttl=10, stale=100), effects=READS), lambda: "clear")
    tool()
    clock.move(50)
    with forced_faults("lookup", [ConnectionResetError]):
        assert tool() == "clear"


def over_budget(clock: FakeClock) -> None:
    tool = made(None, lambda: "clear")
    with fuseboard.session("s", budget=Budget(requests=1)), contextlib.suppress(Exception):
        tool()
        tool()


def repeated(clock: FakeClock) -> None:
    tool = made(None, lambda: "clear")
    repeats = Repeats(limit=1, action="reject")
    with fuseboard.session("s", repeats=repeats), contextlib.suppress(Exception):
        tool()
        tool()


def packet_of_a_tool_within(clock: FakeClock) -> None:
    inner = fuseboard.tool(name="inner", on_error="packet")(fails)
    made(None, lambda: inner())()


def correct(mistake: fuseboard.Mistake) -> dict[str, object]:
    return {"city": "Lisbon"}


def wrong_arguments(clock: FakeClock) -> None:
    def weather(city: str) -> str:
        return city

    made(Policy(feedback=Feedback(correct), effects=READS), weather)(town="Lisbon")


def never_done(ticket: object) -> Pending:
    return Pending()


CASES = [
    Case("retry", calls(Policy(retry=Retry(attempts=2), effects=READS)), "error", "retry",
         {"retry_strategy": "exponential_backoff_full_jitter"}),
    Case("circuit-breaker", calls(Policy(breaker=Breaker(minimum_throughput=2)), times=3),
         "rejected", "breaker", {"classifier_id": "circuit_open"}, (("breaker", "rejected"),)),
    Case("limits", calls(Policy(limit=Limit(rate=1, wait=0)), empty, times=2),
         "rejected", "limit",
         {"classifier_id": "limit_exceeded", "error_class": "L3_transient"},
         (("limit", "rejected"),)),
    Case("limits", calls(Policy(limit=Limit(rate=2, burst=1)), empty, times=2),
         "ok", "tool", {}, (("limit", "queued"),)),
    Case("timeout-and-budget", calls(Policy(timeout=0.01), lambda: time.sleep(0.1)),
         "error", "timeout",
         {"classifier_id": "attempt_timeout", "error_class": "L3_transient"},
         (("timeout", "timed_out"),)),
    Case("timeout-and-budget", calls(Policy(budget=0.01), lambda: time.sleep(0.1)),
         "error", "budget",
         {"classifier_id": "budget_exhausted", "error_class": "L4_persistent"},
         (("budget", "exhausted"),)),
    Case("cache", calls(Policy(cache=Cache(), effects=READS), lambda: 1, times=2),
         "ok", "cache", {"result_source": "cache", "confidence": "medium_high"},
         (("cache", "hit_memory"),)),
    Case("cache", stale, "degraded", "cache", {"result_source": "cache"},
         (("cache", "miss"), ("cache", "stale"))),
    Case("fallback", calls(Policy(fallback=(times_out, Fallback(value=1)))),
         "degraded", "fallback", {"retry_strategy": "switch"},
         (("fallback", "failed"), ("fallback", "served"))),
    Case("fallback", calls(Policy(fallback=Fallback(empty, hand_over=True))),
         "degraded", "fallback", {}, (("fallback", "handed_over"),)),
    Case("validation", calls(Policy(validation=Validation(non_empty=True)), empty),
         "error", "validation",
         {"classifier_id": "empty_result", "error_class": "L5_semantic"},
         (("validation", "failed"),)),
    Case("validation", calls(Policy(validation=Validation(predicate=bool)), empty),
         "error", "validation", {"classifier_id": "broken_contract"},
         (("validation", "failed"),)),
    Case("validation", calls(Policy(retry=Retry()), lambda: {"n": 1, "partial_failures": ["b"]}),
         "partial", "validation", {"classifier_id": "partial_failures"},
         (("validation", "partial"),)),
    Case("feedback", wrong_arguments, "ok", "retry", {"retry_strategy": "feedback"}),
    Case("submit-and-poll", calls(Policy(poll=Poll(never_done, timeout=5)), lambda: "job-7"),
         "error", "timeout", {}, (("timeout", "timed_out"),)),
    Case("error-packet", packet_of_a_tool_within, "error", "tool",
         {"classifier_id": "error_packet"}),
    Case("sessions", over_budget, "rejected", "budget", {}, (("budget", "exhausted"),)),
    Case("sessions", repeated, "rejected", "limit", {}, (("limit", "rejected"),)),
]  # fmt: skip


def happened(case: Case) -> CapturedCall:
    clock = FakeClock()
    with capture(clock=clock, uniform=max) as captured:
        case.act(clock)
    return captured.all(tool="lookup")[-1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.page}-{case.outcome}-{case.layer}")
def test_a_call_leaves_what_the_page_says(case: Case) -> None:
    call = happened(case)
    assert (call.outcome, call.layer) == (case.outcome, case.layer)
    assert {name: getattr(call, name) for name in case.said} == case.said
    assert call.layer_actions == case.actions
    told = section(POLICY_PAGES[case.page], "## Telemetry")
    named = [*case.said.values(), *(part for action in case.actions for part in action)]
    for word in named:
        assert re.search(rf"`(\w+` = `)?{word}`", told), word
    if case.layer != "tool":
        assert f"`{case.layer}`" in told


def test_every_policy_has_a_case() -> None:
    assert {case.page for case in CASES} == POLICY_PAGES.keys()


def test_what_a_session_has_spent_is_zero_without_a_budget() -> None:
    tool = made(None, empty)
    assert "zeros without one" in POLICY_PAGES["sessions"]
    for budget, spent in ((None, 0), (Budget(retries=5), 1)):
        with fuseboard.session("s", budget=budget) as session:
            tool()
        assert session.spent.requests == spent


def test_a_wait_that_the_budget_does_not_leave_is_not_slept() -> None:
    class AwayError(Exception):
        status_code = 503
        headers = {"Retry-After": "120"}  # noqa: RUF012

    def away() -> None:
        raise AwayError

    tool = made(Policy(retry=Retry()), away)
    clock = FakeClock()
    with capture(clock=clock) as captured, pytest.raises(AwayError):
        tool()
    assert captured.one().layer_actions == (("budget", "exhausted"),)
    assert clock.slept == []
    assert "instead of sleeping (`budget`/`exhausted`)" in POLICY_PAGES["retry"]


def test_a_fallback_is_outside_of_the_budget() -> None:
    clock = FakeClock()

    def slow() -> str:
        clock.move(60)
        return "late"

    tool = made(Policy(fallback=slow, budget=5), fails)
    with capture(clock=clock) as captured:
        assert tool() == "late"
    assert captured.one().outcome == "degraded"
    assert "[fallback](fallback.md) is outside" in " ".join(
        POLICY_PAGES["timeout-and-budget"].split()
    )


def test_asking_the_user_is_no_error() -> None:
    def ask() -> str:
        raise AskUserError("Which one?")

    tool = made(Policy(fallback=ask, retry=Retry()), times_out)
    with capture() as captured, pytest.raises(AskUserError):
        tool()
    assert captured.one(tool="lookup").outcome == "interrupted"
    assert "`interrupted`" in section(POLICY_PAGES["fallback"], "### Asking the user")
