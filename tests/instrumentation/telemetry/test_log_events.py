"""Log events: breaker transitions, heartbeats, calls whose spans are not sampled."""

from __future__ import annotations

import json
from typing import Any

import handmade_calls as handmade
import pytest
from fake_collector import as_dict, wait_until
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from fuseboard import setup
from fuseboard.conventions import BreakerState, ErrorClass, Outcome
from fuseboard.record import BreakerStatus, BreakerTransition, CallRecord
from fuseboard.runtime import RUNTIME
from fuseboard.telemetry.losses import Reason, Signal


def opening(call: CallRecord | None = None, **fields: Any) -> BreakerTransition:
    fields = {
        "name": "search/eu-west/api.example.com",
        "tool": "search",
        "region": "eu-west",
        "upstream": "api.example.com",
        "from_state": BreakerState.CLOSED,
        "to_state": BreakerState.OPEN,
        "reason": "failure ratio 0.60 over 20 calls",
        "failure_ratio": 0.6,
        "calls": 20,
        "failures": 12,
        "error_class": ErrorClass.L3_TRANSIENT,
        "at_unix_ns": 1_700_000_000_000_000_000,
        "call": call,
        **fields,
    }
    return BreakerTransition(**fields)


def test_a_transition_carries_its_cause_and_the_trace_of_the_call(
    start: Any, collector: Any
) -> None:
    start()
    call = handmade.start()
    RUNTIME.telemetry.breaker_changed(opening(call))
    handmade.end(call)
    assert setup.flush(20.0)
    (event,) = collector.logs("fuseboard.breaker.transition")
    assert event.time_unix_nano == 1_700_000_000_000_000_000
    assert event.trace_id == handmade.ids(call).trace_id.to_bytes(16, "big")
    assert event.span_id == handmade.ids(call).span_id.to_bytes(8, "big")
    assert as_dict(event.attributes) == {
        "fuseboard.breaker.name": "search/eu-west/api.example.com",
        "fuseboard.breaker.from": "closed",
        "fuseboard.breaker.to": "open",
        "fuseboard.breaker.reason": "failure ratio 0.60 over 20 calls",
        "fuseboard.breaker.failure_ratio": 0.6,
        "fuseboard.breaker.calls": 20,
        "fuseboard.breaker.failures": 12,
        "error.classified_as": "L3_transient",
        "gen_ai.tool.name": "search",
        "cloud.region": "eu-west",
        "server.address": "api.example.com",
    }


def test_a_transition_that_no_call_caused_belongs_to_no_trace(start: Any, collector: Any) -> None:
    start()
    with trace.get_tracer("application").start_as_current_span("something else"):
        RUNTIME.telemetry.breaker_changed(
            opening(failure_ratio=None, error_class=None, region=None, upstream=None)
        )
    assert setup.flush(20.0)
    (event,) = collector.logs("fuseboard.breaker.transition")
    assert event.trace_id == b""
    missing = {"fuseboard.breaker.failure_ratio", "error.classified_as", "cloud.region"}
    assert not missing & set(as_dict(event.attributes))


