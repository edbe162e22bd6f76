"""Submit and poll: wait for the result of a job that a tool has taken on, in both worlds.

All of it happens within the attempt that submitted the job. Nothing here submits it again: that
would be its effect twice.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

from fuseboard import guard
from fuseboard.calls.guarded import GuardedRun
from fuseboard.classification import judge_result
from fuseboard.conventions import Outcome
from fuseboard.errors import AttemptTimeoutError, FuseboardError
from fuseboard.policy.config import Pending, Poll
from fuseboard.policy.config.poll import GROWTH
from fuseboard.policy.timeout import OverrunError, await_within
from fuseboard.policy.workers import THREADS
from fuseboard.runtime import RUNTIME

_MOMENT: Final = 0.05
"""Seconds that a check gets although no time is left."""


def await_result(run: GuardedRun, poll: Poll, ticket: Any) -> Any:
    """Return the result for a ticket, asking again and again.

    Raises:
        AttemptTimeoutError: If it is not there in time.
        BudgetExhaustedError: If the call's or the session's time ran out before that.
        Exception: What the check raised, unless it is tolerated.
    """
    if _is_fault(ticket):
        return ticket
    watch = _Watch(run, poll)
    while True:
        RUNTIME.clock.sleep(watch.next_wait())
        limit = watch.limit_check()
        try:
            answer = THREADS.run(limit, None, poll.check, ticket)
        except OverrunError:
            watch.overran()
        except BaseException as error:
            if not watch.tolerates(error):
                raise
        else:
            if not watch.is_pending(answer):
                return answer


async def async_await_result(run: GuardedRun, poll: Poll, ticket: Any) -> Any:
    """Do what :func:`await_result` does in the caller's own task; the check may be async."""
    if _is_fault(ticket):
        return ticket
    watch = _Watch(run, poll)
    while True:
        await RUNTIME.clock.async_sleep(watch.next_wait())
        limit = watch.limit_check()
        try:
            answer = poll.check(ticket)
            if inspect.isawaitable(answer):
                answer = await await_within(limit, answer)
        except OverrunError:
            watch.overran()
        except BaseException as error:
            if not watch.tolerates(error):
                raise
        else:
            if not watch.is_pending(answer):
                return answer


def _is_fault(ticket: object) -> bool:
    """Tell whether what should be a ticket says that the job was not taken on."""
    finding = judge_result(ticket, RUNTIME.clock.time_ns() / 1e9)
    return finding is not None and finding.partial_failures is None


class _Watch:
    """How long to wait for a job, and what may go wrong meanwhile."""

    def __init__(self, run: GuardedRun, poll: Poll) -> None:
        run.has_ticket = True
        self._run = run
        self._poll = poll
        self._ends = RUNTIME.clock.monotonic() + poll.timeout
        self._interval = poll.interval
        self._hint: float | None = None
        self._faults = 0

    def next_wait(self) -> float:
        """Return the seconds until the next check, the last of which is at the very end."""
        left = self._left()
        wait, self._hint = self._hint, None
        if wait is None:
            wait = self._interval
            self._interval = min(self._interval * GROWTH, self._poll.interval_max)
        return min(max(wait, 0.0), left)

    def limit_check(self) -> float:
        """Return the seconds that one check may take.

        Where no time is left it still gets a moment: the result may be there by now.
        """
        timeout = self._run.policy.timeout
        left = max(self._run.bound(self._ends - RUNTIME.clock.monotonic()), _MOMENT)
        return left if timeout is None else min(left, timeout)

    def overran(self) -> None:
        """Tolerate a check that did not answer in time, unless that was all the time there was."""
        self._left()
        timeout = self._run.policy.timeout or self._poll.timeout
        error = AttemptTimeoutError(self._run.call.tool.name, timeout)
        if not self.tolerates(error):
            raise error

    def tolerates(self, error: BaseException) -> bool:
        """Tell whether to ask again after what a check raised."""
        judged = self._run.judge(error)
        if isinstance(judged, Outcome) or not issubclass(type(error), Exception):
            return False
        if not judged.verdict.retryable or self._faults >= self._poll.faults:
            return False
        self._faults += 1
        self._hint = judged.verdict.retry_after
        return True

    def is_pending(self, answer: object) -> bool:
        """Tell whether an answer says that the job is not done."""
        if not isinstance(answer, Pending):
            return False
        self._faults = 0
        self._hint = _seconds(answer.wait)
        if self._poll.on_pending is not None:
            try:
                self._poll.on_pending(answer)
            except Exception as fault:
                guard.swallow("telling of a job that is not done", fault)
        return True

    def _left(self) -> float:
        left = self._run.bound(self._ends - RUNTIME.clock.monotonic())
        if left <= 0:
            raise self._overrun()
        return left

    def _overrun(self) -> FuseboardError:
        error = self._run.overrun()
        if isinstance(error, AttemptTimeoutError):
            return AttemptTimeoutError(self._run.call.tool.name, self._poll.timeout)
        return error


def _seconds(wait: object) -> float | None:
    """Return a wait that a check has named, if it is one."""
    if isinstance(wait, bool) or not isinstance(wait, int | float):
        return None
    return float(wait) if 0 <= wait < float("inf") else None
