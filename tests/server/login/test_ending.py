from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.server.login.asking import Behind, ask, scope_of
from tests.server.login.test_cookies import KIM, LOGIN, ORIGIN, asked, cookies

from fuseboard_server.login.cookies import CookieDoor
from fuseboard_server.login.ending import ENDED
from fuseboard_server.login.gate import Gate
from fuseboard_server.login.verdict import Verdict, Viewer

CLOSED = {"type": "websocket.close", "code": 1008, "reason": ENDED}


class Door:
    def __init__(self, seconds: float | None) -> None:
        self._ends = None if seconds is None else time.time() + seconds

    def judge(self, scope: Any) -> Verdict:
        return Viewer("kim", self._ends)


class Client:
    """Says something every now and then, and hears what it is told."""

    def __init__(self, every: float) -> None:
        self._every = every
        self.heard: list[Any] = []
        self.was_told = asyncio.Event()

    async def receive(self) -> Any:
        await asyncio.sleep(self._every)
        return {"type": "websocket.receive", "text": "again"}

    async def send(self, message: Any) -> None:
        self.heard.append(message)
        self.was_told.set()


async def talk(seconds: float | None, every: float, rounds: int) -> tuple[list[Any], list[Any]]:
    """Return what the client was told and what the application heard."""
    client, got = Client(every), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        for _ in range(rounds):
            got.append(await receive())
            await send({"type": "websocket.send", "text": "frame"})
            if got[-1]["type"] == "websocket.disconnect":
                return

    gate = Gate(app, Door(seconds), ORIGIN)
    await gate(scope_of("/_stcore/stream", kind="websocket"), client.receive, client.send)
    return client.heard, got


async def test_an_open_websocket_ends_with_its_login() -> None:
    heard, got = await talk(0.3, every=0.05, rounds=100)
    assert 1 < len(heard) < 10
    assert heard[-1] == CLOSED, "and nothing after it"
    assert [one for one in heard if one == CLOSED] == [CLOSED]
    assert got[-1] == {**CLOSED, "type": "websocket.disconnect"}


async def test_a_client_that_says_nothing_is_closed_in_time_too() -> None:
    client = Client(every=1.0)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()

    gate = Gate(app, Door(0.1), ORIGIN)
    running = asyncio.create_task(
        gate(scope_of("/", kind="websocket"), client.receive, client.send)
    )
    await asyncio.wait_for(client.was_told.wait(), 0.9)
    assert client.heard == [CLOSED]
    await running


@pytest.mark.parametrize("seconds", [None, 60.0])
async def test_a_login_that_holds_ends_nothing(seconds: float | None) -> None:
    heard, got = await talk(seconds, every=0.0, rounds=3)
    assert [one["type"] for one in (*heard, *got)] == 3 * ["websocket.send"] + 3 * [
        "websocket.receive"
    ]
    assert len(asyncio.all_tasks()) == 1


async def test_a_request_is_answered_whole() -> None:
    behind = Behind()
    assert (await ask(Gate(behind, Door(0.0), ORIGIN), behind, scope_of("/"))).body == "behind"


def test_a_login_of_a_provider_ends_when_its_cookie_does() -> None:
    verdict = CookieDoor(LOGIN, ORIGIN).judge(asked(cookies(KIM)))
    assert isinstance(verdict, Viewer)
    assert verdict.ends == pytest.approx(time.time() + LOGIN.session_seconds, abs=5)
