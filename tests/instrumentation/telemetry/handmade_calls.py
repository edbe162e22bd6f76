"""Calls written by hand, without the wrappers: what the telemetry is driven with here."""

from __future__ import annotations

import time
import weakref
from typing import Any

from opentelemetry.trace import SpanContext

from fuseboard.conventions import ErrorClass, Layer, Outcome, RetryEnd
from fuseboard.record import AttemptRecord, CallRecord, Fault, Telemetry, ToolInfo, Verdict
from fuseboard.runtime import RUNTIME

TOOL = ToolInfo("search")
_ids: weakref.WeakKeyDictionary[CallRecord, SpanContext | None] = weakref.WeakKeyDictionary()


def fault(
    error_class: ErrorClass = ErrorClass.L3_TRANSIENT, message: str = "boom", **verdict: Any
) -> Fault:
    verdict = {"classifier_id": "test_matcher", "retryable": True, **verdict}
    return Fault(Verdict(error_class, **verdict), "builtins.OSError", message)


def start(telemetry: Telemetry | None = None, tool: ToolInfo = TOOL, **fields: Any) -> CallRecord:
    fields = {"region": None, "upstream": None, "args_hash": "v1:0123456789abcdef", **fields}
    known = {key: fields.pop(key) for key in ("region", "upstream", "args_hash", "call_id")
             if key in fields}  # fmt: skip
    call = CallRecord(tool=tool, started_unix_ns=time.time_ns(), started=time.monotonic(), **known)
    for key, value in fields.items():
        setattr(call, key, value)
    (telemetry or RUNTIME.telemetry).call_started(call)
    _ids[call] = getattr(call.telemetry, "identity", None)
    return call


def ids(call: CallRecord) -> SpanContext:
    """Return the ids of a call's span, also when the call is over."""
    known = _ids[call]
    assert known is not None
    return known


def attempt(
    call: CallRecord,
    failed: Fault | None = None,
    telemetry: Telemetry | None = None,
    *,
    delay: float = 0.0,
    duration: float = 0.01,
    body: Any = None,
) -> AttemptRecord:
    telemetry = telemetry or RUNTIME.telemetry
    record = AttemptRecord(len(call.attempts) + 1, delay, time.time_ns(), time.monotonic())
    call.attempts.append(record)
    telemetry.attempt_started(call, record)
    token = telemetry.enter(call)
    if body is not None:
        body()
    telemetry.leave(token)
    record.duration = duration
    record.fault = failed
    telemetry.attempt_ended(call, record)
    call.backoff_seconds += delay
    return record


def end(call: CallRecord, telemetry: Telemetry | None = None, **fields: Any) -> CallRecord:
    fields = {"outcome": Outcome.OK, "duration": 0.02, **fields}
    for key, value in fields.items():
        setattr(call, key, value)
    (telemetry or RUNTIME.telemetry).call_ended(call)
    return call


def succeed(telemetry: Telemetry | None = None, **fields: Any) -> CallRecord:
    call = start(telemetry, **fields)
    attempt(call, telemetry=telemetry)
    return end(call, telemetry)


def fail(telemetry: Telemetry | None = None, *, message: str = "boom", **fields: Any) -> CallRecord:
    call = start(telemetry, **fields)
    problem = fault(message=message)
    attempt(call, problem, telemetry)
    return end(
        call,
        telemetry,
        outcome=Outcome.ERROR,
        fault=problem,
        layer=Layer.TOOL,
        retry_end=RetryEnd.NONE,
    )
