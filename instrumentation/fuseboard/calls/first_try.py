"""The first attempt of a guarded call, at little more than the price of an observed one.

Most guarded calls succeed at once, and then their policy has nothing to decide. So the first
attempt runs as that of a tool without a policy; only when it does not simply succeed does a
:class:`~fuseboard.calls.guarded.GuardedRun` take the call over.
"""

from __future__ import annotations

from typing import Any

from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.recording import Entered, begin, succeed
from fuseboard.calls.registration import Tool
from fuseboard.classification import is_empty, judge_result
from fuseboard.conventions import BreakerState
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, Permit
from fuseboard.policy.config import Policy
from fuseboard.policy.registry import BREAKERS
from fuseboard.record import CallRecord
from fuseboard.runtime import RUNTIME


class FirstTry:
    """Begins the calls of one tool, and ends those that simply succeed."""

    __slots__ = ("_breaker", "_found_for", "_is_possible", "_non_empty", "policy", "tool")

    def __init__(self, tool: Tool, policy: Policy) -> None:
        """Look at what the tool and its policy ask for."""
        self.tool = tool
        self.policy = policy
        self._non_empty = policy.validation is not None and policy.validation.non_empty
        # Limits of time need a worker thread or a timer, others may have to wait; keys and
        # breakers that depend on the arguments need those first.
        self._is_possible = not (
            policy.timeout is not None
            or policy.budget is not None
            or policy.limit is not None
            or policy.idempotency_key is not None
            or tool.looks_at_arguments
        )
        self._breaker: CircuitBreaker | None = None
        self._found_for: tuple[object, ...] | None = None

    def permit(self) -> Permit | None:
        """Return leave to make a first try, or None where the policy has to be asked."""
        if not self._is_possible:
            return None
        config = self.policy.breaker
        if config is None:
            return _FREE
        found_for = (RUNTIME.region, BREAKERS.epoch)
        if found_for != self._found_for:
            info = self.tool.info
            key = BreakerKey(info.name, self.tool.region or RUNTIME.region, info.upstream)
            self._breaker = BREAKERS.get(key, config)
            self._found_for = found_for
        return self._breaker.closed_permit if self._breaker is not None else None

    def begin(
        self, permit: Permit, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[CallRecord, Entered]:
        """Open a call and its first attempt and make it current."""
        call, entered = begin(self.tool, args, kwargs)
        if permit is not _FREE:
            call.breaker_state = BreakerState.CLOSED
        return call, entered

    def ends(self, call: CallRecord, permit: Permit, value: object) -> bool:
        """End a call whose first try returned something that nobody objects to.

        Returns:
            Whether it has ended; if not, the policy decides.
        """
        runtime = RUNTIME
        now = runtime.clock.monotonic()
        if judge_result(value, call.started_unix_ns / 1e9) is not None:
            return False
        if self._non_empty and is_empty(value):
            return False
        if permit is not _FREE and self._breaker is not None:
            self._breaker.succeed_while_closed(permit, now)
        if runtime.record_results:
            call.is_plain = False
            call.result = value
        succeed(call, now)
        return True

    def hand_over(
        self,
        call: CallRecord,
        permit: Permit,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        ambient: BaseException | None,
    ) -> GuardedRun:
        """Let the policy take over a call whose first try did not simply succeed."""
        return GuardedRun(
            self.tool,
            self.policy,
            args,
            kwargs,
            ambient,
            call=call,
            attempt=call.attempts[0],
            permit=None if permit is _FREE else permit,
        )


_FREE = Permit(BreakerState.CLOSED, 0)
"""Stands for the permit of a breaker where there is no breaker."""
