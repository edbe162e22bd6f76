"""A collector in one process, made to be killed. Warm before it is told which file to open.

Told ``<data file> <port>`` on standard input, it serves until it is killed. Grace time and
checkpoint threshold are so small that an assembly and a checkpoint are likely to be hit.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import uvicorn
from books import Agent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from fuseboard_collector import api, receiver
from fuseboard_collector.store import Store, open_store, staging
from fuseboard_collector.store import store as store_module
from fuseboard_collector.store.database import Limits

GRACE_SECONDS = 0.1
CHECKPOINT = "1MB"

WARM = Agent(Random(1)).trace().requests[0]

DOUBLES = """
SELECT 'tool_calls', trace_id || span_id FROM tool_calls GROUP BY ALL HAVING count(*) > 1
UNION ALL
SELECT 'attempts', trace_id || call_span_id || number FROM attempts
GROUP BY ALL HAVING count(*) > 1
UNION ALL
SELECT 'spans', trace_id || span_id FROM spans GROUP BY ALL HAVING count(*) > 1
UNION ALL
SELECT 'sightings', trace_id || span_id FROM sightings GROUP BY ALL HAVING count(*) > 1
"""


def settle_route(store: Store) -> Route:
    """Assemble what waits; used before the books are checked, and to be killed in."""

    def settle(_request: Request) -> Response:
        store.settle()
        return JSONResponse({})

    return Route("/settle", settle, methods=["POST"])


def doubles_route(store: Store) -> Route:
    """Return the keys of rows that are there more than once."""

    def doubles(_request: Request) -> Response:
        database = store._database
        assert database is not None
        with database.cursor() as cursor:
            return JSONResponse(cursor.execute(DOUBLES).fetchall())

    return Route("/doubles", doubles)


def warm_up() -> None:
    """Load what is loaded on first use, so that the process is killed at work."""
    uvicorn.Config(Starlette(), lifespan="off").load()
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "warm.duckdb")
        with TestClient(Starlette(routes=receiver.routes(store))) as client:
            client.post("/v1/traces", content=WARM, headers={"content-type": "application/json"})
        store.settle()
        store.close()


def main() -> None:
    """Wait for the order to start, then serve."""
    warm_up()
    print("warm", flush=True)
    order = sys.stdin.readline().split()
    if not order:
        return
    path, port = Path(order[0]), int(order[1])
    staging.GRACE_SECONDS = GRACE_SECONDS
    store_module.Limits = lambda memory: Limits(memory=memory, checkpoint=CHECKPOINT)  # type: ignore[misc, assignment]
    store = open_store(path, retention_days=None)
    application = Starlette(
        routes=[
            *receiver.routes(store), *api.routes(store), settle_route(store), doubles_route(store),
        ]
    )  # fmt: skip
    listener = socket.create_server(("127.0.0.1", port))
    print("open", flush=True)
    config = uvicorn.Config(application, log_level="warning", lifespan="off", access_log=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
