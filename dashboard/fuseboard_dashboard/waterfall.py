"""A trace as rows in order: what the waterfall draws, without any markup.

Rows are what the store has of the trace: calls, spans around them, and breakers that changed. Their
order is that of a tree, parents first; times come from clocks of several machines and need not fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import pandas as pd

from fuseboard.conventions import AttemptResult, Outcome
from fuseboard_dashboard import theme
from fuseboard_dashboard.data import rows as rows_of
from fuseboard_dashboard.language import t

CALL, SPAN, CHANGE = "call", "span", "change"
MAX_DRAWN: Final = 150
"""Rows that are drawn; the table below the drawing has all."""

_SKEW: Final = timedelta(milliseconds=5)
"""Attempts that leave their call by more tell of two clocks; times are rounded on the way."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the waterfall.

    Attributes:
        kind: ``CALL``, ``SPAN`` or ``CHANGE`` (of a breaker).
        start: When it began, UTC without a zone, as the store gives it.
        end: When it ended; a change has no length.
        data: The row of the query.
        attempts: Of a call, by number.
        depth: How many rows it lies below.
    """

    kind: str
    start: datetime
    end: datetime
    data: Any
    attempts: tuple[Any, ...] = ()
    depth: int = 0


def rows(
    calls: pd.DataFrame, attempts: pd.DataFrame, spans: pd.DataFrame, changes: pd.DataFrame
) -> list[Row]:
    """Return the rows of a trace as a tree, parents before children and earlier ones first.

    Args:
        calls: Rows of ``page_trace_calls``.
        attempts: Rows of ``page_trace_attempts``.
        spans: Rows of ``page_trace_spans``.
        changes: Rows of ``page_trace_transitions``.
    """
    tried: dict[str, list[Any]] = defaultdict(list)
    for attempt in known(attempts):
        tried[attempt.call_span_id].append(attempt)
    found = [
        *(Row(CALL, call.start, call.end, call, tuple(tried[call.span_id]))
          for call in known(calls)),
        *(Row(SPAN, span.start, span.start + timedelta(seconds=min(span.duration_seconds, 1e9)),
              span) for span in known(spans)),
        *(Row(CHANGE, change.time, change.time, change) for change in known(changes)),
    ]  # fmt: skip
    return list(_as_tree(sorted(found, key=lambda row: (row.start, -(row.end - row.start)))))


def known(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the rows of an answer with None where there is no value, not NaN."""
    yield from rows_of(frame.astype(object).where(frame.notna(), None))


def _as_tree(found: Sequence[Row]) -> Iterator[Row]:
    """Yield rows in the order of their tree; rows that are each other's parents begin one."""
    owners = _owners(found)
    below: dict[int | None, list[int]] = defaultdict(list)
    for number, row in enumerate(found):
        parent = owners.get(row.data.span_id if row.kind == CHANGE else row.data.parent_span_id)
        below[None if parent == number else parent].append(number)
    seen: set[int] = set()
    for first in (*below[None], *range(len(found))):
        waiting = [(first, 0)]
        while waiting:
            number, depth = waiting.pop()
            if number not in seen:
                seen.add(number)
                yield replace(found[number], depth=depth)
                waiting += [(child, depth + 1) for child in reversed(below[number])]


def _owners(found: Sequence[Row]) -> Mapping[str | None, int]:
    """Return which row each span belongs to; a span of an attempt is its call's."""
    owners: dict[str | None, int] = {}
    for number, row in enumerate(found):
        if row.kind != CHANGE:
            owners.setdefault(row.data.span_id, number)
    for number, row in enumerate(found):
        for attempt in row.attempts:
            owners.setdefault(attempt.span_id, number)
    owners.pop(None, None)
    return owners


def worth_drawing(found: Sequence[Row], most: int = MAX_DRAWN) -> list[Row]:
    """Return the rows to draw where there are too many: faults and retries, then the longest."""

    def weight(row: Row) -> tuple[bool, bool, timedelta]:
        is_call = row.kind == CALL
        is_odd = row.kind == CHANGE or is_faulty(row) or (is_call and row.data.attempts > 1)
        return (is_odd, is_call, row.end - row.start)

    if len(found) <= most:
        return list(found)
    kept = sorted(range(len(found)), key=lambda number: weight(found[number]), reverse=True)[:most]
    return [found[number] for number in sorted(kept)]


def orphans(found: Sequence[Row]) -> int:
    """Return how many rows name a parent that is not among them, themselves not at the root.

    Args:
        found: All rows of a trace.
    """
    owners = _owners(found)
    return sum(
        row.kind != CHANGE
        and row.data.parent_span_id is not None
        and row.data.parent_span_id not in owners
        for row in found
    )


def is_skewed(row: Row) -> bool:
    """Tell whether attempts of a call lie outside its time."""
    early, late = _outside(row)
    return max(early, late) > _SKEW


def _outside(row: Row) -> tuple[timedelta, timedelta]:
    """Return how long before a call its attempts begin, and how long after it they end."""
    early = max((row.start - attempt.start for attempt in row.attempts), default=timedelta())
    late = max((attempt.end - row.end for attempt in row.attempts), default=timedelta())
    return early, late


def oddities(row: Row) -> list[str]:
    """Return what is not as it should be about a call's attempts, as sentences."""
    if row.kind != CALL:
        return []
    words: list[str] = []
    early, late = _outside(row)
    if early > _SKEW:
        length = theme.seconds(early.total_seconds())
        words.append(t("An attempt begins {length} before its call.", length=length))
    if late > _SKEW:
        length = theme.seconds(late.total_seconds())
        words.append(t("An attempt ends {length} after its call.", length=length))
    if words:
        words.append(t("Clocks of two machines differ: trust lengths, not places."))
    missing = row.data.attempts - len(row.attempts)
    if missing > 0:
        words.append(
            t("{missing} of {all} attempts have not reached the store.",
              missing=int(missing), all=int(row.data.attempts))
        )  # fmt: skip
    return words


def waits(row: Row) -> Iterator[tuple[Any, datetime, datetime]]:
    """Yield the attempts of a call that were waited for, and when the wait began and ended."""
    for attempt in row.attempts:
        if attempt.delay_seconds > 0:
            delay = timedelta(seconds=min(attempt.delay_seconds, 1e9))
            yield attempt, attempt.start - delay, attempt.start


def is_faulty(row: Row) -> bool:
    """Tell whether a row is a call that met a fault, whether or not it was handled."""
    if row.kind != CALL:
        return False
    return row.data.error_class is not None or row.data.outcome in (Outcome.ERROR, Outcome.REJECTED)


def has_failed(attempt: Any) -> bool:
    """Tell whether an attempt failed."""
    return bool(attempt.result == AttemptResult.FAILURE)
