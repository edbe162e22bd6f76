"""Open and close calls and attempts: every word to the telemetry passes through here, guarded.

Nothing here raises. The functions are plain and few because an unguarded tool pays for each.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Token
from typing import Any

from fuseboard import guard
from fuseboard.arguments import hash_arguments
from fuseboard.calls.current import CURRENT, LaterAttempt
from fuseboard.calls.registration import Resolver, Tool
from fuseboard.conventions import (
    Layer,
    Outcome,
    ResultSource,
    RetryEnd,
    RetryStrategy,
)
from fuseboard.record import AttemptRecord, BegunCall, CallRecord, Fault
from fuseboard.runtime import RUNTIME
from fuseboard.sessions.scope import SCOPE

Entered = tuple[object, Token[CallRecord | LaterAttempt | None]]


def open_call(
    tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any], call_id: str | None = None
) -> CallRecord:
    """Make the record of a call and tell the telemetry.

    Args:
        tool: The tool.
        args: Positional arguments of the call.
        kwargs: Keyword arguments of the call.
        call_id: The model's id of the call, if it is known.
    """
    call = _record(CallRecord, tool, args, kwargs, call_id)
    try:
        RUNTIME.telemetry.call_started(call)
    except Exception as fault:
        guard.swallow("reporting the start of a call", fault)
    return call


def begin(tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[CallRecord, Entered]:
    """Open a call and its first attempt and make it current: all that a bare tool needs."""
    call = _record(BegunCall, tool, args, kwargs, None)
    token: object = None
    try:
        token = RUNTIME.telemetry.begin(call)
    except Exception as fault:
        guard.swallow("reporting the start of a call", fault)
    return call, (token, CURRENT.set(call))


def succeed(call: CallRecord, now: float) -> None:
    """End a call whose only attempt succeeded, at a monotonic time."""
    call.duration = now - call.started
    if not call.is_plain:
        if len(call.attempts) > 1:
            _end_retried(call, now, Outcome.OK, None, Layer.RETRY)
            return
        call.attempts[0].duration = call.duration
    call.result_source = ResultSource.LIVE
    call.outcome = Outcome.OK
    try:
        RUNTIME.telemetry.finish(call)
    except Exception as own:
        guard.swallow("reporting the end of a call", own)


def fail(call: CallRecord, now: float, fault: Fault, layer: Layer, strategy: RetryStrategy) -> None:
    """End a call whose only attempt failed; see :func:`close_call`."""
    call.duration = now - call.started
    call.fault = fault
    if not call.is_plain:
        if len(call.attempts) > 1:
            _end_retried(call, now, Outcome.ERROR, fault, Layer.RETRY, strategy)
            return
        attempt = call.attempts[0]
        attempt.duration, attempt.fault = call.duration, fault
    call.layer = layer
    call.retry_strategy = strategy
    call.outcome = Outcome.ERROR
    _log(call)
    try:
        RUNTIME.telemetry.finish(call)
    except Exception as own:
        guard.swallow("reporting the end of a call", own)


def _end_retried(
    call: CallRecord,
    now: float,
    outcome: Outcome,
    fault: Fault | None,
    layer: Layer,
    strategy: RetryStrategy = RetryStrategy.NONE,
) -> None:
    """End a call of which the tool itself has made several attempts; see :func:`close_call`."""
    close_running(call, now, fault)
    note_retries(call, outcome)
    close_call(call, now, outcome, fault, layer, strategy)


def note_retries(call: CallRecord, outcome: Outcome) -> None:
    """Say how the retries of a call ended that the tool itself has made."""
    if len(call.attempts) < 2:
        return
    if outcome is Outcome.OK or outcome is Outcome.PARTIAL:
        call.retry_end = RetryEnd.RECOVERED
    elif call.retry_end is RetryEnd.NONE:
        call.retry_end = RetryEnd.STOPPED


def _log(call: CallRecord) -> None:
    """Log a call before the telemetry closes its span; what succeeds at once never comes here."""
    log = RUNTIME.log_call
    if log is not None:
        log(call)


def _record(
    kind: type[CallRecord],
    tool: Tool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    call_id: str | None,
) -> CallRecord:
    runtime = RUNTIME
    if tool.looks_at_arguments or runtime.record_arguments:
        return _record_looking(kind, tool, args, kwargs, call_id)
    args_hash, hashes_later = None, False
    if tool.hashes_arguments:
        hashes_later = tool.can_hash_later(args, kwargs)
        if not hashes_later:
            args_hash = tool.info.hash_of(args, kwargs) if tool.info.hash_of else None
    info = tool.info
    clock = runtime.clock
    started = clock.monotonic()
    call = kind(info, tool.region, info.upstream, clock.time_ns(), started, args_hash, call_id)
    if hashes_later:
        call.hash_later(args, kwargs)
    if runtime.has_scopes:
        _stamp(call)
    return call


def _stamp(call: CallRecord) -> None:
    scope = SCOPE.get()
    if scope is not None:
        scope.stamp(call)


def _record_looking(
    kind: type[CallRecord],
    tool: Tool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    call_id: str | None,
) -> CallRecord:
    """Make the record of a call of which more has to be looked up: arguments, region, caller."""
    runtime = RUNTIME
    region, upstream, args_hash, bound = tool.region, tool.info.upstream, None, None
    try:
        bound = tool.bind(args, kwargs)
        if tool.hashes_arguments:
            args_hash = hash_arguments(bound, tool.ignored)
        if tool.region_of is not None:
            region = _resolve(tool.region_of, bound, "region")
        if tool.upstream_of is not None:
            upstream = _resolve(tool.upstream_of, bound, "upstream")
    except Exception as fault:
        guard.swallow("looking at the arguments of a call", fault)
    clock = runtime.clock
    started = clock.monotonic()
    call = kind(tool.info, region, upstream, clock.time_ns(), started, args_hash, call_id)
    if runtime.record_arguments:
        call.is_plain = False
        call.arguments = bound
    if tool.describe is not None:
        call.is_plain = False
        _describe(tool.describe, call)
    if runtime.has_scopes:
        _stamp(call)
    return call


def _describe(describe: Callable[[CallRecord], None], call: CallRecord) -> None:
    try:
        describe(call)
    except Exception as fault:
        guard.swallow("describing a call of a framework", fault)


def open_attempt(call: CallRecord, delay: float = 0.0, *, is_inner: bool = False) -> AttemptRecord:
    """Add an attempt to a call and tell the telemetry; the first begins with the call.

    Args:
        call: The call.
        delay: Seconds that were waited for it.
        is_inner: Whether the tool makes it itself.
    """
    runtime = RUNTIME
    number = len(call.attempts) + 1
    if number == 1 and not delay:
        attempt = AttemptRecord(1, 0.0, call.started_unix_ns, call.started)
    else:
        clock = runtime.clock
        attempt = AttemptRecord(number, delay, clock.time_ns(), clock.monotonic())
        attempt.is_inner = is_inner
    call.attempts.append(attempt)
    try:
        runtime.telemetry.attempt_started(call, attempt)
    except Exception as fault:
        guard.swallow("reporting the start of an attempt", fault)
    return attempt


def enter(call: CallRecord, *, is_fallback: bool = False) -> Entered:
    """Make the call current, for its children and for ``current_call()``."""
    token: object = None
    try:
        token = RUNTIME.telemetry.enter(call)
    except Exception as fault:
        guard.swallow("making a call's span current", fault)
    number = len(call.attempts) + is_fallback
    is_first = number < 2 and not is_fallback
    return token, CURRENT.set(call if is_first else LaterAttempt(call, number))


def leave(entered: Entered) -> None:
    """Restore what was current before."""
    token, previous = entered
    try:  # noqa: SIM105 - contextlib.suppress costs 0.5 µs, and every call comes here
        CURRENT.reset(previous)
    except ValueError:
        pass  # a coroutine closed from another context, which then keeps its own value
    if type(token) is Token:
        # What the telemetry would do, without the way there.
        try:  # noqa: SIM105 - as above
            token.var.reset(token)
        except (ValueError, RuntimeError):
            pass
        return
    try:
        RUNTIME.telemetry.leave(token)
    except Exception as fault:
        guard.swallow("restoring the current span", fault)


def close_attempt(
    call: CallRecord,
    attempt: AttemptRecord,
    now: float,
    fault: Fault | None,
    cut_by: str | None = None,
) -> None:
    """End an attempt.

    Args:
        call: Its call.
        attempt: The attempt.
        now: Monotonic seconds.
        fault: Why it failed, or None.
        cut_by: Class name of what ended it before it could succeed or fail, or None.
    """
    attempt.duration = now - attempt.started
    attempt.fault = fault
    attempt.cut_by = cut_by
    try:
        RUNTIME.telemetry.attempt_ended(call, attempt)
    except Exception as own:
        guard.swallow("reporting the end of an attempt", own)


def close_running(
    call: CallRecord, now: float, fault: Fault | None, cut_by: str | None = None
) -> None:
    """End the attempt that is running, unless one has ended and the next has not begun."""
    if call.is_between_attempts:
        call.is_between_attempts = False
        return
    close_attempt(call, call.attempts[-1], now, fault, cut_by)


def close_call(
    call: CallRecord,
    now: float,
    outcome: Outcome,
    fault: Fault | None = None,
    layer: Layer = Layer.TOOL,
    strategy: RetryStrategy = RetryStrategy.NONE,
) -> None:
    """End a call, once; a second end is ignored.

    Args:
        call: The call.
        now: Monotonic seconds.
        outcome: How it ended.
        fault: The fault that decided it, also where it was handled.
        layer: The layer that decided it.
        strategy: How the fault was answered.
    """
    if call.outcome is not None:
        return
    call.duration = now - call.started
    call.fault = fault
    call.layer = layer
    call.retry_strategy = strategy
    if call.result_source is None and (outcome is Outcome.OK or outcome is Outcome.PARTIAL):
        call.result_source = ResultSource.LIVE
    call.outcome = outcome
    _log(call)
    try:
        RUNTIME.telemetry.call_ended(call)
    except Exception as own:
        guard.swallow("reporting the end of a call", own)


def _resolve(resolver: Resolver, bound: dict[str, object], what: str) -> str | None:
    try:
        found = resolver(bound)
        return str(found) or None if found is not None else None
    except Exception as fault:
        guard.swallow(f"finding the {what} of a call", fault)
        return None
