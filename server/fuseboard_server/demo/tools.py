"""The demo agent's nine tools, each with a policy that fits it. Sync and async mixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mcp.types import CallToolResult

import fuseboard
from fuseboard import Breaker, Cache, Fallback, Policy, Retry, Validation
from fuseboard_server.demo.network import Network
from fuseboard_server.demo.plan import Plan

SEARCH_COST, OFFERS_COST = 0.005, 0.02
"""What one request costs, in dollars."""
CLIMATE = {"Lisbon": 18, "Oslo": 6, "Osaka": 17, "Toronto": 9}
"""Degrees that are usual in some cities."""

Answer = dict[str, object]
Tool = Callable[..., object]


class GdsError(Exception):
    """An error that only the airlines' system knows; no classifier does."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Policies in scenario seconds, at the speed of the run."""

    plan: Plan

    def retry(self, attempts: int = 3) -> Retry:
        """Return a retry with full jitter from half a scenario second."""
        return Retry(
            attempts=attempts,
            wait_initial=self.plan.real(0.5),
            wait_max=self.plan.real(8),
            budget=self.plan.real(30),
        )

    def breaker(self, minimum_throughput: int = 10) -> Breaker:
        """Return a breaker over one scenario minute that probes after half of one."""
        return Breaker(
            failure_ratio=0.5,
            minimum_throughput=minimum_throughput,
            sampling_duration=self.plan.real(60),
            break_duration=self.plan.real(30),
            half_open_probes=3,
        )

    def cache(self) -> Cache:
        """Return a cache of a few scenario seconds, stale for two minutes more."""
        return Cache(ttl=self.plan.real(10), stale=self.plan.real(120))

    def timeout(self, seconds: float = 3.0) -> float:
        """Return the timeout of an attempt in real seconds."""
        return self.plan.real(seconds)


def climate(city: str, **_: str) -> Answer:
    """Return the weather that is usual in a city; not every city's is known."""
    return {"celsius": CLIMATE[city], "sky": "usual for the season"}


def spend(cost: float) -> None:
    """Note what the running attempt costs."""
    call = fuseboard.current_call()
    if call is not None:
        call.set_cost(cost)


def region_of(arguments: Mapping[str, object]) -> str:
    """Return the region that a call is for."""
    return str(arguments["region"])


def build_tools(plan: Plan, network: Network) -> dict[str, Tool]:
    """Return every tool by name, registered with the shim."""
    pace = Pace(plan)
    return {
        **_research_tools(pace, network),
        **_place_tools(pace, network),
        **_booking_tools(pace, network),
    }


def _research_tools(pace: Pace, network: Network) -> dict[str, Tool]:
    @fuseboard.tool(
        region=region_of,
        upstream="search-api",
        policy=Policy(retry=pace.retry(), timeout=pace.timeout(), effects="none"),
    )
    async def web_search(query: str, region: str) -> Answer:
        spend(SEARCH_COST)
        return await network.search(region, query)

    @fuseboard.tool(
        region=region_of,
        upstream="kb-api",
        policy=Policy(
            retry=pace.retry(2), validation=Validation(non_empty=True), timeout=pace.timeout(),
            effects="none",
        ),
    )  # fmt: skip
    async def knowledge_base(city: str, region: str) -> list[object]:
        answer = await network.aget("knowledge_base", region, city=city)
        return list(answer["passages"])  # type: ignore[call-overload,no-any-return]

    @fuseboard.tool(type="extension", region=region_of, upstream="advisories-mcp")
    async def travel_advisory(city: str, region: str) -> CallToolResult:
        return await network.advise(city, region)

    return {
        "web_search": web_search,
        "knowledge_base": knowledge_base,
        "travel_advisory": travel_advisory,
    }


def _place_tools(pace: Pace, network: Network) -> dict[str, Tool]:
    seasonal = {"celsius": 18, "sky": "usual for the season"}

    @fuseboard.tool(
        region=region_of,
        upstream="weather-api",
        policy=Policy(
            retry=pace.retry(4), breaker=pace.breaker(), timeout=pace.timeout(),
            fallback=(Fallback(climate), Fallback(value=seasonal)), effects="none",
        ),
    )  # fmt: skip
    async def weather(city: str, day: str, region: str) -> Answer:
        return await network.aget("weather", region, city=city, day=day)

    @fuseboard.tool(
        region=region_of,
        upstream="maps-api",
        policy=Policy(breaker=pace.breaker(), effects="none"),
    )
    def maps(city: str, region: str) -> Answer:
        return network.get("maps", region, city=city)

    @fuseboard.tool(
        region=region_of,
        upstream="fx-api",
        policy=Policy(retry=pace.retry(2), cache=pace.cache(), effects="none"),
    )
    def exchange_rate(source: str, target: str, region: str) -> Answer:
        return network.get("exchange_rate", region, source=source, target=target)

    return {"weather": weather, "maps": maps, "exchange_rate": exchange_rate}


def _booking_tools(pace: Pace, network: Network) -> dict[str, Tool]:
    @fuseboard.tool(
        region=region_of,
        upstream="booking-api",
        policy=Policy(
            retry=pace.retry(), breaker=pace.breaker(20), timeout=pace.timeout(), effects="none"
        ),
    )
    async def flights(origin: str, city: str, day: str, region: str) -> Answer:
        spend(OFFERS_COST)
        answer = await network.aget("flights", region, origin=origin, city=city, day=day)
        if "gds_error" in answer:
            raise GdsError(str(answer["gds_error"]))
        return {"offers": answer["offers"]}

    @fuseboard.tool(
        region=region_of,
        upstream="booking-api",
        policy=Policy(retry=pace.retry(2), effects="none"),
    )
    def hotels(city: str, nights: int, region: str) -> Answer:
        return network.get("hotels", region, city=city, nights=str(nights))

    @fuseboard.tool(
        region=region_of,
        upstream="payment-api",
        policy=Policy(retry=pace.retry(), effects="idempotent"),
    )
    def payment(amount: float, trip: str, region: str) -> Answer:
        call = fuseboard.current_call()
        key = call.idempotency_key if call else trip
        return network.post("payment", region, amount=f"{amount:.2f}", idempotency_key=key)

    return {"flights": flights, "hotels": hotels, "payment": payment}
