"""Listen to what tools report, beside whatever else listens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from fuseboard.calls.switching import SWITCHES
from fuseboard.clock import Clock
from fuseboard.policy.cache import forget_answers
from fuseboard.policy.limiters import LIMITERS
from fuseboard.policy.registry import BREAKERS
from fuseboard.record import (
    AttemptRecord,
    BreakerStatus,
    BreakerTransition,
    CallRecord,
    Telemetry,
    ToolInfo,
)
from fuseboard.runtime import RUNTIME, NullTelemetry
from fuseboard.testing.records import CapturedAttempt, CapturedCall, call_of


class CapturedCalls(Sequence[CapturedCall]):
    """The calls that ended while they were captured, in the order in which they ended.

    Attributes:
        transitions: What breakers did meanwhile.

    Since 0.1.
    """

    def __init__(self) -> None:
        self.transitions: list[BreakerTransition] = []
        self._ended: list[CapturedCall] = []
        self._running: dict[int, CallRecord] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._ended)

    @overload
    def __getitem__(self, index: int) -> CapturedCall: ...
    @overload
    def __getitem__(self, index: slice) -> list[CapturedCall]: ...
    def __getitem__(self, index: int | slice) -> CapturedCall | list[CapturedCall]:
        return self._ended[index]

    def __iter__(self) -> Iterator[CapturedCall]:
        return iter(list(self._ended))

    def __repr__(self) -> str:
        lines = [f"  {call!r}" for call in self]
        return "\n".join(["captured calls:", *(lines or ["  none"])])

    @property
    def attempts(self) -> list[CapturedAttempt]:
        """The attempts of all calls."""
        return [attempt for call in self for attempt in call.attempts]

    @property
    def running(self) -> list[str]:
        """The names of the tools whose calls began and have not ended."""
        with self._lock:
            return [call.tool.name for call in self._running.values()]

    def all(self, **facts: object) -> list[CapturedCall]:
        """Return the calls whose fields have these values, ``all(tool="search")`` for example.

        Raises:
            TypeError: If a call has no such field.
        """
        return [call for call in self if call.matches(facts)]

    def one(self, **facts: object) -> CapturedCall:
        """Return the only call whose fields have these values.

        Raises:
            AssertionError: If there is none, or more than one; shows what there is.
            TypeError: If a call has no such field.
        """
        found = self.all(**facts)
        if len(found) == 1:
            return found[0]
        wanted = ", ".join(f"{name}={value!r}" for name, value in facts.items()) or "any"
        raise AssertionError(f"expected one call with {wanted}, found {len(found)}; {self!r}")

    def clear(self) -> None:
        """Forget what ended so far."""
        with self._lock:
            self._ended.clear()
            self.transitions.clear()

    def began(self, call: CallRecord) -> None:
        """Take note of a call that runs."""
        with self._lock:
            self._running[id(call)] = call

    def ended(self, call: CallRecord) -> None:
        """Keep a copy of a call that ended."""
        copied = call_of(call)
        with self._lock:
            self._running.pop(id(call), None)
            self._ended.append(copied)


class _Tee:
    """Hands everything on, and tells the captured calls.

    Attributes:
        inner: The telemetry that was there, or that ``init`` brings.
    """

    def __init__(self, inner: Telemetry, calls: CapturedCalls) -> None:
        self.inner = inner
        self._calls = calls

    def tool_registered(self, tool: ToolInfo) -> None:
        self.inner.tool_registered(tool)

    def call_started(self, call: CallRecord) -> None:
        self._calls.began(call)
        self.inner.call_started(call)

    def enter(self, call: CallRecord) -> object:
        return self.inner.enter(call)

    def leave(self, token: object) -> None:
        self.inner.leave(token)

    def attempt_started(self, call: CallRecord, attempt: AttemptRecord) -> None:
        self.inner.attempt_started(call, attempt)

    def attempt_ended(self, call: CallRecord, attempt: AttemptRecord) -> None:
        self.inner.attempt_ended(call, attempt)

    def call_ended(self, call: CallRecord) -> None:
        # Handed on first: a copy asks a record for more than the fast path likes.
        try:
            self.inner.call_ended(call)
        finally:
            self._calls.ended(call)

    def begin(self, call: CallRecord) -> object:
        self._calls.began(call)
        return self.inner.begin(call)

    def finish(self, call: CallRecord) -> None:
        try:
            self.inner.finish(call)
        finally:
            self._calls.ended(call)

    def breaker_created(self, status: BreakerStatus) -> None:
        self.inner.breaker_created(status)

    def breaker_changed(self, transition: BreakerTransition) -> None:
        self._calls.transitions.append(transition)
        self.inner.breaker_changed(transition)


class _Quiet(NullTelemetry):
    """Listens to nothing, without a word about ``init``."""

    def __init__(self) -> None:
        super().__init__()
        self._said = True


class capture:  # noqa: N801 - reads as a function: with capture() as calls
    """Capture the calls of all tools of the process.

    What the policies of earlier tests left behind is forgotten before and after; clock,
    randomness and policies that were changed meanwhile are as before in the end. Telemetry that
    ``init`` switched on, before or meanwhile, goes on.

    Args:
        clock: A clock for back-off, breakers and ages, such as a :class:`FakeClock`; default the
            real one.
        uniform: Draws the wait before a retry between two bounds, such as ``max`` for the
            longest; default at random.

    Since 0.1.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        uniform: Callable[[float, float], float] | None = None,
    ) -> None:
        self._clock = clock
        self._uniform = uniform
        self._restore: list[Callable[[], object]] = []

    def __enter__(self) -> CapturedCalls:
        reset()
        calls = CapturedCalls()
        inner = RUNTIME.telemetry
        tee = _Tee(_Quiet() if isinstance(inner, NullTelemetry) else inner, calls)
        self._keep("clock", "uniform")
        by_hand = SWITCHES.by_hand()
        self._restore.append(lambda: SWITCHES.put_back(by_hand))
        self._restore.append(lambda: _take_off(tee, inner))
        RUNTIME.clock = self._clock or RUNTIME.clock
        RUNTIME.uniform = self._uniform or RUNTIME.uniform
        RUNTIME.add_tap(tee)
        return calls

    def __exit__(self, *about: object) -> None:
        while self._restore:
            self._restore.pop()()
        reset()

    async def __aenter__(self) -> CapturedCalls:
        return self.__enter__()

    async def __aexit__(self, *about: object) -> None:
        self.__exit__(*about)

    def _keep(self, *names: str) -> None:
        for name in names:
            value = getattr(RUNTIME, name)
            self._restore.append(lambda name=name, value=value: setattr(RUNTIME, name, value))  # type: ignore[misc]


def _take_off(tee: _Tee, before: Telemetry) -> None:
    """Let go of a tee: what ``init`` installed meanwhile stays."""
    RUNTIME.remove_tap(tee, before if isinstance(tee.inner, _Quiet) else tee.inner)


def reset() -> None:
    """Forget what policies remember: states of breakers, places of limits, answers in memory.

    Since 0.1.
    """
    BREAKERS.clear()
    LIMITERS.clear()
    forget_answers()
