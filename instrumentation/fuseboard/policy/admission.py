"""A call before its breaker: asks for permits and gives each back on every path."""

from __future__ import annotations

from fuseboard.conventions import ErrorClass, Origin, Outcome
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, Permit, Rejection
from fuseboard.policy.config import Breaker
from fuseboard.policy.registry import BREAKERS
from fuseboard.record import CallRecord, Fault
from fuseboard.runtime import RUNTIME

_COUNTED = frozenset({ErrorClass.L3_TRANSIENT, ErrorClass.L4_PERSISTENT, ErrorClass.UNCLASSIFIED})


class Admission:
    """The dealings of one call with its breaker; without a breaker it always admits."""

    __slots__ = ("_breaker", "_call", "_permit")

    def __init__(
        self, call: CallRecord, config: Breaker | None, permit: Permit | None = None
    ) -> None:
        """Find the breaker of the call's tool, region and upstream.

        Args:
            call: The call.
            config: The breaker's thresholds, if there is one.
            permit: The permit that the running attempt holds already.
        """
        self._call = call
        self._permit = permit
        self._breaker: CircuitBreaker | None = None
        if config is not None:
            key = BreakerKey(call.tool.name, call.region or RUNTIME.region, call.upstream)
            self._breaker = BREAKERS.get(key, config)

    @property
    def name(self) -> str:
        """The breaker's name, ``tool/region/upstream``."""
        return self._breaker.key.name if self._breaker is not None else ""

    def ask(self) -> Rejection | None:
        """Ask for leave to make an attempt; return None if it is given."""
        breaker, call = self._breaker, self._call
        if breaker is None or self._permit is not None:
            return None
        answer = breaker.acquire(call)
        if call.breaker_state is None:
            call.breaker_state = answer.state
        if isinstance(answer, Rejection):
            return answer
        self._permit = answer
        return None

    def seconds_closed(self) -> float:
        """Return for how long every further attempt will surely be rejected, seconds."""
        if self._breaker is None or self._permit is not None:
            return 0.0
        return self._breaker.seconds_closed_to_all()

    def attempt_ended(self, fault: Fault | None, *, counts: bool) -> None:
        """Settle the permit of an attempt.

        Args:
            fault: Why it failed, or None.
            counts: False for an attempt that says nothing: cancelled, left, interrupted.
        """
        if self._breaker is not None and self._breaker.config.scope == "attempt":
            self._settle(fault, counts)

    def call_ended(self, outcome: Outcome, fault: Fault | None) -> None:
        """Settle what is still out: the permit of a whole call, or of an attempt cut off."""
        if self._permit is None or self._breaker is None:
            return
        is_judged = outcome in (Outcome.OK, Outcome.PARTIAL, Outcome.DEGRADED, Outcome.ERROR)
        is_whole_call = self._breaker.config.scope == "call"
        is_live = outcome in (Outcome.OK, Outcome.PARTIAL)
        self._settle(None if is_live else fault, is_judged and is_whole_call)

    def _settle(self, fault: Fault | None, counts: bool) -> None:
        breaker, permit, self._permit = self._breaker, self._permit, None
        if breaker is None or permit is None:
            return
        if counts and fault is None:
            breaker.succeed(permit, self._call)
        elif counts and fault is not None and _is_counted(breaker.config, fault):
            breaker.fail(permit, fault.verdict.error_class, self._call)
        else:
            breaker.ignore(permit)


def _is_counted(config: Breaker, fault: Fault) -> bool:
    # Our own limits and budgets, and the open breaker of a tool within, are not the
    # dependency's fault.
    if fault.verdict.origin is Origin.ORCHESTRATION:
        return False
    error_class = fault.verdict.error_class
    return error_class in _COUNTED or error_class in config.also_counts
