"""Collectors, one after the other, each in a process made to be killed.

Told ``<data file> <port>`` on standard input, it forks: the child opens the file and serves until
it is killed. All modules are loaded before, so that a child is at work at once. Grace time and
checkpoint threshold are so small that an assembly and a checkpoint are likely to be hit.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from datetime import datetime
from functools import partial
from pathlib import Path
from random import random

import duckdb
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fuseboard_collector import api, receiver
from fuseboard_collector.store import Store, open_store, staging
from fuseboard_collector.store import store as store_module
from fuseboard_collector.store.database import Limits
from fuseboard_collector.store.named_queries import load
from fuseboard_collector.store.rollups import keeper
from fuseboard_collector.store.rollups.tables import TABLES

GRACE_SECONDS = 0.1
KEEPER_SECONDS = 0.05
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


def rollups_route(store: Store) -> Route:
    """Roll up what can be; return which rollups differ from the raw rows, and the size of one."""

    def rollups(_request: Request) -> Response:
        store.roll_up()
        database = store._database
        assert database is not None
        with database.cursor() as cursor:
            tables = [(hours, table) for hours, names in TABLES.items() for table in names]
            wrong = [table for hours, table in tables if differing(cursor, table, hours)]
            ((rows,),) = cursor.execute("SELECT count(*) FROM calls_6h").fetchall()
        return JSONResponse({"wrong": wrong, "rows": rows})

    return Route("/rollups", rollups, methods=["POST"])


def differing(cursor: duckdb.DuckDBPyConnection, table: str, hours: int) -> int:
    """Return how many rows a rollup has too many or too few outside of its dirty spans."""
    columns = ", ".join(
        f"round({name}, 6)" if kind == "DOUBLE" else name
        for name, kind, *_ in cursor.execute(f"DESCRIBE {table}").fetchall()
    )
    counted = load(table, "rollups/sql").statements[0].sql.rstrip().rstrip(";")
    clean = f"""
        WHERE time_bucket(to_hours({hours}), span)
              NOT IN (SELECT span FROM dirty_spans WHERE hours = {hours})
    """
    sql = f"""
        WITH counted AS ({counted}),
        here AS (SELECT {columns} FROM {table} {clean}),
        due AS (SELECT {columns} FROM counted {clean})
        SELECT count(*) FROM ((FROM here EXCEPT ALL FROM due) UNION ALL
                              (FROM due EXCEPT ALL FROM here))
    """
    ((rows,),) = cursor.execute(
        sql, {"since": datetime(2020, 1, 1), "until": datetime(2100, 1, 1)}
    ).fetchall()
    return int(rows)


def hesitating(application: ASGIApp) -> ASGIApp:
    """Hold back some answers, so that kills between a commit and its acknowledgement are likely."""

    async def hesitate(scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and random() < 0.3:
                await asyncio.sleep(random() * 0.1)
            await send(message)

        await application(scope, receive, answer)

    return hesitate


def serve(path: Path, port: int) -> None:
    """Serve until killed."""
    store = open_store(path, retention_days=None)
    application = Starlette(
        routes=[
            *receiver.routes(store), *api.routes(store), settle_route(store), doubles_route(store),
            rollups_route(store),
        ]
    )  # fmt: skip
    listener = socket.create_server(("127.0.0.1", port))
    print("open", flush=True)
    config = uvicorn.Config(
        hesitating(application), log_level="warning", lifespan="off", access_log=False
    )
    uvicorn.Server(config).run(sockets=[listener])


def main() -> None:
    """Start a child for each order, and say when it is gone."""
    uvicorn.Config(Starlette(), lifespan="off").load()
    staging.GRACE_SECONDS = GRACE_SECONDS
    keeper.REST_SECONDS = keeper.PAUSE_SECONDS = KEEPER_SECONDS  # type: ignore[misc]
    store_module.Keeper = partial(keeper.Keeper, interval=KEEPER_SECONDS)  # type: ignore[misc, assignment]
    store_module.Limits = partial(Limits, checkpoint=CHECKPOINT)  # type: ignore[misc, assignment]
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
