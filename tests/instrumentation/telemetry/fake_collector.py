"""An OTLP/HTTP receiver for these tests, and what they read its records with."""

from __future__ import annotations

import gzip
import http.server
import threading
import time
from collections.abc import Callable
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def value_of(any_value: Any) -> Any:
    kind = any_value.WhichOneof("value")
    return getattr(any_value, kind) if kind else None


def as_dict(attributes: Any) -> dict[str, Any]:
    return {attribute.key: value_of(attribute.value) for attribute in attributes}


class FakeCollector:
    """An OTLP/HTTP receiver on loopback that can misbehave.

    ``script`` holds the statuses of the next requests ("hang" never answers); afterwards 200.
    """

    def __init__(self) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.script: list[Any] = []
        self.answer_body = b""
        self.retry_after: str | None = None
        self.delay = 0.0
        self.let_go = threading.Event()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self, body)

            def log_message(self, *words: Any) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *details: Any) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def take(self, handler: Any, body: bytes) -> None:
        self.headers.append(dict(handler.headers))
        step = self.script.pop(0) if self.script else 200
        if self.delay:
            time.sleep(self.delay)
        if step == "hang":
            self.let_go.wait(60)
            return
        if step in {200, "lost answer"}:
            self.bodies.append((handler.path, gzip.decompress(body)))
        if step == "lost answer":
            handler.close_connection = True
            handler.connection.close()
            return
        handler.send_response(step)
        if self.retry_after is not None and step != 200:
            handler.send_header("Retry-After", self.retry_after)
        answer = self.answer_body if step == 200 else b""
        handler.send_header("Content-Type", "application/x-protobuf")
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)

    def resource_spans(self) -> list[Any]:
        requests = [b for path, b in tuple(self.bodies) if path == "/v1/traces"]
        return [
            group
            for body in requests
            for group in ExportTraceServiceRequest.FromString(body).resource_spans
        ]

    def spans(self) -> list[Any]:
        return [s for g in self.resource_spans() for scope in g.scope_spans for s in scope.spans]

    def resource_logs(self) -> list[Any]:
        requests = [b for path, b in tuple(self.bodies) if path == "/v1/logs"]
        return [
            group
            for body in requests
            for group in ExportLogsServiceRequest.FromString(body).resource_logs
        ]

    def logs(self, event: str | None = None) -> list[Any]:
        records = [r for g in self.resource_logs() for s in g.scope_logs for r in s.log_records]
        return [r for r in records if event is None or r.event_name == event]

    def close(self) -> None:
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()


def wait_until(condition: Callable[[], Any], timeout: float = 20.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)
