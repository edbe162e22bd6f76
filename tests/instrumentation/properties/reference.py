"""What a guarded call should do, written once more and as simply as can be.

It follows the contract and docs/policies and knows none of the shim's code but the settings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fault_scripts import KINDS, L3, L4, L5, UNKNOWN, Kind, Step
from virtual_time import TICK

from fuseboard import Breaker, Fallback, Policy
from fuseboard.conventions import ErrorClass, Outcome

MAX_UNBOUNDED_WAIT: Final = 300.0
TIMED_OUT: Final = Kind(lambda: None, L3, retryable=True, ambiguous=True)
OUT_OF_BUDGET: Final = Kind(lambda: None, L4, ambiguous=True)
EMPTY: Final = Kind(lambda: None, L5, ambiguous=True)


class TieError(Exception):
    """Two answers are right: an attempt ends in the very moment in which its time is up, say."""


@dataclass
class Expected:
    """What should be seen of a call from all sides.

    Attributes:
        attempts: (result, class) of each.
        sees: ``value``, ``error`` with the number of the attempt that it comes from, or the
            name of an exception of ours; ``fallback`` with the place of the one that is served;
            ``kept`` with an answer from the cache.
        items: Items that the consumer gets.
    """

    start: float
    outcome: Outcome = Outcome.OK
    error_class: ErrorClass | None = None
    attempts: list[tuple[str, str]] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    retry_end: str = "none"
    backoff: float = 0.0
    duration: float = 0.0
    sees: tuple[str, Any] = ("value", 0)
    items: int = 0
    actions: Counter[tuple[str, str]] = field(default_factory=Counter)
    breaker_state: str | None = None


class ReferenceBreaker:
    """A breaker for calls that come one after the other, in a window without end.

    Attributes:
        opened_by: The class of fault that opened it last.
    """

    def __init__(self, config: Breaker) -> None:
        self.config = config
        self.state = "closed"
        self.opened_by = UNKNOWN
        self.transitions: list[tuple[str, str]] = []
        self._results: list[ErrorClass | None] = []
        self._reopens = 0.0
        self._successes = 0

    def admits(self, now: float) -> bool:
        """Tell whether an attempt may be made; the first one after the break is a probe."""
        if self.state == "open" and now >= self._reopens:
            self._move("half_open")
        return self.state != "open"

    def seconds_closed(self, now: float) -> float:
        """Return how long it will surely admit nothing."""
        return max(0.0, self._reopens - now) if self.state == "open" else 0.0

    def settle(self, fault: Kind | None, now: float, *, is_ours: bool = False) -> None:
        """Count an attempt or a call: a success, or a fault if it is the tool's."""
        if fault is None:
            self._succeed()
        elif not is_ours and fault.error_class in (L3, L4, UNKNOWN, *self.config.also_counts):
            self._fail(fault.error_class, now)

    def _succeed(self) -> None:
        if self.state == "closed":
            self._results.append(None)
        elif self.state == "half_open":
            self._successes += 1
            if self._successes >= self.config.half_open_probes:
                self._results = []
                self._move("closed")

    def _fail(self, error_class: ErrorClass | None, now: float) -> None:
        if self.state == "half_open":
            self._open([error_class], now)
        elif self.state == "closed":
            self._results.append(error_class)
            faults = [result for result in self._results if result is not None]
            calls = len(self._results)
            if (
                calls >= self.config.minimum_throughput
                and len(faults) / calls >= self.config.failure_ratio
            ):
                self._open(faults, now)

    def _open(self, faults: Sequence[ErrorClass | None], now: float) -> None:
        counts = Counter(faults).most_common(2)
        if len(counts) == 2 and counts[0][1] == counts[1][1]:
            raise TieError
        self.opened_by = counts[0][0] or UNKNOWN
        self._reopens = now + self.config.break_duration
        self._move("open")

    def _move(self, to: str) -> None:
        self.transitions.append((self.state, to))
        self.state = to
        self._successes = 0


@dataclass(frozen=True)
class Shape:
    """What kind of function the tool is.

    Attributes:
        cuts: Whether an attempt can be cut short: an async tool, or a function in a thread.
        streams: Whether it is a generator.
        is_async: Whether it is a coroutine function or an async generator.
    """

    cuts: bool
    streams: bool
    is_async: bool


@dataclass(frozen=True)
class Ended:
    """How one attempt ended."""

    what: Kind
    is_final: bool = False
    is_left: bool = False
    by: str | None = None
    """The name of an exception of ours that ended it."""


