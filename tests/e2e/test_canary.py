"""A secret in an exception or an argument is nowhere afterwards: span, log, store, webhook."""

from __future__ import annotations

import gzip
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytestmark = pytest.mark.e2e


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[bytes]]]:
    """Receive notifications; yields the address and the bodies received so far."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook", bodies
    server.shutdown()
    server.server_close()


def test_a_canary_secret_is_found_nowhere(
    make_server: Callable[..., Any],
    make_proxy: Callable[..., Any],
    run_agent: Callable[..., Any],
    webhook: tuple[str, list[bytes]],
) -> None:
    canary = "CANARY" + secrets.token_hex(12)
    url, notifications = webhook
    server = make_server("--alert-time-scale", "0.01", "--webhook", url).start()
    proxy = make_proxy(server.otlp_port, lambda number, path: "pass")
    wire: list[bytes] = []
    forward = proxy.forward

    def listen(path: str, headers: dict[str, str], body: bytes) -> Any:
        packed = {k.lower(): v for k, v in headers.items()}.get("content-encoding") == "gzip"
        wire.append(gzip.decompress(body) if packed else body)
        return forward(path, headers, body)

    proxy.forward = listen
    agent = run_agent("leaky_agent.py", proxy.url, canary)
    metrics, err = agent.communicate(timeout=120)
    assert agent.returncode == 0, err
    calls = server.export("calls")
    alerts = server.export("alerts")
    assert server.stop() == 0
    stored = [path.read_bytes() for path in server.data.rglob("*") if path.is_file()]

    # What carries the secret must have passed here at all, or its absence proves nothing.
    assert any(b"leak" in body for body in wire)
    assert any("failed" in (call["error_message"] or "") for call in calls)
    assert any(alert["state"] == "firing" for alert in alerts)
    assert any(json.loads(body)["status"] == "firing" for body in notifications)
    needle = canary.encode()
    assert not any(needle in body for body in wire)
    assert not any(needle in body for body in stored)
    assert not any(needle in body for body in notifications)
    assert canary not in metrics + err + json.dumps(calls) + json.dumps(alerts)
    assert canary not in server.log.read_text()
