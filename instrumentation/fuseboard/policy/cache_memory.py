"""The first level of the cache: the answers of one tool in this process's memory."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from typing import Any, Final, NamedTuple

from fuseboard.conventions import Confidence

_SOLID: Final = frozenset({str, int, float, bool, bytes, type(None), complex})
SURE_SECONDS: Final = 60.0
FAIR_SECONDS: Final = 1800.0


class Entry(NamedTuple):
    """A kept answer. Times are monotonic seconds.

    Attributes:
        value: A copy of its own, never handed out itself.
        born: When it was fetched.
        fresh_until: Until when it is as good as a live one.
    """

    value: Any
    born: float
    fresh_until: float


def copy_of(value: Any) -> Any:
    """Return a value that shares nothing changeable with ``value``.

    Raises:
        Exception: If it can't be copied, as a generator or an open file.
    """
    kind = type(value)
    if kind in _SOLID:
        return value
    # The shape of most answers, at a tenth of the price.
    if kind is dict and all(type(item) in _SOLID for item in value.values()):
        return value.copy()
    if kind is list and all(type(item) in _SOLID for item in value):
        return value.copy()
    return copy.deepcopy(value)


def confidence_at(age: float) -> Confidence:
    """Return how far to trust an answer that is ``age`` seconds old."""
    if age <= SURE_SECONDS:
        return Confidence.MEDIUM_HIGH
    return Confidence.MEDIUM if age <= FAIR_SECONDS else Confidence.LOW


class MemoryLevel:
    """A bounded number of entries; the least recently used goes first."""

    def __init__(self, max_entries: int) -> None:
        """Hold up to ``max_entries``."""
        self._max_entries = max_entries
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self.renew_lock()

    def renew_lock(self) -> None:
        """Make a new lock, as a forked child must."""
        self._lock = threading.RLock()

    def get(self, key: str) -> Entry | None:
        """Return an entry, fresh or not."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries.move_to_end(key)
            return entry

    def put(self, key: str, entry: Entry) -> None:
        """Keep an entry, unless one is there that stays fresh for longer."""
        with self._lock:
            known = self._entries.get(key)
            if known is not None and known.fresh_until > entry.fresh_until:
                return
            self._entries[key] = entry
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def drop(self, key: str, entry: Entry) -> None:
        """Forget an entry that is of no more use, unless another took its place."""
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
