"""Let a tool fail on purpose, below its policies and without touching its code."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from fuseboard.calls.switching import SWITCHES
from fuseboard.calls.wrapping import body_of
from fuseboard.runtime import RUNTIME


class _Pass:
    def __repr__(self) -> str:
        return "PASS"


PASS: Final = _Pass()
"""An attempt that is left to the tool itself."""


@dataclass(frozen=True, slots=True)
class Delay:
    """An attempt that waits first, on the clock that policies use.

    Attributes:
        seconds: How long.
        then: What comes of it: an exception, a value, or what the tool itself does.

    Since 0.1.
    """

    seconds: float
    then: object = PASS


class ForcedFaults:
    """What is still to come of the attempts at a tool.

    Attributes:
        used: How many attempts were decided here so far.

    Since 0.1.
    """

    def __init__(self, faults: Iterable[object]) -> None:
        self.used = 0
        self._faults = iter(faults)
        self._lock = threading.Lock()

    def draw(self) -> object:
        """Return what the next attempt does."""
        with self._lock:
            for fault in self._faults:
                self.used += 1
                return fault
        return PASS


@contextmanager
def forced_faults(tool: str, faults: Iterable[object]) -> Iterator[ForcedFaults]:
    """Decide what the next attempts at a tool come to; after those it works as ever.

    Retry, breaker, limits, cache and fallback see these as they would see the tool's own. They
    are used up by all tools of the name together.

    Args:
        tool: The tool's name.
        faults: For each attempt an exception (an object or a class) to raise, a :class:`Delay`,
            ``PASS`` for the tool itself, or else a value to return; for a generator tool what
            it yields. ``itertools.repeat(…)`` never ends.

    Raises:
        ConfigurationError: If there is no such tool.

    Since 0.1.
    """
    script = ForcedFaults(faults)
    tools = SWITCHES.named(tool, "forced_faults")
    targets = [(each, each.target) for each in tools]
    try:
        for each, target in targets:
            SWITCHES.retarget(each, _faulty(target, script))
        yield script
    finally:
        for each, target in targets:
            SWITCHES.retarget(each, target)


def _faulty(target: Callable[..., Any], script: ForcedFaults) -> Callable[..., Any]:
    """Return a function of the same kind that follows the script."""
    body = body_of(target)
    if inspect.isgeneratorfunction(body):
        made = _stream(target, script)
    elif inspect.isasyncgenfunction(body):
        made = _stream_later(target, script)
    elif inspect.iscoroutinefunction(body):
        made = _later(target, script)
    else:
        made = _plain(target, script)
    return functools.wraps(target)(made)


def _plain(target: Callable[..., Any], script: ForcedFaults) -> Callable[..., Any]:
    def faulty(*args: Any, **kwargs: Any) -> Any:
        drawn = _slept(script.draw())
        return target(*args, **kwargs) if drawn is PASS else _come_to(drawn)

    return faulty


def _later(target: Callable[..., Any], script: ForcedFaults) -> Callable[..., Any]:
    async def faulty(*args: Any, **kwargs: Any) -> Any:
        drawn = await _slept_later(script.draw())
        return await target(*args, **kwargs) if drawn is PASS else _come_to(drawn)

    return faulty


def _stream(target: Callable[..., Any], script: ForcedFaults) -> Callable[..., Any]:
    def faulty(*args: Any, **kwargs: Any) -> Any:
        drawn = _slept(script.draw())
        items = target(*args, **kwargs) if drawn is PASS else _come_to(drawn)
        return (yield from items)

    return faulty


def _stream_later(target: Callable[..., Any], script: ForcedFaults) -> Callable[..., Any]:
    async def faulty(*args: Any, **kwargs: Any) -> Any:
        drawn = await _slept_later(script.draw())
        items = target(*args, **kwargs) if drawn is PASS else _come_to(drawn)
        if isinstance(items, AsyncIterable):
            async for item in items:
                yield item
        else:
            for item in items:
                yield item

    return faulty


def _slept(drawn: object) -> object:
    while isinstance(drawn, Delay):
        RUNTIME.clock.sleep(drawn.seconds)
        drawn = drawn.then
    return drawn


async def _slept_later(drawn: object) -> object:
    while isinstance(drawn, Delay):
        await RUNTIME.clock.async_sleep(drawn.seconds)
        drawn = drawn.then
    return drawn


def _come_to(drawn: object) -> Any:
    if isinstance(drawn, BaseException):
        raise drawn
    if isinstance(drawn, type) and issubclass(drawn, BaseException):
        raise drawn()
    return drawn
