"""Operating a running store over HTTP: back it up, apply retention, compact and check it.

The process that owns the file does all of it. What reads may be asked for by whoever has the token
for reading; without one, by clients on this machine. What deletes rows or stops storing for a while
may be asked for from this machine alone: a token for reading gives no right to it.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from ipaddress import ip_address
from typing import Any, BinaryIO, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fuseboard_collector.api import guarded, refused
from fuseboard_collector.errors import AccessDeniedError, StoreBusyError, StoreError
from fuseboard_collector.receiver.body import read
from fuseboard_collector.receiver.errors import RefusedError
from fuseboard_collector.store.retention import Keep, Plan
from fuseboard_collector.store.store import Store
from fuseboard_collector.tokens import OPEN, Token

BACKUP_PATH: Final = "/api/v1/store/backup"
RETENTION_PATH: Final = "/api/v1/store/retention"
COMPACT_PATH: Final = "/api/v1/store/compact"
CHECK_PATH: Final = "/api/v1/store/check"
ROWS_HEADER: Final = "fuseboard-rows"
"""Rows by table of a backup, as JSON, to compare what arrived with."""

CHUNK: Final = 1024 * 1024
MAX_BODY: Final = 4096
_PARAMETERS: Final = frozenset({"days", "dry_run", "max_bytes"})
_KNOWN: Final = ", ".join(sorted(_PARAMETERS))


class _FileResponse(StreamingResponse):
    """Sends a file that has no name any more, and closes it, also when the client hangs up."""

    def __init__(self, file: BinaryIO, headers: dict[str, str]) -> None:
        super().__init__(
            iter(lambda: file.read(CHUNK), b""), headers=headers,
            media_type="application/octet-stream",
        )  # fmt: skip
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


class Operations:
    """Answers of one store; one operation at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._busy = False

    async def backup(self, _request: Request) -> Response:
        """Answer ``POST /api/v1/store/backup`` with a copy of the data file as of now."""
        file, rows = await asyncio.to_thread(self._store.snapshot)
        size = file.seek(0, 2)
        file.seek(0)
        return _FileResponse(file, {"content-length": str(size), ROWS_HEADER: json.dumps(rows)})

    async def retention(self, request: Request) -> Response:
        """Answer ``POST /api/v1/store/retention``: delete what has expired, or only say it."""
        wanted = await _body(request)
        if not wanted.get("dry_run"):
            _require_here(request, "have rows deleted")
        keep = keep_of(self._store.keep, wanted)
        work = self._store.expired if wanted.get("dry_run") else self._store.apply_retention
        plan = await asyncio.to_thread(work, keep)
        return JSONResponse(plan_as_json(plan))

    async def compact(self, request: Request) -> Response:
        """Answer ``POST /api/v1/store/compact`` when it is done."""
        _require_here(request, "have the file compacted")
        before = self._store.size_bytes()
        await asyncio.to_thread(self._store.compact)
        return JSONResponse({"before_bytes": before, "after_bytes": self._store.size_bytes()})

    async def check(self, _request: Request) -> Response:
        """Answer ``POST /api/v1/store/check``: read everything, and say what can't be read."""
        found = await asyncio.to_thread(self._store.check)
        return JSONResponse({"damaged": [asdict(damage) for damage in found]})

    def turn(
        self, endpoint: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that admits one operation at a time, and this machine by default."""

        async def answer(request: Request) -> Response:
            kind = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
            if kind != "application/json":
                # Also what keeps web pages of other origins from asking.
                return refused(415, "UnsupportedMediaType", "send application/json")
            if self._busy:
                return refused(503, "StoreBusyError", "another operation is running; try again")
            self._busy = True
            try:
                return await endpoint(request)
            except (ValueError, RecursionError) as error:
                return refused(400, "ValueError", str(error)[:200])
            except RefusedError as error:
                return refused(error.status, type(error).__name__, str(error))
            except AccessDeniedError as error:
                return refused(403, "AccessDeniedError", str(error))
            except StoreError as error:
                status = 503 if isinstance(error, StoreBusyError) else 409
                return refused(status, type(error).__name__, str(error))
            finally:
                self._busy = False

        return answer


def routes(store: Store, *, token: Token = OPEN) -> list[Route]:
    """Return the routes that operate a store.

    Args:
        store: What to operate.
        token: Whose bearer may; without one, clients on this machine.
    """
    operations = Operations(store)
    found = {
        BACKUP_PATH: operations.backup,
        RETENTION_PATH: operations.retention,
        COMPACT_PATH: operations.compact,
        CHECK_PATH: operations.check,
    }
    return [
        Route(path, guarded(token, _from_here(token, operations.turn(endpoint))), methods=["POST"])
        for path, endpoint in found.items()
    ]


def _from_here(
    token: Token, endpoint: Callable[[Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if token or is_here(request):
            return await endpoint(request)
        return refused(
            403, "AccessDeniedError",
            "without a token for reading, only clients on the collector's machine may do this",
        )  # fmt: skip

    return answer


def _require_here(request: Request, what: str) -> None:
    if not is_here(request):
        raise AccessDeniedError(f"only clients on the collector's machine may {what}; run it there")


def is_here(request: Request) -> bool:
    """Tell whether a client is on this machine."""
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def plan_as_json(plan: Plan) -> dict[str, Any]:
    """Return what goes, or went, ready for JSON."""
    before = None if plan.before is None else plan.before.isoformat() + "Z"
    return {"before": before, "rows": plan.rows, "why": plan.why}


async def _body(request: Request) -> dict[str, Any]:
    found = json.loads(await read(request, MAX_BODY) or b"{}")
    if not isinstance(found, dict):
        raise ValueError("send a JSON object")
    # A dry run whose name is misspelt must not become a real one.
    if unknown := found.keys() - _PARAMETERS:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))[:100]}; known: {_KNOWN}")
    if not isinstance(found.get("dry_run", False), bool):
        raise ValueError("dry_run must be true or false")
    return found


def keep_of(configured: Keep, wanted: Mapping[str, Any]) -> Keep:
    """Return what to keep: as configured, but for what a request says.

    Raises:
        ValueError: If it says something else than a finite number above 0, or null.
    """
    days = wanted.get("days", configured.days)
    size = wanted.get("max_bytes", configured.max_bytes)
    for name, value in (("days", days), ("max_bytes", size)):
        if value is not None and (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 < value < math.inf
        ):
            raise ValueError(f"{name} must be a number above 0, not {value!r}")
    return Keep(None if days is None else float(days), None if size is None else int(size))
