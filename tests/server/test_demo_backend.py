"""The demo's services fail by the scenario, over real HTTP where the network is what fails."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from fuseboard_server.demo.backend import Backend, Gate, QuietServer, _bound
from fuseboard_server.demo.plan import Plan
from fuseboard_server.demo.scenario import HTTP_TOOLS, load
from fuseboard_server.demo.services import InvalidRequestError, answer

GOOD = {
    "web_search": {"query": "trams"},
    "weather": {"city": "Lisbon", "day": "2027-03-01"},
    "flights": {"origin": "Oslo", "city": "Lisbon", "day": "2027-03-01"},
    "hotels": {"city": "Lisbon", "nights": "2"},
    "payment": {"amount": "10.00", "idempotency_key": "k"},
    "exchange_rate": {"source": "USD", "target": "EUR"},
    "maps": {"city": "Lisbon"},
    "knowledge_base": {"city": "Lisbon"},
}

Ask = Callable[..., httpx.Response]


def make_plan(folder: Path, faults: str = "", speed: float = 10.0) -> Plan:
    path = folder / "scenario.toml"
    path.write_text("length = 1e6\nloop_from = 0\n" + faults)
    return Plan(str(path), time.time(), speed, 1, str(folder), "http://127.0.0.1:1")


def fault(kind: str, tool: str, more: str = "") -> str:
    return f'[[fault]]\ntool = "{tool}"\nfrom = 0\nuntil = 1e6\nkind = "{kind}"\n{more}\n'


async def ask(plan: Plan, tool: str, region: str = "eu-west", **changed: str) -> httpx.Response:
    backend = Backend(plan, plan.load_scenario())
    transport = httpx.ASGITransport(backend.app(), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://demo") as client:
        return await client.get(f"/{region}/{tool}", params={**GOOD.get(tool, {}), **changed})


@pytest.mark.parametrize("tool", HTTP_TOOLS)
async def test_a_healthy_service_answers_and_equal_questions_get_equal_answers(
    tmp_path: Path, tool: str
) -> None:
    first, second = [await ask(make_plan(tmp_path), tool) for _ in range(2)]
    assert first.status_code == 200
    assert first.json() == second.json() == answer(tool, GOOD[tool])
    assert first.json()


@pytest.mark.parametrize(
    ("tool", "changed"),
    [
        ("weather", {"city": "Atlantis"}), ("weather", {"day": "tomorrow"}),
        ("hotels", {"nights": "0"}), ("hotels", {"nights": "many"}), ("hotels", {"city": ""}),
        ("exchange_rate", {"target": "EURO"}), ("web_search", {"query": ""}),
    ],
)  # fmt: skip
async def test_wrong_arguments_are_refused_with_422(
    tmp_path: Path, tool: str, changed: dict[str, str]
) -> None:
    response = await ask(make_plan(tmp_path), tool, **changed)
    assert response.status_code == 422
    assert next(iter(changed)) in response.json()["error"]["message"]
    with pytest.raises(InvalidRequestError):
        answer(tool, {**GOOD[tool], **changed})


async def test_an_unknown_service_or_region_is_404(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    assert (await ask(plan, "oracle")).status_code == 404
    assert (await ask(plan, "weather", region="mars")).status_code == 404


async def test_a_status_fault_answers_so_in_its_region_only(tmp_path: Path) -> None:
    more = 'regions = ["eu-west"]\nstatus = 429\ncode = "rate_limited"\nretry_after = 5'
    plan = make_plan(tmp_path, fault("status", "weather", more))
    response = await ask(plan, "weather")
    assert response.status_code == 429
    assert response.json()["error"]["code"] == "rate_limited"
    assert float(response.headers["retry-after"]) == pytest.approx(0.5), "at ten times the speed"
    assert (await ask(plan, "weather", region="us-east")).status_code == 200


async def test_answers_that_are_200_and_unusable(tmp_path: Path) -> None:
    empty = await ask(make_plan(tmp_path, fault("empty", "knowledge_base")), "knowledge_base")
    assert (empty.status_code, empty.json()) == (200, {"passages": []})
    broken = await ask(make_plan(tmp_path, fault("malformed", "maps")), "maps")
    assert broken.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        broken.json()
    renamed = await ask(make_plan(tmp_path, fault("renamed", "flights")), "flights")
    assert list(renamed.json()) == ["offers_v2"]
    partial = (await ask(make_plan(tmp_path, fault("partial", "hotels")), "hotels")).json()
    assert len(partial["hotels"]) == 2
    assert partial["partial_failures"][0]["item"] == "Lisbon Station"
    odd = await ask(make_plan(tmp_path, fault("application_error", "flights")), "flights")
    assert "gds_error" in odd.json()


async def test_latency_is_scenario_time_divided_by_the_speed(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, fault("latency", "maps", "seconds = [3.0, 3.0]"))
    before = time.monotonic()
    await ask(plan, "maps")
    assert 0.24 <= time.monotonic() - before < 5


async def test_the_ratio_is_kept_and_the_same_seed_repeats_the_same_faults(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, fault("status", "maps", "status = 503\nratio = 0.3"))

    async def codes() -> list[int]:
        backend = Backend(plan, plan.load_scenario())
        transport = httpx.ASGITransport(backend.app())
        async with httpx.AsyncClient(transport=transport, base_url="http://demo") as client:
            url = "/eu-west/maps"
            return [(await client.get(url, params=GOOD["maps"])).status_code for _ in range(200)]

    first = await codes()
    assert first == await codes()
    assert 40 <= first.count(503) <= 80


async def test_a_gate_really_refuses_connections_and_keeps_its_port(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    gate = Gate(Backend(plan, plan.load_scenario()).app())
    url = f"http://127.0.0.1:{gate.port}/eu-west/maps"
    async with httpx.AsyncClient(trust_env=False) as client:
        for _ in range(2):
            with pytest.raises(httpx.ConnectError):
                await client.get(url, params=GOOD["maps"])
            await gate.set_open(True)
            assert (await client.get(url, params=GOOD["maps"])).status_code == 200
            await gate.set_open(False)
        with pytest.raises(httpx.ConnectError):
            await client.get(url, params=GOOD["maps"])


async def test_a_cut_answer_breaks_the_connection(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, fault("cut", "flights"))
    listener = _bound(0)
    listener.listen()
    server = QuietServer(Backend(plan, plan.load_scenario()).app())
    serving = asyncio.create_task(server.serve([listener]))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/eu-west/flights"
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(url, params=GOOD["flights"])
    server.should_exit = True
    await serving


def test_the_shipped_scenario_uses_every_answer_of_the_backend() -> None:
    used = {one.kind for one in load().faults}
    from fuseboard_server.demo.backend import RESPONSES

    assert used >= set(RESPONSES)
