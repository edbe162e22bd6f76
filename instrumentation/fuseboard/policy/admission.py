"""A call before its breaker and its limit: what it gets of them goes back on every path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fuseboard.conventions import ErrorClass, Origin, Outcome
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, Permit, Rejection
from fuseboard.policy.config import Breaker, Policy
from fuseboard.policy.limiter import Limiter, Place
from fuseboard.policy.limiters import LIMITERS
from fuseboard.policy.registry import BREAKERS
from fuseboard.record import CallRecord, Fault
from fuseboard.runtime import RUNTIME

_COUNTED = frozenset({ErrorClass.L3_TRANSIENT, ErrorClass.L4_PERSISTENT, ErrorClass.UNCLASSIFIED})


class Admission:
    """The dealings of one call with its breaker and its limiter; without them it always admits.

    Attributes:
        place: The place at the limiter, from asking for it until it goes back.
    """

    __slots__ = ("_breaker", "_call", "_limiter", "_permit", "place")

    def __init__(
        self,
        call: CallRecord,
        policy: Policy,
        permit: Permit | None = None,
        instance: str | None = None,
    ) -> None:
        """Find the breaker and the limiter of the call's tool, region and upstream.

        Args:
            call: The call.
            policy: The policy with their settings.
            permit: The breaker's permit that the running attempt holds already.
            instance: What the breaker's ``key`` says, if it has one.
        """
        self._call = call
        self._permit = permit
        self._breaker: CircuitBreaker | None = None
        self._limiter: Limiter | None = None
        self.place: Place | None = None
        if policy.breaker is not None or policy.limit is not None:
            key = BreakerKey(call.tool.name, call.region or RUNTIME.region, call.upstream)
            if policy.breaker is not None:
                whole = key if instance is None else replace(key, instance=instance)
                self._breaker = BREAKERS.get(whole, policy.breaker)
            if policy.limit is not None:
                self._limiter = LIMITERS.get(key, policy.limit)

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

    def ask_again(self) -> Rejection | None:
        """Ask once more after a wait, in which the breaker may have left the permit's state."""
        breaker, permit = self._breaker, self._permit
        if breaker is None or permit is None or breaker.is_current(permit):
            return None
        self._permit = None
        return self.ask()

    def enter_limit(self, longest: float | None) -> Place | None:
        """Ask the limiter for a place; return None where there is no limiter.

        Args:
            longest: Seconds that the call can wait at most, or None.
        """
        if self._limiter is not None:
            self.place = self._limiter.enter(longest)
        return self.place

    def begin(self) -> None:
        """Say that the attempt begins for which the place was got."""
        if self.place is not None:
            self.place.has_begun = True

    def leave_limit(self) -> None:
        """Give the place at the limiter back, if there is one."""
        place, self.place = self.place, None
        if place is not None:
            place.give_back()

    def leave_place_behind(self) -> Callable[[], None] | None:
        """Leave the place to what still runs; return what gives it back at its end."""
        place, self.place = self.place, None
        return None if place is None else place.give_back

    def withdraw(self) -> None:
        """Give back what was got for an attempt that is not made after all."""
        breaker = self._breaker
        # The permit of a whole call that has made attempts waits for their judgement.
        if breaker is not None and (breaker.config.scope == "attempt" or not self._call.attempts):
            self._settle(None, False)
        self.leave_limit()

    def seconds_closed(self) -> float:
        """Return for how long every further attempt will surely be rejected, seconds."""
        if self._breaker is None or self._permit is not None:
            return 0.0
        return self._breaker.seconds_closed_to_all()

    def attempt_ended(self, fault: Fault | None, *, counts: bool) -> None:
        """Settle what an attempt holds.

        Args:
            fault: Why it failed, or None.
            counts: False for an attempt that says nothing: cancelled, left, interrupted.
        """
        if self._breaker is not None and self._breaker.config.scope == "attempt":
            self._settle(fault, counts)
        # Last, so that whoever gets the place next finds the breaker as this attempt left it.
        self.leave_limit()

    def call_ended(self, outcome: Outcome, fault: Fault | None) -> None:
        """Settle what is still out: the permit of a whole call, or of an attempt cut off."""
        if self._permit is not None and self._breaker is not None:
            judged = (Outcome.OK, Outcome.PARTIAL, Outcome.DEGRADED, Outcome.ERROR)
            counts = outcome in judged and self._breaker.config.scope == "call"
            is_live = outcome in (Outcome.OK, Outcome.PARTIAL)
            self._settle(None if is_live else fault, counts)
        self.leave_limit()

    def _settle(self, fault: Fault | None, counts: bool) -> None:
        breaker, permit, self._permit = self._breaker, self._permit, None
        if breaker is None or permit is None:
            return
        if counts and fault is None:
            breaker.succeed(permit, self._call, self._seconds(breaker.config))
        elif counts and fault is not None and _is_counted(breaker.config, fault):
            error_class = fault.verdict.error_class
            breaker.fail(permit, error_class, self._call, self._seconds(breaker.config))
        else:
            breaker.ignore(permit)

    def _seconds(self, config: Breaker) -> float:
        """Return how long the tool took; zero where nobody asks."""
        call = self._call
        attempts = call.attempts
        if config.slow_call_seconds is None or not attempts:
            return 0.0
        last = attempts[-1]
        seconds = last.duration
        if call.stream_first_item_seconds is not None:
            # The rest is the consumer's time as well as the tool's.
            seconds = call.started + call.stream_first_item_seconds - last.started
        if config.scope == "call":
            seconds += sum(attempt.duration for attempt in attempts[:-1])
        return seconds


def _is_counted(config: Breaker, fault: Fault) -> bool:
    # Our own limits and budgets, and the open breaker of a tool within, are not the
    # dependency's fault.
    if fault.verdict.origin is Origin.ORCHESTRATION:
        return False
    error_class = fault.verdict.error_class
    return error_class in _COUNTED or error_class in config.also_counts
