"""Which hours are marked dirty on disk already: looking there costs as much as inserting a call.

Marks are made by the transactions that insert rows and taken away by others, all on the writer's
thread; so what was marked here stays marked until another transaction runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

_HOUR = 3_600_000_000
_WIDEST = 48 * _HOUR
_LONGEST = 48 * 3600.0
_TABLES = frozenset({"tool_calls", "attempts"})


class Marked:
    """Hours that have an unclaimed mark. Used by the writer thread alone."""

    def __init__(self) -> None:
        self._hours: set[int] = set()

    def covers(self, table: str, rows: Sequence[pa.Table]) -> bool:
        """Return whether every hour that rows may belong to is marked.

        Args:
            table: Whose rows they are.
            rows: What is inserted.
        """
        if table not in _TABLES or not self._hours:
            return False
        moments = [moment for part in rows for moment in _bounds(part)]
        first, last = min(moments), max(moments)
        if last - first >= _WIDEST:
            return False
        return all(hour in self._hours for hour in range(_hour(first), _hour(last) + 1))

    def note(self, tables: Mapping[str, Iterable[pa.Table]]) -> None:
        """Take note of hours that a transaction marked, after its commit."""
        for table in _TABLES & tables.keys():
            for part in tables[table]:
                first, last = _bounds(part)
                if _hour(first) == _hour(last):
                    self._hours.add(_hour(first))

    def forget(self) -> None:
        """Another transaction may have taken marks away."""
        self._hours.clear()


def _bounds(rows: pa.Table) -> tuple[int, int]:
    """Return an instant that no row ended before, and one that none ended after."""
    if "end" in rows.column_names:
        end = pc.min_max(rows["end"].cast(pa.int64())).as_py()
        return end["min"], end["max"]
    start = pc.min_max(rows["start"].cast(pa.int64())).as_py()
    longest = pc.max(rows["duration_seconds"]).as_py() or 0.0
    last = start["max"] + (int(longest * 1e6) + 1 if longest < _LONGEST else _WIDEST)
    return start["min"], last


def _hour(moment: int) -> int:
    return (moment - 1) // _HOUR
