"""Judge what a framework's tool returned or raised, and why a framework refuses to run one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from fuseboard import guard
from fuseboard.calls.binding import fits, signature_of
from fuseboard.calls.invocation import RUNNING
from fuseboard.calls.judging import JudgedEnd, ReturnedFault, judge_raised
from fuseboard.calls.registration import Tool
from fuseboard.classification import BINDING, ResultFinding, judge_result
from fuseboard.classification.inspecting import message_of
from fuseboard.conventions import ErrorClass, Outcome
from fuseboard.record import Fault
from fuseboard.runtime import RUNTIME

_REFUSALS: Final = (ValueError, TypeError, LookupError)


def checked(value: Any, finding: Callable[[Any], ResultFinding | None]) -> Any:
    """Return a value, unless it reports an error in the framework's own form.

    Args:
        value: What the framework's tool returned.
        finding: Says what is wrong with it, or None; may add words to what is found anyway.

    Raises:
        ReturnedFault: If it reports an error.
    """
    try:
        found = _find(value, finding)
    except Exception as fault:
        guard.swallow("reading a framework's result", fault)
        return value
    if found is None or found.partial_failures is not None:
        return value
    raise ReturnedFault(found, value)


def report(value: Any, finding: Callable[[Any], ResultFinding | None]) -> None:
    """Tell the call that is recorded around this one what is wrong with a value.

    The framework that records it may show no more than words of what its tool returned.

    Args:
        value: What was returned.
        finding: As for :func:`checked`.
    """
    invocation = RUNNING.get()
    if invocation is not None and invocation.is_claimed:
        try:
            invocation.reported = _find(value, finding)
        except Exception as fault:
            guard.swallow("reading a framework's result", fault)


def _find(value: Any, finding: Callable[[Any], ResultFinding | None]) -> ResultFinding | None:
    """Find what is wrong with a value: a class that the value itself names, else the adapter's."""
    found, own = judge_result(value, RUNTIME.clock.time_ns() / 1e9), finding(value)
    if found is None or own is None:
        return found or own
    if found.verdict.error_class is ErrorClass.L5_SEMANTIC:
        return own
    return replace(found, message=found.message or own.message)


def misfit(
    function: object, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: TypeError
) -> JudgedEnd | None:
    """Return what a ``TypeError`` means if the arguments do not fit the tool's function.

    Args:
        function: The function that the framework called.
        args: Positional arguments that it passed.
        kwargs: Keyword arguments that it passed.
        error: What was raised.
    """
    signature = signature_of(function) if callable(function) else None
    if fits(signature, args, kwargs):
        return None
    return JudgedEnd(Fault(BINDING, "TypeError", message_of(error)), error=error)


def judge_refusal(tool: Tool, error: BaseException) -> Fault | Outcome:
    """Judge what a framework raised before it ran a tool.

    Args:
        tool: The tool.
        error: What was raised.
    """
    judged = _by_cause(tool, error)
    if isinstance(judged, Fault) and isinstance(error, _REFUSALS) and not _blames_input(judged):
        # A ValueError of the framework's is a word on the arguments, no defect of a tool.
        judged.verdict = BINDING
    return judged


def _by_cause(tool: Tool, error: BaseException) -> Fault | Outcome:
    """Judge an exception, by its cause where that is what blames the arguments."""
    judged = judge_raised(tool, error, (), {}, None)
    cause = error.__cause__
    if cause is None or _blames_input(judged):
        return judged
    by_cause = judge_raised(tool, cause, (), {}, None)
    return by_cause if _blames_input(by_cause) else judged


def _blames_input(judged: Fault | Outcome) -> bool:
    return isinstance(judged, Fault) and judged.verdict.error_class is ErrorClass.L1_INPUT
