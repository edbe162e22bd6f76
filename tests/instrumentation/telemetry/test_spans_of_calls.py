"""Spans as they arrive at a collector."""

from __future__ import annotations

import asyncio
from typing import Any

import handmade_calls as handmade
import pytest
from opentelemetry import trace
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

import fuseboard
from fuseboard import setup
from fuseboard.conventions import (
    BreakerState,
    Confidence,
    ErrorClass,
    Layer,
    Origin,
    Outcome,
    ResultSource,
    RetryStrategy,
)
from fuseboard.record import ToolInfo
from fuseboard.runtime import RUNTIME


def attributes_of(message: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in message.attributes}


def delivered(collector: Any, name: str | None = None) -> list[Any]:
    assert setup.flush(20.0)
    return [span for span in collector.spans() if name is None or span.name == name]


def test_a_successful_call_is_one_internal_span_with_the_attributes_of_the_contract(
    start: Any, collector: Any
) -> None:
    start()
    call = handmade.start(
        region="eu-west",
        upstream="api.example.com",
        call_id="call_1",
        agent="planner",
        session="thread-1",
    )
    handmade.attempt(call, duration=0.25)
    handmade.end(
        call,
        duration=0.5,
        breaker_state=BreakerState.CLOSED,
        result_source=ResultSource.LIVE,
        confidence=Confidence.HIGH,
        cost=0.02,
    )
    (span,) = delivered(collector)
    assert span.name == "execute_tool search"
    assert span.kind == SpanMessage.SPAN_KIND_INTERNAL
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert span.start_time_unix_nano == call.started_unix_ns
    assert span.end_time_unix_nano == call.started_unix_ns + 500_000_000
    assert attributes_of(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.agent.name": "planner",
        "gen_ai.conversation.id": "thread-1",
        "cloud.region": "eu-west",
        "server.address": "api.example.com",
        "fuseboard.args_hash": "v1:0123456789abcdef",
        "fuseboard.outcome": "ok",
        "fuseboard.attempts": 1,
        "fuseboard.attempt.seconds": 0.25,
        "fuseboard.backoff_seconds": 0.0,
        "fuseboard.layer": "tool",
        "fuseboard.breaker.state": "closed",
        "fuseboard.result.source": "live",
        "fuseboard.result.confidence": "high",
        "fuseboard.cost": 0.02,
    }


def test_start_attributes_are_there_when_a_sampler_looks(start: Any, clean_setup: None) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult

    seen: list[dict[str, Any]] = []

    class Spy(Sampler):
        def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
            attributes = args[4] if len(args) > 4 else kwargs["attributes"]
            seen.append(dict(attributes))
            return ALWAYS_ON.should_sample(*args, **kwargs)

        def get_description(self) -> str:
            return "spy"

    start(tracer_provider=TracerProvider(sampler=Spy(), shutdown_on_exit=False))
    handmade.succeed(region="eu-west")
    assert seen == [
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "search",
            "gen_ai.tool.type": "function",
            "cloud.region": "eu-west",
            "fuseboard.args_hash": "v1:0123456789abcdef",
        }
    ]


def test_a_failed_call_has_status_error_and_its_attempt_has_a_span(
    start: Any, collector: Any
) -> None:
    start()
    call = handmade.start()
    problem = handmade.fault(
        ErrorClass.L2_ACCESS,
        "no key",
        retryable=False,
        http_status=401,
        origin=Origin.INPUT,
        cause_type="httpx.HTTPStatusError",
    )
    handmade.attempt(call, problem)
    handmade.end(call, outcome=Outcome.ERROR, fault=problem, retry_strategy=RetryStrategy.NONE)
    spans = {span.name: span for span in delivered(collector)}
    faulty = {
        "error.type": "builtins.OSError",
        "error.classified_as": "L2_access",
        "error.classifier_id": "test_matcher",
        "fuseboard.error.retryable": False,
        "fuseboard.error.origin": "input",
        "fuseboard.error.message": "no key",
        "fuseboard.error.cause_type": "httpx.HTTPStatusError",
        "http.response.status_code": 401,
    }
    whole = spans["execute_tool search"]
    assert whole.status.code == Status.STATUS_CODE_ERROR
    assert whole.status.message == "no key"
    assert faulty.items() <= attributes_of(whole).items()
    assert attributes_of(whole)["error.retry_strategy"] == "none"
    tried = spans["tool_attempt search"]
    assert tried.parent_span_id == whole.span_id
    assert tried.status.code == Status.STATUS_CODE_ERROR
    assert attributes_of(tried) == {
        **faulty,
        "gen_ai.tool.name": "search",
        "fuseboard.attempt.number": 1,
        "fuseboard.attempt.delay_seconds": 0.0,
    }
    assert not tried.events
    assert not whole.events


