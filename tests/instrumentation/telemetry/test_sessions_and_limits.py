"""What sessions and limits leave in spans and metrics, on both paths of spans."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest
from fake_collector import as_dict
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from prometheus_client import CollectorRegistry

import fuseboard
from fuseboard import Budget, Limit, Policy, Repeats, Retry, setup


@pytest.fixture(params=["fast", "sdk"])
def collected(request: pytest.FixtureRequest, start: Any, collector: Any) -> Any:
    start(region="eu-west")
    if request.param == "sdk":
        provider: Any = trace.get_tracer_provider()
        provider.add_span_processor(SpanProcessor())

    def spans() -> list[dict[str, Any]]:
        assert setup.flush(10.0)
        found = sorted(collector.spans(), key=lambda span: span.start_time_unix_nano)
        return [{"name": span.name, **as_dict(span.attributes)} for span in found]

    return spans


def count_of(registry: CollectorRegistry, layer: str, action: str) -> float:
    labels = {"tool": "search", "region": "eu-west", "layer": layer, "action": action}
    return registry.get_sample_value("fuseboard_layer_actions_total", labels) or 0.0


@pytest.mark.parametrize("budget", [None, Budget(requests=100)], ids=["named", "gated"])
def test_calls_carry_conversation_and_agent(collected: Any, budget: Budget | None) -> None:
    @fuseboard.tool(name="search")
    def search(query: str) -> None: ...

    @fuseboard.tool(name="guarded", policy=Policy(retry=Retry()))
    def guarded() -> None: ...

    with fuseboard.session("s1", agent="planner", budget=budget), fuseboard.turn(3):
        search("x")
        guarded()
        with fuseboard.call("by_hand"):
            pass
    search("y")
    *named, plain = collected()
    assert [span["gen_ai.tool.name"] for span in named] == ["search", "guarded", "by_hand"]
    for span in named:
        assert span["gen_ai.conversation.id"] == "s1"
        assert span["gen_ai.agent.name"] == "planner"
        assert span["fuseboard.outcome"] == "ok"
    assert not {"gen_ai.conversation.id", "gen_ai.agent.name"} & plain.keys()
    assert not any("step" in key for span in named for key in span), "no attribute says so"


def test_what_a_session_rejects_is_a_rejected_call(
    collected: Any, registry: CollectorRegistry
) -> None:
    @fuseboard.tool(name="search")
    def search(query: str) -> None: ...

    opened = fuseboard.session(
        "s1", budget=Budget(requests=1), repeats=Repeats(limit=2, action="reject")
    )
    with opened:
        search("x")
        for _ in range(2):
            with contextlib.suppress(fuseboard.CallRejectedError):
                search("x")
    ok, over_budget, repeated = collected()
    assert ok["fuseboard.outcome"] == "ok"
    assert (over_budget["fuseboard.outcome"], over_budget["fuseboard.layer"]) == (
        "rejected",
        "budget",
    )
    assert over_budget["fuseboard.attempts"] == 0
    assert over_budget["error.classified_as"] == "L4_persistent"
    assert over_budget["error.type"].endswith("SessionBudgetError")
    assert over_budget["fuseboard.error.origin"] == "orchestration"
    assert (repeated["fuseboard.outcome"], repeated["fuseboard.layer"]) == ("rejected", "limit")
    assert (repeated["error.classified_as"], repeated["error.classifier_id"]) == (
        "L1_input",
        "repeated_call",
    )
    assert count_of(registry, "budget", "exhausted") == 1
    assert count_of(registry, "limit", "rejected") == 1


def test_waits_and_refusals_of_a_limit(collected: Any, registry: CollectorRegistry) -> None:
    inside, let_go = threading.Event(), threading.Event()

    @fuseboard.tool(name="search", policy=Policy(limit=Limit(concurrency=1, wait=30, queue=1)))
    def search(query: str) -> None:
        inside.set()
        assert let_go.wait(30)

    threads = [threading.Thread(target=search, args=(query,)) for query in ("a", "b")]
    threads[0].start()
    assert inside.wait(20)
    threads[1].start()
    while not count_of_queue():
        pass
    with pytest.raises(fuseboard.LimitExceededError):
        search("c")
    let_go.set()
    for thread in threads:
        thread.join(20)
    spans = collected()
    calls = [span for span in spans if span["name"].startswith("execute_tool")]
    outcomes = [span["fuseboard.outcome"] for span in calls]
    assert outcomes == ["ok", "ok", "rejected"]
    assert calls[2]["fuseboard.layer"] == "limit"
    assert calls[2]["error.classified_as"] == "L3_transient"
    assert [count_of(registry, "limit", action) for action in ("queued", "rejected")] == [1, 1]
    labels = {"tool": "search", "region": "eu-west"}
    waited = registry.get_sample_value("fuseboard_tool_backoff_seconds_total", labels)
    assert waited == 0, "a queue is no back-off"
    attempts = registry.get_sample_value("fuseboard_tool_attempt_duration_seconds_sum", labels)
    calls_sum = registry.get_sample_value("fuseboard_tool_call_duration_seconds_sum", labels)
    assert attempts is not None
    assert calls_sum is not None
    assert attempts < calls_sum, "the wait is the call's, not the attempt's"


def count_of_queue() -> int:
    from fuseboard.policy.limiters import LIMITERS

    return sum(
        limiter.waiting for key, limiter in LIMITERS._limiters.items() if key.tool == "search"
    )
