"""The demo agent's process: in each region it plans one trip after the other."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import secrets
import signal
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import fuseboard
from fuseboard_server.demo.model import Model, Trip
from fuseboard_server.demo.network import connected
from fuseboard_server.demo.plan import Plan
from fuseboard_server.demo.scenario import REGIONS
from fuseboard_server.demo.thinking import AGENT, BOOKER, Conversation
from fuseboard_server.demo.tools import Tool, build_tools

SERVICE = "trip-planner"
TRIPS_AT_ONCE = 16
"""Trips in progress in one region."""
SECONDS_BETWEEN_TRIPS = 0.42
"""Mean pause between travellers of a region: every tool is called more than twice a second."""
FAREWELL_SECONDS = 2.0

logger = logging.getLogger("fuseboard.demo")


class TripPlanner:
    """Plans trips in one region.

    Args:
        region: Where the agent and the services it calls are.
        tools: Every tool by name.
        model: Chooses arguments.
    """

    def __init__(self, region: str, tools: Mapping[str, Tool], model: Model) -> None:
        self._region = region
        self._tools = tools
        self._model = model
        self._free = asyncio.Semaphore(TRIPS_AT_ONCE)
        self._trips: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        self._run = secrets.token_hex(2)  # sessions of another run on the same data are others

    async def run(self, stopped: asyncio.Event) -> None:
        """Take travellers until stopped; then finish the trips that have begun."""
        # Travellers come by the clock, so that a busy machine does not lower the rate.
        due = asyncio.get_running_loop().time()
        while not stopped.is_set():
            await self._free.acquire()
            trip = asyncio.create_task(self._plan_trip(next(self._numbers)))
            self._trips.add(trip)
            trip.add_done_callback(self._done)
            due += self._model.pause(SECONDS_BETWEEN_TRIPS)
            pause = due - asyncio.get_running_loop().time()
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), max(pause, 0))
        await self._say_farewell()

    def _done(self, trip: asyncio.Task[None]) -> None:
        self._trips.discard(trip)
        self._free.release()
        if not trip.cancelled() and trip.exception() is not None:
            logger.error("a trip could not be planned", exc_info=trip.exception())

    async def _say_farewell(self) -> None:
        if self._trips:
            _, late = await asyncio.wait(self._trips, timeout=FAREWELL_SECONDS)
            for trip in late:
                trip.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _plan_trip(self, number: int) -> None:
        trip = self._model.next_trip()
        name = f"{self._region}-{self._run}-{number}"
        talk = Conversation(name, self._model)
        with fuseboard.session(name, agent=AGENT), talk.agent(AGENT):
            await self._research(talk, trip)
            with fuseboard.session(agent=BOOKER), talk.agent(BOOKER):
                await self._book(talk, trip)

    async def _research(self, talk: Conversation, trip: Trip) -> None:
        await talk.think()
        await asyncio.gather(
            self._use(talk, "web_search", query=f"what to see in {trip.city}"),
            self._use(talk, "knowledge_base", city=trip.city),
            self._use(talk, "travel_advisory", city=trip.city),
        )
        await talk.think()
        await asyncio.gather(
            self._use(talk, "weather", city=trip.city, day=trip.day),
            self._use(talk, "maps", city=trip.city),
            self._use(talk, "exchange_rate", source="USD", target=trip.currency),
        )

    async def _book(self, talk: Conversation, trip: Trip) -> None:
        await talk.think()
        flights, hotels = await asyncio.gather(
            self._use(talk, "flights", origin=trip.origin, city=trip.city, day=trip.day),
            self._use(talk, "hotels", city=trip.city, nights=trip.nights),
        )
        if flights is not None and hotels is not None:
            await self._use(talk, "payment", amount=100.0 * trip.nights, trip=talk.session)

    async def _use(self, talk: Conversation, name: str, **right: object) -> object | None:
        """Call a tool, at times again and again; go on without what could not be learnt."""
        arguments = self._model.arguments(name, {**right, "region": self._region})
        answer = await self._call(talk, name, arguments)
        for _ in range(self._model.repeats(name)):
            await talk.think()
            answer = await self._call(talk, name, arguments)
        return answer

    async def _call(
        self, talk: Conversation, name: str, arguments: Mapping[str, object]
    ) -> object | None:
        tool = self._tools[name]
        try:
            if inspect.iscoroutinefunction(tool):
                answer: object = await tool(**arguments)
            else:
                answer = await asyncio.to_thread(tool, **arguments)
        except Exception as error:
            logger.debug("%s failed: %r", name, error)
            talk.read(error)
            return None
        talk.read(answer)
        return answer


async def run(plan: Plan) -> None:
    """Plan trips in every region until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(TRIPS_AT_ONCE, "tool"))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    fuseboard.init(
        SERVICE,
        environment="demo",
        endpoint=plan.collector,
        regions=REGIONS,
        metrics_port=plan.metrics_port,
        log_calls="off",  # the faults are meant, and the terminal tells their story
    )
    scenario = plan.load_scenario()
    async with connected(plan) as network:
        tools = build_tools(plan, network)
        planners = [TripPlanner(r, tools, Model(plan, scenario, r)) for r in REGIONS]
        await asyncio.gather(*(planner.run(stopped) for planner in planners))


def main() -> None:
    """Run the agent of the plan given as the only argument."""
    logging.basicConfig(level=logging.WARNING, format="demo agent: %(levelname)s %(message)s")
    asyncio.run(run(Plan.from_json(sys.argv[1])))
    fuseboard.shutdown()


if __name__ == "__main__":
    main()
