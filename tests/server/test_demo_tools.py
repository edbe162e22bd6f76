"""The demo's tools and their policies, on a network that the test owns."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

import fuseboard
from fuseboard.testing import capture
from fuseboard_server.demo import tools as demo_tools
from fuseboard_server.demo.network import ServiceError
from fuseboard_server.demo.plan import Plan
from fuseboard_server.demo.scenario import DEFAULT_SCENARIO, TOOLS
from fuseboard_server.demo.tools import GdsError, Tool, build_tools

SPEED = 40.0
"""Half a scenario second of back-off is 12 ms."""


class FakeNetwork:
    """Answers by a script; an exception in it is raised."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.script: list[Any] = [{}]

    def _next(self, tool: str, region: str, arguments: dict[str, str]) -> Any:
        self.asked.append((tool, region, arguments))
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def get(self, tool: str, region: str, **arguments: str) -> Any:
        return self._next(tool, region, arguments)

    post = get

    async def aget(self, tool: str, region: str, **arguments: str) -> Any:
        return self._next(tool, region, arguments)

    async def search(self, region: str, query: str) -> Any:
        return self._next("web_search", region, {"query": query})

    async def advise(self, city: str, region: str) -> Any:
        return self._next("travel_advisory", region, {"city": city})


@pytest.fixture
def network() -> FakeNetwork:
    return FakeNetwork()


@pytest.fixture
def tools(network: FakeNetwork, tmp_path: Path) -> dict[str, Tool]:
    plan = Plan(str(DEFAULT_SCENARIO), time.time(), SPEED, 1, str(tmp_path), "http://127.0.0.1:1")
    return build_tools(plan, network)  # type: ignore[arg-type]


def response(status: int, body: object = None, **headers: str) -> httpx.Response:
    request = httpx.Request("GET", "http://127.0.0.1/x")
    return httpx.Response(status, json=body, headers=headers, request=request)


def failure(status: int) -> httpx.HTTPStatusError:
    answer = response(status)
    return httpx.HTTPStatusError(str(status), request=answer.request, response=answer)


def test_there_is_a_tool_for_every_service_sync_and_async_mixed(tools: dict[str, Tool]) -> None:
    import inspect

    assert set(tools) == set(TOOLS)
    kinds = {inspect.iscoroutinefunction(tool) for tool in tools.values()}
    assert kinds == {True, False}


async def test_weather_falls_back_when_every_attempt_failed(
    tools: Any, network: FakeNetwork
) -> None:
    network.script = [httpx.ConnectError("refused")]
    answer = await tools["weather"](city="Oslo", day="2027-03-01", region="eu-west")
    assert answer["sky"] == "usual for the season"
    assert len(network.asked) == 4
    assert network.asked[0][:2] == ("weather", "eu-west")


async def test_a_city_without_a_climate_gets_the_default(tools: Any, network: FakeNetwork) -> None:
    network.script = [httpx.ConnectError("refused")]
    with capture() as seen:
        for city in ("Oslo", "Lima"):
            await tools["weather"](city=city, day="2027-03-01", region="eu-west")
    sources = [(call.result_source, call.fallback_tool) for call in seen]
    assert sources == [("fallback", "climate"), ("default", "default")]


def test_rates_come_from_the_cache_and_stale_when_the_service_is_down(
    tools: Any, network: FakeNetwork
) -> None:
    network.script = [{"rate": 0.9}, failure(503)]
    rate = {"source": "USD", "target": "EUR", "region": "eu-west"}
    with capture() as seen:
        assert tools["exchange_rate"](**rate) == tools["exchange_rate"](**rate) == {"rate": 0.9}
        time.sleep(10.2 / SPEED)
        assert tools["exchange_rate"](**rate) == {"rate": 0.9}
    assert [(call.outcome, call.result_source) for call in seen] == [
        ("ok", "live"), ("ok", "cache"), ("degraded", "cache"),
    ]  # fmt: skip


async def test_every_attempt_at_a_paid_service_has_its_price(
    tools: Any, network: FakeNetwork
) -> None:
    network.script = [failure(503), {"offers": []}]
    with capture() as seen:
        await tools["flights"](origin="Oslo", city="Lima", day="2027-03-01", region="us-east")
        await tools["web_search"](query="x", region="us-east")
    assert [call.cost for call in seen] == [
        2 * demo_tools.OFFERS_COST,
        demo_tools.SEARCH_COST,
    ]


