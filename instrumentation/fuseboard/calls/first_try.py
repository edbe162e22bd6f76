"""The first attempt of a guarded call, at little more than the price of an observed one.

Most guarded calls succeed at once, and then their policy has nothing to decide. So the first
attempt runs as that of a tool without a policy; only when it does not simply succeed does a
:class:`~fuseboard.calls.guarded.GuardedRun` take the call over.
"""

from __future__ import annotations

from typing import Any

from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.recording import succeed
from fuseboard.calls.registration import Tool
from fuseboard.classification import is_empty, judge_result
from fuseboard.conventions import BreakerState
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, Permit
from fuseboard.policy.config import Policy
from fuseboard.policy.registry import BREAKERS
from fuseboard.record import CallRecord
from fuseboard.runtime import RUNTIME
from fuseboard.sessions.scope import current_gate


class FirstTry:
    """Begins the calls of one tool, and ends those that simply succeed."""

    __slots__ = (
        "_breaker",
        "_epoch",
        "_has_checks",
        "_is_possible",
        "_non_empty",
        "_region",
        "_slow",
        "_uses_threads",
        "policy",
        "tool",
    )

    def __init__(self, tool: Tool, policy: Policy, *, uses_threads: bool = False) -> None:
        """Look at what the tool and its policy ask for."""
        self.tool = tool
        self.policy = policy
        self._uses_threads = uses_threads
        validation = policy.validation
        self._non_empty = validation is not None and validation.non_empty
        # The policy makes these checks, each once for each answer.
        self._has_checks = validation is not None and bool(validation.checks)
        # Limits and jobs make a call wait; keys, and breakers that depend on the arguments, need
        # those first.
        self._is_possible = not (
            policy.limit is not None
            or policy.poll is not None
            or policy.idempotency_key is not None
            or tool.looks_at_arguments
            or (policy.breaker is not None and policy.breaker.key is not None)
        )
        self._slow = policy.breaker.slow_call_seconds if policy.breaker is not None else None
        # The breaker of the process's region, as of one epoch of the registry.
        self._breaker: CircuitBreaker | None = None
        self._epoch = 0
        self._region: str | None = None

    def permit(self) -> Permit | None:
        """Return leave to make a first try, or None where the policy has to be asked."""
        if RUNTIME.has_gates and current_gate() is not None:
            return None
        breaker = self._breaker
        if breaker is not None and self._epoch == BREAKERS.epoch and self._region is RUNTIME.region:
            return breaker.closed_permit
        return self._find_permit()

    def _find_permit(self) -> Permit | None:
        config = self.policy.breaker
        if not self._is_possible:
            return None
        if config is None:
            return FREE
        epoch, region, info = BREAKERS.epoch, RUNTIME.region, self.tool.info
        key = BreakerKey(info.name, self.tool.region or region, info.upstream)
        breaker = BREAKERS.get(key, config)
        # The epoch last: another thread that sees it finds the breaker that goes with it.
        self._breaker, self._region, self._epoch = breaker, region, epoch
        return breaker.closed_permit

    def ends(self, call: CallRecord, permit: Permit, value: object) -> bool:
        """End a call whose first try returned something that nobody objects to.

        Returns:
            Whether it has ended; if not, the policy decides.
        """
        runtime = RUNTIME
        now = runtime.clock.monotonic()
        if judge_result(value, call.started_unix_ns / 1e9) is not None:
            return False
        if self._has_checks or (self._non_empty and is_empty(value)):
            return False
        if self._slow is not None and now - call.started > self._slow:
            return False
        if permit is not FREE and self._breaker is not None:
            call.breaker_state = BreakerState.CLOSED
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
        if permit is not FREE:
            call.breaker_state = BreakerState.CLOSED
        return GuardedRun(
            self.tool,
            self.policy,
            args,
            kwargs,
            ambient,
            uses_threads=self._uses_threads,
            call=call,
            attempt=call.attempts[-1],
            permit=None if permit is FREE else permit,
        )


FREE = Permit(BreakerState.CLOSED, 0)
"""Stands for the permit of a breaker where there is no breaker."""
