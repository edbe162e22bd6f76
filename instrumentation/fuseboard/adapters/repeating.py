"""One call of a tool that its framework runs again by itself when it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from sys import exception
from typing import Any

from fuseboard.adapters.running import FrameworkCalls
from fuseboard.calls.invocation import RUNNING, Invocation
from fuseboard.calls.judging import (
    ReturnedFault,
    action_of,
    answer_to,
    cut_by,
    judge_raised,
    layer_of,
)
from fuseboard.calls.recording import (
    close_attempt,
    close_call,
    enter,
    leave,
    open_attempt,
    open_call,
)
from fuseboard.classification import judge_result
from fuseboard.conventions import Layer, Outcome, RetryEnd
from fuseboard.record import CallRecord, Fault
from fuseboard.runtime import RUNTIME
from fuseboard.telemetry.duplicates import mark_current


class RepeatedCall:
    """A call of which each try of the framework's is an attempt.

    A tool with a policy is tried as often as the policy says: what it raised in the end is raised
    again, without running the tool, when the framework tries once more.

    Args:
        calls: The framework's calls.
        invocation: The call, as the framework asks for it.
    """

    def __init__(self, calls: FrameworkCalls, invocation: Invocation) -> None:
        self._calls = calls
        self._invocation = invocation
        self._tool = calls.tool_of(invocation)
        self._call: CallRecord | None = None
        self._fault: Fault | None = None
        self._error: BaseException | None = None

    def run(self, invocation: Invocation, proceed: Callable[[], Any]) -> Any:
        """Try once; see :meth:`FrameworkCalls.run`."""
        if self._tool.policy is None and not self._calls.answers:
            try:
                return self._attempt(proceed)
            except ReturnedFault as returned:
                return returned.value
        self._raise_again()
        try:
            return self._calls.run(invocation, proceed)
        except Exception as error:
            self._error = error
            raise

    async def run_async(self, invocation: Invocation, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Do the same for an async tool."""
        if self._tool.policy is None and not self._calls.answers:
            try:
                return await self._attempt_async(proceed)
            except ReturnedFault as returned:
                return returned.value
        self._raise_again()
        try:
            return await self._calls.run_async(invocation, proceed)
        except Exception as error:
            self._error = error
            raise

    def close(self) -> None:
        """End the call, if none of its tries has: the framework has given up."""
        self._error = None
        call, fault = self._call, self._fault
        if call is None or call.outcome is not None or fault is None:
            return
        is_repeated = len(call.attempts) > 1
        call.retry_end = RetryEnd.EXHAUSTED if is_repeated else RetryEnd.NONE
        layer = Layer.RETRY if is_repeated else layer_of(fault.verdict)
        now = RUNTIME.clock.monotonic()
        close_call(call, now, Outcome.ERROR, fault, layer, answer_to(fault))

    def _raise_again(self) -> None:
        if self._error is not None:
            raise self._error

    def _attempt(self, proceed: Callable[[], Any]) -> Any:
        call, ambient = self._begin(), exception()
        entered = enter(call)
        try:
            value = proceed()
        except BaseException as error:
            leave(entered)
            self._raised(call, error, ambient)
            raise
        leave(entered)
        self._returned(call, value)
        return value

    async def _attempt_async(self, proceed: Callable[[], Awaitable[Any]]) -> Any:
        call, ambient = self._begin(), exception()
        entered = enter(call)
        try:
            value = await proceed()
        except BaseException as error:
            leave(entered)
            self._raised(call, error, ambient)
            raise
        leave(entered)
        self._returned(call, value)
        return value

    def _begin(self) -> CallRecord:
        call = self._call
        if call is None or call.outcome is not None:
            self._invocation.is_claimed = True
            mark_current(self._invocation.tool)
            token = RUNNING.set(self._invocation)
            call = self._call = open_call(self._tool, (), self._invocation.arguments)
            RUNNING.reset(token)
        open_attempt(call)
        return call

    def _raised(
        self, call: CallRecord, error: BaseException, ambient: BaseException | None
    ) -> None:
        now = RUNTIME.clock.monotonic()
        judged = judge_raised(self._tool, error, (), self._invocation.arguments, ambient)
        if isinstance(judged, Outcome):
            close_attempt(call, call.attempts[-1], now, None, cut_by(judged, error))
            close_call(call, now, judged)
            return
        self._fault = judged
        _note_action(call, judged)
        close_attempt(call, call.attempts[-1], now, judged)

    def _returned(self, call: CallRecord, value: object) -> None:
        now = RUNTIME.clock.monotonic()
        finding = judge_result(value, call.started_unix_ns / 1e9)
        fault = Fault(finding.verdict, finding.code, finding.message) if finding else None
        is_partial = finding is not None and finding.partial_failures is not None
        if fault is not None:
            _note_action(call, fault)
        close_attempt(call, call.attempts[-1], now, None if is_partial else fault)
        if finding is not None and fault is not None and not is_partial:
            close_call(call, now, Outcome.ERROR, fault, layer_of(fault.verdict), answer_to(fault))
            return
        if len(call.attempts) > 1:
            call.retry_end = RetryEnd.RECOVERED
        layer = Layer.RETRY if len(call.attempts) > 1 else Layer.TOOL
        if finding is None or fault is None:
            close_call(call, now, Outcome.OK, None, layer)
            return
        call.partial_failures = finding.partial_failures
        close_call(call, now, Outcome.PARTIAL, fault, layer_of(fault.verdict), answer_to(fault))


def _note_action(call: CallRecord, fault: Fault) -> None:
    action = action_of(fault.verdict)
    if action is not None:
        call.note(*action)
