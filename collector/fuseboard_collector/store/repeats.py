"""Which rows came already: clients resend whole requests when an answer gets lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import duckdb

from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.rows import natural_key

WINDOW_SECONDS = 600.0
MAX_KEYS = 2_000_000


class RepeatFilter:
    """Remembers the keys of at least the last ten minutes, in two generations.

    Keys go in after their commit only, so that a request whose commit failed can be resent.
    Used by the writer thread alone.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        window: float = WINDOW_SECONDS,
        max_keys: int = MAX_KEYS,
    ) -> None:
        """Start empty.

        Args:
            monotonic: Returns seconds that never run backwards.
            window: Seconds for which a key is remembered at least.
            max_keys: Keys in one generation, about 100 bytes each; when more come within the
                window, the oldest are forgotten early.
        """
        self._monotonic = monotonic
        self._window = window
        self._max_keys = max_keys
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()
        self._turn_at = monotonic() + window
        self._young_began = self._old_began = float("-inf")

    @property
    def reach(self) -> float:
        """Seconds for which every key is remembered: the window, or less where many come."""
        return min(self._window, self._monotonic() - self._old_began)

    def fresh(self, keys: Sequence[bytes], pending: set[bytes]) -> list[bool]:
        """Say of each row whether it is new, and note the new ones in ``pending``.

        Args:
            keys: One key per row.
            pending: Keys of the transaction being put together; shared by its calls.

        Returns:
            True for each row to insert.
        """
        young, old = self._young, self._old
        mask = []
        for key in keys:
            new = key not in young and key not in old and key not in pending
            if new:
                pending.add(key)
            mask.append(new)
        return mask

    def remember(self, keys: Iterable[bytes]) -> None:
        """Note keys that are durable now."""
        if self._monotonic() >= self._turn_at or len(self._young) >= self._max_keys:
            self._old, self._young = self._young, set()
            self._turn_at = self._monotonic() + self._window
            self._old_began, self._young_began = self._young_began, self._monotonic()
        self._young.update(keys)

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


def recent_keys(cursor: duckdb.DuckDBPyConnection) -> list[bytes]:
    """Return the keys of what a client may resend after a restart."""

    def rows(name: str, **bound: object) -> list[tuple[object, ...]]:
        return cursor.execute(load(name, "writes").statements[0].sql, bound).fetchall()

    window = WINDOW_SECONDS
    ((since,),) = rows("recent_since", window=window)
    keys = [bytes.fromhex(str(ids)) for (ids,) in rows("recent_keys", since=since)]
    keys += [
        natural_key("breaker_transitions", *row)
        for row in rows("recent_transitions", window=window)
    ]
    keys += [natural_key("heartbeats", *row) for row in rows("recent_heartbeats", window=window)]
    return keys
