"""The key of a call in the cache of its tool."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from fuseboard import guard
from fuseboard.calls.binding import has_receiver
from fuseboard.calls.guarded import GuardedRun
from fuseboard.calls.registration import Tool
from fuseboard.errors import ConfigurationError
from fuseboard.policy.cache_key import IndistinctError, digest_of
from fuseboard.policy.config import Cache
from fuseboard.runtime import RUNTIME

logger = logging.getLogger("fuseboard")


class Keys:
    """Makes the keys of one tool's calls."""

    def __init__(self, tool: Tool, cache: Cache, function: Callable[..., Any]) -> None:
        """Look at what the tool's arguments leave out.

        Raises:
            ConfigurationError: If the answer depends on an object that is no argument.
        """
        self._tool = tool
        self._make = cache.key
        self._was_said = False
        names = tuple(tool.signature.parameters) if tool.signature else ()
        self._receiver = names[0] if has_receiver(function, names) else None
        if cache.key is None:
            _check_object(tool.info.name, cache, function, self._receiver)

    def of(self, run: GuardedRun) -> str | None:
        """Return a call's key, or None for one that is not cached."""
        try:
            material = self._material(run)
        except Exception as fault:
            guard.swallow("making a key for the cache; the call is not cached", fault)
            return None
        if material is None:
            return None
        call = run.call
        try:
            return digest_of(material, (call.region or RUNTIME.region, call.upstream))
        except IndistinctError as error:
            self._say(str(error))
        except Exception as fault:
            guard.swallow("making a key for the cache; the call is not cached", fault)
        return None

    def _material(self, run: GuardedRun) -> object:
        bound = self._tool.bind(run.args, run.kwargs)
        if self._make is None:
            for name in self._tool.ignored:
                bound.pop(name, None)
            return bound
        if self._receiver is not None and run.args:
            bound = {self._receiver: run.args[0], **bound}
        return self._make(bound)

    def _say(self, kind: str) -> None:
        if self._was_said:
            return
        self._was_said = True
        source = "Cache(key=...) gave" if self._make is not None else "an argument was"
        logger.warning(
            "calls of tool %r are not cached where, as now, %s %s, which can't be told from others "
            "of its kind; name what matters of it with Cache(key=...)",
            self._tool.info.name,
            source,
            kind,
        )


def _check_object(
    tool: str, cache: Cache, function: Callable[..., Any], receiver: str | None
) -> None:
    advice = "name what matters of it with Cache(key=...)"
    if receiver is not None:
        raise ConfigurationError(
            f"Cache() for {tool!r}: {receiver!r} is no part of the key, so all objects of the "
            f"class would share their answers; {advice}"
        )
    is_function = inspect.isfunction(function) or inspect.isbuiltin(function)
    if cache.store is not None and not is_function:
        raise ConfigurationError(
            f"Cache(redis=...) for {tool!r}: what {type(function).__name__} objects hold is no "
            f"part of the key, and other processes may hold something else; {advice}"
        )
