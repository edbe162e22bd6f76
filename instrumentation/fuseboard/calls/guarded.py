"""One call under a policy: every decision, and no waiting, so that sync and async share it.

A driver (:mod:`fuseboard.calls.driving`, :mod:`fuseboard.calls.streams`) goes round:

    while admit(run):              # budget, breaker, limit; opens the attempt
        ... run the tool ...
        run.raised(error)          # or run.returned(value); True: the call has ended
        ... wait run.delay, or give up ...
    ... fallbacks, then run.conclude() ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fuseboard import guard
from fuseboard.calls.binding import spread
from fuseboard.calls.current import key_in, key_of
from fuseboard.calls.gate import Gate, Refusal
from fuseboard.calls.judging import (
    action_of,
    answer_to,
    cut_by,
    judge_raised,
    layer_of,
    under_way,
    unsent,
)
from fuseboard.calls.recording import (
    Entered,
    close_call,
    close_running,
    enter,
    open_attempt,
    open_call,
)
from fuseboard.calls.refusing import NO_ITEMS, REFUSALS, inspect_answer, refused
from fuseboard.calls.registration import Tool
from fuseboard.calls.substitutes import label_caller, substitutes, switches_at_once
from fuseboard.classification import EMPTY, ResultFinding
from fuseboard.conventions import (
    Confidence,
    Effects,
    Layer,
    Outcome,
    RetryEnd,
    RetryStrategy,
)
from fuseboard.errors import (
    FuseboardError,
)
from fuseboard.policy.admission import Admission
from fuseboard.policy.breaker import Permit
from fuseboard.policy.config import Fallback, Feedback, Policy
from fuseboard.policy.limiter import Place
from fuseboard.policy.retry import GiveUp, Wait, plan_retry
from fuseboard.raising import KeptContext
from fuseboard.record import AttemptRecord, CallRecord, Fault, Verdict
from fuseboard.runtime import RUNTIME
from fuseboard.sessions.scope import SCOPE

if TYPE_CHECKING:
    from fuseboard.policy.cache import Stale  # few tools have a cache

_GIVEN_UP_BY = {
    GiveUp.EXHAUSTED: Layer.RETRY,
    GiveUp.BUDGET: Layer.BUDGET,
}


class GuardedRun:
    """The state of one guarded call.

    Attributes:
        call: Its record.
        delay: Seconds to wait before the next attempt; None if there is none.
        has_ticket: Whether the running attempt has submitted a job.
        wants_correction: Whether the next attempt needs other arguments.
    """

    __slots__ = (
        "_admission",
        "_ambient",
        "_attempt",
        "_corrections",
        "_error",
        "_fault",
        "_gate",
        "_gave_up",
        "_is_retry_spent",
        "_layer",
        "_may_ask",
        "_strategy",
        "_value",
        "args",
        "call",
        "delay",
        "has_ticket",
        "kwargs",
        "policy",
        "stale",
        "tool",
        "wants_correction",
    )

    def __init__(
        self,
        tool: Tool,
        policy: Policy,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        ambient: BaseException | None,
        *,
        uses_threads: bool = False,
        call: CallRecord | None = None,
        attempt: AttemptRecord | None = None,
        permit: Permit | None = None,
    ) -> None:
        """Begin a call, or take over one that has begun.

        Args:
            tool: The tool.
            policy: Its policy.
            args: Positional arguments of the call.
            kwargs: Keyword arguments of the call.
            ambient: What the caller was handling when the call began.
            uses_threads: Whether a time limit needs a worker thread.
            call: The record of a call that has begun.
            attempt: Its running attempt.
            permit: The permit that this attempt holds.
        """
        self.tool = tool
        self.policy = policy
        self.args = args
        self.kwargs = kwargs
        self.call = call if call is not None else open_call(tool, args, kwargs)
        self.delay: float | None = 0.0
        self.stale: Stale | None = None
        self._ambient = ambient
        scope = SCOPE.get() if RUNTIME.has_scopes else None
        if scope is not None:
            scope.watch(self.call)
        key = policy.breaker.key if policy.breaker is not None else None
        instance = tool.instance_of(key, args, kwargs) if key is not None else None
        self._admission = Admission(self.call, policy, permit, instance)
        self._gate = Gate(
            self.call,
            policy,
            self._admission,
            scope,
            is_new=call is None,
            is_guarded=tool.policy is not None,
            uses_threads=uses_threads,
        )
        self._attempt = attempt
        self.has_ticket = self.wants_correction = False
        self._may_ask = policy.feedback is not None
        self._corrections = 0
        self._fault: Fault | None = None
        self._error: BaseException | None = None
        self._value: Any = None
        self._layer: Layer | None = None
        self._gave_up: GiveUp | None = None
        self._is_retry_spent = False
        self._strategy = RetryStrategy.NONE
        if policy.idempotency_key is not None:
            self._make_key(policy.idempotency_key)

    # --- An attempt -----------------------------------------------------------------------

    def admits(self) -> bool:
        """Open the next attempt, or say that none may be made, or not yet (see ``queued``)."""
        return self._begins(self._gate.ask(), self.delay or 0.0)

    @property
    def queued(self) -> Place | None:
        """What an attempt waits with that its limit does not admit at once."""
        return self._gate.queued

    def has_queued(self, seconds: float) -> bool:
        """Open the attempt that has waited so long for its limit, or say that none may be made."""
        return self._begins(self._gate.ask_after_queue(seconds), (self.delay or 0.0) + seconds)

    def _begins(self, refusal: Refusal | None, delay: float) -> bool:
        if refusal is not None:
            self._refuse(refusal)
        if refusal is not None or self._gate.queued is not None:
            return False
        self.has_ticket = False
        self._attempt = open_attempt(self.call, delay)
        return True

    def enter(self) -> Entered:
        """Make the call current around a stretch of the tool's own code."""
        return enter(self.call)

    def enter_fallback(self) -> Entered:
        """Make the call current around a fallback's code."""
        return enter(self.call, is_fallback=True)

    @property
    def time_limit(self) -> float | None:
        """Seconds that the attempt may take, or None."""
        return self._gate.time_limit

    def overrun(self) -> FuseboardError:
        """Return the error for an attempt that took longer than its limit."""
        return self._gate.overrun()

    def bound(self, seconds: float) -> float:
        """Return how much of so many seconds the call's and the session's time leave."""
        self._gate.set_time_limit(seconds)
        return self._gate.time_limit or 0.0

    def leave_behind(self) -> Callable[[], None] | None:
        """Leave the attempt's place at the limit to a thread that did not end in time."""
        return self._admission.leave_place_behind()

    def raised(self, error: BaseException, *, is_last: bool = False) -> bool:
        """Take in what an attempt raised.

        Args:
            error: The exception.
            is_last: Whether neither retry nor fallback may follow, as in a stream that has
                delivered.

        Returns:
            Whether the call has ended, so that the exception goes to the caller now.
        """
        now = RUNTIME.clock.monotonic()
        judged = judge_raised(self.tool, error, self.args, self.kwargs, self._ambient)
        if isinstance(judged, Outcome):
            self._close_attempt(now, None, cut_by(judged, error))
            self._end(judged, now=now)
            return True
        if self.has_ticket:
            judged = under_way(error, judged)
        self._take_fault(judged, now)
        # What is no Exception (SystemExit, say) means more than this call: it passes at once.
        if is_last or not issubclass(type(error), Exception):
            self.delay = None
        elif self._may_go_on(judged):
            self._error = error
            return False
        self._end_failed(now)
        return True

    def returned(self, value: Any, *, is_last: bool = False) -> bool:
        """Take in what an attempt returned.

        Args:
            value: The returned value.
            is_last: Whether neither retry nor fallback may follow.

        Returns:
            Whether the call has ended, so that the value goes to the caller now.

        Raises:
            InvalidResultError: The call has ended because validation refuses the value.
        """
        now = RUNTIME.clock.monotonic()
        self.has_ticket = False  # a job that has given its answer is done
        finding = self.inspect(value)
        if finding is None or finding.partial_failures is not None:
            self._close_attempt(now, None)
            self._record_result(value)
            self._end_live(finding, now)
            return True
        self._error, self._value = None, value
        if finding.refusal is not None:
            self._error = refused(self.call.tool.name, value, finding, is_last=is_last)
        fault = Fault(finding.verdict, finding.code, finding.message)
        return self._answered_badly(fault, now, is_last)

    def waited(self, seconds: float) -> None:
        """Note a wait between attempts, seconds."""
        self.call.backoff_seconds += seconds

    @property
    def error(self) -> BaseException | None:
        """What the last attempt raised, or what refuses its answer."""
        return self._error

    @property
    def budget_left(self) -> float | None:
        """Seconds that the call's budget leaves, or None."""
        budget = self.policy.budget
        return None if budget is None else max(0.0, budget - self._elapsed())

    def corrected(self, arguments: Mapping[str, Any], took: float) -> None:
        """Go on with other arguments, which took so many seconds."""
        self.wants_correction = False
        self._corrections += 1
        self._strategy = RetryStrategy.FEEDBACK
        self.delay = took
        self.args, self.kwargs = spread(self.tool.target, self.args, arguments)
        # Another request: a server that has seen the first must not take this one for it.
        base = key_of(self.call).removesuffix(f":c{self._corrections - 1}")
        self.call.idempotency_key = f"{base}:c{self._corrections}"
        if self.policy.idempotency_key is not None:
            self._make_key(self.policy.idempotency_key)

    @property
    def was_corrected(self) -> bool:
        """Whether the arguments are others than those of the caller."""
        return self._corrections > 0

    def uncorrected(self) -> None:
        """Go on without corrections: nobody knew a better request."""
        self.wants_correction = self._may_ask = False
        if self._fault is not None:
            self._plan(self._fault.verdict)

    def interrupted(self, error: BaseException, layer: Layer = Layer.RETRY) -> None:
        """End a call that was cancelled before an attempt, in a wait of ``layer``."""
        now = RUNTIME.clock.monotonic()
        judged = judge_raised(self.tool, error, self.args, self.kwargs, self._ambient)
        outcome = judged if isinstance(judged, Outcome) else Outcome.ERROR
        fault = None if isinstance(judged, Outcome) else judged
        self._end(outcome, fault, layer, now=now)

    # --- After the last attempt -----------------------------------------------------------

    @property
    def fault(self) -> Fault | None:
        """The fault of the last attempt, or of what refused to make one."""
        return self._fault

    def fallbacks(self) -> Iterator[Fallback]:
        """Yield what may be served instead, in order."""
        fault = self._fault
        return iter(()) if fault is None else substitutes(self.policy, fault.verdict)

    def stale_answer(self) -> Stale | None:
        """Return the stale answer if the fault allows it to be served."""
        fault, stale = self._fault, self.stale
        return stale if fault and stale and stale.goes_with(fault.verdict) else None

    def failed_elsewhere(self, fault: Fault | None) -> None:
        """Take in the fault of an equal call that this one waited for."""
        self._fault = fault

    def judge(self, error: BaseException) -> Fault | Outcome:
        """Judge an exception that was raised on behalf of this call."""
        return judge_raised(self.tool, error, self.args, self.kwargs, self._ambient)

    def served(self, value: Any, layer: Layer) -> None:
        """End the call with a value that stands in for the live one."""
        self._record_result(value)
        strategy = self._strategy
        if strategy is RetryStrategy.NONE:
            strategy = RetryStrategy.SWITCH
        self._end(Outcome.DEGRADED, self._fault, layer, strategy)
        label_caller(self.call)

    def hit(self, value: Any) -> None:
        """End the call with an answer of the cache that is as good as a live one."""
        self._record_result(value)
        self._end(Outcome.OK, None, Layer.CACHE)
        label_caller(self.call)

    def end(self, outcome: Outcome, fault: Fault | None, layer: Layer) -> None:
        """End the call in a layer around the attempts."""
        self._end(outcome, fault, layer)

    def conclude(self, now: float | None = None) -> Any:
        """End a call for which nothing was served instead.

        Args:
            now: Monotonic seconds; default the present.

        Returns:
            The unusable value that the tool itself returned.

        Raises:
            BaseException: The tool's own exception, the same object, or the refusal of the
                call or of its answer.
        """
        self._record_result(self._value)
        error, value = self._error, self._value
        self._end_failed(RUNTIME.clock.monotonic() if now is None else now)
        if error is None:
            return value
        try:
            # Without the frame that caught it, which raising adds again.
            trace = error.__traceback__
            with KeptContext(error):
                raise error.with_traceback(trace.tb_next if trace is not None else None)
        finally:
            del error

    # --- Streams --------------------------------------------------------------------------

    def delivered(self) -> None:
        """Count an item that goes to the consumer."""
        call = self.call
        if not call.stream_items:
            call.stream_first_item_seconds = RUNTIME.clock.monotonic() - call.started
        call.stream_items = (call.stream_items or 0) + 1

    def exhausted(self, value: Any = None, *, is_last: bool = True) -> bool:
        """Take in that a stream came to its end.

        Args:
            value: The return value of a generator.
            is_last: Whether neither retry nor fallback may follow.

        Returns:
            Whether the call has ended.

        Raises:
            InvalidResultError: The call has ended without an item, which validation refuses.
        """
        now = RUNTIME.clock.monotonic()
        self.call.stream_items = self.call.stream_items or 0
        validation = self.policy.validation
        if validation is None or not validation.non_empty or self.call.stream_items:
            self._close_attempt(now, None)
            self._end_live(None, now)
            return True
        self._value = value
        self._error = error = refused(self.call.tool.name, value, NO_ITEMS, is_last=is_last)
        error.__suppress_context__ = True  # the end of the iteration, which explains nothing
        return self._answered_badly(Fault(EMPTY, EMPTY.classifier_id, ""), now, is_last)

    def left(self) -> None:
        """End a stream that the consumer left."""
        now = RUNTIME.clock.monotonic()
        if self.call.outcome is None:
            self._close_attempt(now, None, GeneratorExit.__name__)
            self._end(Outcome.ABANDONED, now=now)

    def renew_time_limit(self) -> None:
        """Start the clock of the attempt's time limit anew, for the next item."""
        self._gate.set_time_limit()

    # --- Details --------------------------------------------------------------------------

    def _elapsed(self) -> float:
        return RUNTIME.clock.monotonic() - self.call.started

    def _refuse(self, refusal: Refusal) -> None:
        self.delay = None
        self._layer = refusal.layer
        self._note(refusal.layer, refusal.action)
        if self.call.attempts:
            return  # what the tool itself said is worth more than that we stop here
        self._fault = unsent(judge_raised(self.tool, refusal.error, (), {}, None))
        self._error = refusal.error

    def inspect(self, value: Any) -> ResultFinding | None:
        """Return what is wrong with a value by the policy's own measure, or None."""
        return inspect_answer(self.policy.validation, value, self.call.started_unix_ns / 1e9)

    def _answered_badly(self, fault: Fault, now: float, is_last: bool) -> bool:
        """Go on after an unusable answer (False), or end the call with it."""
        self._take_fault(fault, now)
        if is_last:
            self.delay = None
        elif self._may_go_on(fault):
            return False
        self.conclude(now)
        return True

    def _take_fault(self, fault: Fault, now: float) -> None:
        self._fault = fault
        action = action_of(fault.verdict)
        if action is not None:
            self._note(*action)
        self._close_attempt(now, fault)

    def _close_attempt(
        self, now: float, fault: Fault | None, cut_short_by: str | None = None
    ) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        close_running(self.call, now, fault, cut_short_by)
        self._admission.attempt_ended(fault, counts=cut_short_by is None)

    def _may_go_on(self, fault: Fault) -> bool:
        """Plan what follows a fault; tell whether anything does: a retry or a fallback."""
        self._plan(fault.verdict)
        return self.delay is not None or self._can_fall_back()

    def _can_fall_back(self) -> bool:
        return self.stale_answer() is not None or next(self.fallbacks(), None) is not None

    def _plan(self, verdict: Verdict) -> None:
        if switches_at_once(self.policy, verdict) and self._can_fall_back():
            self.delay, self._strategy = None, RetryStrategy.SWITCH
            return
        if self._may_ask and self._may_correct(self.policy.feedback, verdict):
            self.delay, self.wants_correction = 0.0, True
            self._gate.begins_by = None
            return
        made = len(self.call.attempts)
        retried = made - self._corrections  # which come on top of the retries
        plan: Wait | GiveUp = GiveUp.NO_RETRY
        if not self.has_ticket:
            plan = plan_retry(self.policy, verdict, retried, self._elapsed(), RUNTIME.uniform)
        self.delay = None
        if isinstance(plan, Wait) and not self._gate.may_retry_after(plan.seconds):
            plan = GiveUp.BUDGET
        if isinstance(plan, Wait):
            if self._admission.seconds_closed() > plan.seconds:
                self._layer = Layer.BREAKER
                self._note("breaker", "rejected")
                return
            self.delay, self._strategy = plan.seconds, plan.strategy
            self._gate.begins_by = self.policy.retry.budget if self.policy.retry else None
            return
        self._is_retry_spent = plan is GiveUp.EXHAUSTED
        if plan is GiveUp.EXHAUSTED and (made < 2 or verdict.classifier_id in REFUSALS):
            return  # one attempt was all that was asked for, or validation has the last word
        self._layer = _GIVEN_UP_BY.get(plan)
        if plan is GiveUp.BUDGET:
            self._note("budget", "exhausted")

    def _may_correct(self, feedback: Feedback | None, verdict: Verdict) -> bool:
        if feedback is None or self._corrections >= feedback.corrections:
            return False
        if verdict.error_class not in feedback.on:
            return False
        # A key does not help: other arguments are another request, which would act once more.
        if verdict.ambiguous and self.policy.effects is Effects.UNSAFE:
            return False
        is_over = self.budget_left == 0.0 or self._admission.seconds_closed() > 0
        return not is_over and self._gate.may_retry_after(0.0)

    def _note(self, layer: str, action: str) -> None:
        self.call.note(layer, action)

    def _record_result(self, value: Any) -> None:
        if RUNTIME.record_results:
            self.call.result = value

    def _make_key(self, make: Callable[[Mapping[str, object]], str]) -> None:
        try:
            key = key_in(make(self.tool.bind(self.args, self.kwargs)))
            if key is not None:
                self.call.idempotency_key = key
        except Exception as fault:
            guard.swallow("making an idempotency key", fault)

    def _end_live(self, finding: ResultFinding | None, now: float) -> None:
        was_retried = len(self.call.attempts) > 1
        layer = Layer.RETRY if was_retried else Layer.TOOL
        if finding is None:
            if self.policy.cache is not None:
                self.call.confidence = Confidence.HIGH  # beside which that of a hit is to be read
            self._end(Outcome.OK, None, layer, self._strategy, now)
            return
        fault = Fault(finding.verdict, finding.code, finding.message)
        self.call.partial_failures = finding.partial_failures
        self._note("validation", "partial")
        strategy = self._strategy if was_retried else answer_to(fault)
        self._end(Outcome.PARTIAL, fault, layer_of(fault.verdict), strategy, now)

    def _end_failed(self, now: float) -> None:
        fault = self._fault
        outcome = Outcome.ERROR if self.call.attempts else Outcome.REJECTED
        layer = self._layer
        if layer is None:
            layer = layer_of(fault.verdict) if fault is not None else Layer.TOOL
        strategy = self._strategy if len(self.call.attempts) > 1 else answer_to(fault)
        self._end(outcome, fault, layer, strategy, now)

    def _end(
        self,
        outcome: Outcome,
        fault: Fault | None = None,
        layer: Layer = Layer.TOOL,
        strategy: RetryStrategy = RetryStrategy.NONE,
        now: float | None = None,
    ) -> None:
        call = self.call
        self._error = None  # its traceback holds the frame that holds this
        call.retry_end = self._retry_end(outcome)
        self._admission.call_ended(outcome, fault)
        self._gate.call_ended()
        close_call(
            call,
            RUNTIME.clock.monotonic() if now is None else now,
            outcome,
            fault,
            layer,
            strategy,
        )

    def _retry_end(self, outcome: Outcome) -> RetryEnd:
        if len(self.call.attempts) < 2:
            return RetryEnd.NONE
        if outcome in (Outcome.OK, Outcome.PARTIAL):
            return RetryEnd.RECOVERED
        return RetryEnd.EXHAUSTED if self._is_retry_spent else RetryEnd.STOPPED