async def test_weathers_breaker_is_one_per_region(tools: Any, network: FakeNetwork) -> None:
    network.script = [failure(503)]
    for _ in range(10):
        await tools["weather"](city="Oslo", day="2027-03-01", region="us-east")
    asked = len(network.asked)
    assert asked < 40, "the breaker opened on the way"
    await tools["weather"](city="Oslo", day="2027-03-01", region="us-east")
    assert len(network.asked) == asked
    network.script = [{"sky": "clear"}]
    elsewhere = await tools["weather"](city="Oslo", day="2027-03-01", region="ap-southeast")
    assert elsewhere == {"sky": "clear"}


def test_a_wrong_currency_is_not_retried(tools: Any, network: FakeNetwork) -> None:
    network.script = [failure(422)]
    with pytest.raises(httpx.HTTPStatusError):
        tools["exchange_rate"](source="USD", target="EURO", region="eu-west")
    assert len(network.asked) == 1


def test_payment_hands_over_one_key_for_all_attempts(tools: Any, network: FakeNetwork) -> None:
    network.script = [failure(503), failure(503), {"receipt": "R1"}]
    assert tools["payment"](amount=10.0, trip="t-1", region="eu-west") == {"receipt": "R1"}
    keys = {arguments["idempotency_key"] for _, _, arguments in network.asked}
    assert len(network.asked) == 3
    assert len(keys) == 1
    assert keys != {""}
    network.script = [{"receipt": "R2"}]
    tools["payment"](amount=10.0, trip="t-2", region="eu-west")
    assert network.asked[-1][2]["idempotency_key"] not in keys


def test_an_expired_key_fails_fast(tools: Any, network: FakeNetwork) -> None:
    network.script = [failure(401)]
    with pytest.raises(httpx.HTTPStatusError):
        tools["payment"](amount=10.0, trip="t-1", region="us-east")
    assert len(network.asked) == 1


async def test_a_used_up_quota_fails_fast_and_a_rate_limit_is_waited_for(
    tools: Any, network: FakeNetwork
) -> None:
    quota = ServiceError(response(429, {"error": {"code": "insufficient_quota"}}))
    network.script = [quota]
    with pytest.raises(ServiceError):
        await tools["web_search"](query="trams", region="eu-west")
    assert len(network.asked) == 1
    limit = ServiceError(response(429, {"error": {"code": "rate_limited"}}, **{"Retry-After": "0"}))
    network.script = [limit, {"hits": []}]
    assert await tools["web_search"](query="trams", region="eu-west") == {"hits": []}
    assert len(network.asked) == 3


async def test_an_answer_in_other_words_is_a_defect_and_an_unknown_code_its_own_error(
    tools: Any, network: FakeNetwork
) -> None:
    arguments = {"origin": "Oslo", "city": "Lima", "day": "2027-03-01", "region": "eu-west"}
    network.script = [{"offers_v2": []}]
    with pytest.raises(KeyError):
        await tools["flights"](**arguments)
    network.script = [{"gds_error": "UC 4097"}]
    with pytest.raises(GdsError, match="4097"):
        await tools["flights"](**arguments)


async def test_empty_passages_are_refused(tools: Any, network: FakeNetwork) -> None:
    network.script = [{"passages": []}]
    with pytest.raises(fuseboard.InvalidResultError) as caught:
        await tools["knowledge_base"](city="Oslo", region="eu-west")
    assert caught.value.value == []


def test_policies_shrink_with_the_speed(tmp_path: Path) -> None:
    def pace(speed: float) -> demo_tools.Pace:
        return demo_tools.Pace(Plan("", 0.0, speed, 1, "", ""))

    slow, fast = pace(1), pace(10)
    assert slow.retry().wait_initial == fuseboard.Retry().wait_initial
    assert fast.retry().wait_initial == pytest.approx(0.05)
    assert slow.breaker().sampling_duration == 60
    assert fast.breaker().break_duration == pytest.approx(3)
    assert fast.timeout() == pytest.approx(0.3)


def test_the_region_is_the_calls_own() -> None:
    region: Callable[..., str] = demo_tools.region_of
    assert region({"city": "Oslo", "region": "eu-west"}) == "eu-west"
