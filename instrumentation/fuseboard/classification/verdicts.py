"""Verdicts by error class, so that each classifier states only what it knows.

What the classes mean, and which of them are retried, is the table of the contract: only
``L3_transient`` is retryable as it is; the policy may allow ``L5_semantic``.
"""

from __future__ import annotations

from fuseboard.conventions import ErrorClass, Origin
from fuseboard.record import Verdict

_SEVERITY = {
    ErrorClass.L4_PERSISTENT: 5,
    ErrorClass.L2_ACCESS: 4,
    ErrorClass.UNCLASSIFIED: 3,
    ErrorClass.L3_TRANSIENT: 2,
    ErrorClass.L5_SEMANTIC: 1,
    ErrorClass.L1_INPUT: 0,
}


def severity(verdict: Verdict) -> int:
    """Return how grave a verdict is, so that the gravest of several can decide."""
    return _SEVERITY[verdict.error_class]


def input_fault(classifier_id: str, *, status: int | None = None) -> Verdict:
    """Say that the request itself is wrong; nothing was done."""
    return Verdict(
        ErrorClass.L1_INPUT, classifier_id, False, origin=Origin.INPUT, http_status=status
    )


def access_fault(
    classifier_id: str, *, status: int | None = None, retry_after: float | None = None
) -> Verdict:
    """Say that identity, permission, quota or billing stands in the way; nothing was done."""
    return Verdict(
        ErrorClass.L2_ACCESS, classifier_id, False, http_status=status, retry_after=retry_after
    )


def transient_fault(
    classifier_id: str,
    *,
    ambiguous: bool,
    origin: Origin = Origin.TOOL,
    status: int | None = None,
    retry_after: float | None = None,
) -> Verdict:
    """Say that the fault is expected to pass.

    Args:
        classifier_id: Who says so.
        ambiguous: Whether the tool may have taken effect all the same.
        origin: Which part of the agent the fault comes from.
        status: HTTP status, if one is known.
        retry_after: Seconds that the server asked to wait.
    """
    return Verdict(
        ErrorClass.L3_TRANSIENT,
        classifier_id,
        True,
        ambiguous=ambiguous,
        origin=origin,
        http_status=status,
        retry_after=retry_after,
    )


def persistent_fault(
    classifier_id: str,
    *,
    ambiguous: bool = False,
    origin: Origin = Origin.TOOL,
    status: int | None = None,
) -> Verdict:
    """Say that the tool stays broken until somebody fixes it."""
    return Verdict(
        ErrorClass.L4_PERSISTENT,
        classifier_id,
        False,
        ambiguous=ambiguous,
        origin=origin,
        http_status=status,
    )


def semantic_fault(classifier_id: str, *, status: int | None = None) -> Verdict:
    """Say that the tool answered, and so may have taken effect, but the answer is unusable."""
    return Verdict(ErrorClass.L5_SEMANTIC, classifier_id, False, ambiguous=True, http_status=status)


def unclassified_fault(classifier_id: str = "unmatched") -> Verdict:
    """Say that no classifier knew the fault; whether the tool took effect is unknown."""
    return Verdict(ErrorClass.UNCLASSIFIED, classifier_id, False, ambiguous=True)
