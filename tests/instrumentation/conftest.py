"""What the shim's tests share: a telemetry that remembers, and a clock that obeys."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fuseboard import guard
from fuseboard.calls import from_file, manual
from fuseboard.calls.switching import SWITCHES
from fuseboard.classification.user import forget_classifiers
from fuseboard.policy.limiters import LIMITERS
from fuseboard.policy.registry import BREAKERS
from fuseboard.record import BreakerStatus, BreakerTransition, CallRecord, ToolInfo
from fuseboard.runtime import RUNTIME


class RecordingTelemetry:
    """Remembers what it is told and what of it broke the protocol."""

    def __init__(self) -> None:
        self.calls: list[CallRecord] = []
        self.transitions: list[BreakerTransition] = []
        self.breakers: list[BreakerStatus] = []
        self.in_flight: dict[int, CallRecord] = {}
        self.open_attempts: dict[int, CallRecord] = {}
        self.depth = 0
        self.violations: list[str] = []
        self.may_fault = False
        self._lock = threading.Lock()

    @property
    def last(self) -> CallRecord:
        return self.calls[-1]

    def tool_registered(self, tool: ToolInfo) -> None:
        pass

    def call_started(self, call: CallRecord) -> None:
        with self._lock:
            self.in_flight[id(call)] = call

    def enter(self, call: CallRecord) -> object:
        with self._lock:
            self.depth += 1
        return call

    def leave(self, token: object) -> None:
        with self._lock:
            self.depth -= 1

    def attempt_started(self, call: CallRecord, attempt: Any) -> None:
        with self._lock:
            if id(call) in self.open_attempts:
                self.violations.append("a second attempt began before the first ended")
            self.open_attempts[id(call)] = call

    def attempt_ended(self, call: CallRecord, attempt: Any) -> None:
        with self._lock:
            if self.open_attempts.pop(id(call), None) is None:
                self.violations.append("an attempt ended that had not begun")

    def call_ended(self, call: CallRecord) -> None:
        with self._lock:
            if self.in_flight.pop(id(call), None) is None:
                self.violations.append("a call ended twice")
            if call.outcome is None:
                self.violations.append("a call ended without an outcome")
            if id(call) in self.open_attempts:
                self.violations.append("a call ended before its attempt")
            self.calls.append(call)

    def begin(self, call: CallRecord) -> object:
        self.call_started(call)
        self.attempt_started(call, call.attempts[0])
        return self.enter(call)

    def finish(self, call: CallRecord) -> None:
        self.attempt_ended(call, call.attempts[0])
        self.call_ended(call)

    def breaker_created(self, status: BreakerStatus) -> None:
        self.breakers.append(status)

    def breaker_changed(self, transition: BreakerTransition) -> None:
        self.transitions.append(transition)


class FakeClock:
    """Stands still until somebody sleeps or moves it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def time_ns(self) -> int:
        return 1_800_000_000_000_000_000 + int(self.now * 1e9)

    def monotonic(self) -> float:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def async_sleep(self, seconds: float) -> None:
        self.sleep(seconds)
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _registrations_end_with_the_test() -> Iterator[None]:
    kept = dict(RUNTIME._tools)
    yield
    RUNTIME._tools.clear()
    RUNTIME._tools.update(kept)
    manual._CALLED.tools.clear()
    from_file.use(None)
    SWITCHES._tools.clear()
    SWITCHES._by_hand.clear()
    SWITCHES._left_out.clear()


@pytest.fixture
def telemetry() -> Iterator[RecordingTelemetry]:
    """Install a recording telemetry; fail if the shim broke the protocol or swallowed a fault."""
    previous = RUNTIME.telemetry
    recording = RecordingTelemetry()
    BREAKERS.clear()
    LIMITERS.clear()
    guard.forget_faults()
    RUNTIME.telemetry = recording
    try:
        yield recording
    finally:
        RUNTIME.telemetry = previous
        BREAKERS.clear()
        LIMITERS.clear()
        forget_classifiers()
        faults = guard.fault_counts()
        guard.forget_faults()
    assert recording.violations == []
    assert recording.in_flight == {}, "a call never ended"
    assert recording.depth == 0, "enter and leave do not match"
    if not recording.may_fault:
        assert faults == {}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """Install a clock that only the test moves."""
    fake = FakeClock()
    monkeypatch.setattr(RUNTIME, "clock", fake)
    return fake


@pytest.fixture
def full_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make jitter draw its upper bound."""
    monkeypatch.setattr(RUNTIME, "uniform", lambda low, high: high)
