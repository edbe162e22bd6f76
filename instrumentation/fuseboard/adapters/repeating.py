"""One call of a tool that its framework runs again by itself when it fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from sys import exception
from typing import Any

from fuseboard.adapters.running import FrameworkCalls
from fuseboard.calls.gate import reject
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
from fuseboard.sessions.scope import Scope, current_gate
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
        self._is_stopped = False  # then every further try gets that error, and nothing is run
        self._scope: Scope | None = None

    def run(self, invocation: Invocation, proceed: Callable[[], Any]) -> Any:
        """Try once; see :meth:`FrameworkCalls.run`."""
        self._raise_again()
        if self._tool.policy is None and not self._calls.answers:
            try:
                return self._attempt(proceed)
            except ReturnedFault as returned:
                return returned.value
        try:
            return self._calls.run(invocation, proceed)
        except Exception as error:
            self._error, self._is_stopped = error, True
            raise

    async def run_async(self, invocation: Invocation, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Do the same for an async tool."""
        self._raise_again()
        if self._tool.policy is None and not self._calls.answers:
            try:
                return await self._attempt_async(proceed)
            except ReturnedFault as returned:
                return returned.value
        try:
            return await self._calls.run_async(invocation, proceed)
        except Exception as error:
            self._error, self._is_stopped = error, True
            raise

    def close(self) -> None:
        """End the call, if none of its tries has: the framework has given up."""
        self._error = None
        call, fault = self._call, self._fault
        if call is None or call.outcome is not None or fault is None:
            return
        layer = layer_of(fault.verdict)
        if len(call.attempts) > 1:
            layer = Layer.RETRY
            call.retry_end = RetryEnd.STOPPED if self._is_stopped else RetryEnd.EXHAUSTED
        if self._is_stopped:
            layer = Layer.BUDGET
        self._close(call, RUNTIME.clock.monotonic(), Outcome.ERROR, fault, layer)

    def _raise_again(self) -> None:
        if self._is_stopped and self._error is not None:
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
            self._scope = current_gate() if RUNTIME.has_gates else None
            if self._scope is not None:
                self._scope.watch(call)
        if self._scope is not None:
            self._pass_gate(call, self._scope)
        open_attempt(call)
        return call

    def _pass_gate(self, call: CallRecord, scope: Scope) -> None:
        """Ask the session for leave to run the tool; what it refuses is not run again."""
        if not call.attempts:
            refusal = scope.refuse(call)
            if refusal is None:
                return
            reject(self._tool, call, refusal)
            self._error, self._is_stopped = refusal, True
            raise refusal
        name, said = call.tool.name, self._error
        if said is None:
            return
        if scope.refuse_for_time(name) or scope.take_attempt(name, is_retry=True):
            call.note(Layer.BUDGET, "exhausted")
            self._is_stopped = True
            raise said

    def _raised(
        self, call: CallRecord, error: BaseException, ambient: BaseException | None
    ) -> None:
        now = RUNTIME.clock.monotonic()
        judged = judge_raised(self._tool, error, (), self._invocation.arguments, ambient)
        if isinstance(judged, Outcome):
            close_attempt(call, call.attempts[-1], now, None, cut_by(judged, error))
            self._close(call, now, judged)
            return
        self._fault, self._error = judged, error
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
            self._close(call, now, Outcome.ERROR, fault, layer_of(fault.verdict))
            return
        if len(call.attempts) > 1:
            call.retry_end = RetryEnd.RECOVERED
        layer = Layer.RETRY if len(call.attempts) > 1 else Layer.TOOL
        if finding is None or fault is None:
            self._close(call, now, Outcome.OK, None, layer)
            return
        call.partial_failures = finding.partial_failures
        self._close(call, now, Outcome.PARTIAL, fault, layer_of(fault.verdict))

    def _close(
        self,
        call: CallRecord,
        now: float,
        outcome: Outcome,
        fault: Fault | None = None,
        layer: Layer = Layer.TOOL,
    ) -> None:
        close_call(call, now, outcome, fault, layer, answer_to(fault))
        if self._scope is not None:
            self._scope.call_ended(call)


def _note_action(call: CallRecord, fault: Fault) -> None:
    action = action_of(fault.verdict)
    if action is not None:
        call.note(*action)
