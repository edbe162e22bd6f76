"""Plays a scenario: makes the tool, calls it, and remembers what its callers saw."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from expected import Repair
from fault_scripts import Check, Step
from scenarios import Call, Scenario
from virtual_time import Loop, World

import fuseboard
from fuseboard import Mistake, Pending, Policy, Spent


@dataclass
class Seen:
    """What one caller saw.

    Attributes:
        ending: ``value``, ``error`` or ``left``.
        thing: What was returned or raised.
        items: What a stream delivered.
        made: What the tool made at each of its runs, or what the job came to that it submitted.
        mistakes: (class, number of the attempt) of each that somebody was asked to correct.
    """

    ending: str = "left"
    thing: Any = None
    items: list[Any] = field(default_factory=list)
    made: list[Any] = field(default_factory=list)
    mistakes: list[tuple[str, int]] = field(default_factory=list)


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
        self._checks: list[Check] = []
        self._tool = fuseboard.wrap(
            make[scenario.form](),
            name="it",
            policy=self._with_callbacks(scenario.policy),
            on_error="packet" if scenario.gives_packets else "raise",
        )
        bounds = scenario.bounds
        self._session = bounds and fuseboard.session(
            "s", budget=bounds.budget, timeout=bounds.timeout
        )

    def _with_callbacks(self, policy: Policy | None) -> Policy | None:
        """Put the stage's own functions into a policy."""
        if policy is None:
            return None
        is_async, parts = self._scenario.is_async, dict[str, Any]()
        if policy.poll is not None:
            check = self._async_check if is_async else self._check
            parts["poll"] = replace(policy.poll, check=check)
        if policy.feedback is not None:
            repair = self._async_repair if is_async else self._repair
            parts["feedback"] = replace(policy.feedback, repair=repair)
        return replace(policy, **parts) if parts else policy

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        bounds = self._scenario.bounds
        if bounds is None or self._session is None:
            yield
            return
        with self._session, self._session.step(timeout=bounds.turn_timeout):
            yield

    @property
    def spent(self) -> Spent:
        """What the session says was spent."""
        assert self._session is not None
        return self._session.spent

    def play(self, call: Call) -> Seen:
        """Make one call and return what its caller saw."""
        self._world.sleep(call.pause)
        self._steps, self._seen = call.steps, Seen()
        seen = self._seen
        if not self._scenario.is_async:
            with self._turn():
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
        with self._turn():
            await self._consume_in_turn(seen, leaves_after)

    async def _consume_in_turn(self, seen: Seen, leaves_after: int | None) -> None:
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
        self._checks = list(step.checks)
        return step, ["ticket"] if step.checks else thing

    # --- The job that it submits, and whoever corrects its requests ------------------------
    def _next_check(self) -> tuple[Check | None, Any]:
        """Return what is found at the next look; without a check, the end of the job."""
        made = self._seen.made
        step = self._steps[min(len(made), len(self._steps)) - 1]
        check = self._checks.pop(0) if self._checks else None
        thing = (check or step).what.make()
        if not isinstance(thing, Pending):
            made[-1] = thing
        return check, thing

    def _check(self, ticket: Any) -> Any:
        check, thing = self._next_check()
        self._world.spend(check.took if check else 0.0)
        return _end(thing)

    async def _async_check(self, ticket: Any) -> Any:
        step = self._steps[min(len(self._seen.made), len(self._steps)) - 1]
        check, thing = self._next_check()
        await _spend(Step("good", check.took) if check else Step(step.kind))
        return _end(thing)

    def _repair(self, mistake: Mistake) -> Any:
        repair = self._take(mistake)
        self._world.spend(repair.took)
        return _answer(repair)

    async def _async_repair(self, mistake: Mistake) -> Any:
        repair = self._take(mistake)
        await asyncio.sleep(repair.took)
        return _answer(repair)

    def _take(self, mistake: Mistake) -> Repair:
        assert mistake.tool == "it"
        assert mistake.message
        self._seen.mistakes.append((str(mistake.error_class), mistake.attempt))
        assert self._scenario.repair is not None
        return self._scenario.repair

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


def _answer(repair: Repair) -> Any:
    if repair.how == "raises":
        raise RuntimeError("no better")
    return {} if repair.how == "corrects" else None


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
