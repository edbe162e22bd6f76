"""What happened in one call, told in sentences: its attempts, its waits, what decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fuseboard.conventions import BreakerState, ErrorClass, Layer, Outcome, ResultSource
from fuseboard_dashboard import theme
from fuseboard_dashboard.language import n, t
from fuseboard_dashboard.vocabulary import reason_words
from fuseboard_dashboard.waterfall import CALL, Row, has_failed


def tell(row: Row, changes: Iterable[Any] = ()) -> list[str]:
    """Return what happened in a call, in the order in which it happened.

    Args:
        row: The call, with its attempts.
        changes: Rows of ``page_trace_transitions`` that it caused.
    """
    if row.kind != CALL:
        return []
    return [
        *_entry(row.data),
        *(sentence for attempt in row.attempts for sentence in _attempt(attempt)),
        *map(change, changes),
        *_end(row),
        ending(row.data),
    ]


def _entry(call: Any) -> list[str]:
    state = call.breaker_state
    if state in (None, BreakerState.CLOSED):
        return []
    label = theme.mark(theme.STATE_MARKS, state).label
    return [t("On entry the breaker was {state}.", state=label.lower())]


def _attempt(attempt: Any) -> list[str]:
    sentences = []
    if attempt.delay_seconds > 0:
        sentences.append(t("Waited {wait}.", wait=theme.seconds(attempt.delay_seconds)))
    number, length = attempt.number, theme.seconds(attempt.duration_seconds)
    if has_failed(attempt):
        sentences.append(
            t("Attempt {number} failed after {length}: {fault}.",
              number=number, length=length, fault=fault_words(attempt))
        )  # fmt: skip
    else:
        sentences.append(
            t("Attempt {number} succeeded after {length}.", number=number, length=length)
        )
    return sentences


def fault_words(of: Any) -> str:
    """Return class, type and status of a fault, as far as they are known.

    Args:
        of: A call or an attempt.
    """
    known = [theme.mark(theme.CLASS_MARKS, of.error_class or ErrorClass.UNCLASSIFIED).label]
    if of.error_type is not None:
        known.append(str(of.error_type))
    if of.http_status is not None:
        known.append(t("HTTP {status}", status=int(of.http_status)))
    return t(", ").join(known)


def change(of: Any) -> str:
    """Return how a breaker changed, and why.

    Args:
        of: A row of ``page_trace_transitions``.
    """
    old, new = (theme.mark(theme.STATE_MARKS, s).label.lower()
                for s in (of.from_state, of.to_state))  # fmt: skip
    words = t("Breaker {breaker} went from {old} to {new}", breaker=of.breaker, old=old, new=new)
    reason = reason_words(of.reason)
    counts = ""
    if of.calls:
        counts = t("{failures} of {calls} failed", failures=int(of.failures or 0),
                   calls=int(of.calls))  # fmt: skip
    why = t(", ").join(part for part in (reason, counts) if part)
    return f"{words}: {why}." if why else f"{words}."


def _end(row: Row) -> list[str]:
    """Return why no further attempt was made, where the last one failed."""
    call = row.data
    if not row.attempts or not has_failed(row.attempts[-1]):
        return []
    if call.retryable is False and call.layer != Layer.RETRY:
        return [t("Not retried: this kind of fault is not expected to pass.")]
    return [t("No attempt was made after that.")]


def ending(call: Any) -> str:
    """Return what the caller got.

    Args:
        call: A row of ``page_trace_calls``.
    """
    if call.outcome in (Outcome.OK, Outcome.PARTIAL):
        return _answer(call)
    if call.outcome == Outcome.DEGRADED:
        return _substitute(call)
    if call.outcome == Outcome.ERROR:
        return t("The caller got the error.")
    if call.outcome == Outcome.REJECTED:
        return _rejection(call)
    return {
        Outcome.CANCELLED: t("The caller cancelled it."),
        Outcome.ABANDONED: t("The caller left the stream before its end."),
        Outcome.INTERRUPTED: t("The call was interrupted on purpose: a pause or a question."),
    }.get(call.outcome, t("The call ended with outcome {outcome}.", outcome=call.outcome))


def _answer(call: Any) -> str:
    if call.outcome == Outcome.PARTIAL:
        count = int(call.partial_failures or 0)
        if count:
            return n("The caller got a live result, but {count} part of it failed.",
                     "The caller got a live result, but {count} parts of it failed.",
                     count)  # fmt: skip
        return t("The caller got a live result that is not complete.")
    if call.result_source == ResultSource.CACHE:
        return t("Answered from the cache{age}.", age=_age(call))
    return t("The caller got the live result.")


def _substitute(call: Any) -> str:
    fault = fault_words(call)
    sure = f", {_confidence(call)}" if call.confidence else ""
    if call.result_source == ResultSource.CACHE:
        return t("A stale entry of the cache was served{age}{sure}. Behind it: {fault}.",
                 age=_age(call), sure=sure, fault=fault)  # fmt: skip
    if call.result_source == ResultSource.DEFAULT:
        return t("A default was served instead{sure}. Behind it: {fault}.", sure=sure, fault=fault)
    name = call.fallback_tool
    if name:
        return t("The fallback {tool} answered instead{sure}. Behind it: {fault}.",
                 tool=name, sure=sure, fault=fault)  # fmt: skip
    return t("A fallback answered instead{sure}. Behind it: {fault}.", sure=sure, fault=fault)


def _age(call: Any) -> str:
    age = call.result_age_seconds
    return "" if age is None else t(", {age} old", age=theme.seconds(age))


def _confidence(call: Any) -> str:
    return t("confidence {level}", level=str(call.confidence).replace("_", " "))


def _rejection(call: Any) -> str:
    if call.layer == Layer.BREAKER:
        return t("Rejected by the breaker: no attempt was made, the caller got an error at once.")
    if call.layer == Layer.LIMIT:
        return t("Rejected by the limit of calls: no attempt was made.")
    if call.layer == Layer.BUDGET:
        return t("Rejected because a budget was used up: no attempt was made.")
    return t("Rejected: no attempt was made.")
