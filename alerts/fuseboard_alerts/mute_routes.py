"""Muting over HTTP: for a dashboard in a process of its own, and for the command line.

A mute keeps people from being woken, so a token for reading gives no right to it: it takes the
token for sending. Without one, only clients on the collector's machine may mute.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fuseboard_alerts.mute_book import END_PATH, MUTES_PATH, StoreMutes, from_request
from fuseboard_alerts.mutes import MuteError
from fuseboard_alerts.storage import AlertStore
from fuseboard_collector.api import guarded, refused
from fuseboard_collector.errors import StoreError
from fuseboard_collector.operations import is_here
from fuseboard_collector.receiver.body import read
from fuseboard_collector.receiver.errors import RefusedError
from fuseboard_collector.tokens import OPEN, Token

MAX_BODY = 16 * 1024
WHO = "send the server's token for sending: Authorization: Bearer TOKEN"

Endpoint = Callable[[Request], Awaitable[Response]]


def routes(store: AlertStore, *, token: Token = OPEN) -> list[Route]:
    """Return the routes that write mutes.

    Args:
        store: Where they are kept.
        token: Whose bearer may; without one, clients on this machine.
    """
    book = StoreMutes(store)

    async def mute(request: Request) -> Response:
        wanted = from_request(await _body(request), datetime.now(UTC))
        await asyncio.to_thread(book.add, wanted)
        return JSONResponse({"id": wanted.id, "ends": wanted.ends.isoformat()})

    async def end(request: Request) -> Response:
        given = await _body(request)
        mute_id, author = given.get("id"), given.get("author")
        if not isinstance(mute_id, str) or not isinstance(author, str | None):
            raise MuteError("send the id of a mute, and an author or none, as texts")
        found = await asyncio.to_thread(book.end, mute_id, author)
        return JSONResponse({"ended": found})

    found = {MUTES_PATH: mute, END_PATH: end}
    return [
        Route(path, guarded(token, _answered(token, endpoint), WHO), methods=["POST"])
        for path, endpoint in found.items()
    ]


def _answered(token: Token, endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        kind = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
        if kind != "application/json":
            # Also what keeps web pages of other origins from asking.
            return refused(415, "UnsupportedMediaType", "send application/json")
        if not token and not is_here(request):
            words = "without a token for sending, only clients on the collector's machine may mute"
            return refused(403, "AccessDeniedError", words)
        try:
            return await endpoint(request)
        except (MuteError, ValueError, RecursionError) as error:
            return refused(400, "MuteError", str(error)[:300])
        except RefusedError as error:
            return refused(error.status, type(error).__name__, str(error))
        except StoreError as error:
            return refused(503, type(error).__name__, str(error))

    return answer


async def _body(request: Request) -> dict[str, Any]:
    found = json.loads(await read(request, MAX_BODY) or b"{}")
    if not isinstance(found, dict):
        raise MuteError("send a JSON object")
    return found
