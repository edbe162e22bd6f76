"""Tools that do what a script says, for the tests of policies."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

import fuseboard
from fuseboard import Policy, Retry

QUICK = Retry(attempts=3, wait_initial=0)


def status_error(status: int, **headers: str) -> httpx.HTTPStatusError:
    request = httpx.Request("GET", "http://127.0.0.1/")
    response = httpx.Response(status, request=request, headers=headers)
    return httpx.HTTPStatusError("?", request=request, response=response)


class Script:
    """Raises or returns one entry after the other."""

    def __init__(self, *events: Any) -> None:
        self.events = list(events)
        self.runs = 0

    def __call__(self) -> Any:
        event = self.events[min(self.runs, len(self.events) - 1)]
        self.runs += 1
        if isinstance(event, BaseException):
            raise event
        return event


def make_tool(script: Script, policy: Policy, *, is_async: bool = False) -> Any:
    """Return a function that runs a tool made of a script to its end."""
    if not is_async:
        return fuseboard.wrap(script, name="scripted", policy=policy)

    @fuseboard.tool(name="scripted", policy=policy)
    async def scripted() -> Any:
        await asyncio.sleep(0)
        return script()

    return lambda: asyncio.run(scripted())


BOTH = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
