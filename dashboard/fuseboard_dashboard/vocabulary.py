"""What classes, outcomes and breaker states mean, in words for the person on call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fuseboard.conventions import ErrorClass
from fuseboard_dashboard.language import later, t


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


def class_meanings() -> dict[str, ClassMeaning]:
    """Return what each error class means, in the viewer's language."""
    return {
        ErrorClass.L1_INPUT: ClassMeaning(
            t("The request itself is wrong."),
            t("schema or argument errors, 400, 404, 409, 422, context too long, unknown tool"),
            t("not retried: the caller gets the error; not in the error rate"),
            t("agent engineer"),
        ),
        ErrorClass.L2_ACCESS: ClassMeaning(
            t("Identity, permission, quota or billing."),
            t("401, 402, 403, expired key, used-up quota"),
            t("fails at once"),
            t("owner of the credential"),
        ),
        ErrorClass.L3_TRANSIENT: ClassMeaning(
            t("Expected to pass by itself."),
            t("time-outs, resets, refused connections, 429, 500, 502, 503, 504"),
            t("retried with jitter; counts for the breaker"),
            t("nobody, until it lasts"),
        ),
        ErrorClass.L4_PERSISTENT: ClassMeaning(
            t("Broken until somebody fixes it."),
            t("unknown host, certificate errors, 410, 501, defects in the tool"),
            t("not retried; answered by a fallback if the policy has one; counts for the breaker"),
            t("tool owner"),
        ),
        ErrorClass.L5_SEMANTIC: ClassMeaning(
            t("Answered, but unusable."),
            t("empty 200, broken contract, malformed JSON, partial failure, isError"),
            t("retried only if the tool's policy says so"),
            t("agent engineer and tool owner"),
        ),
        ErrorClass.UNCLASSIFIED: ClassMeaning(
            t("No classifier knew it."),
            t("a number to drive to zero: give it a class with a classifier of your own"),
            t("not retried; counts for the breaker"),
            t("agent engineer"),
            page="docs/classification.md",
        ),
    }


_REASONS: Final[dict[str, Callable[[], str]]] = {
    "failure_ratio": later("too many failures"),
    "slow_call_ratio": later("too many slow calls"),
    "break_over": later("break over, probing"),
    "probe_failed": later("probe failed"),
    "probe_succeeded": later("probes succeeded"),
    "isolated_by_hand": later("isolated by hand"),
    "closed_by_hand": later("closed by hand"),
}


def reason_words(reason: object) -> str:
    """Return why a breaker changed, in words; a reason of somebody else's with spaces at least."""
    if not isinstance(reason, str):
        return ""
    known = _REASONS.get(reason)
    return known() if known else reason.replace("_", " ")
