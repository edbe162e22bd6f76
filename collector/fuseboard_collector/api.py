"""The read API: named queries as Arrow, health, and the collector's own counters and metrics.

An answer is written to a spool first, in memory or, when it is large, on disk. So its size costs
the server no memory, an error still has its status, and a client that reads slowly holds no
transaction open.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Final

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fuseboard_collector.errors import (
    QueryParameterError,
    StoreBusyError,
    StoreError,
    StoreReadOnlyError,
    UnknownQueryError,
)
from fuseboard_collector.metrics import Exposition
from fuseboard_collector.receiver.body import read
from fuseboard_collector.receiver.errors import RefusedError
from fuseboard_collector.remote import ARROW_STREAM, QUERY_PATH, STATS_PATH, RemoteReader
from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.surface import AnyStore
from fuseboard_collector.tokens import OPEN, Token

__all__ = ["RemoteReader", "routes"]

MAX_PARAMETERS = 1024 * 1024
QUERY_THREADS = 4
MAX_WAITING = 64
"""Queries that may run or wait at once; a client that asks on and on must not pile them up."""
SPOOL_IN_MEMORY = 8 * 1024 * 1024
CHUNK = 1024 * 1024
WHO = "send the server's token for reading: Authorization: Bearer TOKEN"
"""What a request without the right token is told."""

Spool = tempfile.SpooledTemporaryFile[bytes]


class SpooledResponse(StreamingResponse):
    """Sends a spool and closes it, also when the client hangs up half-way."""

    def __init__(self, spool: Spool) -> None:
        super().__init__(iter(lambda: spool.read(CHUNK), b""), media_type=ARROW_STREAM)
        self._spool = spool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._spool.close()


class ReadApi:
    """Answers from a store. Queries have threads of their own: slow ones don't hold up ingest."""

    def __init__(
        self, store: AnyStore, about: Mapping[str, object], is_stopping: Callable[[], bool]
    ) -> None:
        self._store = store
        self._about = dict(about)
        self._is_stopping = is_stopping
        self._exposition = Exposition(store)
        self._threads = ThreadPoolExecutor(QUERY_THREADS, "fuseboard-query")
        self._waiting = 0

    async def query(self, request: Request) -> Response:
        """Answer ``POST /api/v1/query/{name}``: parameters as JSON in, an Arrow stream out."""
        kind = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
        if kind != "application/json":
            # Also what keeps web pages of other origins from asking.
            return refused(415, "UnsupportedMediaType", "send parameters as application/json")
        try:
            parameters = _parameters(await read(request, MAX_PARAMETERS))
            spool = await self._answer(request.path_params["name"], parameters)
        except RefusedError as error:
            return refused(error.status, type(error).__name__, str(error))
        except UnknownQueryError as error:
            return refused(404, "UnknownQueryError", str(error))
        except QueryParameterError as error:
            return refused(400, "QueryParameterError", str(error))
        except StoreError as error:
            return refused(503, type(error).__name__, str(error))
        return SpooledResponse(spool)

    async def _answer(self, name: str, parameters: Mapping[str, object]) -> Spool:
        if self._waiting >= MAX_WAITING:
            raise StoreBusyError(f"{self._waiting} queries wait already; ask again later")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, self._spooled, name, parameters
            )
        finally:
            self._waiting -= 1

    def _spooled(self, name: str, parameters: Mapping[str, object]) -> Spool:
        """Return the whole answer as an Arrow IPC stream, at its beginning."""
        # Beside the data file, where there is room; without a name, so that a crash leaves none.
        folder = self._store.spool_folder
        spool: Spool = tempfile.SpooledTemporaryFile(SPOOL_IN_MEMORY, dir=folder)  # noqa: SIM115
        try:
            self._fill(spool, name, parameters)
            spool.seek(0)
        except BaseException:
            spool.close()
            raise
        return spool

    def _fill(self, spool: Spool, name: str, parameters: Mapping[str, object]) -> None:
        with self._store.stream(name, _with_unknown_filters(name, parameters)) as answer:
            try:
                with pa.ipc.new_stream(spool, answer.schema) as writer:
                    for batch in answer.pieces:
                        writer.write_batch(batch)
                        if spool.tell() > SPOOL_IN_MEMORY:
                            self._check_room()
            except OSError as error:
                raise StoreError(f"the answer of {name!r} can't be spooled: {error}") from error

    def _check_room(self) -> None:
        """Stop before an answer fills the disk that the store needs."""
        reason = self._store.unavailable_because()
        if reason is not None and not isinstance(reason, StoreReadOnlyError):
            raise reason

    async def healthz(self, _request: Request) -> Response:
        """Answer ``GET /healthz``: the process lives."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, _request: Request) -> Response:
        """Answer ``GET /readyz``: data can be stored and read, or why not."""
        reason = "the server is stopping" if self._is_stopping() else self._unavailable()
        if reason is None:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "not ready", "reason": reason}, 503)

    def _unavailable(self) -> str | None:
        reason = self._store.unavailable_because()
        return None if reason is None else str(reason)

    async def metrics(self, request: Request) -> Response:
        """Answer ``GET /metrics``: the collector's own metrics."""
        text, kind = await asyncio.get_running_loop().run_in_executor(
            self._threads, self._exposition.text, request.headers.get("accept", "")
        )
        return Response(text, media_type=None, headers={"content-type": kind})

    async def stats(self, _request: Request) -> Response:
        """Answer ``GET /api/v1/stats``: what the collector has done since its start."""
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                self._threads, self._store.describe
            )
        except StoreError as error:
            return refused(503, type(error).__name__, str(error))
        return JSONResponse({**found, **self._about})


