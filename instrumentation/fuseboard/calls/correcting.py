"""Feedback: have the arguments of a failed attempt corrected, in both worlds."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NoReturn

from fuseboard import guard
from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.packets import explain
from fuseboard.classification.problems import in_words
from fuseboard.conventions import ErrorClass, Outcome
from fuseboard.policy.config import Mistake
from fuseboard.policy.timeout import OverrunError, await_within
from fuseboard.runtime import RUNTIME
from fuseboard.telemetry.redaction import redact

_ASKING = "asking for a correction"


def correct(run: GuardedRun) -> bool:
    """Ask for new arguments; return whether there are any."""
    began = RUNTIME.clock.monotonic()
    answer: Any = None
    try:
        answer = _ask(run)
        if inspect.isawaitable(answer):
            _refuse_awaitable(answer)
    except BaseException as error:
        answer = None
        _take(run, error, began)
    return _settle(run, answer, began)


async def async_correct(run: GuardedRun) -> bool:
    """Do what :func:`correct` does, for async tools; the answer may have to be awaited."""
    began = RUNTIME.clock.monotonic()
    answer: Any = None
    try:
        answer = _ask(run)
        if inspect.isawaitable(answer):
            left = run.budget_left
            answer = await (answer if left is None else await_within(left, answer))
    except OverrunError:
        answer = None
    except BaseException as error:
        answer = None
        _take(run, error, began)
    return _settle(run, answer, began)


def _ask(run: GuardedRun) -> Any:
    feedback, mistake = run.policy.feedback, _mistake_of(run)
    return None if feedback is None or mistake is None else feedback.repair(mistake)


def _mistake_of(run: GuardedRun) -> Mistake | None:
    fault = run.fault
    if fault is None:
        return None
    problems = explain(run.tool, fault, run.error, run.args, run.kwargs)
    return Mistake(
        tool=run.call.tool.name,
        arguments=run.tool.bind(run.args, run.kwargs),
        error_class=ErrorClass(fault.verdict.error_class),
        message=in_words(problems) or redact(fault.message) or "the answer is of no use",
        problems=problems,
        attempt=len(run.call.attempts),
    )


def _take(run: GuardedRun, error: BaseException, began: float) -> None:
    """Let pass what means more than a repair that failed; forget the rest."""
    if issubclass(type(error), Exception) and not isinstance(run.judge(error), Outcome):
        guard.swallow(_ASKING, error)
        return
    run.waited(RUNTIME.clock.monotonic() - began)
    run.interrupted(error)
    raise error


def _settle(run: GuardedRun, answer: object, began: float) -> bool:
    took = RUNTIME.clock.monotonic() - began
    run.waited(took)
    if isinstance(answer, Mapping) and all(isinstance(name, str) for name in answer):
        run.corrected(answer, took)
        return True
    if answer is not None:
        wrong = TypeError("a repair must return a mapping of the arguments by name, or None")
        guard.swallow(_ASKING, wrong)
    run.uncorrected()
    return False


def _refuse_awaitable(answer: Any) -> NoReturn:
    if inspect.iscoroutine(answer):
        answer.close()
    raise TypeError("an async repair needs an async tool")
