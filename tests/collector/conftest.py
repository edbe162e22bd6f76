"""A store, the collector's routes around it, and OTLP requests in both encodings."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
import uvicorn
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from fuseboard import conventions as c
from fuseboard_collector import api, receiver
from fuseboard_collector.store import Store, named_queries, open_store
from fuseboard_collector.tokens import Token

# Modules that several test files share.
sys.path.insert(0, str(Path(__file__).parent))

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
EVERYTHING = {"since": None, "until": None}
DATA = Path(__file__).parents[1] / "data" / "otlp"


class StandingClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
        self._start = self.now

    def time_ns(self) -> int:
        return int(self.now.timestamp()) * 10**9

    def monotonic(self) -> float:
        return (self.now - self._start).total_seconds()

    def sleep(self, seconds: float) -> None:
        raise AssertionError

    async def async_sleep(self, seconds: float) -> None:
        raise AssertionError


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def make_store(tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Open stores on one file of the test's own; closed after the test."""
    opened: list[Store] = []

    def make(name: str = "fuseboard.duckdb", **options: Any) -> Store:
        store = open_store(tmp_path / "data" / name, **options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store(retention_days=None)


def application(store: Store, read_token: str | None = None) -> Starlette:
    routes = [*receiver.routes(store), *api.routes(store, token=Token(read_token))]
    return Starlette(routes=routes)


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    with TestClient(application(store), raise_server_exceptions=True) as client:
        yield client


@contextmanager
def serving(store: Store, read_token: str | None = None) -> Iterator[str]:
    """Run the collector under a real uvicorn on a free port; yield its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(application(store, read_token), log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    wait_until(lambda: server.started, "the start of the server")
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()


@pytest.fixture
def collector(store: Store) -> Iterator[str]:
    with serving(store) as url:
        yield url


@pytest.fixture
def serve() -> Callable[[Store], Any]:
    return serving


@pytest.fixture
def serve_guarded() -> Callable[[Store, str], Any]:
    """Run the collector with a token for reading."""
    return serving


def wait_until(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not happen within {seconds} s")
        time.sleep(0.01)


@pytest.fixture
def until() -> Callable[..., None]:
    return wait_until


@pytest.fixture
def hold() -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Have another process hold a data file until its standard input closes."""
    holders: list[subprocess.Popen[str]] = []
    code = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); "
        "sys.stdin.read(); c.close()"
    )

    def start(path: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        holders.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in holders:
        process.communicate()


@pytest.fixture
def own_queries(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Add a query for the test."""
    original = named_queries.load
    added: dict[str, named_queries.NamedQuery] = {}

    def load(name: str, folder: str = "queries") -> named_queries.NamedQuery:
        return added.get(name) or original(name, folder)

    for module in ("answering", "store"):
        monkeypatch.setattr(f"fuseboard_collector.store.{module}.load", load)

    def add(name: str, sql: str) -> None:
        statements = tuple(
            named_queries.Statement(
                item.query,
                frozenset(item.named_parameters),
                item.type == duckdb.StatementType.SELECT,
            )
            for item in duckdb.extract_statements(sql)
        )
        added[name] = named_queries.NamedQuery(name, statements)

    return add


OWN_CALL: dict[str, Any] = {
    c.GEN_AI_OPERATION_NAME: c.EXECUTE_TOOL,
    c.GEN_AI_TOOL_NAME: "search",
    c.OUTCOME: "ok",
    c.ATTEMPTS: 1,
    c.LAYER: "tool",
}


class Otlp:
    """Builds requests as OTLP/JSON documents; :meth:`protobuf` gives the same as protobuf."""

    start_ns = 1_796_000_000_123_456_789
    """A time in 2026 with odd nanoseconds."""

    @classmethod
    def span(
        cls, trace: str = "0af7651916cd43dd8448eb211c80319c", span: str = "b7ad6b7169203331",
        attributes: dict[str, Any] | None = None, **fields: Any,
    ) -> dict[str, Any]:  # fmt: skip
        return {
            "traceId": trace,
            "spanId": span,
            "name": "execute_tool search",
            "kind": 1,
            "startTimeUnixNano": str(cls.start_ns),
            "endTimeUnixNano": str(cls.start_ns + 250_000_001),
            "attributes": cls.attributes(OWN_CALL if attributes is None else attributes),
            **fields,
        }

    @classmethod
    def attributes(cls, values: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"key": key, "value": cls.value(value)} for key, value in values.items()]

    @classmethod
    def value(cls, value: Any) -> dict[str, Any]:
        if isinstance(value, bool):
            return {"boolValue": value}
        if isinstance(value, int):
            return {"intValue": str(value)}
        if isinstance(value, float):
            return {"doubleValue": value}
        if isinstance(value, bytes):
            return {"bytesValue": base64.b64encode(value).decode()}
        if isinstance(value, list):
            return {"arrayValue": {"values": [cls.value(item) for item in value]}}
        if isinstance(value, dict):
            return {"kvlistValue": {"values": cls.attributes(value)}}
        return {} if value is None else {"stringValue": value}

    @classmethod
    def resource(cls, resource: dict[str, Any] | None = None) -> dict[str, Any]:
        given = {"service.name": "trips", "service.instance.id": "i-1"}
        return {"attributes": cls.attributes(given if resource is None else resource)}

    @classmethod
    def traces(
        cls, *spans: dict[str, Any], resource: dict[str, Any] | None = None,
        scope: str = "fuseboard",
    ) -> dict[str, Any]:  # fmt: skip
        inner = {"scope": {"name": scope, "version": "0.1.0"}, "spans": list(spans)}
        return {"resourceSpans": [{"resource": cls.resource(resource), "scopeSpans": [inner]}]}

    @classmethod
    def logs(
        cls, event: str, attributes: dict[str, Any], resource: dict[str, Any] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:  # fmt: skip
        record = {
            "timeUnixNano": str(cls.start_ns),
            "eventName": event,
            "attributes": cls.attributes(attributes),
            **fields,
        }
        inner = {"scope": {"name": "fuseboard"}, "logRecords": [record]}
        return {"resourceLogs": [{"resource": cls.resource(resource), "scopeLogs": [inner]}]}

    @staticmethod
    def protobuf(document: dict[str, Any]) -> bytes:
        """Return a document as protobuf, by the generic parser, with its ids put right."""
        is_logs = "resourceLogs" in document
        message = ExportLogsServiceRequest() if is_logs else ExportTraceServiceRequest()
        json_format.ParseDict(_base64_ids(document), message)
        return message.SerializeToString()

    @staticmethod
    def json(document: dict[str, Any]) -> bytes:
        return json.dumps(document).encode()


def _base64_ids(value: Any) -> Any:
    """Return a document whose ids are base64, as the generic parser wants them."""
    if isinstance(value, list):
        return [_base64_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode()
        if key in ("traceId", "spanId", "parentSpanId")
        else _base64_ids(item)
        for key, item in value.items()
    }


@pytest.fixture
def otlp() -> type[Otlp]:
    return Otlp


@pytest.fixture
def send(client: TestClient) -> Callable[..., Any]:
    """Post a document to the signal's route as JSON (the default) or protobuf."""

    def post(document: dict[str, Any], *, protobuf: bool = False) -> Any:
        path = "/v1/logs" if "resourceLogs" in document else "/v1/traces"
        if protobuf:
            return client.post(path, content=Otlp.protobuf(document), headers=PROTOBUF)
        return client.post(path, content=Otlp.json(document), headers=JSON)

    return post


@pytest.fixture
def rows(store: Store) -> Callable[[str], list[dict[str, Any]]]:
    """Assemble, then return the rows of a table, attributes and everything, as dictionaries."""

    def read(table: str) -> list[dict[str, Any]]:
        store.settle()
        database = store._database
        assert database is not None
        with database.cursor() as cursor:
            found = cursor.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
            names = [item[0] for item in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found]

    return read


@pytest.fixture
def export(store: Store) -> Callable[[str], list[dict[str, Any]]]:
    """Assemble, then return the records of an export."""

    def read(kind: str) -> list[dict[str, Any]]:
        store.settle()
        records: list[dict[str, Any]] = store.query(f"export_{kind}", EVERYTHING).to_pylist()
        return records

    return read
