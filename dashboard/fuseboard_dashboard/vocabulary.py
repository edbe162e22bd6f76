"""What classes, outcomes and breaker states mean, in words for the person on call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fuseboard.conventions import ErrorClass


@dataclass(frozen=True, slots=True)
class ClassMeaning:
    """One error class, explained.

    Attributes:
        meaning: What happened.
        examples: What it looks like.
        handling: What the shim does about it.
        owner: Who has to act.
        page: The page of the documentation that says how; empty = none needed.
    """

    meaning: str
    examples: str
    handling: str
    owner: str
    page: str = ""


CLASS_MEANINGS: Final[dict[str, ClassMeaning]] = {
    ErrorClass.L1_INPUT: ClassMeaning(
        "The request itself is wrong.",
        "schema or argument errors, 400, 404, 409, 422, context too long, unknown tool",
        "not retried: the caller gets the error; not in the error rate",
        "agent engineer",
    ),
    ErrorClass.L2_ACCESS: ClassMeaning(
        "Identity, permission, quota or billing.",
        "401, 402, 403, expired key, used-up quota",
        "fails at once",
        "owner of the credential",
    ),
    ErrorClass.L3_TRANSIENT: ClassMeaning(
        "Expected to pass by itself.",
        "time-outs, resets, refused connections, 429, 500, 502, 503, 504",
        "retried with jitter; counts for the breaker",
        "nobody, until it lasts",
    ),
    ErrorClass.L4_PERSISTENT: ClassMeaning(
        "Broken until somebody fixes it.",
        "unknown host, certificate errors, 410, 501, defects in the tool",
        "not retried; answered by a fallback if the policy has one; counts for the breaker",
        "tool owner",
    ),
    ErrorClass.L5_SEMANTIC: ClassMeaning(
        "Answered, but unusable.",
        "empty 200, broken contract, malformed JSON, partial failure, isError",
        "retried only if the tool's policy says so",
        "agent engineer and tool owner",
    ),
    ErrorClass.UNCLASSIFIED: ClassMeaning(
        "No classifier knew it.",
        "a number to drive to zero: give it a class with a classifier of your own",
        "not retried; counts for the breaker",
        "agent engineer",
        page="docs/classification.md",
    ),
}

_REASONS: Final[dict[str, str]] = {
    "failure_ratio": "too many failures",
    "slow_call_ratio": "too many slow calls",
    "break_over": "break over, probing",
    "probe_failed": "probe failed",
    "probe_succeeded": "probes succeeded",
    "isolated_by_hand": "isolated by hand",
    "closed_by_hand": "closed by hand",
}


def reason_words(reason: object) -> str:
    """Return why a breaker changed, in words; a reason of somebody else's with spaces at least."""
    if not isinstance(reason, str):
        return ""
    return _REASONS.get(reason, reason.replace("_", " "))
