"""The read API: named queries as Arrow, health, and the collector's own counters."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from fuseboard_collector.errors import (
    QueryParameterError,
    StoreError,
    UnknownQueryError,
)
from fuseboard_collector.receiver.body import read
from fuseboard_collector.receiver.errors import TooLargeError
from fuseboard_collector.remote import ARROW_STREAM, QUERY_PATH, RemoteReader
from fuseboard_collector.store.store import Store

__all__ = ["RemoteReader", "routes"]

MAX_PARAMETERS = 1024 * 1024
QUERY_THREADS = 4
BATCH_ROWS = 65_536


class ReadApi:
    """Answers from a store. Queries have threads of their own: slow ones don't hold up ingest."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(QUERY_THREADS, "fuseboard-query")

    async def query(self, request: Request) -> Response:
        """Answer ``POST /api/v1/query/{name}``: parameters as JSON in, an Arrow stream out."""
        kind = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
        if kind != "application/json":
            # Also what keeps web pages of other origins from asking.
            return _refused(415, "UnsupportedMediaType", "send parameters as application/json")
        try:
            parameters = _parameters(await read(request, MAX_PARAMETERS))
            table = await asyncio.get_running_loop().run_in_executor(
                self._threads, self._store.query, request.path_params["name"], parameters
            )
        except TooLargeError as error:
            return _refused(413, "TooLargeError", str(error))
        except UnknownQueryError as error:
            return _refused(404, "UnknownQueryError", str(error))
        except QueryParameterError as error:
            return _refused(400, "QueryParameterError", str(error))
        except StoreError as error:
            return _refused(503, type(error).__name__, str(error))
        return StreamingResponse(_arrow(table), media_type=ARROW_STREAM)

    async def healthz(self, _request: Request) -> Response:
        """Answer ``GET /healthz``: the process lives."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, _request: Request) -> Response:
        """Answer ``GET /readyz``: data can be stored and read, or why not."""
        reason = self._store.unavailable_because()
        if reason is None:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "not ready", "reason": str(reason)}, 503)

    async def stats(self, _request: Request) -> Response:
        """Answer ``GET /api/v1/stats``: what the collector has done since its start."""
        return JSONResponse(
            await asyncio.get_running_loop().run_in_executor(self._threads, self._store.describe)
        )


def routes(store: Store) -> list[Route]:
    """Return the routes of the read API, ``/healthz`` and ``/readyz``.

    Args:
        store: What to answer from.
    """
    api = ReadApi(store)
    return [
        Route(QUERY_PATH + "{name:path}", api.query, methods=["POST"]),
        Route("/api/v1/stats", api.stats, methods=["GET"]),
        Route("/healthz", api.healthz, methods=["GET"]),
        Route("/readyz", api.readyz, methods=["GET"]),
    ]


def _parameters(body: bytes) -> dict[str, object]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise QueryParameterError(f"the parameters are no JSON: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise QueryParameterError('send the parameters as a JSON object, as in {"since": null}')
    return found


def _arrow(table: pa.Table) -> Iterator[bytes]:
    """Yield a table as an Arrow IPC stream, one record batch at a time."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=BATCH_ROWS):
            writer.write_batch(batch)
            yield sink.getvalue()
            sink.seek(0)
            sink.truncate()
    yield sink.getvalue()


def _refused(status: int, kind: str, message: str) -> Response:
    return JSONResponse({"error": message, "kind": kind}, status)
