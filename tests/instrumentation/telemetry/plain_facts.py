"""Which fields of a call's record a queued tuple holds; see fuseboard.telemetry.plain_calls."""

from __future__ import annotations

from typing import Any

from fuseboard.conventions import BreakerState, ErrorClass, Layer, Outcome, RetryStrategy
from fuseboard.record import CallRecord, Fault, Verdict

FAULT = Fault(Verdict(ErrorClass.L3_TRANSIENT, "network_matcher", True), "OSError", "gone")

HELD: dict[str, Any] = {
    "region": "eu-west",
    "upstream": "api.example",
    "started_unix_ns": 1_800_000_000_000_000_001,
    "call_id": "call_7",
    "agent": "planner",
    "session": "s-1",
    "outcome": Outcome.ERROR,
    "duration": 1.25,
    "fault": FAULT,
    "layer": Layer.POOL,
    "retry_strategy": RetryStrategy.FEEDBACK,
    "breaker_state": BreakerState.HALF_OPEN,
    "unhashed_args": ("Oslo",),
    "unhashed_kwargs": {"days": 3},
}
"""The fields that a tuple holds, each with another value than the default."""
FOLLOWS = frozenset({"tool", "_hash", "result_source"})
"""What a tuple holds in another form: the tool's name, the hash, ``live`` for what is ``ok``."""
NOT_SENT = frozenset(
    {"started", "step", "idempotency_key", "asked", "is_between_attempts", "telemetry", "is_plain"}
)
"""What is of use only while a call runs."""
NOT_PLAIN = frozenset(
    {
        "attempts",
        "arguments",
        "retry_end",
        "backoff_seconds",
        "result_age_seconds",
        "confidence",
        "fallback_tool",
        "partial_failures",
        "cost",
        "fallback_cost",
        "spoilt_cost",
        "stream_items",
        "stream_first_item_seconds",
        "layer_actions",
        "result",
    }
)
"""What no tuple holds. Whoever sets one of these has to set ``is_plain`` to False."""


def lost_by_a_tuple(call: CallRecord) -> set[str]:
    """Return the fields of a plain call that its tuple would lose."""
    allowed = HELD.keys() | FOLLOWS | NOT_SENT
    if call.fault is None:
        allowed -= {"layer", "retry_strategy"}
    return {
        name
        for name, value in vars(call).items()
        if name not in allowed and value != getattr(CallRecord, name, None)
    }
