"""The path of a tool without a policy, which is only observed; kept short because it is hot."""

from __future__ import annotations

from collections.abc import Callable
from sys import exception
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final

from fuseboard.calls.judging import action_of, answer_to, cut_by, judge_raised, layer_of
from fuseboard.calls.recording import (
    begin,
    close_call,
    close_running,
    fail,
    leave,
    note_retries,
    succeed,
)
from fuseboard.calls.registration import Tool
from fuseboard.classification import judge_result
from fuseboard.conventions import Outcome
from fuseboard.record import CallRecord, Fault
from fuseboard.runtime import RUNTIME
from fuseboard.sessions.scope import current_gate

UNFINISHED: Final = (GeneratorType, AsyncGeneratorType, CoroutineType)
"""Types of a returned value whose work is still to come."""


def observe_sync(tool: Tool, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs ``function`` and records each call."""

    def observed(*args: Any, **kwargs: Any) -> Any:
        replaced = tool.replaced
        if replaced is not None and replaced is not observed:
            return replaced(*args, **kwargs)
        ambient = exception()
        if RUNTIME.has_gates and current_gate() is not None:
            from fuseboard.calls.driving import drive_bare_sync  # it imports this module

            return drive_bare_sync(tool, function, args, kwargs, ambient)
        call, entered = begin(tool, args, kwargs)
        try:
            value = function(*args, **kwargs)
        except BaseException as error:
            leave(entered)
            end_raised(tool, call, error, args, kwargs, ambient)
            raise
        leave(entered)
        if type(value) in UNFINISHED:
            from fuseboard.calls.adopted import adopt  # rare, and it needs all of the policies

            return adopt(tool, call, call.attempts[-1], value, args, kwargs, ambient)
        end_returned(call, value)
        return value

    return observed


def observe_async(tool: Tool, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a coroutine function that awaits ``function`` and records each call."""

    async def observed(*args: Any, **kwargs: Any) -> Any:
        replaced = tool.replaced
        if replaced is not None and replaced is not observed:
            return await replaced(*args, **kwargs)
        ambient = exception()
        if RUNTIME.has_gates and current_gate() is not None:
            from fuseboard.calls.driving import drive_bare_async

            return await drive_bare_async(tool, function, args, kwargs, ambient)
        call, entered = begin(tool, args, kwargs)
        try:
            value = await function(*args, **kwargs)
        except BaseException as error:
            leave(entered)
            end_raised(tool, call, error, args, kwargs, ambient)
            raise
        leave(entered)
        end_returned(call, value)
        return value

    return observed


def end_raised(
    tool: Tool,
    call: CallRecord,
    error: BaseException,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ambient: BaseException | None,
) -> None:
    """End a call whose only attempt raised."""
    now = RUNTIME.clock.monotonic()
    judged = judge_raised(tool, error, args, kwargs, ambient)
    if isinstance(judged, Outcome):
        close_running(call, now, None, cut_by(judged, error))
        note_retries(call, judged)
        close_call(call, now, judged)
    else:
        _end_failed(call, now, judged)


def end_returned(call: CallRecord, value: object) -> None:
    """End a call whose only attempt returned."""
    runtime = RUNTIME
    now = runtime.clock.monotonic()
    finding = judge_result(value, call.started_unix_ns / 1e9)
    if runtime.record_results:
        call.is_plain = False
        call.result = value
    if finding is None:
        succeed(call, now)
        return
    fault = Fault(finding.verdict, finding.code, finding.message)
    if finding.partial_failures is None:
        _end_failed(call, now, fault)
        return
    close_running(call, now, None)
    note_retries(call, Outcome.PARTIAL)
    call.partial_failures = finding.partial_failures
    _note_action(call, fault)
    close_call(call, now, Outcome.PARTIAL, fault, layer_of(fault.verdict), answer_to(fault))


def _end_failed(call: CallRecord, now: float, fault: Fault) -> None:
    _note_action(call, fault)
    fail(call, now, fault, layer_of(fault.verdict), answer_to(fault))


def _note_action(call: CallRecord, fault: Fault) -> None:
    action = action_of(fault.verdict)
    if action is not None:
        call.note(*action)
