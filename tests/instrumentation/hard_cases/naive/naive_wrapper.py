"""What one would write in an afternoon: functools.wraps, a span around the call, a retry loop.

It has the shim's interface and makes every mistake that the hard cases are about, so that their
tests can be run against it: a test that passes here as well proves nothing.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import time
from collections.abc import Callable
from typing import Any

from fuseboard.conventions import BreakerState, ErrorClass, Outcome, RetryEnd
from fuseboard.errors import AttemptTimeoutError, CircuitOpenError, InvalidResultError
from fuseboard.policy import Policy
from fuseboard.record import AttemptRecord, CallRecord, Fault, ToolInfo, Verdict
from fuseboard.runtime import RUNTIME

POOL = concurrent.futures.ThreadPoolExecutor(64)
NO_POLICY = Policy()
CURRENT: list[Any] = []


def judge(error: BaseException, *_: Any) -> Fault:
    """Judge by the words of the message, and by ``status_code`` where there is one."""
    words = str(error).lower()
    status = getattr(error, "status_code", None)
    error_class = ErrorClass.UNCLASSIFIED
    if "timeout" in words or "timed out" in words or status in (429, 500, 503):
        error_class = ErrorClass.L3_TRANSIENT
    elif status in (400, 404) or isinstance(error, (ValueError, TypeError)):
        error_class = ErrorClass.L1_INPUT
    elif status in (401, 403) or "401" in words:
        error_class = ErrorClass.L2_ACCESS
    verdict = Verdict(error_class, "naive", True, http_status=status)
    return Fault(verdict, type(error).__name__, words)


class NaiveBreaker:
    """Counts failures in a row, whatever they are; lets everybody through after a while."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.failures = 0
        self.opened = 0.0

    def admits(self) -> bool:
        if self.failures < self.config.minimum_throughput:
            return True
        return RUNTIME.clock.monotonic() - self.opened > self.config.break_duration

    def note(self, has_failed: bool) -> None:
        self.failures = self.failures + 1 if has_failed else 0
        if has_failed:
            self.opened = RUNTIME.clock.monotonic()


class _Call:
    """One call on its way."""

    def __init__(self, info: ToolInfo, policy: Policy, breaker: NaiveBreaker | None) -> None:
        clock = RUNTIME.clock
        self.policy, self.breaker = policy, breaker
        self.attempts = policy.retry.attempts if policy.retry else 1
        self.record = CallRecord(info, None, None, clock.time_ns(), clock.monotonic())
        RUNTIME.telemetry.call_started(self.record)
        if breaker is not None and not breaker.admits():
            error = CircuitOpenError(info.name, info.name, 1.0, ErrorClass.UNCLASSIFIED)
            self.end(Outcome.REJECTED, judge(error))
            raise error

    def begin(self) -> Any:
        clock, made = RUNTIME.clock, self.record.attempts
        attempt = AttemptRecord(len(made) + 1, 0.0, clock.time_ns(), clock.monotonic())
        made.append(attempt)
        RUNTIME.telemetry.attempt_started(self.record, attempt)
        return RUNTIME.telemetry.enter(self.record)

    def succeeded(self, token: Any, value: Any) -> Any:
        self._close(token, None)
        if self.policy.validation is not None and not value:
            error = InvalidResultError(self.record.tool.name, value, "?", "?")
            self.end(Outcome.ERROR, judge(error))
            raise error
        self.end(Outcome.OK, None)
        return value

    def failed(self, token: Any, error: Exception) -> float | None:
        """Return the wait before the next attempt, or None if there is none."""
        fault = judge(error)
        self._close(token, fault)
        if len(self.record.attempts) < self.attempts:
            headers = getattr(getattr(error, "response", None), "headers", None) or {}
            wait = headers.get("Retry-After")
            seconds = float(wait) if wait else self.policy.retry.wait_initial  # type: ignore[union-attr]
            self.record.backoff_seconds += seconds
            return seconds
        self.end(Outcome.ERROR, fault)
        return None

    def _close(self, token: Any, fault: Fault | None) -> None:
        RUNTIME.telemetry.leave(token)
        attempt = self.record.attempts[-1]
        attempt.duration = RUNTIME.clock.monotonic() - attempt.started
        attempt.fault = fault
        RUNTIME.telemetry.attempt_ended(self.record, attempt)
        if self.breaker is not None:
            self.breaker.note(fault is not None)

    def end(self, outcome: Outcome, fault: Fault | None) -> None:
        record = self.record
        record.outcome, record.fault = outcome, fault
        record.retry_end = RetryEnd.NONE
        record.breaker_state = BreakerState.CLOSED
        record.duration = RUNTIME.clock.monotonic() - record.started
        RUNTIME.telemetry.call_ended(record)


def _run(call: _Call, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    while True:
        token = call.begin()
        try:
            limit = call.policy.timeout
            if limit is None:
                value = function(*args, **kwargs)
            else:
                try:
                    value = POOL.submit(function, *args, **kwargs).result(limit)
                except concurrent.futures.TimeoutError:
                    raise AttemptTimeoutError(call.record.tool.name, limit) from None
        except Exception as error:
            wait = call.failed(token, error)
            if wait is None:
                for fallback in call.policy.fallbacks:
                    if fallback.function is None:
                        return fallback.value
                    return fallback.function(*args, **kwargs)
                raise
            time.sleep(wait)
        else:
            return call.succeeded(token, value)


async def _run_async(call: _Call, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    while True:
        token = call.begin()
        try:
            work = asyncio.ensure_future(function(*args, **kwargs))
            value = await asyncio.wait_for(work, call.policy.timeout)
        except Exception as error:
            wait = call.failed(token, error)
            if wait is None:
                for fallback in call.policy.fallbacks:
                    return fallback.function(*args, **kwargs) if fallback.function else None
                raise
            time.sleep(wait)  # noqa: ASYNC251 - as one would
        else:
            return call.succeeded(token, value)


def wrap(function: Any, /, **options: Any) -> Any:
    """Wrap a function; streams are functions like all others."""
    policy = options.get("policy") or NO_POLICY
    name = options.get("name") or getattr(function, "__name__", "tool")
    info = ToolInfo(name)
    RUNTIME.register(info)
    breaker = NaiveBreaker(policy.breaker) if policy.breaker else None
    if inspect.iscoroutinefunction(function):

        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            return await _run_async(_Call(info, policy, breaker), function, args, kwargs)
    else:

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return _run(_Call(info, policy, breaker), function, args, kwargs)

    # As frameworks see it that read __annotations__ and the code object, not __wrapped__.
    functools.update_wrapper(wrapper, function)
    del wrapper.__wrapped__
    return wrapper


def tool(function: Any = None, /, **options: Any) -> Any:
    """Decorate a function."""
    if function is None:
        return lambda found: wrap(found, **options)
    return wrap(function, **options)
