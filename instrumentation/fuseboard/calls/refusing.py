"""Weigh what a tool returned by its policy's validation, and say no in words."""

from __future__ import annotations

from typing import Final

from fuseboard.classification import (
    CONTRACT,
    EMPTY,
    ResultFinding,
    describe_empty,
    is_empty,
    judge_result,
)
from fuseboard.classification.problems import in_words
from fuseboard.errors import InvalidResultError
from fuseboard.policy.config import Validation
from fuseboard.policy.contract import first_problems

NO_ITEMS: Final = ResultFinding(EMPTY, EMPTY.classifier_id, refusal="delivered no items")
REFUSALS: Final = frozenset({EMPTY.classifier_id, CONTRACT.classifier_id})
"""The classifiers whose verdict means that validation has the last word."""

_ADD_FALLBACK: Final = "add a fallback to the policy, or catch this error"
# A plain function that returned a generator or a coroutine has returned: no fallback may follow.
_REWRITE: Final = (
    "catch this error, or write the tool as a generator function or a coroutine function, which "
    "a fallback can stand in for"
)


def inspect_answer(
    validation: Validation | None, value: object, now: float
) -> ResultFinding | None:
    """Return what is wrong with a returned value, by itself or by the policy's measure, or None.

    Args:
        validation: What the policy asks for.
        value: What the tool returned.
        now: Wall time, seconds since the epoch.
    """
    finding = judge_result(value, now)
    if validation is None or (finding is not None and finding.partial_failures is None):
        return finding
    return _refuse(validation, value) or finding


def refused(
    tool: str, value: object, finding: ResultFinding, *, is_last: bool
) -> InvalidResultError:
    """Return the error for a value that validation refuses.

    Args:
        tool: The tool's name.
        value: What it returned.
        finding: Why the value is refused.
        is_last: Whether nothing may follow what the tool handed out.
    """
    advice = _REWRITE if is_last else _ADD_FALLBACK
    problem = finding.refusal or "returned nothing of use"
    return InvalidResultError(tool, value, problem, advice, finding.problems)


def _refuse(validation: Validation, value: object) -> ResultFinding | None:
    if validation.non_empty and is_empty(value):
        did = f"returned {describe_empty(value)}"
        return ResultFinding(EMPTY, EMPTY.classifier_id, refusal=did)
    problems = first_problems(validation.checks, value)
    if not problems:
        return None
    words = in_words(problems)
    return ResultFinding(
        CONTRACT,
        CONTRACT.classifier_id,
        words,
        refusal=f"returned a value that breaks its contract ({words})",
        problems=problems,
    )
