"""Everything that may refuse an attempt or bound it in time, asked in the order of the onion.

The session's deadlines and the call's budget come first, then the bound on threads left behind,
the breaker, the limit, and last the session's budget, which only attempts that are really made
spend from.
"""

from __future__ import annotations

from typing import NamedTuple

from fuseboard.calls.judging import answer_to, judge_raised
from fuseboard.calls.recording import close_call
from fuseboard.calls.registration import Tool
from fuseboard.conventions import Layer, Outcome
from fuseboard.errors import (
    AbandonedThreadsError,
    AttemptTimeoutError,
    BudgetExhaustedError,
    CircuitOpenError,
    FuseboardError,
    LimitExceededError,
    RepeatedCallError,
)
from fuseboard.policy.admission import Admission
from fuseboard.policy.breaker import Rejection
from fuseboard.policy.config import Policy
from fuseboard.policy.limiter import Place, PlaceState
from fuseboard.policy.workers import THREADS
from fuseboard.record import CallRecord, Fault
from fuseboard.runtime import RUNTIME
from fuseboard.sessions.scope import Deadline, Scope


class Refusal(NamedTuple):
    """Why an attempt may not be made.

    Attributes:
        error: What the caller gets, if nothing was tried before.
        layer: The layer that refuses.
        action: What it then did, for the record.
    """

    error: FuseboardError
    layer: Layer
    action: str


