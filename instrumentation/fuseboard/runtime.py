"""The process-wide state that wrappers and telemetry share: clock, randomness, registrations."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from fuseboard.clock import Clock, SystemClock
from fuseboard.forking import after_fork_in_child
from fuseboard.randomness import RANDOM
from fuseboard.record import (
    AttemptRecord,
    BreakerStatus,
    BreakerTransition,
    CallRecord,
    Telemetry,
    ToolInfo,
)

logger = logging.getLogger("fuseboard")


class NullTelemetry:
    """What calls report to before ``fuseboard.init()``: nothing, said once."""

    def __init__(self) -> None:
        self._said = False

    def tool_registered(self, tool: ToolInfo) -> None:
        """Do nothing; ``init`` replays registrations."""

    def call_started(self, call: CallRecord) -> None:
        """Say once that nothing is recorded."""
        if not self._said:
            self._said = True
            logger.warning(
                "tool %r was called before fuseboard.init(): policies guard the call, but no "
                "span or metric is recorded. Call fuseboard.init(service=...) once at start-up.",
                call.tool.name,
            )

    def enter(self, call: CallRecord) -> object:  # noqa: ARG002 - the protocol's
        """Do nothing."""
        return None

    def leave(self, token: object) -> None:
        """Do nothing."""

    def attempt_started(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Do nothing."""

    def attempt_ended(self, call: CallRecord, attempt: AttemptRecord) -> None:
        """Do nothing."""

    def call_ended(self, call: CallRecord) -> None:
        """Do nothing."""

    def begin(self, call: CallRecord) -> object:
        """Say once that nothing is recorded."""
        self.call_started(call)
        return None

    def finish(self, call: CallRecord) -> None:
        """Do nothing."""

    def breaker_created(self, status: BreakerStatus) -> None:
        """Do nothing; ``init`` replays breakers."""

    def breaker_changed(self, transition: BreakerTransition) -> None:
        """Do nothing."""


class Tap(Telemetry, Protocol):
    """Stands before a telemetry and hands on what it is told.

    Attributes:
        inner: That telemetry.
    """

    inner: Telemetry


class Runtime:
    """One per process; tests make their own.

    Attributes:
        clock: Source of time.
        uniform: ``uniform(low, high)``, the randomness of back-off.
        telemetry: Where calls report to.
        breaker_statuses: Lists the present state of every breaker; set by the policy layer.
        abandoned_threads: Counts the sync calls that outlived their timeout; set by the
            policy layer.
        region: The process's own region, if ``init`` was given one.
        log_call: Logs a call that ended otherwise than by a first attempt that succeeded.
        record_arguments: Whether wrappers put the bound arguments on the record.
        record_results: Whether wrappers put the returned value on the record.
        taps: What listens beside the telemetry, oldest first; of use to tests.
        has_scopes: Whether a session was ever opened; until then calls do not look for one.
        has_gates: Whether one was opened that may reject calls of tools without a policy.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or SystemClock()
        self.uniform: Callable[[float, float], float] = RANDOM.uniform
        self.telemetry: Telemetry = NullTelemetry()
        self.breaker_statuses: Callable[[], list[BreakerStatus]] = list
        self.abandoned_threads: Callable[[], int] = int
        self.region: str | None = None
        self.log_call: Callable[[CallRecord], None] | None = None
        self.record_arguments = False
        self.record_results = False
        self.taps: list[Tap] = []
        self._asked_for = (False, False)
        self.has_scopes = False
        self.has_gates = False
        self._tools: dict[str, ToolInfo] = {}
        self.renew_lock()

    def renew_lock(self) -> None:
        """Make a new lock, as a forked child must."""
        self._lock = threading.RLock()

    def register(self, tool: ToolInfo) -> None:
        """Remember a tool, so that its name may become a label value."""
        with self._lock:
            self._tools[tool.name] = tool
        self.telemetry.tool_registered(tool)

    def tools(self) -> list[ToolInfo]:
        """Return the registered tools, oldest first."""
        with self._lock:
            return list(self._tools.values())

    def record(self, *, arguments: bool, results: bool) -> None:
        """Say what ``init`` wants on the records; whoever taps them wants both."""
        self._asked_for = (arguments, results)
        is_tapped = bool(self.taps)
        self.record_arguments = arguments or is_tapped
        self.record_results = results or is_tapped

    def add_tap(self, tap: Tap) -> None:
        """Report to a tap, which hands on to its inner telemetry."""
        self.taps.append(tap)
        self.telemetry = tap
        self.record(arguments=self._asked_for[0], results=self._asked_for[1])

    def remove_tap(self, tap: Tap, telemetry: Telemetry) -> None:
        """Report to ``telemetry`` again if nothing else taps since."""
        self.taps.remove(tap)
        if self.telemetry is tap:
            self.telemetry = telemetry
        self.record(arguments=self._asked_for[0], results=self._asked_for[1])

    def install(self, telemetry: Telemetry) -> None:
        """Send everything to ``telemetry`` from now on, registrations so far included."""
        if self.taps:
            self.taps[0].inner = telemetry
        else:
            self.telemetry = telemetry
        for tool in self.tools():
            telemetry.tool_registered(tool)
        for status in self.breaker_statuses():
            telemetry.breaker_created(status)


RUNTIME = Runtime()
"""The runtime of this process."""
after_fork_in_child(RUNTIME.renew_lock)
