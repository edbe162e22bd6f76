"""Serve something else when the live call failed or was rejected, in both worlds."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.recording import leave
from fuseboard.conventions import Layer, Outcome
from fuseboard.policy.config import Fallback


def fall_back(run: GuardedRun) -> Any:
    """Return what the first fallback gives that is of use.

    Raises:
        BaseException: What the tool itself raised, if nothing can be served.
    """
    for fallback in run.fallbacks():
        entered = run.enter()
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
    for fallback in run.fallbacks():
        entered = run.enter()
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


def ask(run: GuardedRun, fallback: Fallback) -> Any:
    """Return what a fallback gives: its static value, or what its function returns."""
    if fallback.function is not None:
        return fallback.function(*run.args, **run.kwargs)
    value = fallback.value
    # A copy where the caller could change it.
    return copy.deepcopy(value) if type(value) in (dict, list, set) else value


def serves(run: GuardedRun, fallback: Fallback, value: Any) -> bool:
    """Serve what a fallback gave, unless it is unusable as well."""
    call = run.call
    finding = run.inspect(value)
    if finding is not None and finding.partial_failures is None:
        call.note("fallback", "failed")
        return False
    call.result_source = fallback.source
    call.confidence = fallback.confidence
    call.fallback_tool = fallback.name
    call.note("fallback", "served")
    run.served(value, Layer.FALLBACK)
    return True


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
    if issubclass(type(error), Exception):
        return False
    run.end(Outcome.ERROR, judged, Layer.FALLBACK)
    return True
