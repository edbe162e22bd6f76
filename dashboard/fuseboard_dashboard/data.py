"""Query results, shared between viewers for a few seconds and never older than a refresh.

Results are Arrow tables, which nobody can change in place; every caller gets a frame of its own.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from fuseboard_collector.reading import Reader

MAX_ENTRIES: Final = 256
TTL_SECONDS: Final = 5.0
"""The shortest refresh interval: a cached answer is gone before the next refresh."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One query's result.

    Attributes:
        table: The rows; immutable.
        read_at: When the store was asked, in UTC.
    """

    table: pa.Table
    read_at: datetime

    def frame(self) -> pd.DataFrame:
        """Return the rows as a new frame; changing it changes nothing else."""
        frame: pd.DataFrame = self.table.to_pandas(timestamp_as_object=False)
        return frame


@dataclass(slots=True)
class _Entry:
    lock: threading.Lock = field(default_factory=threading.Lock)
    answer: Answer | None = None
    expires: float = 0.0


class QueryCache:
    """Answers queries from memory while they are fresh; one store access per key at a time.

    Errors are never kept: the next refresh asks the store again.
    """

    def __init__(
        self,
        ttl: float = TTL_SECONDS,
        max_entries: int = MAX_ENTRIES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl = ttl
        self._max_entries = max_entries
        self._monotonic = monotonic
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def ask(
        self,
        reader: Reader,
        name: str,
        parameters: Mapping[str, object],
        now: Callable[[], datetime],
    ) -> Answer:
        """Return a query's result, at most ``ttl`` seconds old.

        Args:
            reader: The store; its ``store_id`` is part of the key.
            name: Query name.
            parameters: Every parameter of the query; all of them are part of the key.
            now: Tells when the store was asked.
        """
        entry = self._entry(_key(reader.store_id, name, parameters))
        with entry.lock:
            if entry.answer is None or self._monotonic() >= entry.expires:
                entry.answer = None
                started = now()
                answer = Answer(reader.query(name, parameters), started)
                entry.answer, entry.expires = answer, self._monotonic() + self._ttl
            return entry.answer

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()

    def _entry(self, key: str) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)
            return entry


def _key(store_id: str, name: str, parameters: Mapping[str, object]) -> str:
    return json.dumps([store_id, name, sorted(parameters.items())], ensure_ascii=False)


def record(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the first row by column name, unchecked."""
    return {str(key): value for key, value in frame.iloc[0].to_dict().items()}


def rows(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the rows as named tuples; their fields are the query's columns, unchecked."""
    yield from frame.itertuples(index=False)


CACHE = QueryCache()
"""The cache of this process."""