def test_a_recovered_call_is_clean_and_its_attempts_have_their_true_times(
    start: Any, collector: Any
) -> None:
    start()
    call = handmade.start()
    first = handmade.attempt(call, handmade.fault(), duration=0.1)
    second = handmade.attempt(call, delay=0.3, duration=0.2)
    handmade.end(call, duration=0.6)
    spans = delivered(collector)
    (whole,) = (span for span in spans if span.name == "execute_tool search")
    attempts = sorted(
        (span for span in spans if span.name == "tool_attempt search"),
        key=lambda span: attributes_of(span)["fuseboard.attempt.number"],
    )
    assert whole.status.code == Status.STATUS_CODE_UNSET
    assert not {key for key in attributes_of(whole) if key.startswith("error.")}
    assert attributes_of(whole)["fuseboard.attempts"] == 2
    assert [span.status.code for span in attempts] == [
        Status.STATUS_CODE_ERROR,
        Status.STATUS_CODE_UNSET,
    ]
    assert [attributes_of(s)["fuseboard.attempt.delay_seconds"] for s in attempts] == [0.0, 0.3]
    for span, record in zip(attempts, (first, second), strict=True):
        assert span.parent_span_id == whole.span_id
        assert span.start_time_unix_nano == record.started_unix_ns
        assert span.end_time_unix_nano == record.started_unix_ns + round(record.duration * 1e9)


def test_attempts_do_not_count_as_calls(start: Any, collector: Any) -> None:
    start()
    handmade.fail()
    (attempt,) = delivered(collector, "tool_attempt search")
    assert "gen_ai.operation.name" not in attributes_of(attempt)


@pytest.mark.parametrize(
    ("outcome", "is_error", "has_type", "has_class"),
    [
        (Outcome.ERROR, True, True, True),
        (Outcome.REJECTED, True, True, True),
        (Outcome.DEGRADED, False, False, True),
        (Outcome.PARTIAL, False, False, True),
        (Outcome.CANCELLED, False, False, False),
        (Outcome.ABANDONED, False, False, False),
        (Outcome.INTERRUPTED, False, False, False),
        (Outcome.OK, False, False, False),
    ],
)
def test_status_and_error_attributes_follow_the_outcome(
    start: Any, collector: Any, outcome: Outcome, is_error: bool, has_type: bool, has_class: bool
) -> None:
    start()
    handmade.end(handmade.start(), outcome=outcome, fault=handmade.fault(), layer=Layer.BREAKER)
    (span,) = delivered(collector)
    present = attributes_of(span)
    assert (span.status.code == Status.STATUS_CODE_ERROR) is is_error
    assert ("error.type" in present) is has_type
    assert ("error.classified_as" in present) is has_class
    assert present["fuseboard.outcome"] == outcome.value
    assert present["fuseboard.attempts"] == 0
    assert "fuseboard.attempt.seconds" not in present


def test_a_call_that_failed_after_a_good_attempt_still_shows_that_attempt(
    start: Any, collector: Any
) -> None:
    start()
    call = handmade.start()
    handmade.attempt(call)
    handmade.end(call, outcome=Outcome.ERROR, fault=handmade.fault(), layer=Layer.VALIDATION)
    (attempt,) = delivered(collector, "tool_attempt search")
    assert attempt.status.code == Status.STATUS_CODE_UNSET


