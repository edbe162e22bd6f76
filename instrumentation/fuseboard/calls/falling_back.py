"""Serve something else when the live call failed or was rejected, in both worlds."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from fuseboard import guard
from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.recording import leave
from fuseboard.calls.substitutes import lesser
from fuseboard.conventions import Layer, Outcome, ResultSource
from fuseboard.policy.config import Fallback


def fall_back(run: GuardedRun) -> Any:
    """Return a stale answer, or else what the first fallback gives that is of use.

    Raises:
        BaseException: What the tool itself raised, if nothing can be served.
    """
    stale = serve_stale(run)
    if stale is not None:
        return stale[0]
    for fallback in run.fallbacks():
        entered = run.enter_fallback()
        try:
            value = ask(run, fallback)
        except BaseException as error:
            leave(entered)
            if failed(run, error):
                raise
            continue
        leave(entered)
        if serves(run, fallback, value):
            return value
    return run.conclude()


async def fall_back_async(run: GuardedRun) -> Any:
    """Do what :func:`fall_back` does, for async tools."""
    stale = serve_stale(run)
    if stale is not None:
        return stale[0]
    for fallback in run.fallbacks():
        entered = run.enter_fallback()
        try:
            value = ask(run, fallback)
            if inspect.isawaitable(value):
                value = await value
        except BaseException as error:
            leave(entered)
            if failed(run, error):
                raise
            continue
        leave(entered)
        if serves(run, fallback, value):
            return value
    return run.conclude()


def serve_stale(run: GuardedRun) -> tuple[Any] | None:
    """Serve the stale answer of the cache, if there is one that may be; return it."""
    stale = run.stale_answer()
    if stale is None:
        return None
    try:
        value = stale.copy()
    except Exception as fault:
        guard.swallow("copying an answer of the cache", fault)
        return None
    call = run.call
    call.result_source = ResultSource.CACHE
    call.result_age_seconds = stale.age
    call.confidence = stale.confidence
    call.note("cache", "stale")
    run.served(value, Layer.CACHE)
    return (value,)


def ask(run: GuardedRun, fallback: Fallback) -> Any:
    """Return what a fallback gives: its static value, or what its function returns."""
    call = run.call
    # What is said of the answer is said of this one, and of none before it.
    call.result_age_seconds = call.confidence = None
    call.asked = fallback.tool
    if fallback.function is not None:
        return fallback.function(*run.args, **run.kwargs)
    value = fallback.value
    # A copy where the caller could change it.
    return copy.deepcopy(value) if type(value) in (dict, list, set) else value


def serves(run: GuardedRun, fallback: Fallback, value: Any, *, is_empty: bool = False) -> bool:
    """Serve what a fallback gave, unless it is unusable as well.

    Args:
        run: The call.
        fallback: The fallback.
        value: What it gave.
        is_empty: Whether it is a stream without items.
    """
    call = run.call
    if _is_unusable(run, fallback, value, is_empty):
        call.note("fallback", "failed")
        call.spoil_fallback()
        return False
    call.result_source = fallback.source
    call.confidence = lesser(fallback.confidence, call.confidence)
    call.fallback_tool = fallback.name
    call.note("fallback", "handed_over" if fallback.hand_over else "served")
    run.served(value, Layer.FALLBACK)
    return True


def _is_unusable(run: GuardedRun, fallback: Fallback, value: Any, is_empty: bool) -> bool:
    finding = run.inspect(value)
    if finding is None:
        validation = run.policy.validation
        refuses_empty = validation is not None and validation.non_empty
        return is_empty and refuses_empty and not fallback.hand_over
    if finding.refusal is not None:
        return not fallback.hand_over  # the person has been told, whatever there is to say of it
    return finding.partial_failures is None


def failed(run: GuardedRun, error: BaseException) -> bool:
    """Take in what a fallback raised.

    Returns:
        Whether the call has ended: the fallback was cancelled or meant to interrupt.
    """
    judged = run.judge(error)
    if isinstance(judged, Outcome):
        run.end(judged, None, Layer.FALLBACK)
        return True
    run.call.note("fallback", "failed")
    run.call.result_age_seconds = run.call.confidence = None
    run.call.spoil_fallback()
    if issubclass(type(error), Exception):
        return False
    run.end(Outcome.ERROR, judged, Layer.FALLBACK)
    return True
