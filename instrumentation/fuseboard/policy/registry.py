"""All breakers of the process, by what they guard."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from fuseboard import guard
from fuseboard.conventions import OTHER_LABEL, BreakerState
from fuseboard.forking import after_fork_in_child
from fuseboard.policy.breaker import BreakerKey, CircuitBreaker, tell_nobody
from fuseboard.policy.config import Breaker
from fuseboard.record import BreakerStatus, BreakerTransition
from fuseboard.runtime import RUNTIME, Runtime

MAX_BREAKERS: Final = 1024
"""A bound, because regions and upstreams may come from arguments that a model invents."""


class BreakerRegistry:
    """Makes breakers when they are first needed and lists them.

    Attributes:
        epoch: Another number whenever breakers were replaced, so that one may be kept till then.
    """

    def __init__(self, runtime: Runtime) -> None:
        """Make an empty registry that reports to the telemetry of ``runtime``."""
        self._runtime = runtime
        self._breakers: dict[BreakerKey, CircuitBreaker] = {}
        self._configs: dict[str, Breaker] = {}
        self._withdrawn: set[str] = set()
        self._lock = threading.RLock()
        self.epoch = 0
        self._others: list[Callable[[], list[BreakerStatus]]] = []

    def list_also(self, statuses: Callable[[], list[BreakerStatus]]) -> None:
        """List the breakers of another library beside our own."""
        with self._lock:
            if statuses not in self._others:
                self._others.append(statuses)

    def list_no_more(self, statuses: Callable[[], list[BreakerStatus]]) -> None:
        """Leave the breakers of another library out again."""
        with self._lock:
            if statuses in self._others:
                self._others.remove(statuses)

    def declare(self, tool: str, config: Breaker) -> None:
        """Say which thresholds a tool's breakers have; other ones make its breakers anew.

        Those that are held open by hand stay so.
        """
        with self._lock:
            replaced = self._take_out(tool) if self._configs.get(tool, config) != config else []
            self._configs[tool] = config
            self._withdrawn.discard(tool)
        for breaker in replaced:
            is_held = breaker.state is BreakerState.ISOLATED
            breaker.retire()
            if is_held:
                self.get(breaker.key, config).isolate()

    def withdraw(self, tool: str) -> None:
        """Forget the breakers of a tool that has none any more."""
        with self._lock:
            withdrawn = self._take_out(tool)
            self._configs.pop(tool, None)
            self._withdrawn.add(tool)
        for breaker in withdrawn:
            breaker.retire()

    def _take_out(self, tool: str) -> list[CircuitBreaker]:
        keys = [key for key in self._breakers if key.tool == tool]
        self.epoch += 1
        return [self._breakers.pop(key) for key in keys]

    def get(self, key: BreakerKey, config: Breaker) -> CircuitBreaker:
        """Return the breaker of a key; past ``MAX_BREAKERS`` a tool's new keys share one."""
        breaker = self._breakers.get(key)
        return breaker if breaker is not None else self._make(key, config)

    def statuses(self) -> list[BreakerStatus]:
        """Return the present state of every breaker."""
        with self._lock:
            breakers = list(self._breakers.values())
            others = list(self._others)
        found = [breaker.status() for breaker in breakers]
        for statuses in others:
            found += statuses()
        return found

    def find(self, name: str) -> CircuitBreaker | None:
        """Return the breaker called ``tool/region/upstream/instance``, if it exists."""
        with self._lock:
            return next((b for key, b in self._breakers.items() if key.name == name), None)

    def clear(self) -> None:
        """Forget every breaker, as tests need it."""
        with self._lock:
            self._breakers.clear()
            self._configs.clear()
            self._withdrawn.clear()
            self.epoch += 1

    def renew_locks(self) -> None:
        """Make new locks in a forked child."""
        self._lock = threading.RLock()
        for breaker in self._breakers.values():
            breaker.renew_locks()

    def _make(self, key: BreakerKey, config: Breaker) -> CircuitBreaker:
        with self._lock:
            if key.tool in self._withdrawn:
                # For a call that began before: nobody else would ever close it.
                return CircuitBreaker(key, config, self._runtime.clock, tell_nobody)
            if key not in self._breakers and len(self._breakers) >= MAX_BREAKERS:
                key = BreakerKey(key.tool, OTHER_LABEL)
            breaker = self._breakers.get(key)
            if breaker is not None:
                return breaker
            # A call that began under other thresholds must not bring those back.
            config = self._configs.get(key.tool, config)
            breaker = CircuitBreaker(key, config, self._runtime.clock, self._report)
            self._breakers[key] = breaker
        try:
            self._runtime.telemetry.breaker_created(breaker.status())
        except Exception as fault:
            guard.swallow("reporting a new breaker", fault)
        return breaker

    def _report(self, transition: BreakerTransition) -> None:
        try:
            self._runtime.telemetry.breaker_changed(transition)
        except Exception as fault:
            guard.swallow("reporting a transition of a breaker", fault)


BREAKERS: Final = BreakerRegistry(RUNTIME)
RUNTIME.breaker_statuses = BREAKERS.statuses
after_fork_in_child(BREAKERS.renew_locks)
