"""The cache of one tool: two levels, and the flights of calls that are under way."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from fuseboard import guard
from fuseboard.conventions import Confidence
from fuseboard.forking import after_fork_in_child
from fuseboard.policy.cache_flights import Flights
from fuseboard.policy.cache_memory import Entry, MemoryLevel, confidence_at, copy_of
from fuseboard.policy.config import Cache
from fuseboard.record import Verdict
from fuseboard.runtime import RUNTIME

if TYPE_CHECKING:
    from fuseboard.policy.cache_redis import Found


class ToolCache:
    """Keeps the answers of one tool.

    Attributes:
        config: Its settings.
        flights: The calls that others may wait for.
    """

    def __init__(self, tool: str, config: Cache) -> None:
        """Make an empty cache for a tool.

        Args:
            tool: The tool's name.
            config: The settings.
        """
        self.config = config
        self.flights = Flights()
        self._memory = MemoryLevel(config.max_entries)
        self._store = config.store
        prefix = self._store.prefix if self._store is not None else ""
        self._prefix = f"{prefix}:cache1:{tool}:"
        fresh = config.ttl if self._store is None else config.redis_ttl
        self._kept_for = fresh + config.stale
        _CACHES.add(self)

    def renew(self) -> None:
        """Make locks anew in a forked child, which keeps the answers."""
        self.flights.renew()
        self._memory.renew_lock()

    def forget(self) -> None:
        """Drop all answers from memory."""
        self._memory.clear()

    def find(self, key: str) -> Entry | None:
        """Return what memory holds: a fresh entry, or a stale one that may still be of use."""
        entry = self._memory.get(key)
        if entry is not None and not self.is_fresh(entry) and not self.may_stand_in(entry):
            self._memory.drop(key, entry)
            return None
        return entry

    def is_fresh(self, entry: Entry) -> bool:
        """Tell whether an entry is as good as a live answer."""
        return RUNTIME.clock.monotonic() < entry.fresh_until

    def may_stand_in(self, entry: Entry) -> bool:
        """Tell whether an entry is young enough to stand in for a live answer that failed."""
        return self.config.stale > 0 and self.age_of(entry) <= self._kept_for

    def age_of(self, entry: Entry) -> float:
        """Return the age of an entry, seconds."""
        return max(0.0, RUNTIME.clock.monotonic() - entry.born)

    def fetch(self, key: str) -> Entry | None:
        """Return what Redis holds, which memory then holds too."""
        if self._store is None:
            return None
        return self._fill(key, self._store.get(self._prefix + key))

    async def fetch_async(self, key: str) -> Entry | None:
        """Do what :meth:`fetch` does, without blocking the event loop."""
        if self._store is None:
            return None
        return self._fill(key, await self._store.get_async(self._prefix + key))

    def keep(self, key: str, value: Any, age: float) -> Entry | None:
        """Keep a live answer in memory; return None for one that can't be copied.

        Args:
            key: The call's key.
            value: The answer, which the caller may change afterwards.
            age: How old the tool says that its answer is, seconds.
        """
        try:
            kept = copy_of(value)
        except Exception as fault:
            guard.swallow("copying an answer for the cache; it is not kept", fault)
            return None
        now = RUNTIME.clock.monotonic()
        entry = Entry(kept, now - age, now + self.config.ttl)
        self._memory.put(key, entry)
        return entry

    def save(self, key: str, entry: Entry) -> None:
        """Keep an entry in Redis too."""
        if self._store is not None:
            self._store.put(self._prefix + key, entry.value, self.age_of(entry), self._kept_for)

    async def save_async(self, key: str, entry: Entry) -> None:
        """Do what :meth:`save` does, without blocking the event loop."""
        if self._store is not None:
            name = self._prefix + key
            await self._store.put_async(name, entry.value, self.age_of(entry), self._kept_for)

    def _fill(self, key: str, found: Found | None) -> Entry | None:
        if found is None:
            return None
        now, config = RUNTIME.clock.monotonic(), self.config
        fresh_for = min(config.backfill_ttl, config.redis_ttl - found.age)
        entry = Entry(found.value, now - found.age, now + max(0.0, fresh_for))
        if not self.is_fresh(entry) and not self.may_stand_in(entry):
            return None
        self._memory.put(key, entry)
        return entry


class Stale(NamedTuple):
    """An entry past its time, which may stand in for a live answer that failed.

    Attributes:
        cache: The cache that holds it.
        entry: The entry.
    """

    cache: ToolCache
    entry: Entry

    def goes_with(self, verdict: Verdict) -> bool:
        """Tell whether it may be served after a fault."""
        return verdict.error_class in self.cache.config.stale_on and self.cache.may_stand_in(
            self.entry
        )

    @property
    def age(self) -> float:
        """Its age, seconds."""
        return self.cache.age_of(self.entry)

    @property
    def confidence(self) -> Confidence:
        """How far to trust it."""
        return confidence_at(self.age)

    def copy(self) -> Any:
        """Return a copy of the answer."""
        return copy_of(self.entry.value)


_CACHES: Final[weakref.WeakSet[ToolCache]] = weakref.WeakSet()


def forget_answers() -> None:
    """Drop the answers of all tools from memory, as tests need it."""
    for cache in list(_CACHES):
        cache.forget()


def _renew_all() -> None:
    for cache in list(_CACHES):
        cache.renew()


after_fork_in_child(_renew_all)