def routes(
    store: AnyStore,
    *,
    token: Token = OPEN,
    about: Mapping[str, object] = MappingProxyType({}),
    is_stopping: Callable[[], bool] = lambda: False,
) -> list[Route]:
    """Return the routes of the read API, ``/metrics``, ``/healthz`` and ``/readyz``.

    Args:
        store: What to answer from.
        token: Whose bearer may read; everybody by default. Health is everybody's.
        about: What else ``/api/v1/stats`` tells, ready for JSON.
        is_stopping: Tells that the server is about to end.
    """
    api = ReadApi(store, about, is_stopping)
    return [
        Route(QUERY_PATH + "{name:path}", guarded(token, api.query), methods=["POST"]),
        Route(STATS_PATH, guarded(token, api.stats), methods=["GET"]),
        Route("/metrics", guarded(token, api.metrics), methods=["GET"]),
        Route("/healthz", api.healthz, methods=["GET"]),
        Route("/readyz", api.readyz, methods=["GET"]),
    ]


def _with_unknown_filters(name: str, given: Mapping[str, object]) -> Mapping[str, object]:
    """Add filters that an older dashboard does not know of, as no restriction.

    The ends of windows and the widths of buckets are no filters: there is no answer without them.
    """
    try:
        statements = load(name).statements
    except UnknownQueryError:
        return given  # the store says what is wrong, or knows more
    wanted = frozenset[str]().union(*(item.parameters for item in statements))
    return {key: None for key in wanted if not key.endswith(_NO_FILTERS)} | dict(given)


_NO_FILTERS: Final = ("since", "until", "bucket_us", "row_limit", "kind")

Endpoint = Callable[[Request], Awaitable[Response]]


def guarded(token: Token, endpoint: Endpoint, who: str = WHO) -> Endpoint:
    """Return an endpoint that answers only who has the token; ``who`` is what others are told."""

    async def answer(request: Request) -> Response:
        if token.admits(request.headers.get("authorization")):
            return await endpoint(request)
        refusal = refused(401, "AccessDeniedError", who)
        refusal.headers["www-authenticate"] = 'Bearer realm="fuseboard"'
        return refusal

    return answer


def _parameters(body: bytes) -> dict[str, object]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise QueryParameterError(f"the parameters are no JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise QueryParameterError('send the parameters as a JSON object, as in {"since": null}')
    return found


def refused(status: int, kind: str, message: str) -> Response:
    return JSONResponse({"error": message, "kind": kind}, status)
