"""What a guarded call should do, written once more and as simply as can be.

It follows the contract and docs/policies and knows none of the shim's code but the settings.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

from expected import Ended, Expected, Repair, Shape
from fault_scripts import KINDS, L3, L4, L5, Check, Kind, Step
from reference_bounds import Bounds, ReferenceLimit, ReferenceSession
from reference_breaker import ReferenceBreaker, TieError
from virtual_time import TICK

from fuseboard import Fallback, Policy, Poll
from fuseboard.conventions import ErrorClass, Outcome

MAX_UNBOUNDED_WAIT: Final = 300.0
LAST_MOMENT: Final = 0.05
"""What a check gets that begins when the time is over."""
MOST_LEFT_BEHIND: Final = 32
TIMED_OUT: Final = Kind(lambda: None, L3, retryable=True, ambiguous=True)
OUT_OF_BUDGET: Final = Kind(lambda: None, L4, ambiguous=True)
EMPTY: Final = Kind(lambda: None, L5, ambiguous=True)


class Reference:
    """Follows one tool through its calls."""

    def __init__(
        self,
        given: Policy | None,
        shape: Shape,
        share: float,
        *,
        now: float,
        bounds: Bounds | None = None,
        repair: Repair | None = None,
    ) -> None:
        policy = self.policy = given or Policy()
        self.is_guarded = given is not None
        self.session = ReferenceSession(bounds) if bounds is not None else None
        self.limit = ReferenceLimit(policy.limit, now) if policy.limit is not None else None
        self.repair = repair
        self.left_behind = 0
        self.shape = shape
        self.share = share
        self.breaker = ReferenceBreaker(policy.breaker) if policy.breaker else None
        self.kept: tuple[Any, float] | None = None
        """What the cache holds, and since when."""

    def call(self, steps: list[Step], now: float, leaves_after: int | None) -> Expected:
        """Return what one call does that begins now.

        Args:
            steps: What its attempts do; the last one again where there are more.
            now: Seconds.
            leaves_after: How many items the consumer takes before it leaves; None for all.
        """
        if self.session is not None:
            self.session.enter(now)
        run = _Run(self, steps, now, leaves_after)
        if not run.is_answered_from_cache():
            run.go()
            if run.may_be_kept():
                self.kept = (run.value, run.now)
        return run.seen


class _Run:
    def __init__(
        self, tool: Reference, steps: list[Step], now: float, leaves_after: int | None
    ) -> None:
        self.policy, self.shape, self.breaker = tool.policy, tool.shape, tool.breaker
        self.tool, self.share = tool, tool.share
        self.session, self.limit = tool.session, tool.limit
        self.steps, self.now, self.leaves_after = steps, now, leaves_after
        self.seen = Expected(now)
        self.holds_permit = False
        self.last: Ended | None = None
        self.is_spent = False
        self.kept = tool.kept
        self.value: Any = None
        self.refusal: tuple[Kind, str] | None = None
        self.corrections, self.may_ask = 0, self.policy.feedback is not None
        self.begins_by = math.inf
        self.took: list[float] = []
        self.first_item: float | None = None

    # --- The cache -------------------------------------------------------------------------
    def is_answered_from_cache(self) -> bool:
        """Take what the cache holds, if it is young enough."""
        cache = self.policy.cache
        if cache is None:
            return False
        age = self._age()
        if age == cache.ttl:
            raise TieError
        if self.kept is None or age > cache.ttl:
            self.seen.actions["cache", "miss"] += 1
            return False
        self.seen.actions["cache", "hit_memory"] += 1
        self._end(Outcome.OK, None, ("kept", self.kept[0]))
        return True

    def may_be_kept(self) -> bool:
        """Tell whether the answer is as good as can be."""
        has_value = self.seen.sees[0] == "value" and not self.corrections
        return self.policy.cache is not None and self.seen.outcome is Outcome.OK and has_value

    def _age(self) -> float:
        return math.inf if self.kept is None else self.now - self.kept[1]

    def _may_serve_kept(self) -> bool:
        cache = self.policy.cache
        if cache is None or self.kept is None or self._fault().error_class not in cache.stale_on:
            return False
        if self._age() == cache.ttl + cache.stale:
            raise TieError
        return cache.stale > 0 and self._age() < cache.ttl + cache.stale

    def _serves_kept(self) -> bool:
        if self.kept is None or not self._may_serve_kept():
            return False
        self.seen.actions["cache", "stale"] += 1
        self._end(Outcome.DEGRADED, self._fault().error_class, ("kept", self.kept[0]))
        return True

    # --- Time ------------------------------------------------------------------------------
    @property
    def elapsed(self) -> float:
        return self.now - self.seen.start

    def _time_left(self) -> float:
        """Return how long the call may still take."""
        left = [math.inf]
        if self.policy.budget is not None:
            left.append(self.policy.budget - self.elapsed)
        if self.session is not None:
            left.append(self.session.left(self.now))
        return min(left)

    def _limit(self, own: float | None = None) -> tuple[float, str]:
        """Return how long the tool may take now, and the name of what cuts it.

        Args:
            own: Seconds that it may take by itself; default the policy's.
        """
        if not self.shape.cuts or not self.tool.is_guarded:
            return math.inf, ""
        limit = own if own is not None else self.policy.timeout or math.inf
        left = max(self._time_left(), 0.0)
        if left == limit < math.inf:
            raise TieError
        return (left, "BudgetExhaustedError") if left < limit else (limit, "AttemptTimeoutError")

    # --- One attempt -----------------------------------------------------------------------
    def _attempt(self, step: Step) -> Ended:
        """Run the tool's body; for a stream, up to its end or to the consumer's leaving."""
        if self.policy.poll is not None:
            return self._submit(step, self.policy.poll)
        what = step.what
        parts = (step.items if self.shape.streams else 0) + 1
        for part in range(parts):
            is_end = part == parts - 1
            delivered = self.seen.items > 0
            cut = self._spend(step)
            if cut is not None:
                return replace(_cut(cut), is_final=delivered)
            if what.is_cancelled_from_outside:
                return Ended(what)
            if is_end:
                break
            self.seen.items += 1
            self.first_item = self.first_item or self.now
            if self.seen.items == self.leaves_after:
                return Ended(what, is_left=True)
        return self._judge(what, self.seen.items > 0)

    def _spend(self, step: Step) -> str | None:
        limit, name = self._limit()
        took = 0.0 if step.what.is_cancelled_from_outside else step.took
        if took == limit:
            raise TieError
        if took < limit:
            self.now += took
            return None
        self.now += limit + (step.stubborn if self.shape.is_async else 0.0)
        self._leave_behind(keeps_slot=True)
        return name

    def _leave_behind(self, *, keeps_slot: bool) -> None:
        """Leave a thread behind, which can't be cut short, with its slot."""
        if self.shape.is_async:
            return
        self.tool.left_behind += 1
        if self.limit is not None and keeps_slot:
            self.limit.held += 1
        if self.tool.left_behind >= MOST_LEFT_BEHIND:
            raise TieError  # the shim gives no more threads, which has a test of its own

    def _judge(self, what: Kind, is_final: bool) -> Ended:
        is_raised = isinstance(what.make(), BaseException)
        if self.shape.streams and not is_raised:
            what = KINDS["good" if self.seen.items else "none"]
        validation = self.policy.validation
        if what.is_empty and validation is not None and validation.non_empty:
            return Ended(EMPTY, by="InvalidResultError", is_raised=False)
        return Ended(what, is_final=is_final, is_raised=is_raised)

    # --- Submit and poll -------------------------------------------------------------------
    def _submit(self, step: Step, poll: Poll) -> Ended:
        cut = self._spend(step)
        if cut is not None:
            return _cut(cut)
        if step.what.is_cancelled_from_outside:
            return Ended(step.what)
        if not step.checks:
            ended = self._judge(step.what, False)
            is_answer = ended.what.error_class is not None and not ended.what.is_partial
            if ended.is_raised or (is_answer and ended.what is not EMPTY):
                return ended
        return self._poll(step, poll)

    def _poll(self, step: Step, poll: Poll) -> Ended:
        ends, interval, faults = self.now + poll.timeout, poll.interval, 0
        hint: float | None = None
        checks = list(step.checks)
        while True:
            left, name = self._limit(ends - self.now)
            if left <= 0:
                return _with_ticket(_cut(name))
            self.now += min(left, interval if hint is None else hint)
            if hint is None:
                interval = min(interval * 1.5, poll.interval_max)
            check = checks.pop(0) if checks else Check(step.kind)
            found = self._check(check, step.what, ends)
            what, hint = found.what, found.what.retry_after
            is_late = found.by == "AttemptTimeoutError"
            left, name = self._limit(ends - self.now)
            if is_late and left <= 0:
                return _with_ticket(_cut(name))
            if check.kind.startswith("pending") and not is_late:
                faults = 0
            elif not found.is_raised or not what.retryable or faults >= poll.faults:
                return _with_ticket(found)
            else:
                faults += 1

    def _check(self, check: Check, last: Kind, ends: float) -> Ended:
        """Look once whether the job is done."""
        left = self._limit(ends - self.now)[0]
        own = self.policy.timeout or math.inf
        limit = min(max(left, LAST_MOMENT), own)
        if check.took == limit or (check.took > limit and left < LAST_MOMENT):
            raise TieError
        if check.took > limit:
            self.now += limit
            self._leave_behind(keeps_slot=False)
            return Ended(TIMED_OUT, by="AttemptTimeoutError")
        self.now += check.took
        what = check.what
        return Ended(what) if check.kind.startswith("pending") else self._judge(what, False)

    # --- The call --------------------------------------------------------------------------
    def go(self) -> None:
        delay: float | None = 0.0
        while delay is not None and self._may_begin():
            number = len(self.seen.attempts)
            self.seen.starts.append(self.now)
            ended = self.last = self._attempt(self.steps[min(number, len(self.steps) - 1)])
            if self._note_attempt(ended):
                return
            delay = self._next_delay(ended)
            if delay is not None:
                self.now += delay
                self.seen.backoff += delay
        if self.last is None or not (self.last.is_final or self.last.what.ends_all):
            if self._serves_kept():
                return
            for place, fallback in enumerate(self.policy.fallbacks):
                if self._serves(place, fallback):
                    return
        self._fail()

    def _may_begin(self) -> bool:
        return (
            self._has_time()
            and self._breaker_admits()
            and self._limit_admits()
            and self._session_admits()
        )

    def _refuse(self, action: tuple[str, str], error_class: ErrorClass, by: str) -> bool:
        self.seen.actions[action] += 1
        self.refusal = Kind(lambda: None, error_class), by
        breaker = self.breaker
        if breaker is not None and (breaker.config.scope == "attempt" or not self.seen.attempts):
            self.holds_permit = False
        return False

    def _has_time(self) -> bool:
        budget, session = self.policy.budget, self.session
        if session is not None and session.left(self.now) <= 0:
            return self._refuse(("budget", "exhausted"), L4, "SessionBudgetError")
        if self.elapsed >= min(self.begins_by, math.inf if budget is None else budget):
            return self._refuse(("budget", "exhausted"), L4, "BudgetExhaustedError")
        return True

    def _breaker_admits(self) -> bool:
        if self.breaker is None or self.holds_permit:
            return True
        admitted = self.breaker.admits(self.now)
        if self.seen.breaker_state is None:
            self.seen.breaker_state = self.breaker.state
        if not admitted:
            self._refuse(("breaker", "rejected"), self.breaker.opened_by, "CircuitOpenError")
        self.holds_permit = admitted
        return admitted

    def _limit_admits(self) -> bool:
        if self.limit is None:
            return True
        wait, begins = self.limit.wait(
            self.now, min(self._time_left(), self.begins_by - self.elapsed)
        )
        if wait > 0:
            self.seen.actions["limit", "queued"] += 1
            self.now += wait
            if not self._has_time():
                return False
        return begins or self._refuse(("limit", "rejected"), L3, "LimitExceededError")

    def _session_admits(self) -> bool:
        is_retry = bool(self.seen.attempts)
        if self.session is not None:
            if not self.session.admits(is_retry=is_retry):
                return self._refuse(("budget", "exhausted"), L4, "SessionBudgetError")
            self.session.take(is_retry=is_retry)
        if self.limit is not None:
            self.limit.begin(self.now)
        return True

    def _next_delay(self, ended: Ended) -> float | None:
        """Return the wait before the next attempt, or None if there is none."""
        what = ended.what
        if ended.is_final or what.ends_all:
            return None
        if not self._switches(what) and self._may_correct(what):
            repair = self.tool.repair or Repair("gives up")
            self.seen.mistakes.append((str(what.error_class), len(self.seen.attempts)))
            if self._is_corrected(repair):
                self.corrections += 1
                self.begins_by = math.inf
                return 0.0
            self.may_ask = False
        return self._plan(what)

    def _may_correct(self, what: Kind) -> bool:
        feedback = self.policy.feedback
        if feedback is None or not self.may_ask or self.corrections >= feedback.corrections:
            return False
        acts_twice = what.ambiguous and self.policy.effects == "unsafe"
        if what.error_class not in feedback.on or acts_twice or self._time_left() <= 0:
            return False
        is_closed = self.breaker and not self.holds_permit and self.breaker.state == "open"
        if is_closed and self.breaker and self.breaker.seconds_closed(self.now) > 0:
            return False
        return self._session_allows_retry(0.0)

    def _is_corrected(self, repair: Repair) -> bool:
        """Let somebody correct the request, which takes time."""
        budget = self.policy.budget
        left = math.inf if budget is None else budget - self.elapsed
        if self.shape.is_async and repair.took == left:
            raise TieError
        is_cut = self.shape.is_async and repair.took > left
        took = left if is_cut else repair.took
        self.now += took
        self.seen.backoff += took
        return repair.how == "corrects" and not is_cut

    def _session_allows_retry(self, wait: float) -> bool:
        session = self.session
        return session is None or (wait < session.left(self.now) and session.admits(is_retry=True))

    def _note_attempt(self, ended: Ended) -> bool:
        """Count an attempt; return whether the call has ended with it."""
        what, attempts = ended.what, self.seen.attempts
        self.took.append(self.now - self.seen.starts[-1])
        if ended.is_left:
            attempts.append(("failure", "none"))
            self._give_back()
            self._end(Outcome.ABANDONED, None, ("left", None))
        elif what.outcome is not None:
            is_clean = what.outcome is Outcome.OK
            attempts.append(("success" if is_clean else "failure", "none"))
            self._give_back(None if is_clean else what, is_success=is_clean)
            self._end(what.outcome, None, ("error", len(attempts) - 1))
        elif what.error_class is None or what.is_partial:
            attempts.append(("success", "none"))
            self._give_back(is_success=True)
            if what.is_partial:
                self.seen.actions["validation", "partial"] += 1
            outcome = Outcome.PARTIAL if what.is_partial else Outcome.OK
            self.value = what.make()
            self._end(outcome, what.error_class, ("value", len(attempts) - 1))
        else:
            attempts.append(("failure", what.error_class.value))
            self._act_on(ended)
            self._give_back(what, is_ours=ended.by == "BudgetExhaustedError")
            return False
        return True

    def _act_on(self, ended: Ended) -> None:
        action = {
            "AttemptTimeoutError": ("timeout", "timed_out"),
            "BudgetExhaustedError": ("budget", "exhausted"),
            "InvalidResultError": ("validation", "failed"),
        }.get(ended.by or "")
        if action is not None:
            self.seen.actions[action] += 1

    def _give_back(
        self, what: Kind | None = None, *, is_success: bool = False, is_ours: bool = False
    ) -> None:
        """Settle the permit of an attempt, where the breaker judges attempts."""
        if self.breaker is None or self.breaker.config.scope != "attempt":
            return
        self.holds_permit = False
        if is_success or (what is not None and what.outcome is None):
            self.breaker.settle(
                None if is_success else what, self.now, self._seconds(), is_ours=is_ours
            )

    def _seconds(self) -> float:
        """Return how long the last attempt took; of a stream, up to its first item."""
        first = self.first_item
        return self.took[-1] if first is None else first - self.seen.starts[-1]

    def _plan(self, what: Kind) -> float | None:
        """Return the wait before the next attempt, or None if there is none."""
        self.is_spent = False
        if self._switches(what):
            return None
        retry, made = self.policy.retry, len(self.seen.attempts) - self.corrections
        if retry is None:
            return None
        is_worth_it = what.retryable or (retry.semantic and what.error_class is L5)
        may_repeat = self.policy.effects != "unsafe"
        if not is_worth_it or (what.ambiguous and not may_repeat):
            return None
        if made >= retry.attempts:
            self.is_spent = True
            return None
        wait = what.retry_after
        if wait is None:
            top = min(retry.wait_max, retry.wait_initial * 2 ** (made - 1))
            wait = math.floor(self.share * top / TICK) * TICK
        budgets = [b for b in (retry.budget, self.policy.budget) if b is not None]
        if budgets and self.elapsed + wait >= min(budgets):
            self.seen.actions["budget", "exhausted"] += 1
            return None
        if not budgets:
            wait = min(wait, max(MAX_UNBOUNDED_WAIT, retry.wait_max))
        if not self._session_allows_retry(wait):
            self.seen.actions["budget", "exhausted"] += 1
            return None
        if self.breaker and not self.holds_permit and self.breaker.seconds_closed(self.now) > wait:
            self.seen.actions["breaker", "rejected"] += 1
            return None
        self.begins_by = math.inf if retry.budget is None else retry.budget
        return wait

    def _switches(self, what: Kind) -> bool:
        """Tell whether something else is to be served at once, and may be."""
        wanted = self.policy.switch_on
        is_wanted = (what.is_429 and "rate_limited" in wanted) or (
            what is EMPTY and "empty" in wanted
        )
        return is_wanted and (
            self._may_serve_kept() or any(map(self._may_serve, self.policy.fallbacks))
        )

    def _may_serve(self, fallback: Fallback) -> bool:
        what = self._fault()
        acts = fallback.function is not None and fallback.effects == "unsafe"
        acts_twice = acts and what.ambiguous and self.policy.effects == "unsafe"
        return what.error_class in fallback.on and not acts_twice

    def _serves(self, place: int, fallback: Fallback) -> bool:
        what = self._fault()
        if not self._may_serve(fallback):
            return False
        if fallback.name == "bad":
            self.seen.actions["fallback", "failed"] += 1
            return False
        self.seen.actions["fallback", "served"] += 1
        self._end(Outcome.DEGRADED, what.error_class, ("fallback", place))
        return True

    def _fault(self) -> Kind:
        if self.last is not None:
            return self.last.what
        assert self.refusal is not None
        return self.refusal[0]

    def _fail(self) -> None:
        what, last = self._fault(), self.last
        self.seen.is_open = what.ambiguous and self.policy.effects == "unsafe"
        if last is None:
            by = self.refusal[1] if self.refusal is not None else ""
            self._end(Outcome.REJECTED, what.error_class, (by, None))
            return
        number = len(self.seen.attempts) - 1
        sees: tuple[str, Any] = (last.by, None) if last.by else ("error", number)
        if not last.by and not last.is_raised:
            sees = ("value", number)
        self._end(Outcome.ERROR, what.error_class, sees)

    def _end(self, outcome: Outcome, error_class: ErrorClass | None, sees: tuple[str, Any]) -> None:
        seen = self.seen
        seen.outcome, seen.error_class, seen.sees = outcome, error_class, sees
        seen.duration = self.elapsed
        if len(seen.attempts) > 1:
            is_live = outcome in (Outcome.OK, Outcome.PARTIAL)
            spent = "exhausted" if self.is_spent else "stopped"
            seen.retry_end = "recovered" if is_live else spent
        if self.breaker is not None and self.holds_permit:
            self._settle_call(outcome)

    def _settle_call(self, outcome: Outcome) -> None:
        assert self.breaker is not None
        seconds = sum(self.took[:-1]) + (self._seconds() if self.took else 0.0)
        if outcome in (Outcome.OK, Outcome.PARTIAL):
            self.breaker.settle(None, self.now, seconds)
        elif outcome in (Outcome.DEGRADED, Outcome.ERROR):
            is_ours = self.last is not None and self.last.by == "BudgetExhaustedError"
            self.breaker.settle(self._fault(), self.now, seconds, is_ours=is_ours)


def _cut(by: str) -> Ended:
    """Return the end of an attempt that took too long."""
    return Ended(TIMED_OUT if by == "AttemptTimeoutError" else OUT_OF_BUDGET, by=by)


def _with_ticket(ended: Ended) -> Ended:
    """Return the end of an attempt whose job is under way, so that nobody may submit it again."""
    if not ended.is_raised or ended.what.error_class is None:
        return ended
    return replace(ended, what=replace(ended.what, retryable=False, ambiguous=True))
