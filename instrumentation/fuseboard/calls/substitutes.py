"""What may stand in for a live answer: the fallbacks that go with a fault, in order."""

from __future__ import annotations

from collections.abc import Iterator

from fuseboard.conventions import Effects
from fuseboard.policy.config import Fallback, Policy
from fuseboard.record import Verdict


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