class Gate:
    """What one call has to pass before each of its attempts.

    Attributes:
        begins_by: Seconds from the call's start from which the next attempt may not begin, or
            None: the budget of the retries, for a retry.
        queued: What an attempt waits with that its limit does not admit at once.
        time_limit: Seconds that the attempt may take, or None.
    """

    __slots__ = (
        "_admission",
        "_call",
        "_cut_by",
        "_deadline",
        "_policy",
        "_repeat",
        "_scope",
        "_uses_threads",
        "begins_by",
        "queued",
        "time_limit",
    )

    def __init__(
        self,
        call: CallRecord,
        policy: Policy,
        admission: Admission,
        scope: Scope | None,
        *,
        is_new: bool,
        is_guarded: bool,
        uses_threads: bool,
    ) -> None:
        """Take up a call.

        Args:
            call: The call.
            policy: Its policy.
            admission: Its dealings with breaker and limiter.
            scope: The session that it belongs to.
            is_new: Whether the call has just begun, and so counts as a repeat of others.
            is_guarded: Whether its attempts may be cut short for the session's sake.
            uses_threads: Whether a time limit needs a worker thread.
        """
        self._call = call
        self._policy = policy
        self._admission = admission
        self._scope = scope
        # Counted at once: an agent whose loop is answered from a cache is in a loop, too.
        self._repeat = scope.refuse_repeat(call) if scope is not None and is_new else None
        deadline = scope.deadline if scope is not None and is_guarded else None
        self._deadline: Deadline | None = deadline
        self._uses_threads = uses_threads and (
            policy.timeout is not None
            or policy.budget is not None
            or policy.poll is not None
            or deadline is not None
        )
        self._cut_by: Layer | Deadline | None = None
        self.begins_by: float | None = None
        self.queued: Place | None = None
        self.time_limit: float | None = None

    # --- Before an attempt ----------------------------------------------------------------

    def ask(self) -> Refusal | None:
        """Ask for leave to make an attempt; it may have to queue (see ``queued``)."""
        refusal = (
            self._for_time()
            or self._for_repeat()
            or self._for_threads()
            or self._for_breaker(self._admission.ask())
            or self._enter_limit()
        )
        return self._settle(refusal)

    def ask_after_queue(self, waited: float) -> Refusal | None:
        """Ask once more for an attempt that has queued for so many seconds."""
        place, self.queued = self.queued, None
        refusal = self._for_time()
        if refusal is None and place is not None and place.state is PlaceState.REFUSED:
            refusal = self._for_limit(place, waited)
        return self._settle(refusal or self._for_breaker(self._admission.ask_again()))

    def _settle(self, refusal: Refusal | None) -> Refusal | None:
        if refusal is None and self.queued is None:
            refusal = self._for_session()
        if refusal is not None:
            self._admission.withdraw()
        elif self.queued is None:
            self._admission.begin()
            self.set_time_limit()
        return refusal

    def _for_time(self) -> Refusal | None:
        name = self._call.tool.name
        error: FuseboardError | None = None
        if self._scope is not None:
            error = self._scope.refuse_for_time(name)
        for budget in (self._policy.budget, self.begins_by):
            if error is None and budget is not None and self._elapsed() >= budget:
                error = BudgetExhaustedError(name, budget)
        return None if error is None else Refusal(error, Layer.BUDGET, "exhausted")

    def _for_repeat(self) -> Refusal | None:
        error = self._repeat
        return None if error is None else Refusal(error, Layer.LIMIT, "rejected")

    def _for_threads(self) -> Refusal | None:
        if not (self._uses_threads and THREADS.is_full()):
            return None
        error = AbandonedThreadsError(self._call.tool.name, THREADS.limit)
        return Refusal(error, Layer.LIMIT, "rejected")

    def _for_breaker(self, rejection: Rejection | None) -> Refusal | None:
        if rejection is None:
            return None
        error = CircuitOpenError(
            self._call.tool.name,
            self._admission.name,
            rejection.retry_after,
            rejection.error_class,
        )
        return Refusal(error, Layer.BREAKER, "rejected")

    def _enter_limit(self) -> Refusal | None:
        """Ask the limit for a place, which may have to be waited for."""
        place = self._admission.enter_limit(self._time_left())
        if place is None:
            return None
        if place.must_wait:
            self.queued = place
            self._call.note("limit", "queued")
        elif place.state is PlaceState.REFUSED:
            return self._for_limit(place, 0.0)
        return None

    def _for_limit(self, place: Place, waited: float) -> Refusal:
        error = LimitExceededError(self._call.tool.name, waited, place.retry_after)
        return Refusal(error, Layer.LIMIT, "rejected")

    def _for_session(self) -> Refusal | None:
        if self._scope is None:
            return None
        is_retry = bool(self._call.attempts)
        error = self._scope.take_attempt(self._call.tool.name, is_retry=is_retry)
        return None if error is None else Refusal(error, Layer.BUDGET, "exhausted")

    # --- Time -----------------------------------------------------------------------------

    def _elapsed(self) -> float:
        return RUNTIME.clock.monotonic() - self._call.started

    def _time_left(self) -> float | None:
        """Return the seconds that the next attempt has left to begin in, or None for no bound."""
        budgets, scope = (self._policy.budget, self.begins_by), self._scope
        left = [budget - self._elapsed() for budget in budgets if budget is not None]
        if scope is not None and scope.deadline is not None:
            left.append(scope.deadline.left())
        return min(left, default=None)

    def set_time_limit(self, own: float | None = None) -> None:
        """Begin the time of an attempt, or of the next item of a stream.

        Args:
            own: Seconds that it may take by itself; default the policy's timeout.
        """
        policy, deadline = self._policy, self._deadline
        self.time_limit, self._cut_by = policy.timeout if own is None else own, None
        if policy.budget is not None:
            self._shorten(policy.budget - self._elapsed(), Layer.BUDGET)
        if deadline is not None:
            self._shorten(deadline.left(), deadline)

    def _shorten(self, seconds: float, cut_by: Layer | Deadline) -> None:
        seconds = max(seconds, 0.0)
        if self.time_limit is None or seconds < self.time_limit:
            self.time_limit, self._cut_by = seconds, cut_by

    def overrun(self) -> FuseboardError:
        """Return the error for an attempt that took longer than its limit."""
        name, cut_by = self._call.tool.name, self._cut_by
        if isinstance(cut_by, Deadline):
            return BudgetExhaustedError(name, cut_by.seconds, f"the time of its {cut_by.whose}")
        if cut_by is not None:
            return BudgetExhaustedError(name, self._policy.budget or 0.0)
        return AttemptTimeoutError(name, self.time_limit or 0.0)

    # --- After an attempt -----------------------------------------------------------------

    def may_retry_after(self, seconds: float) -> bool:
        """Tell whether the session allows a retry after a wait."""
        return self._scope is None or self._scope.may_retry_after(seconds, self._call)

    def call_ended(self) -> None:
        """Let the session know of the end."""
        if self._scope is not None:
            self._scope.call_ended(self._call)


def reject(tool: Tool, call: CallRecord, refusal: FuseboardError) -> None:
    """End a call that has no policy and that its session refuses."""
    judged = judge_raised(tool, refusal, (), {}, None)
    fault = judged if isinstance(judged, Fault) else None
    layer, action = Layer.BUDGET, "exhausted"
    if isinstance(refusal, RepeatedCallError):
        layer, action = Layer.LIMIT, "rejected"
    call.note(layer, action)
    close_call(call, RUNTIME.clock.monotonic(), Outcome.REJECTED, fault, layer, answer_to(fault))
