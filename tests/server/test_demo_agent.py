"""The demo agent goes on without what it could not learn, and finishes what it began."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fuseboard_server.demo.agent import TRIPS_AT_ONCE, TripPlanner
from fuseboard_server.demo.model import Model
from fuseboard_server.demo.plan import Plan
from fuseboard_server.demo.scenario import TOOLS

REGION = "us-east"


class World:
    """Tools that only count, and may fail or take their time."""

    def __init__(self, folder: Path) -> None:
        path = folder / "calm.toml"
        path.write_text("length = 1e6\nloop_from = 0\n")
        self.plan = Plan(str(path), time.time(), 4.0, 1, str(folder), "")
        self.calls: list[str] = []
        self.failing: set[str] = set()
        self.seconds = 0.0
        self.now = self.most = 0

    def planner(self) -> TripPlanner:
        model = Model(self.plan, self.plan.load_scenario(), REGION)
        model.pause = lambda _: 0.001  # type: ignore[method-assign]
        tools: dict[str, Any] = {name: self._sync(name) for name in TOOLS}
        tools["web_search"] = self._slow
        return TripPlanner(REGION, tools, model)

    def _sync(self, name: str) -> Any:
        def tool(**arguments: object) -> object:
            assert arguments["region"] == REGION
            self.calls.append(name)
            if name in self.failing:
                raise RuntimeError(name)
            return {"ok": name}

        return tool

    async def _slow(self, **_: object) -> object:
        self.calls.append("web_search")
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        return {}


async def plan_trips(world: World, number: int) -> Counter[str]:
    planner, stopped = world.planner(), asyncio.Event()
    running = asyncio.create_task(planner.run(stopped))
    async with asyncio.timeout(30):
        while world.calls.count("web_search") < number:  # noqa: ASYNC110 (a list has no event)
            await asyncio.sleep(0.005)
        stopped.set()
        await running
    return Counter(world.calls)


async def test_every_trip_uses_every_tool_and_trips_that_began_are_finished(
    tmp_path: Path,
) -> None:
    counts = await plan_trips(World(tmp_path), 20)
    assert set(counts) == set(TOOLS)
    assert len(set(counts.values())) == 1


async def test_a_failing_tool_ends_no_trip_but_nothing_is_paid_without_a_flight(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.failing = {"knowledge_base", "weather", "flights"}
    counts = await plan_trips(world, 10)
    assert counts["payment"] == 0
    assert counts["hotels"] == counts["weather"] == counts["web_search"] >= 10


async def test_no_more_trips_at_once_than_agreed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.seconds = 0.1
    await plan_trips(world, TRIPS_AT_ONCE * 3)
    assert world.most == TRIPS_AT_ONCE


async def test_trips_that_take_too_long_are_cancelled_at_the_end(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.seconds = 600
    before = time.monotonic()
    await plan_trips(world, 3)
    assert time.monotonic() - before < 20
    assert world.now == 0
