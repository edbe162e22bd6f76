"""Calls that came too late for the alerts, which look at when calls ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fuseboard_collector.stats import Stats

GRACE_SECONDS: Final = 240.0
"""How long after its end a call may arrive and still be seen by every alert: a minute less than
their shortest window, so that assembly and an evaluation come in between. What arrives later is
in all charts and totals, and in the windows that are long enough."""

_TABLES: Final = frozenset({"tool_calls", "sightings"})
_GRACE_US: Final = int(GRACE_SECONDS * 1_000_000)


def count_late(stats: Stats, table: str, rows: Sequence[pa.Table]) -> None:
    """Count the rows that arrived later than the grace after their end.

    Args:
        stats: Where; ``late_rows`` by table.
        table: The rows' table; only calls can be late.
        rows: New rows, as they are stored.
    """
    if table in _TABLES:
        stats.add("late_rows", sum(_late_in(table, part) for part in rows), table)


def overdue(table: str, rows: pa.Table) -> pa.ChunkedArray:
    """Return how long after their end rows arrived, in microseconds.

    Args:
        table: Whose rows they are; of calls, attempts or spans.
        rows: As they are stored.
    """
    if table == "tool_calls":
        ends = pc.cast(rows["end"], pa.int64())
    else:
        length = pc.cast(pc.multiply(rows["duration_seconds"], 1e6), pa.int64(), safe=False)
        ends = pc.add(pc.cast(rows["start"], pa.int64()), length)
    return pc.subtract(pc.cast(rows["received_at"], pa.int64()), ends)


def _late_in(table: str, rows: pa.Table) -> int:
    return int(pc.sum(pc.greater(overdue(table, rows), _GRACE_US)).as_py() or 0)
