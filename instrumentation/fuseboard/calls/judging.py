"""Turn what a tool raised or returned into the facts of a record."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from fuseboard.calls.binding import fits
from fuseboard.calls.registration import Tool
from fuseboard.classification import BINDING, ResultFinding, judge_exception
from fuseboard.classification.inspecting import message_of, qualified_name
from fuseboard.conventions import ErrorClass, Layer, Outcome, RetryStrategy
from fuseboard.record import Fault, Verdict
from fuseboard.runtime import RUNTIME

# What a verdict says of the layer that decided, and of what that layer did.
_LAYERS: Final[Mapping[str, tuple[Layer, tuple[str, str]]]] = {
    "attempt_timeout": (Layer.TIMEOUT, ("timeout", "timed_out")),
    "budget_exhausted": (Layer.BUDGET, ("budget", "exhausted")),
    "session_budget_exhausted": (Layer.BUDGET, ("budget", "exhausted")),
    "pool_exhausted_matcher": (Layer.POOL, ("pool", "exhausted")),
    "malformed_data_matcher": (Layer.SERIALIZATION, ("serialization", "failed")),
    "empty_result": (Layer.VALIDATION, ("validation", "failed")),
    "broken_contract": (Layer.VALIDATION, ("validation", "failed")),
    "partial_failures": (Layer.VALIDATION, ("validation", "partial")),
}
_MARK: Final = "_fuseboard_is_under_way"
_FED_BACK: Final = frozenset({ErrorClass.L1_INPUT, ErrorClass.L5_SEMANTIC})


class ReturnedFault(Exception):  # noqa: N818 - never seen by a caller
    """Carries a value that reports an error in a framework's own form through a policy.

    Raised by an adapter in place of the value, so that retry, breaker and fallback treat it as
    the failure that it is; the adapter hands the value on if it is all there is in the end.

    Attributes:
        finding: What is wrong with the value.
        value: The value.
    """

    def __init__(self, finding: ResultFinding, value: object) -> None:
        super().__init__(finding.message)
        self.finding = finding
        self.value = value


class JudgedEnd(Exception):  # noqa: N818 - never seen by a caller
    """Carries the end of an attempt through a policy, with a judgement that an adapter made.

    Raised by an adapter where only it can tell what an exception or a value of its framework
    means; the adapter hands on what it carries, if it is all there is in the end.

    Attributes:
        judged: The fault, or the outcome if it is none.
        error: The exception that the framework raised, or None.
        value: What the framework returned, if it raised nothing.
    """

    def __init__(
        self, judged: Fault | Outcome, *, error: BaseException | None = None, value: object = None
    ) -> None:
        super().__init__()
        self.judged = judged
        self.error = error
        self.value = value


def judge_raised(
    tool: Tool,
    error: BaseException,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ambient: BaseException | None,
) -> Fault | Outcome:
    """Judge an exception; one that refuses the arguments is the caller's mistake.

    Python raises the same ``TypeError`` for arguments that do not fit and for mistakes in the
    body; only the signature tells them apart.
    """
    if type(error) is ReturnedFault:
        return Fault(error.finding.verdict, error.finding.code, error.finding.message)
    if type(error) is JudgedEnd:
        return error.judged
    if type(error) is TypeError and not fits(tool.signature, args, kwargs):
        return Fault(BINDING, "TypeError", message_of(error))
    return judge_exception(error, RUNTIME.clock.time_ns() / 1e9, ambient)


def under_way(error: BaseException, fault: Fault) -> Fault:
    """Return the fault of a call whose job goes on; to submit it again would be its effect twice.

    Args:
        error: The exception, which is marked for whoever judges it outside of the call.
        fault: What it says by itself.
    """
    with suppress(Exception):  # a class may refuse
        BaseException.__setattr__(error, _MARK, True)
    return _open(fault)


def as_marked(error: BaseException, fault: Fault) -> Fault:
    """Return the fault of an exception, with what :func:`under_way` knew of it."""
    return _open(fault) if getattr(error, _MARK, False) else fault


def unsent(judged: Fault | Outcome) -> Fault | None:
    """Return the fault of a call that was refused before its first attempt: it did nothing."""
    if isinstance(judged, Outcome):
        return None
    return replace(judged, verdict=replace(judged.verdict, ambiguous=False))


def _open(fault: Fault) -> Fault:
    return replace(fault, verdict=replace(fault.verdict, retryable=False, ambiguous=True))


def cut_by(outcome: Outcome, error: BaseException) -> str | None:
    """Return what ended an attempt that is no fault, or None if it succeeded (``exit(0)``)."""
    if outcome is Outcome.OK:
        return None
    if type(error) is JudgedEnd:
        return outcome.value if error.error is None else qualified_name(type(error.error))
    return qualified_name(type(error))


def layer_of(verdict: Verdict) -> Layer:
    """Return the layer that a fault comes from."""
    found = _LAYERS.get(verdict.classifier_id)
    return found[0] if found else Layer.TOOL


def action_of(verdict: Verdict) -> tuple[str, str] | None:
    """Return what a layer did when it met a fault, as (layer, action), if it did anything."""
    found = _LAYERS.get(verdict.classifier_id)
    return found[1] if found else None


def answer_to(fault: Fault | None) -> RetryStrategy:
    """Return how a fault is answered that is not retried: some go back to the model."""
    if fault is not None and fault.verdict.error_class in _FED_BACK:
        return RetryStrategy.FEEDBACK
    return RetryStrategy.NONE
