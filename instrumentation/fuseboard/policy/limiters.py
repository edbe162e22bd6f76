"""All limiters of the process, by what they guard."""

from __future__ import annotations

import threading
from typing import Final

from fuseboard.conventions import OTHER_LABEL
from fuseboard.forking import after_fork_in_child
from fuseboard.policy.breaker import BreakerKey
from fuseboard.policy.config import Limit
from fuseboard.policy.limiter import Limiter
from fuseboard.runtime import RUNTIME, Runtime

MAX_LIMITERS: Final = 1024
"""A bound, because regions and upstreams may come from arguments that a model invents."""


class LimiterRegistry:
    """Makes limiters when they are first needed."""

    def __init__(self, runtime: Runtime) -> None:
        """Make an empty registry whose limiters follow the clock of ``runtime``."""
        self._runtime = runtime
        self._limiters: dict[BreakerKey, Limiter] = {}
        self._configs: dict[str, Limit] = {}
        self._lock = threading.RLock()

    def declare(self, tool: str, config: Limit) -> None:
        """Say which bounds a tool has; other ones make its limiters anew.

        Attempts that run then give their places back to the limiters that they came by.
        """
        with self._lock:
            if self._configs.get(tool, config) != config:
                for key in [key for key in self._limiters if key.tool == tool]:
                    del self._limiters[key]
            self._configs[tool] = config

    def get(self, key: BreakerKey, config: Limit) -> Limiter:
        """Return the limiter of a key; past ``MAX_LIMITERS`` a tool's new keys share one."""
        limiter = self._limiters.get(key)
        return limiter if limiter is not None else self._make(key, config)

    def clear(self) -> None:
        """Forget every limiter, as tests need it."""
        with self._lock:
            self._limiters.clear()
            self._configs.clear()

    def renew(self) -> None:
        """Start anew in a forked child."""
        self._lock = threading.RLock()
        for limiter in self._limiters.values():
            limiter.renew()

    def _make(self, key: BreakerKey, config: Limit) -> Limiter:
        with self._lock:
            if key not in self._limiters and len(self._limiters) >= MAX_LIMITERS:
                key = BreakerKey(key.tool, OTHER_LABEL)
            limiter = self._limiters.get(key)
            if limiter is None:
                # A call that began under other bounds must not bring those back.
                config = self._configs.get(key.tool, config)
                limiter = self._limiters[key] = Limiter(key, config, self._runtime.clock)
            return limiter


LIMITERS: Final = LimiterRegistry(RUNTIME)
after_fork_in_child(LIMITERS.renew)
