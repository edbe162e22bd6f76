"""What has expired, by age or because the store takes too much room; the oldest goes first.

Rows are deleted by arrival, in steps that each are a transaction of bounded size, so that requests
get their turn in between. The freed blocks are used by the next inserts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb

from fuseboard.clock import Clock
from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.space import Usage

INTERVAL_SECONDS = 3600.0
SIZE_INTERVAL_SECONDS = 30.0
FIRST_AFTER_SECONDS = 60.0
STEP_ROWS = 1_000_000
"""Rows that go in one transaction, about 10 ms."""
HIGH = 0.85
"""Share of the allowed size from which on rows go: what comes meanwhile needs room as well."""
LOW = 0.75

_HOUR = timedelta(hours=1)
Arrivals = Sequence[tuple[datetime, int]]
"""Hours with the number of rows that came in them, the oldest first."""


@dataclass(frozen=True, slots=True)
class Keep:
    """What to keep.

    Attributes:
        days: Age at which rows are deleted; None keeps them for good.
        max_bytes: Size of file and log that is not to be exceeded; None for any.
    """

    days: float | None = 30.0
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be deleted.

    Attributes:
        before: Arrival before which rows go, naive UTC; None if nothing is to be deleted.
        rows: How many go.
        why: ``age`` or ``size``.
        steps: The cut-offs of the transactions, ascending; the last is ``before``.
    """

    before: datetime | None = None
    rows: int = 0
    why: str = ""
    steps: tuple[datetime, ...] = ()


class Retention:
    """Says what has expired, and when it is time to ask again."""

    def __init__(self, keep: Keep, clock: Clock) -> None:
        """Start with a first look due after a minute."""
        self.keep = keep
        self._clock = clock
        self._next_age = self._next_size = clock.monotonic() + FIRST_AFTER_SECONDS

    def cutoff(self, keep: Keep | None = None) -> datetime | None:
        """Return the arrival before which rows are too old, naive UTC; None if none is.

        Args:
            keep: What to keep; as configured by default.
        """
        days = (keep or self.keep).days
        if days is None:
            return None
        now = datetime.fromtimestamp(self._clock.time_ns() / 1e9, UTC).replace(tzinfo=None)
        try:
            return now - timedelta(days=days)
        except OverflowError:
            return None  # before the calendar's first day there is nothing to delete

    def due(self) -> bool:
        """Tell whether to look for what is too old; each time puts off the next by an hour."""
        now = self._clock.monotonic()
        if now < self._next_age:
            return False
        self._next_age = now + INTERVAL_SECONDS
        return True

    def is_time(self) -> bool:
        """Tell whether it is time to measure the store."""
        now = self._clock.monotonic()
        if now < self._next_size:
            return False
        self._next_size = now + SIZE_INTERVAL_SECONDS
        return True

    def plan(
        self, connection: duckdb.DuckDBPyConnection, usage: Usage, keep: Keep | None = None
    ) -> Plan:
        """Find out what goes.

        Args:
            connection: The file.
            usage: What it takes.
            keep: What to keep; as configured by default.
        """
        keep = keep or self.keep
        by_age = self.cutoff(keep)
        by_size = _size_cutoff(connection, usage, keep)
        before = max(filter(None, (by_age, by_size)), default=None)
        if before is None:
            return Plan()
        arrivals = _rows(connection, "arrivals", {"before": before})
        count = sum(count for _, count in arrivals)
        why = "age" if before == by_age else "size"
        return Plan(before, count, why, tuple(steps(arrivals, before))) if count else Plan()


def is_over(usage: Usage, keep: Keep) -> bool:
    """Tell whether the store takes so much that rows have to go."""
    return keep.max_bytes is not None and usage.used > HIGH * keep.max_bytes


def _size_cutoff(
    connection: duckdb.DuckDBPyConnection, usage: Usage, keep: Keep
) -> datetime | None:
    """Return the arrival before which rows have to go for the store to be small enough.

    Rows are taken to be of one size; the next look corrects what that gets wrong.
    """
    if keep.max_bytes is None or not is_over(usage, keep):
        return None
    share = min(1.0, max(0.0, 1 - LOW * keep.max_bytes / usage.used))
    found: datetime | None = _rows(connection, "arrival_share", {"share": share})[0][0]
    return found


def steps(arrivals: Arrivals, before: datetime, step_rows: int = STEP_ROWS) -> list[datetime]:
    """Return cut-offs, ascending and ending with ``before``, with bounded rows between them.

    Args:
        arrivals: The rows that go.
        before: The last cut-off.
        step_rows: Rows that should go at once, at most; rows of an hour are taken to have come
            evenly.
    """
    found: list[datetime] = []
    rows = 0
    for hour, count in arrivals:
        if rows + count > step_rows and rows:
            found.append(hour)
            rows = 0
        parts = math.ceil(count / step_rows)
        found += [hour + _HOUR * (part / parts) for part in range(1, parts)]
        rows += count if parts == 1 else count // parts
    return [cutoff for cutoff in found if cutoff < before] + [before]


def _rows(
    connection: duckdb.DuckDBPyConnection, name: str, parameters: dict[str, object]
) -> list[Any]:
    return connection.execute(load(name, "writes").statements[0].sql, parameters).fetchall()