def test_heartbeats_come_at_their_interval_with_what_is_wrong(
    start: Any, collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = BreakerStatus("a", "a", None, None, BreakerState.CLOSED, 0)
    open_one = BreakerStatus(
        "search/eu-west", "search", "eu-west", None, BreakerState.OPEN, 1_700_000_000_000_000_000
    )
    monkeypatch.setattr(RUNTIME, "breaker_statuses", lambda: [closed, open_one])
    start(heartbeat_seconds=0.05, region="eu-west")
    call = handmade.start(region="eu-west")
    call.started -= 6.0
    short = handmade.start()

    def full_beats() -> list[Any]:
        beats = [as_dict(e.attributes) for e in collector.logs("fuseboard.process.heartbeat")]
        return [b for b in beats if json.loads(b["fuseboard.heartbeat.calls_in_flight"])]

    wait_until(lambda: len(full_beats()) >= 3)
    beat = full_beats()[0]
    (resource,) = {
        as_dict(group.resource.attributes)["service.instance.id"]
        for group in collector.resource_logs()
    }
    assert beat["service.instance.id"] == resource
    assert beat["fuseboard.version"]
    assert json.loads(beat["fuseboard.heartbeat.breakers"]) == [
        {
            "breaker": "search/eu-west",
            "tool": "search",
            "region": "eu-west",
            "upstream": None,
            "state": "open",
            "since": "2023-11-14T22:13:20.000000Z",
        }
    ]
    (running,) = json.loads(beat["fuseboard.heartbeat.calls_in_flight"])
    assert running["tool"] == "search"
    assert running["region"] == "eu-west"
    assert running["span_id"] == f"{handmade.ids(call).span_id:016x}"
    assert running["args_hash"] == call.args_hash
    assert running["start"].endswith("Z")
    assert json.loads(beat["fuseboard.heartbeat.dropped"]) == {}
    handmade.end(call)
    handmade.end(short)


def test_the_last_heartbeat_is_sent_at_the_end_with_all_losses(start: Any, collector: Any) -> None:
    start()
    handmade.succeed()
    wait_until(lambda: collector.logs("fuseboard.process.heartbeat"))
    RUNTIME.telemetry._losses.add(Signal.SPANS, Reason.QUEUE_FULL, 5)
    RUNTIME.telemetry.metrics.tools.value("never registered")
    assert setup.shutdown(10.0)
    last = as_dict(collector.logs("fuseboard.process.heartbeat")[-1].attributes)
    assert json.loads(last["fuseboard.heartbeat.dropped"]) == {"spans/queue_full": 5}
    assert json.loads(last["fuseboard.heartbeat.overflow"])["tool"] >= 1


def test_a_process_without_calls_has_no_heartbeat(start: Any, collector: Any) -> None:
    start(heartbeat_seconds=0.05)
    setup.shutdown(5.0)
    assert collector.bodies == []


def test_a_call_that_is_not_sampled_travels_as_one_event(start: Any, collector: Any) -> None:
    start(tracer_provider=TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    call = handmade.start(region="eu-west", session="thread-1")
    problem = handmade.fault(http_status=503)
    handmade.attempt(call, problem)
    handmade.end(call, outcome=Outcome.ERROR, fault=problem, duration=1.5)
    assert setup.flush(20.0)
    assert collector.spans() == []
    (event,) = collector.logs("fuseboard.tool.call")
    attributes = as_dict(event.attributes)
    assert event.trace_id == handmade.ids(call).trace_id.to_bytes(16, "big")
    assert event.span_id == handmade.ids(call).span_id.to_bytes(8, "big")
    assert attributes["fuseboard.call.span_name"] == "execute_tool search"
    assert attributes["fuseboard.call.start_unix_nano"] == call.started_unix_ns
    assert attributes["fuseboard.call.duration_seconds"] == 1.5
    for key, expected in {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.conversation.id": "thread-1",
        "cloud.region": "eu-west",
        "fuseboard.args_hash": call.args_hash,
        "fuseboard.outcome": "error",
        "error.classified_as": "L3_transient",
        "http.response.status_code": 503,
    }.items():
        assert attributes[key] == expected


def test_with_a_provider_that_traces_nothing_calls_still_have_ids(
    start: Any, collector: Any
) -> None:
    start(tracer_provider=trace.NoOpTracerProvider())
    for _ in range(3):
        handmade.succeed()
    assert setup.flush(20.0)
    events = collector.logs("fuseboard.tool.call")
    assert len({event.span_id for event in events}) == 3
    assert all(len(event.trace_id) == 16 for event in events)


def test_a_sampled_call_is_not_told_twice(start: Any, collector: Any) -> None:
    start()
    handmade.succeed()
    assert setup.flush(20.0)
    assert collector.logs("fuseboard.tool.call") == []
