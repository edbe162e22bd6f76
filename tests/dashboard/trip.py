"""One trace by hand: an agent, a model, a call that goes well, one retried and one refused."""

from __future__ import annotations

from datetime import timedelta

from fuseboard_collector.store import Attempt, Batch, BreakerTransition, Span, ToolCall

from .conftest import at

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
AGENT, MODEL, GOOD, RETRIED, REFUSED = (f"{n:016x}" for n in (1, 2, 3, 4, 5))
BASE = 500.0
"""Seconds into the window at which it begins."""


def call(span_id: str, tool: str, begin: float, seconds: float, **more: object) -> ToolCall:
    """Return a call of the trace that begins so many seconds after it."""
    values: dict[str, object] = {
        "trace_id": TRACE, "span_id": span_id, "parent_span_id": AGENT, "region": "eu-west",
        "service": "agent", "agent": "planner", "session": "s-1", "instrumentation": "fuseboard",
    }  # fmt: skip
    return ToolCall(tool, start=at(BASE + begin), duration_seconds=seconds, **{**values, **more})  # type: ignore[arg-type]


def attempt(number: int, begin: float, seconds: float, delay: float = 0.0) -> Attempt:
    """Return a failed attempt of the call that was retried."""
    return Attempt(
        TRACE, RETRIED, number, at(BASE + begin), seconds, "weather", "failure",
        span_id=f"{0x40 + number:016x}", delay_seconds=delay, region="eu-west",
        error_class="L3_transient", error_type="httpx.ConnectError",
    )  # fmt: skip


def trip() -> Batch:
    """Return the trace."""
    fault = {"error_class": "L3_transient", "error_type": "httpx.ConnectError"}
    calls = [
        call(GOOD, "maps", 0.5, 0.2, args_hash="v1:aa", attempt_seconds=0.2),
        call(RETRIED, "weather", 1.0, 1.3, outcome="degraded", attempts=2, attempt_seconds=0.9,
             backoff_seconds=0.2, args_hash="v1:bb", result_source="default", layer="fallback",
             breaker_state="closed", classifier_id="refused", retryable=True,
             error_message="<b>refused</b> by https://example.org", **fault),
        call(REFUSED, "weather", 3.0, 0.001, outcome="rejected", attempts=0, args_hash="v1:bb",
             layer="breaker", breaker_state="open", classifier_id="circuit_open", **fault),
    ]  # fmt: skip
    spans = [
        Span(TRACE, AGENT, "invoke_agent planner", at(BASE), 3.5, service="agent",
             agent="planner", session="s-1", operation="invoke_agent"),
        Span(TRACE, MODEL, "chat small", at(BASE + 0.1), 0.3, parent_span_id=AGENT,
             operation="chat", session="s-1", input_tokens=1200, output_tokens=34),
    ]  # fmt: skip
    opened = BreakerTransition(
        at(BASE + 2.2), "weather/eu-west", "weather", "closed", "open", region="eu-west",
        service="agent", instance="one", reason="failure_ratio", failure_ratio=0.6, calls=20,
        failures=12, error_class="L3_transient", trace_id=TRACE, span_id=f"{0x42:016x}",
    )  # fmt: skip
    return Batch(
        calls=calls, spans=spans, transitions=[opened],
        attempts=[attempt(1, 1.0, 0.4), attempt(2, 1.6, 0.5, 0.2)],
    )  # fmt: skip


def big_trace(calls: int, spans: int) -> Batch:
    """Return a trace of many calls and spans, one of each with a fault, far from the first ones."""
    many = [
        ToolCall("loop", end=at(BASE) + timedelta(milliseconds=20 * n), duration_seconds=0.01,
                 trace_id=TRACE, span_id=f"{n + 1:016x}",
                 outcome="error" if n == calls - 2 else "ok",
                 error_class="L4_persistent" if n == calls - 2 else None)
        for n in range(calls)
    ]  # fmt: skip
    around = [
        Span(TRACE, f"{n + 100_001:016x}", f"GET /{n}", at(BASE) + timedelta(milliseconds=20 * n),
             0.005)
        for n in range(spans)
    ]  # fmt: skip
    return Batch(calls=many, spans=around)
