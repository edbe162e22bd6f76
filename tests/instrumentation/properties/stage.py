"""Plays a scenario: makes the tool, calls it, and remembers what its callers saw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fault_scripts import Step
from scenarios import Call, Scenario
from virtual_time import Loop, World

import fuseboard


@dataclass
class Seen:
    """What one caller saw.

    Attributes:
        ending: ``value``, ``error`` or ``left``.
        thing: What was returned or raised.
        items: What a stream delivered.
        made: What the tool made at each of its runs.
    """

    ending: str = "left"
    thing: Any = None
    items: list[Any] = field(default_factory=list)
    made: list[Any] = field(default_factory=list)


class Stage:
    """One tool in one world."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self._world = world
        self._scenario = scenario
        self._steps: list[Step] = []
        self._seen = Seen()
        make: dict[str, Callable[[], Callable[..., Any]]] = {
            "function": self._function,
            "coroutine": self._coroutine,
            "generator": self._generator,
            "async generator": self._async_generator,
        }
        self._tool = fuseboard.wrap(make[scenario.form](), name="it", policy=scenario.policy)

    def play(self, call: Call) -> Seen:
        """Make one call and return what its caller saw."""
        self._world.sleep(call.pause)
        self._steps, self._seen = call.steps, Seen()
        seen = self._seen
        if not self._scenario.is_async:
            self._consume(seen, call.leaves_after)
            return seen
        loop = Loop(self._world)
        try:
            loop.run_until_complete(self._consume_async(seen, call.leaves_after))
            assert asyncio.all_tasks(loop) == set(), "a task is left"
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
        return seen

    # --- Callers ---------------------------------------------------------------------------
    def _consume(self, seen: Seen, leaves_after: int | None) -> None:
        try:
            if not self._scenario.streams:
                seen.thing, seen.ending = self._tool(), "value"
                return
            stream = self._tool()
            for item in stream:
                seen.items.append(item)
                if len(seen.items) == leaves_after:
                    stream.close()
                    return
            seen.ending = "value"
        except BaseException as error:
            seen.thing, seen.ending = error, "error"

    async def _consume_async(self, seen: Seen, leaves_after: int | None) -> None:
        try:
            if not self._scenario.streams:
                seen.thing, seen.ending = await self._tool(), "value"
                return
            stream = self._tool()
            async for item in stream:
                seen.items.append(item)
                if len(seen.items) == leaves_after:
                    await stream.aclose()
                    return
            seen.ending = "value"
        except BaseException as error:
            seen.thing, seen.ending = error, "error"

    # --- The tool --------------------------------------------------------------------------
    def _next(self) -> tuple[Step, Any]:
        made = self._seen.made
        step = self._steps[min(len(made), len(self._steps) - 1)]
        thing = step.what.make()
        made.append(thing)
        return step, thing

    def _function(self) -> Callable[..., Any]:
        def it() -> Any:
            step, thing = self._next()
            self._world.spend(step.took)
            return _end(thing)

        return it

    def _coroutine(self) -> Callable[..., Any]:
        async def it() -> Any:
            step, thing = self._next()
            await _spend(step)
            return _end(thing)

        return it

    def _generator(self) -> Callable[..., Any]:
        def it() -> Iterator[Any]:
            step, thing = self._next()
            for number in range(step.items):
                self._world.spend(step.took)
                yield number
            self._world.spend(step.took)
            _end(thing)

        return it

    def _async_generator(self) -> Callable[..., Any]:
        async def it() -> AsyncIterator[Any]:
            step, thing = self._next()
            for number in range(step.items):
                await _spend(step)
                yield number
            await _spend(step)
            _end(thing)

        return it


async def _spend(step: Step) -> None:
    if step.what.is_cancelled_from_outside:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
    try:
        await asyncio.sleep(step.took)
    except asyncio.CancelledError:
        if not step.what.is_cancelled_from_outside:
            await asyncio.sleep(step.stubborn)
        raise


def _end(thing: Any) -> Any:
    if isinstance(thing, BaseException):
        raise thing
    return thing
