"""OTLP/HTTP: three routes that answer only after the commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fuseboard.clock import SystemClock
from fuseboard_collector.receiver.answers import accepted, refused
from fuseboard_collector.receiver.body import Encoding, encoding_of, packing_of, read
from fuseboard_collector.receiver.errors import (
    RefusedError,
    StoppingError,
    UnauthenticatedError,
)
from fuseboard_collector.receiver.intake import Intake, Signal, reasons
from fuseboard_collector.store.surface import AnyStore
from fuseboard_collector.tokens import OPEN, Token


class Receiver:
    """Answers OTLP/HTTP requests.

    Args:
        intake: Takes the bodies.
        token: Whose bearer may send.
    """

    def __init__(self, intake: Intake, token: Token) -> None:
        self._intake = intake
        self._token = token

    def handler(self, signal: Signal) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers ``POST /v1/<signal>``."""

        async def answer(request: Request) -> Response:
            response = await self._answer(request, signal)
            self._intake.count_answer("http", signal, response.status_code)
            return response

        return answer

    async def _answer(self, request: Request, signal: Signal) -> Response:
        encoding: Encoding | None = None
        stats = self._intake.stats
        stats.add("requests", label=signal.word)
        try:
            encoding = encoding_of(request)
            if not self._token.admits(request.headers.get("authorization")):
                raise UnauthenticatedError(WHO)
            packing = packing_of(request)
            with self._intake.room() as room:
                body = await read(request, count=room.take)
                rejected = await self._intake.take(signal, encoding, packing, body, room)
        except asyncio.CancelledError:
            # The server stops and has waited long enough. A client that gets an answer keeps its
            # data and comes back; what was stored already is known as a repeat then.
            return refused(StoppingError("the server is stopping"), encoding)
        except RefusedError as error:
            stats.add("refused_requests", label=str(error.status))
            return refused(error, encoding)
        return accepted(signal, encoding, rejected.total(), reasons(rejected))


WHO = "send the server's token: Authorization: Bearer TOKEN"
"""What a request without the right token is told."""


def routes(store: AnyStore, *, intake: Intake | None = None, token: Token = OPEN) -> list[Route]:
    """Return the OTLP/HTTP routes ``/v1/traces``, ``/v1/logs`` and ``/v1/metrics``.

    Args:
        store: Where the rows go.
        intake: What takes the bodies, shared with other protocols; one of its own by default.
        token: Whose bearer may send; everybody by default.
    """
    receiver = Receiver(intake or Intake(store, SystemClock()), token)
    return [
        Route(f"/v1/{signal.word}", receiver.handler(signal), methods=["POST"]) for signal in Signal
    ]
