"""Collectors, one after the other, each in a process made to be killed.

Told ``<data file> <port>`` on standard input, it forks: the child opens the file and serves until
it is killed. All modules are loaded before, so that a child is at work at once. Grace time and
checkpoint threshold are so small that an assembly and a checkpoint are likely to be hit.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fuseboard_collector import api, receiver
from fuseboard_collector.store import Store, open_store, staging
from fuseboard_collector.store import store as store_module
from fuseboard_collector.store.database import Limits

GRACE_SECONDS = 0.1
CHECKPOINT = "1MB"

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


def serve(path: Path, port: int) -> None:
    """Serve until killed."""
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


def main() -> None:
    """Start a child for each order, and say when it is gone."""
    uvicorn.Config(Starlette(), lifespan="off").load()
    staging.GRACE_SECONDS = GRACE_SECONDS
    store_module.Limits = lambda memory: Limits(memory=memory, checkpoint=CHECKPOINT)  # type: ignore[misc, assignment]
    # Safe while there is one thread: the engine and the server have not begun.
    for order in map(str.split, iter(sys.stdin.readline, "")):
        child = os.fork()
        if not child:
            serve(Path(order[0]), int(order[1]))
            os._exit(1)
        print(child, flush=True)
        os.waitpid(child, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    main()
