"""What the calls of a session have used up, counted for all its threads and tasks."""

from __future__ import annotations

import logging
import threading
from typing import Final, NamedTuple

from fuseboard.errors import RepeatedCallError, SessionBudgetError
from fuseboard.forking import after_fork_in_child
from fuseboard.policy.config import Budget, Repeats
from fuseboard.record import CallRecord

logger = logging.getLogger("fuseboard")

MAX_KINDS: Final = 4096
"""Tool and arguments pairs that a session counts; a bound, as a session may run for weeks."""


class _Counting:
    """One lock for all sessions: it is held for a few additions, and a fork renews one only."""

    def __init__(self) -> None:
        self.renew_lock()

    def renew_lock(self) -> None:
        # Reentrant: a stream that the garbage collector ends may spend in the middle of this.
        self.lock = threading.RLock()


COUNTING: Final = _Counting()
after_fork_in_child(COUNTING.renew_lock)


class Spent(NamedTuple):
    """What the calls of a session have used up so far.

    Attributes:
        retries: Attempts after a call's first.
        requests: Attempts in all.
        cost: What they cost, as far as tools said.

    Since 0.1.
    """

    retries: int
    requests: int
    cost: float


class Account:
    """The budget of one session and what is left of it."""

    def __init__(self, budget: Budget) -> None:
        """Open an account with nothing spent."""
        self.budget = budget
        self._retries = 0
        self._requests = 0
        self._cost = 0.0

    @property
    def spent(self) -> Spent:
        """What was used up."""
        with COUNTING.lock:
            return Spent(self._retries, self._requests, self._cost)

    def may_retry(self, cost: float) -> bool:
        """Tell whether a call that has cost so much may be retried; nothing is taken yet."""
        return self._missing(True, cost) is None

    def _missing(self, is_retry: bool, cost: float = 0.0) -> str | None:
        """Return what is used up, if anything is."""
        budget = self.budget
        if is_retry and budget.retries is not None and self._retries >= budget.retries:
            return "retries"
        if budget.requests is not None and self._requests >= budget.requests:
            return "requests"
        if budget.cost is not None and self._cost + cost >= budget.cost:
            return "cost"
        return None

    def _take(self, is_retry: bool) -> None:
        self._requests += 1
        self._retries += is_retry

    def spend(self, cost: float) -> None:
        """Count the cost of a call that has ended."""
        with COUNTING.lock:
            self._cost += cost


def take_attempt(
    accounts: tuple[Account, ...], tool: str, *, is_retry: bool
) -> SessionBudgetError | None:
    """Take an attempt from every account, or from none if one of them is used up.

    Returns:
        None, or why the attempt may not be made.
    """
    with COUNTING.lock:
        for account in accounts:
            missing = account._missing(is_retry)
            if missing is not None:
                return SessionBudgetError(tool, missing, getattr(account.budget, missing))
        for account in accounts:
            account._take(is_retry)
    return None


class RepeatCounter:
    """Counts calls of a session with the same arguments."""

    def __init__(self, config: Repeats) -> None:
        """Start with none."""
        self._config = config
        self._counts: dict[tuple[str, str], int] = {}

    def check(self, call: CallRecord) -> RepeatedCallError | None:
        """Count a call; return why it may not be made, if it may not."""
        args_hash = call.args_hash
        if args_hash is None:
            return None
        kind = (call.tool.name, args_hash)
        limit = self._config.limit
        with COUNTING.lock:
            count = self._counts.get(kind, 0) + 1
            if count == 1 and len(self._counts) >= MAX_KINDS:
                # The oldest goes: a loop repeats what it did lately.
                del self._counts[next(iter(self._counts))]
            self._counts[kind] = count
        if count == limit + 1:
            logger.warning(
                "tool %r was called more than %s with the same arguments (%s) in session "
                "%r: the agent may be in a loop",
                call.tool.name,
                "once" if limit == 1 else f"{limit} times",
                args_hash,
                call.session,
            )
        if count <= limit or self._config.action == "warn":
            return None
        return RepeatedCallError(call.tool.name, count)
