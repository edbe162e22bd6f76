"""Calls of a tool with a cache: look, wait for an equal call, or make it and keep the answer.

Memory is asked first and by everybody. Of equal calls that find nothing there the first goes on
to Redis and to the tool; the others wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import exception
from typing import Any

from fuseboard.calls.cache_keys import Keys
from fuseboard.calls.cache_visits import Answer, Visit
from fuseboard.calls.driving import drive_async, drive_sync
from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.registration import Tool
from fuseboard.errors import ConfigurationError
from fuseboard.policy.cache import ToolCache
from fuseboard.policy.cache_flights import Flight
from fuseboard.policy.config import Cache, Policy


def cached_sync(
    tool: Tool, policy: Policy, cache: Cache, function: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function that runs ``function`` under a policy with a cache."""
    if cache.store is not None and cache.store.is_async_only:
        raise ConfigurationError(
            f"Cache(redis=...) for {tool.info.name!r}: a client of redis.asyncio needs an async "
            "tool; give RedisStore a URL or a client of redis.Redis"
        )
    keys, store = Keys(tool, cache, function), _store_of(tool, cache)

    def cached(*args: Any, **kwargs: Any) -> Any:
        replaced = tool.replaced
        if replaced is not None and replaced is not cached:
            return replaced(*args, **kwargs)
        run = GuardedRun(tool, policy, args, kwargs, exception(), uses_threads=True)
        key = keys.of(run)
        if key is None:
            return drive_sync(run, function)
        visit = Visit(run, store, key)
        answer = visit.look()
        while answer is None and (flight := visit.board()) is not None:
            answer = _wait(visit, flight)
        if answer is not None:
            return answer[0]
        with visit:
            answer = visit.look_again() or _fetch(visit)
            if answer is not None:
                return answer[0]
            value = drive_sync(run, function)
            entry = visit.keep(value)
            if entry is not None:
                store.save(key, entry)
            return value

    return cached


def cached_async(
    tool: Tool, policy: Policy, cache: Cache, function: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a coroutine function that awaits ``function`` under a policy with a cache."""
    keys, store = Keys(tool, cache, function), _store_of(tool, cache)

    async def cached(*args: Any, **kwargs: Any) -> Any:
        replaced = tool.replaced
        if replaced is not None and replaced is not cached:
            return await replaced(*args, **kwargs)
        run = GuardedRun(tool, policy, args, kwargs, exception())
        key = keys.of(run)
        if key is None:
            return await drive_async(run, function)
        visit = Visit(run, store, key)
        answer = visit.look()
        while answer is None and (flight := visit.board()) is not None:
            answer = await _wait_async(visit, flight)
        if answer is not None:
            return answer[0]
        with visit:
            answer = visit.look_again() or await _fetch_async(visit)
            if answer is not None:
                return answer[0]
            value = await drive_async(run, function)
            entry = visit.keep(value)
            if entry is not None:
                await store.save_async(key, entry)
            return value

    return cached


def _store_of(tool: Tool, cache: Cache) -> ToolCache:
    """Return the tool's store: the one it has, unless the settings of the cache are others."""
    if tool.cached is not None and tool.cached[0] == cache:
        store = tool.cached[1]
        if isinstance(store, ToolCache):
            return store
    store = ToolCache(tool.info.name, cache)
    tool.cached = (cache, store)
    return store


def _wait(visit: Visit, flight: Flight) -> Answer:
    try:
        is_over = flight.wait(visit.patience)
    except BaseException as error:
        visit.cut(error)
        raise
    return visit.land(flight, is_over)


async def _wait_async(visit: Visit, flight: Flight) -> Answer:
    try:
        is_over = await flight.wait_async(visit.patience)
    except BaseException as error:
        visit.cut(error)
        raise
    return visit.land(flight, is_over)


def _fetch(visit: Visit) -> Answer:
    try:
        entry = visit.cache.fetch(visit.key) if visit.may_fetch else None
    except BaseException as error:
        visit.cut(error)
        raise
    return visit.fetched(entry)


async def _fetch_async(visit: Visit) -> Answer:
    try:
        entry = await visit.cache.fetch_async(visit.key) if visit.may_fetch else None
    except BaseException as error:
        visit.cut(error)
        raise
    return visit.fetched(entry)