def test_children_hang_under_the_call_and_later_ones_under_their_attempt(
    start: Any, collector: Any
) -> None:
    start()
    tracer = trace.get_tracer("application")

    def child(name: str) -> Any:
        return lambda: tracer.start_span(name).end()

    with tracer.start_as_current_span("agent") as agent:
        call = handmade.start()
        handmade.attempt(call, handmade.fault(), body=child("first"))
        handmade.attempt(call, body=child("second"))
        assert trace.get_current_span() is agent
        handmade.end(call)
    spans = {}
    for span in delivered(collector):
        number = attributes_of(span).get("fuseboard.attempt.number", "")
        spans[f"{span.name}{number}"] = span
    assert spans["execute_tool search"].parent_span_id == spans["agent"].span_id
    assert spans["first"].parent_span_id == spans["execute_tool search"].span_id
    assert spans["second"].parent_span_id == spans["tool_attempt search2"].span_id
    assert len({span.trace_id for span in spans.values()}) == 1


def test_the_tool_can_write_to_the_current_span(start: Any, collector: Any) -> None:
    start()
    call = handmade.start()

    def body() -> None:
        trace.get_current_span().set_attribute("app.answer", 42)

    handmade.attempt(call, body=body)
    handmade.end(call)
    (span,) = delivered(collector)
    assert attributes_of(span)["app.answer"] == 42


async def test_leaving_in_another_context_is_silent_and_harmless(
    start: Any, caplog: pytest.LogCaptureFixture
) -> None:
    start()
    telemetry = RUNTIME.telemetry
    call = handmade.start()

    async def enter() -> object:
        return telemetry.enter(call)

    token = await asyncio.create_task(enter())
    telemetry.leave(token)
    handmade.end(call)
    assert "Failed to detach" not in caplog.text
    assert not trace.get_current_span().get_span_context().is_valid


def test_concurrent_tasks_keep_their_own_current_span(start: Any, collector: Any) -> None:
    start()

    async def one(number: int) -> tuple[int, int]:
        call = handmade.start(tool=ToolInfo(f"tool{number}"))
        token = RUNTIME.telemetry.enter(call)
        await asyncio.sleep(0)
        inner = trace.get_current_span().get_span_context().span_id
        RUNTIME.telemetry.leave(token)
        handmade.end(call)
        return inner, handmade.ids(call).span_id

    async def many() -> list[tuple[int, int]]:
        return await asyncio.gather(*(one(number) for number in range(20)))

    assert all(inner == own for inner, own in asyncio.run(many()))


def test_a_fault_of_our_own_never_reaches_the_caller(
    start: Any, registry: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    telemetry = RUNTIME.telemetry

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("CANARY-9 inside of fuseboard")

    for part, method in (
        (telemetry._spans, "start"),
        (telemetry.metrics, "attempt_ended"),
        (telemetry.metrics, "call_ended"),
        (telemetry.metrics, "tool_registered"),
        (telemetry.metrics, "breaker_created"),
        (telemetry.metrics, "breaker_changed"),
    ):
        monkeypatch.setattr(part, method, broken)
    for _ in range(5):
        handmade.fail()
    telemetry.tool_registered(ToolInfo("x"))
    telemetry.breaker_created(None)
    telemetry.breaker_changed(None)
    telemetry.leave(object())
    said = [record.getMessage() for record in caplog.records]
    assert len([line for line in said if "call_started" in line]) == 1
    assert "CANARY" not in caplog.text
    lost = registry.get_sample_value(
        "fuseboard_telemetry_dropped_total", {"signal": "spans", "reason": "internal"}
    )
    assert lost >= 15


def test_the_models_id_of_a_call_is_on_its_span(start: Any, collector: Any) -> None:
    start()
    with fuseboard.call("search", {"q": "x"}, call_id="toolu_01"):
        pass
    (span,) = delivered(collector)
    assert attributes_of(span)["gen_ai.tool.call.id"] == "toolu_01"
