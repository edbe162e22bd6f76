"""Three sessions by hand: one goes in circles, one fails and retries, one is fine."""

from __future__ import annotations

from fuseboard_collector.store import Batch, Span, ToolCall

from .conftest import at

LOOPING, FAILING, FINE = "loop-1", "fail-1", "fine-1"


def call(session: str | None, tool: str, begin: float, args: str, **more: object) -> ToolCall:
    """Return a call of a session that begins so many seconds into the window."""
    values: dict[str, object] = {
        "session": session, "agent": "planner", "service": "agent", "region": "eu-west",
        "args_hash": args, "duration_seconds": 0.5, "cost": 0.25,
        "trace_id": f"{abs(hash(session)) % 10**9:032d}",
    }  # fmt: skip
    return ToolCall(tool, start=at(begin), **{**values, **more})  # type: ignore[arg-type]


def runs() -> Batch:
    """Return the sessions: circles of five (four in a row), a fault with two retries, nothing."""
    fault = {"error_class": "L3_transient", "error_type": "TimeoutError"}
    calls = [
        call(LOOPING, "search", 100, "v1:aa"),
        call(LOOPING, "read", 101, "v1:bb"),
        *(call(LOOPING, "search", 102 + n, "v1:aa") for n in range(4)),
        call(LOOPING, "read", 107, "v1:cc", agent="reader"),
        call(FAILING, "weather", 200, "v1:dd", outcome="error", attempts=3, backoff_seconds=1.0,
             **fault),
        call(FAILING, "weather", 202, "v1:dd"),
        call(FINE, "search", 300, "v1:aa", cost=None),
    ]  # fmt: skip
    spans = [
        Span(calls[0].trace_id, f"{n:016x}", "chat small", at(100 + n), 0.2, session=LOOPING,
             operation="chat", input_tokens=1000 + 500 * n, output_tokens=20)
        for n in range(1, 5)
    ]  # fmt: skip
    spans.append(
        Span(calls[0].trace_id, "f" * 16, "invoke_agent planner", at(99), 9.0, session=LOOPING,
             operation="invoke_agent", input_tokens=9000, output_tokens=80)
    )  # fmt: skip
    return Batch(calls=calls, spans=spans)


def long_run(calls: int) -> Batch:
    """Return a session of many calls, all the same, far into the window."""
    return Batch(calls=[call("long", "poll", 400 + n / 20, "v1:ee") for n in range(calls)])


def many_runs(count: int) -> Batch:
    """Return sessions of one call each, of which one fails."""
    return Batch(
        calls=[
            call(f"run-{n}", "search", 300 + n / 100, "v1:aa", duration_seconds=0.01,
                 outcome="error" if n == 77 else "ok")
            for n in range(count)
        ]
    )  # fmt: skip
