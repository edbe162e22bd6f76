"""A store that wants to break the pages: hostile names, 10,000 tools, gaps, skew, huge sets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from fuseboard_collector.store import (
    DATA_FILE,
    Attempt,
    Batch,
    BreakerTransition,
    Heartbeat,
    Span,
    ToolCall,
    open_store,
)

NAMES = (
    '<script>alert("tool")</script>',
    "<img src=x onerror=alert(1)>",
    "</div></span></table><h1>",
    "\"double\" 'single' `back` \\",
    "🔥🧯👩‍👩‍👧 tool",
    "أداة الطقس",
    "right\u202eto\u2066left",
    "x" * 500,
    "many words " * 45 + "end",
    "[link](javascript:alert(1)) **bold** $\\frac{1}{2}$ :red[r] :material/bolt:",
    "'; DROP TABLE tool_calls; --",
    "%s {0} {tool} {{}} %(x)s",
    "<b>%{y}</b><br>%{x|%Y}<extra></extra>",
    "a&b=c?d#e/../f%2Fg+h",
    "line\nbreak\ttab\x07bell",
    " ",
    "constructor",
)
"""What tools, regions, agents, error types and all else may be called."""
TOOLS = 10_000
HASHES = 5_000
MANY_HASHES = "poisoned"
ONE_POINT = "only once"
SKEWED = "clock ahead"
CLASSES = ("L1_input", "L2_access", "L3_transient", "L4_persistent", "L5_semantic", "unclassified")
GAP = timedelta(minutes=8)
"""In the middle of the last quarter of an hour nothing is called."""


def build(folder: Path, now: datetime) -> Path:
    """Write the store of a server that reads ``folder`` and return the folder.

    Args:
        folder: Becomes the server's data folder.
        now: When the last calls ended.
    """
    folder.mkdir(parents=True)
    store = open_store(folder / DATA_FILE, retention_days=None)
    try:
        for batch in (_named(now), _many_tools(now), _many_hashes(now), _skewed(now)):
            store.append(batch).result(120)
        store.insert("alert_events", _alerts(now))
        store.settle()
    finally:
        store.close()
    return folder


def _named(now: datetime) -> Batch:
    """Return calls of each hostile name before and after the gap, and all that belongs to them."""
    batch = Batch()
    for place, name in enumerate(NAMES):
        for number in range(60):
            late = number % 2 == 0
            end = now - timedelta(seconds=5 + number) - (timedelta() if late else GAP)
            call = _call(name, place, number, end)
            batch.calls.append(call)
            batch.attempts.extend(_attempts(call))
            batch.spans.extend(_context(call, name))
        batch.transitions.extend(_transitions(name, now))
        batch.heartbeats.append(_heartbeat(name, now))
    return batch


def _call(name: str, place: int, number: int, end: datetime) -> ToolCall:
    fails = number % 3 == 0
    error_class = CLASSES[(place + number) % len(CLASSES)] if fails else None
    outcome = ("error", "degraded", "partial", "rejected")[number // 3 % 4] if fails else "ok"
    return ToolCall(
        tool=name, region=NAMES[(place + number % 2) % len(NAMES)], agent=name, service=name,
        environment=name, session=f"{name}{number % 4}", upstream=name, server=name,
        framework=name, instance=name, end=end, duration_seconds=0.05 * (number % 7 + 1),
        outcome=outcome, attempts=0 if outcome == "rejected" else 2 if number % 5 == 0 else 1,
        attempt_seconds=0.02, backoff_seconds=0.01,
        error_class=error_class, error_type=name if fails else None,
        error_message=name if fails else None, classifier_id=name if fails else None,
        args_hash=f"v1:{name}"[:120], breaker_state="open" if fails else "closed", layer=name,
        result_source=name if number % 12 == 3 else None, result_age_seconds=1e9,
        confidence=name, fallback_tool=name, cost=1e9 if number == 0 else 0.01, call_id=name,
        instrumentation="fuseboard", parent_span_id=f"{place:08x}{number:08x}",
        attributes=json.dumps({name: name}),
    )  # fmt: skip


def _attempts(call: ToolCall) -> Iterator[Attempt]:
    if call.attempts < 2:
        return
    assert isinstance(call.start, int)
    for number in (1, 2):
        yield Attempt(
            call.trace_id, call.span_id, number, call.start + number, 0.01, call.tool,
            "failure" if number == 1 else "success", delay_seconds=0.01 * (number - 1),
            region=call.region, service=call.service, error_class="L3_transient",
            error_type=call.tool, http_status=599,
        )  # fmt: skip


def _context(call: ToolCall, name: str) -> Iterator[Span]:
    """Return the agent's span above a call and a model's beside it."""
    assert isinstance(call.start, int)
    assert call.parent_span_id is not None
    yield Span(call.trace_id, call.parent_span_id, name, call.start - 1000, 1.0, kind=name,
               service=name, session=call.session, agent=name,
               operation="invoke_agent")  # fmt: skip
    yield Span(call.trace_id, call.parent_span_id[::-1], name, call.start - 900, 0.0005,
               parent_span_id=call.parent_span_id, session=call.session, agent=name,
               operation="chat", input_tokens=2**40, output_tokens=0)  # fmt: skip


def _transitions(name: str, now: datetime) -> Iterator[BreakerTransition]:
    steps = (("closed", "open", 600), ("open", "half_open", 400), ("half_open", "open", 60))
    for old, new, seconds in steps:
        yield BreakerTransition(
            now - timedelta(seconds=seconds), f"{name}/{name}", name, old, new, region=name,
            upstream=name, service=name, instance=name, reason=name, failure_ratio=0.5, calls=20,
            failures=10, error_class="L3_transient", trace_id="ab" * 16, span_id="cd" * 8,
        )  # fmt: skip


def _heartbeat(name: str, now: datetime) -> Heartbeat:
    return Heartbeat(now - timedelta(seconds=20), name, service=name, environment=name,
                     region=name, version=name)  # fmt: skip


def _many_tools(now: datetime) -> Batch:
    """Return one call of each of very many tools: each is a chart of one point."""
    calls = [
        ToolCall(tool=f"tool number {number:05}", region=("us-east", "eu-west", None)[number % 3],
                 end=now - timedelta(seconds=number % 300), args_hash=f"v1:{number:016x}",
                 outcome="error" if number % 50 == 0 else "ok", agent=f"agent {number % 700}",
                 error_class="L4_persistent" if number % 50 == 0 else None,
                 session=f"session {number}")
        for number in range(TOOLS)
    ]  # fmt: skip
    calls.append(ToolCall(tool=ONE_POINT, end=now - timedelta(seconds=90), duration_seconds=0.0))
    return Batch(calls=calls)


def _many_hashes(now: datetime) -> Batch:
    return Batch(
        calls=[
            ToolCall(tool=MANY_HASHES, region="us-east", end=now - timedelta(seconds=number % 250),
                     outcome="error", error_class="L3_transient", error_type=f"Error{number}",
                     error_message=f"message {number}", args_hash=f"v1:{number * 7919:016x}")
            for number in range(HASHES)
        ]
    )  # fmt: skip


def _skewed(now: datetime) -> Batch:
    """Return calls that end in the future, or take longer than there has been time."""
    ahead = [now + timedelta(seconds=seconds) for seconds in (1, 90, 3600, 86_400 * 400)]
    calls = [ToolCall(tool=SKEWED, region="us-east", end=end) for end in ahead]
    calls.append(ToolCall(tool=SKEWED, end=now - timedelta(seconds=9), duration_seconds=1e6))
    calls.append(ToolCall(tool=SKEWED, end=datetime(1999, 12, 31, tzinfo=UTC)))
    return Batch(calls=calls)


def _alerts(now: datetime) -> pa.Table:
    rows = []
    for place, name in enumerate(NAMES):
        moment = (now - timedelta(seconds=30 + place)).replace(tzinfo=None)
        state = ("firing", "pending", "resolved")[place % 3]
        rows.append(
            {
                "time": moment, "alert": name if place % 2 else "ToolCallErrorRatioHigh",
                "severity": ("critical", "warning", name)[place % 3],
                "labels": json.dumps({"tool": name, "region": name, name: name}), "state": state,
                "active_at": moment, "fired_at": moment if state == "firing" else None,
                "resolved_at": moment if state == "resolved" else None, "value": 1e300,
            }
        )  # fmt: skip
    times = dict.fromkeys(("time", "active_at", "fired_at", "resolved_at"), pa.timestamp("us"))
    texts = dict.fromkeys(("alert", "severity", "labels", "state"), pa.string())
    kinds = {**times, **texts, "value": pa.float64()}
    return pa.Table.from_pylist(rows, schema=pa.schema([(key, kinds[key]) for key in rows[0]]))
