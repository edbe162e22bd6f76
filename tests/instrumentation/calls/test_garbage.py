"""A call leaves no reference cycles, and collecting those of others meets no lock of ours."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fuseboard
from fuseboard import Breaker, Fallback, Outcome, Policy, Retry
from fuseboard.policy.registry import BREAKERS
from fuseboard.runtime import RUNTIME


class Payload:
    """Stands for a large argument."""


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    "policy",
    [
        None,
        Policy(),
        Policy(retry=Retry(wait_initial=0)),
        Policy(retry=Retry(wait_initial=0, attempts=9)),
        Policy(timeout=30),
        Policy(fallback=Fallback(value=1)),
        Policy(fallback=lambda payload: next(iter(()))),
    ],
    ids=["bare", "empty", "exhausted", "recovered", "thread", "served", "fallback fails"],
)
def test_arguments_are_free_as_soon_as_the_call_has_ended(
    telemetry: Any, no_collector: None, policy: Policy | None
) -> None:
    @fuseboard.tool(policy=policy)
    def flaky(payload: Payload) -> None:
        remaining.pop()
        if remaining:
            raise ConnectionRefusedError

    remaining = [1] * 5
    payload = Payload()
    watched = weakref.ref(payload)
    with contextlib.suppress(ConnectionRefusedError):
        flaky(payload)
    assert len(telemetry.calls) == 1
    del payload
    assert watched() is None


async def test_arguments_of_an_async_call_are_free_as_soon_as_it_has_ended(
    telemetry: Any, no_collector: None
) -> None:
    @fuseboard.tool(policy=Policy(retry=Retry(wait_initial=0)))
    async def fails(payload: Payload) -> None:
        raise ConnectionRefusedError

    payload = Payload()
    watched = weakref.ref(payload)
    with contextlib.suppress(ConnectionRefusedError):
        await fails(payload)
    del payload
    assert watched() is None


class CollectingClock:
    """Collects cycles whenever it is read: also where a lock is held."""

    def __init__(self, real: Any, collect: Callable[[], object]) -> None:
        self._real = real
        self._collect = collect

    def monotonic(self) -> float:
        self._collect()
        return float(self._real.monotonic())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@pytest.mark.timeout(30)
def test_a_stream_may_be_collected_while_its_breaker_is_busy(telemetry: Any) -> None:
    @fuseboard.tool(policy=Policy(breaker=Breaker()))
    def stream() -> Iterator[int]:
        yield 1
        yield 2

    def drop_one_in_a_cycle() -> None:
        holder: list[Any] = [stream()]
        holder.append(holder)
        next(holder[0])

    drop_one_in_a_cycle()
    breaker = BREAKERS.find(f"{stream.__name__}")
    assert breaker is not None
    breaker._clock = CollectingClock(RUNTIME.clock, gc.collect)
    assert list(stream()) == [1, 2]
    assert [call.outcome for call in telemetry.calls] == [Outcome.ABANDONED, Outcome.OK]
