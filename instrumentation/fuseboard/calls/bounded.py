"""The first attempt of a call with a time limit, at little more than the price of one without.

It knows its limit from the policy alone; later attempts have what the budget leaves
(:meth:`fuseboard.calls.guarded.GuardedRun.admits`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuseboard.errors import AttemptTimeoutError, BudgetExhaustedError, FuseboardError
from fuseboard.policy.config import Policy
from fuseboard.policy.timeout import OverrunError, TimeLimit
from fuseboard.policy.workers import THREADS


def bound_sync(name: str, policy: Policy, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, run in a worker thread where the policy limits its time."""
    limit = first_limit(policy)
    if limit is None:
        return function

    def bounded(*args: Any, **kwargs: Any) -> Any:
        try:
            return THREADS.run(limit, None, function, *args, **kwargs)
        except OverrunError:
            raise _overrun(name, policy) from None

    return bounded


def bound_async(name: str, policy: Policy, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, cancelled in its own task where the policy limits its time."""
    limit = first_limit(policy)
    if limit is None:
        return function
    begin = TimeLimit(limit).begin

    async def bounded(*args: Any, **kwargs: Any) -> Any:
        deadline = begin()
        try:
            value = await function(*args, **kwargs)
        except BaseException as error:
            if deadline.ends(error):
                raise _overrun(name, policy) from error
            raise
        deadline.ends()
        return value

    return bounded


def first_limit(policy: Policy) -> float | None:
    """Return the seconds that a call's first attempt may take, or None."""
    if policy.timeout is None or policy.budget is None:
        return policy.budget if policy.timeout is None else policy.timeout
    return min(policy.timeout, policy.budget)


def _overrun(name: str, policy: Policy) -> FuseboardError:
    timeout, budget = policy.timeout, policy.budget
    if timeout is None or (budget is not None and budget < timeout):
        return BudgetExhaustedError(name, budget or 0.0)
    return AttemptTimeoutError(name, timeout)
