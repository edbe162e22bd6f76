"""Whether to try again after a fault, and after which wait."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, NamedTuple

from fuseboard.conventions import ErrorClass, RetryStrategy
from fuseboard.policy.config import Policy, Retry
from fuseboard.record import Verdict

MAX_UNBOUNDED_WAIT: Final = 300.0
"""Seconds that a Retry-After may make a call wait that has no budget."""


class Wait(NamedTuple):
    """Try again after so many seconds."""

    seconds: float
    strategy: RetryStrategy


class GiveUp(Enum):
    """Why there is no further attempt."""

    NO_RETRY = auto()
    """The policy, the fault or the tool's effects do not allow one."""
    EXHAUSTED = auto()
    """All attempts were made."""
    BUDGET = auto()
    """It would begin after the budget's end."""


def plan_retry(
    policy: Policy,
    verdict: Verdict,
    made: int,
    elapsed: float,
    uniform: Callable[[float, float], float],
) -> Wait | GiveUp:
    """Decide what follows a fault.

    Args:
        policy: The tool's policy.
        verdict: The verdict on the fault of the last attempt.
        made: Attempts made so far, at least 1.
        elapsed: Seconds since the call began.
        uniform: ``uniform(low, high)``, a random number.
    """
    retry = policy.retry
    if retry is None or not _may_retry(policy, retry, verdict):
        return GiveUp.NO_RETRY
    if made >= retry.attempts:
        return GiveUp.EXHAUSTED
    wait = _choose_wait(retry, verdict, made - 1, uniform)
    budgets = [budget for budget in (retry.budget, policy.budget) if budget is not None]
    if not budgets:
        return wait._replace(seconds=min(wait.seconds, max(MAX_UNBOUNDED_WAIT, retry.wait_max)))
    return GiveUp.BUDGET if elapsed + wait.seconds >= min(budgets) else wait


def full_jitter(retry: Retry, number: int, uniform: Callable[[float, float], float]) -> float:
    """Return the wait before retry ``number`` (from 0), seconds.

    Uniform in ``[0, min(wait_max, wait_initial * 2**number)]``: "full jitter" of
    Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    return uniform(0.0, min(retry.wait_max, retry.wait_initial * 2.0 ** min(number, 64)))


def _may_retry(policy: Policy, retry: Retry, verdict: Verdict) -> bool:
    is_semantic = retry.semantic and verdict.error_class is ErrorClass.L5_SEMANTIC
    if not (verdict.retryable or is_semantic):
        return False
    return policy.may_repeat or not verdict.ambiguous


def _choose_wait(
    retry: Retry, verdict: Verdict, number: int, uniform: Callable[[float, float], float]
) -> Wait:
    if verdict.retry_after is not None:
        return Wait(verdict.retry_after, RetryStrategy.RETRY_AFTER)
    strategy = RetryStrategy.EXPONENTIAL_BACKOFF_FULL_JITTER
    return Wait(full_jitter(retry, number, uniform), strategy)
