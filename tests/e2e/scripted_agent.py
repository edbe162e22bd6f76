"""An agent that makes exactly the calls of a plan: ``scripted_agent.py PLAN ENDPOINT``.

A plan is JSON: a list of phases, each a list of calls ``{tool, region, script, number}``. The calls
of a phase run 16 at once, asynchronous tools as tasks and synchronous ones on threads. Entry
``n`` of a call's script is what attempt ``n`` meets.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

import fuseboard
from fuseboard import Breaker, Fallback, Policy, Retry

QUICK = Retry(attempts=3, wait_initial=0.001, wait_max=0.002)


class StrangeError(Exception):
    """A fault that no classifier knows."""


class GraphInterrupt(Exception):  # noqa: N818 - the name that LangGraph uses
    """Stands for LangGraph's pause for approval; matched by its qualified name."""

    __module__ = "langgraph.errors"


def status_error(status: int, **headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://127.0.0.1/tool")
    response = httpx.Response(status, request=request, headers=headers)
    return httpx.HTTPStatusError(f"answered {status}", request=request, response=response)


ANSWERS: dict[str, Any] = {
    "ok": {"answer": 42},
    "packet": {"ok": False, "message": "no such hotel"},
    "partial": {"items": [1], "partial_failures": [{"item": 2, "reason": "sold out"}]},
}
FAULTS: dict[str, Callable[[], Exception]] = {
    "429-now": lambda: status_error(429, **{"retry-after": "0"}),
    "refused": lambda: ConnectionRefusedError(111, "Connection refused"),
    "reset": lambda: ConnectionResetError(104, "Connection reset by peer"),
    "defect": lambda: KeyError("price"),
    "strange": lambda: StrangeError("?"),
    "pause": lambda: GraphInterrupt("approve?"),
}


def meet(event: str) -> Any:
    """Return or raise what the script says of an attempt."""
    if event in ANSWERS:
        return ANSWERS[event]
    raise FAULTS[event]() if event in FAULTS else status_error(int(event))


def event_of(script: list[str]) -> str:
    current = fuseboard.current_call()
    assert current is not None
    return script[current.attempt - 1]


async def meet_later(script: list[str]) -> Any:
    event = event_of(script)
    await asyncio.sleep(60 if event == "hang" else 0.001)
    return meet(event)


def by_region(arguments: Any) -> str:
    return str(arguments["region"])


@fuseboard.tool(region=by_region)
async def search(script: list[str], region: str, number: int) -> Any:
    return await meet_later(script)


@fuseboard.tool(
    region=by_region,
    policy=Policy(
        retry=QUICK, timeout=0.2, effects="none", fallback=(Fallback(value={"answer": 0}),)
    ),
)
async def weather(script: list[str], region: str, number: int) -> Any:
    return await meet_later(script)


@fuseboard.tool(region=by_region, policy=Policy(retry=QUICK, effects="idempotent"))
def flights(script: list[str], region: str, number: int) -> Any:
    return meet(event_of(script))


@fuseboard.tool(region=by_region)
def hotels(script: list[str], region: str, number: int) -> Any:
    return meet(event_of(script))


@fuseboard.tool(region=by_region, policy=Policy(retry=QUICK))
def payment(script: list[str], region: str, number: int) -> Any:
    return meet(event_of(script))


@fuseboard.tool(
    region=by_region,
    policy=Policy(
        retry=QUICK,
        effects="none",
        breaker=Breaker(minimum_throughput=9, sampling_duration=600, break_duration=600),
    ),
)
async def rates(script: list[str], region: str, number: int) -> Any:
    return await meet_later(script)


@fuseboard.tool(region=by_region)
async def maps(script: list[str], region: str, number: int) -> AsyncIterator[int]:
    for step in script:
        await asyncio.sleep(0)
        if step != "item":
            meet(step)
        yield 1


@fuseboard.tool(region=by_region)
def knowledge(script: list[str], region: str, number: int) -> Iterator[int]:
    for step in script:
        if step != "item":
            meet(step)
        yield 1


async def run_async(call: dict[str, Any]) -> None:
    tool = {"search": search, "weather": weather, "rates": rates, "maps": maps}[call["tool"]]
    arguments = {name: call[name] for name in ("script", "region", "number")}
    if call["tool"] == "maps":
        stream = maps(**arguments)
        async for _ in stream:
            if call.get("leave"):
                break
        await stream.aclose()
        return
    task = asyncio.ensure_future(tool(**arguments))
    if call.get("cancel"):
        await asyncio.sleep(0.05)
        task.cancel()
    await task


def run_sync(call: dict[str, Any]) -> None:
    tools = {"flights": flights, "hotels": hotels, "payment": payment, "knowledge": knowledge}
    arguments = {name: call[name] for name in ("script", "region", "number")}
    result = tools[call["tool"]](**arguments)
    if call["tool"] == "knowledge":
        for _ in result:
            if call.get("leave"):
                result.close()
                break


async def run_phase(calls: list[dict[str, Any]], pool: ThreadPoolExecutor) -> None:
    gate = asyncio.Semaphore(16)
    loop = asyncio.get_running_loop()

    async def run(call: dict[str, Any]) -> None:
        is_async = call["tool"] in ("search", "weather", "rates", "maps")
        # The script decides what fails; that a call fails is no fault of the agent.
        async with gate:
            with contextlib.suppress(Exception, asyncio.CancelledError):
                if is_async:
                    await run_async(call)
                else:
                    await loop.run_in_executor(pool, run_sync, call)

    await asyncio.gather(*(run(call) for call in calls))


async def main(phases: list[list[dict[str, Any]]], endpoint: str) -> None:
    fuseboard.init(
        service="scripted-agent",
        environment="test",
        endpoint=endpoint,
        regions=("us-east", "eu-west", "ap-southeast"),
    )
    with ThreadPoolExecutor(16) as pool:
        for phase in phases:
            await run_phase(phase, pool)
    assert fuseboard.flush(timeout=60), "not everything was delivered"


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]))
