"""What may stand in for a live answer, and when it does so at once."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from fuseboard.calls.current import CURRENT, LaterAttempt
from fuseboard.classification import EMPTY
from fuseboard.conventions import Confidence, Effects
from fuseboard.policy.config import Fallback, Policy
from fuseboard.record import CallRecord, Verdict

_FALLING: Final = tuple(Confidence)


def label_caller(call: CallRecord) -> None:
    """Tell the call that this one stands in for how old and how good its answer is."""
    current = CURRENT.get()
    if not isinstance(current, LaterAttempt) or current.call.asked is not call.tool:
        return
    caller = current.call
    caller.result_age_seconds = call.result_age_seconds
    caller.confidence = call.confidence


def lesser(one: Confidence | None, other: Confidence | None) -> Confidence | None:
    """Return the lesser of two confidences, or the one that is known."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=_FALLING.index)


def switches_at_once(policy: Policy, verdict: Verdict) -> bool:
    """Tell whether a policy has a fault answered by what stands in, and not by a retry."""
    if not policy.switch_on:
        return False
    if verdict.http_status == HTTPStatus.TOO_MANY_REQUESTS:
        return "rate_limited" in policy.switch_on
    return "empty" in policy.switch_on and verdict.classifier_id == EMPTY.classifier_id


def substitutes(policy: Policy, verdict: Verdict) -> Iterator[Fallback]:
    """Yield what a policy allows to be served after a fault.

    Args:
        policy: The tool's policy.
        verdict: The verdict on the fault.
    """
    for fallback in policy.fallbacks:
        if verdict.error_class in fallback.on and not _may_act_twice(policy, fallback, verdict):
            yield fallback


def _may_act_twice(policy: Policy, fallback: Fallback, verdict: Verdict) -> bool:
    """Tell whether a fallback might do once more what the tool may have done already."""
    acts_again = fallback.function is not None and fallback.effects is Effects.UNSAFE
    return acts_again and verdict.ambiguous and not policy.may_repeat
