"""How long an answer may be served again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fuseboard.conventions import ErrorClass
from fuseboard.errors import ConfigurationError
from fuseboard.policy.config.checks import (
    MAX_SECONDS,
    check_bool,
    check_choices,
    check_int,
    check_number,
    check_plain,
    check_positive,
)

if TYPE_CHECKING:
    from fuseboard.policy.cache_redis import RedisStore

MAX_ENTRIES: Final = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Serve an answer again for a while, from memory and, if given, from Redis.

    Attributes:
        ttl: Seconds for which memory serves an answer that this process fetched.
        redis: The second level: a :class:`fuseboard.RedisStore`, or a ``redis://`` URL.
        redis_ttl: Seconds for which Redis serves an answer; at least ``ttl``.
        backfill_ttl: Seconds for which memory serves an answer that came from Redis.
        stale: Seconds past its time for which an answer may still stand in for a live one that
            failed or was rejected; the call is then ``degraded``. 0 for never.
        stale_on: The classes of fault that a stale answer is served for. ``L1_input`` is never
            one: the caller has to correct it.
        max_entries: Answers held in memory, for each tool; the least recently used goes first.
            Their size is not counted.
        key: Returns what makes two calls equal, from the bound arguments (of a method, its
            object too, under the parameter's name); None for a call that is not to be cached.
            Default the arguments themselves, without the tool's ``ignore_arguments``.
        single_flight: Whether equal calls at the same time wait for the first of them.
        allow_unsafe: Whether to cache a tool whose ``effects`` are ``unsafe``.

    Since 0.1.
    """

    ttl: float = 120.0
    redis: RedisStore | str | None = None
    redis_ttl: float = 300.0
    backfill_ttl: float = 60.0
    stale: float = 0.0
    stale_on: Collection[ErrorClass] = tuple(c for c in ErrorClass if c is not ErrorClass.L1_INPUT)
    max_entries: int = 1000
    key: Callable[[Mapping[str, object]], object] | None = None
    single_flight: bool = True
    allow_unsafe: bool = False

    def __post_init__(self) -> None:
        for name in ("ttl", "redis_ttl", "backfill_ttl"):
            check_positive("Cache", name, getattr(self, name), is_optional=False)
        check_number("Cache", "stale", self.stale, 0, MAX_SECONDS)
        check_int("Cache", "max_entries", self.max_entries, 1, MAX_ENTRIES)
        for name in ("single_flight", "allow_unsafe"):
            check_bool("Cache", name, getattr(self, name))
        servable = [c for c in ErrorClass if c is not ErrorClass.L1_INPUT]
        check_choices("Cache", "stale_on", self.stale_on, servable)
        check_plain("Cache", "key", self.key)
        if self.redis is not None:
            self._check_redis()

    @property
    def store(self) -> RedisStore | None:
        """The second level, if there is one."""
        return self.redis  # type: ignore[return-value]  # made a store above

    def _check_redis(self) -> None:
        from fuseboard.policy.cache_redis import RedisStore  # only where it is asked for

        if isinstance(self.redis, str):
            object.__setattr__(self, "redis", RedisStore(self.redis))
        if not isinstance(self.redis, RedisStore):
            raise ConfigurationError(
                f"Cache(redis={self.redis!r}): must be a fuseboard.RedisStore, a redis:// URL, or "
                "None"
            )
        if self.redis_ttl < self.ttl:
            raise ConfigurationError(
                f"Cache(redis_ttl={self.redis_ttl!r}): must be at least ttl ({self.ttl:g} s), "
                "for Redis is asked when memory no longer serves"
            )