class Reference:
    """Follows one tool through its calls."""

    def __init__(self, given: Policy | None, shape: Shape, share: float) -> None:
        policy = self.policy = given or Policy()
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
        self.share = tool.share
        self.steps, self.now, self.leaves_after = steps, now, leaves_after
        self.seen = Expected(now)
        self.holds_permit = False
        self.last: Ended | None = None
        self.is_spent = False
        self.kept = tool.kept
        self.value: Any = None

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
        has_value = self.seen.sees[0] == "value"
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

    def _limit(self) -> tuple[float, str]:
        """Return how long the tool may take now, and the name of what cuts it."""
        if not self.shape.cuts:
            return math.inf, ""
        limit, name = self.policy.timeout or math.inf, "AttemptTimeoutError"
        if self.policy.budget is not None:
            left = max(self.policy.budget - self.elapsed, 0.0)
            if left < limit:
                limit, name = left, "BudgetExhaustedError"
        return limit, name

    # --- One attempt -----------------------------------------------------------------------
    def _attempt(self, step: Step) -> Ended:
        """Run the tool's body; for a stream, up to its end or to the consumer's leaving."""
        what = step.what
        parts = (step.items if self.shape.streams else 0) + 1
        for part in range(parts):
            is_end = part == parts - 1
            delivered = self.seen.items > 0
            cut = self._spend(step)
            if cut is not None:
                return Ended(
                    TIMED_OUT if cut == "AttemptTimeoutError" else OUT_OF_BUDGET,
                    is_final=delivered,
                    by=cut,
                )
            if what.is_cancelled_from_outside:
                return Ended(what)
            if is_end:
                break
            self.seen.items += 1
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
        return name

    def _judge(self, what: Kind, is_final: bool) -> Ended:
        is_raised = isinstance(what.make(), BaseException)
        if self.shape.streams and not is_raised:
            what = KINDS["good" if self.seen.items else "none"]
        validation = self.policy.validation
        if what.is_empty and validation is not None and validation.non_empty:
            return Ended(EMPTY, by="InvalidResultError")
        return Ended(what, is_final=is_final)

    # --- The call --------------------------------------------------------------------------
    def go(self) -> None:
        delay: float | None = 0.0
        while delay is not None and self._may_begin():
            number = len(self.seen.attempts)
            self.seen.starts.append(self.now)
            ended = self.last = self._attempt(self.steps[min(number, len(self.steps) - 1)])
            if self._note_attempt(ended):
                return
            delay = None if ended.is_final or ended.what.ends_all else self._plan(ended.what)
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
        budget = self.policy.budget
        if budget is not None and self.elapsed >= budget:
            self.seen.actions["budget", "exhausted"] += 1
            return False
        if self.breaker is None or self.holds_permit:
            return True
        admitted = self.breaker.admits(self.now)
        if self.seen.breaker_state is None:
            self.seen.breaker_state = self.breaker.state
        if not admitted:
            self.seen.actions["breaker", "rejected"] += 1
        self.holds_permit = admitted
        return admitted

    def _note_attempt(self, ended: Ended) -> bool:
        """Count an attempt; return whether the call has ended with it."""
        what, attempts = ended.what, self.seen.attempts
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
            self.breaker.settle(None if is_success else what, self.now, is_ours=is_ours)

    def _plan(self, what: Kind) -> float | None:
        """Return the wait before the next attempt, or None if there is none."""
        self.is_spent = False
        if self._switches(what):
            return None
        retry, made = self.policy.retry, len(self.seen.attempts)
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
        if self.breaker and not self.holds_permit and self.breaker.seconds_closed(self.now) > wait:
            self.seen.actions["breaker", "rejected"] += 1
            return None
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
        # Nothing was tried: a rejection has the class of what opened the breaker.
        return Kind(lambda: None, self.breaker.opened_by if self.breaker else L4)

    def _fail(self) -> None:
        what, last = self._fault(), self.last
        if last is None:
            self._end(Outcome.REJECTED, what.error_class, ("CircuitOpenError", None))
            return
        number = len(self.seen.attempts) - 1
        sees: tuple[str, Any] = (last.by, None) if last.by else ("error", number)
        if not last.by and not isinstance(what.make(), BaseException):
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
        if outcome in (Outcome.OK, Outcome.PARTIAL):
            self.breaker.settle(None, self.now)
        elif outcome in (Outcome.DEGRADED, Outcome.ERROR):
            is_ours = self.last is not None and self.last.by == "BudgetExhaustedError"
            self.breaker.settle(self._fault(), self.now, is_ours=is_ours)
