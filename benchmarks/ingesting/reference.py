"""The plain receiver that ingest is measured against: parse, walk, insert, answer after the commit.

Nothing else: no classification, no repeats, no attempts. Written for speed within what is plain:
decoding on worker threads, one writer thread that commits what has gathered in the meantime.
Run with the data file as argument; prints its port.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import sys
import threading
from collections import deque
from concurrent.futures import Future
from typing import Any

import duckdb
import pyarrow as pa
import uvicorn
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fuseboard_server import allocator

TEXT, NUMBER, TIME = pa.string(), pa.int64(), pa.timestamp("us")
COLUMNS = {
    "trace_id": TEXT, "span_id": TEXT, "parent_id": TEXT, "name": TEXT, "kind": NUMBER, "ts": TIME,
    "dur_us": NUMBER, "status": NUMBER, "status_msg": TEXT, "service": TEXT, "instance": TEXT,
    "region": TEXT, "scope": TEXT, "tool": TEXT, "agent": TEXT, "session": TEXT, "outcome": TEXT,
    "error_type": TEXT, "error_class": TEXT, "attempts": NUMBER, "args_hash": TEXT, "layer": TEXT,
    "attrs": TEXT, "events": TEXT,
}  # fmt: skip
PLACES = {
    name: list(COLUMNS).index(column)
    for name, column in {
        "gen_ai.tool.name": "tool", "gen_ai.agent.name": "agent",
        "gen_ai.conversation.id": "session", "fuseboard.outcome": "outcome",
        "error.type": "error_type", "fuseboard.attempts": "attempts",
        "error.classified_as": "error_class", "fuseboard.args_hash": "args_hash",
        "fuseboard.layer": "layer",
    }.items()
}  # fmt: skip
UNKNOWN = (None,) * 11
SCHEMA = pa.schema(list(COLUMNS.items()))
SQL_TYPES = {TEXT: "VARCHAR", NUMBER: "BIGINT", TIME: "TIMESTAMP"}
GROUP_ROWS = 65_536


def decode(body: bytes) -> pa.Table:
    """Return the spans of a request as a table."""
    rows = []
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        resource = attributes(group.resource.attributes)
        shared = (
            resource.get("service.name"), resource.get("service.instance.id"),
            resource.get("cloud.region"),
        )  # fmt: skip
        for scope in group.scope_spans:
            rows += [row(span, shared, scope.scope.name) for span in scope.spans]
    arrays = [
        pa.array(column, type=kind)
        for column, kind in zip(zip(*rows, strict=True), COLUMNS.values(), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def row(span: Any, shared: tuple[Any, ...], scope: str) -> list[Any]:
    start = span.start_time_unix_nano
    cells = [
        span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex() or None, span.name,
        span.kind, start // 1000, (span.end_time_unix_nano - start) // 1000, span.status.code,
        span.status.message or None, *shared, scope, *UNKNOWN,
    ]  # fmt: skip
    rest = {}
    for pair in span.attributes:
        place = PLACES.get(pair.key)
        if place is None:
            rest[pair.key] = plain(pair.value)
        else:
            cells[place] = plain(pair.value)
    if rest:
        cells[-2] = dumps(rest)
    if span.events:
        cells[-1] = dumps(
            [{"name": e.name, "attributes": attributes(e.attributes)} for e in span.events]
        )
    return cells


dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=repr).encode


def attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: plain(pair.value) for pair in pairs}


def plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind is None:
        return None
    if kind == "array_value":
        return [plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return attributes(value.kvlist_value.values)
    return getattr(value, kind)


class Writer(threading.Thread):
    """Insert what waits, all in one transaction, and only then say so."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        config = {"checkpoint_threshold": "64MB", "memory_limit": "1GB"}
        self.connection = duckdb.connect(path, config=config)
        self.connection.execute("SET enable_progress_bar = false")
        columns = ", ".join(
            f"{name} {'VARIANT' if name == 'attrs' else SQL_TYPES[kind]}"
            for name, kind in COLUMNS.items()
        )
        self.connection.execute(f"CREATE TABLE spans ({columns})")
        self.waiting: deque[tuple[pa.Table, Future[None]]] = deque()
        self.changed = threading.Condition()
        self.stopping = False

    def append(self, rows: pa.Table) -> Future[None]:
        """Queue rows; the future resolves after their commit."""
        done: Future[None] = Future()
        with self.changed:
            self.waiting.append((rows, done))
            self.changed.notify()
        return done

    def run(self) -> None:
        """Commit what waits until told to stop."""
        while not self.stopping or self.waiting:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.stopping)
                group, rows = [], 0
                while self.waiting and rows < GROUP_ROWS:
                    group.append(self.waiting.popleft())
                    rows += group[-1][0].num_rows
            if group:
                self.insert(pa.concat_tables([rows for rows, _ in group]))
            for _, done in group:
                done.set_result(None)
        self.connection.close()

    def insert(self, rows: pa.Table) -> None:
        """Insert rows in one transaction."""
        self.connection.register("incoming", rows)
        self.connection.execute(
            "INSERT INTO spans SELECT * REPLACE (attrs::JSON::VARIANT AS attrs) FROM incoming"
        )
        self.connection.unregister("incoming")

    def stop(self) -> None:
        """Store what waits and close the file."""
        with self.changed:
            self.stopping = True
            self.changed.notify()
        self.join()


def main() -> None:
    writer = Writer(sys.argv[1])
    writer.start()

    def take(body: bytes, packed: bool) -> Future[None]:
        return writer.append(decode(gzip.decompress(body) if packed else body))

    async def traces(request: Request) -> Response:
        packed = request.headers.get("content-encoding") == "gzip"
        done = await asyncio.to_thread(take, await request.body(), packed)
        await asyncio.wrap_future(done)
        return Response(b"", media_type="application/x-protobuf")

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = Starlette(routes=[Route("/v1/traces", traces, methods=["POST"])])
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
    writer.stop()


if __name__ == "__main__":
    allocator.prefer()  # as the server does
    main()
