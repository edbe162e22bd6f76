"""Servers that may be restarted, agents of their own, and a proxy that can hurt what passes."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.processes import Server


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Make servers that are gone after the test."""
    servers: list[Server] = []

    def make(*options: str) -> Server:
        number = len(servers)
        server = Server(
            data=tmp_path / f"data-{number}", log=tmp_path / f"serve-{number}.log", options=options
        )
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.end()


@dataclass
class Proxy:
    """Stands between an agent and the server and follows ``script`` for each request.

    ``script(number, path)`` returns ``pass``, ``503``, ``twice`` (forward the request two
    times) or ``lose`` (forward it, run ``after_commit``, and hang up without an answer).
    """

    target_port: int
    script: Callable[[int, str], str]
    after_commit: Callable[[], None] = lambda: None
    done: list[tuple[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        assert self.server is not None
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def forward(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        link = http.client.HTTPConnection("127.0.0.1", self.target_port, timeout=30)
        try:
            link.request("POST", path, body=body, headers=headers)
            answer = link.getresponse()
            kind = answer.getheader("content-type") or "application/octet-stream"
            return answer.status, kind, answer.read()
        finally:
            link.close()

    def start(self) -> Proxy:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                with proxy.lock:
                    action = proxy.script(len(proxy.done), self.path)
                    proxy.done.append((self.path, action))
                if action == "503":
                    self.answer(503, "text/plain", b"later")
                    return
                headers = {
                    name: value for name, value in self.headers.items()
                    if name.lower() not in ("host", "connection", "content-length")
                }  # fmt: skip
                try:
                    answer = proxy.forward(self.path, headers, body)
                    if action == "twice":
                        answer = proxy.forward(self.path, headers, body)
                except OSError:
                    self.close_connection = True
                    return
                if action == "lose":
                    assert answer[0] == 200
                    proxy.after_commit()
                    self.close_connection = True
                    return
                self.answer(*answer)

            def answer(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Stay silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def stop(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()


@pytest.fixture
def make_proxy() -> Iterator[Callable[..., Proxy]]:
    """Make proxies that are gone after the test."""
    proxies: list[Proxy] = []

    def make(target_port: int, script: Callable[[int, str], str]) -> Proxy:
        proxy = Proxy(target_port, script).start()
        proxies.append(proxy)
        return proxy

    yield make
    for proxy in proxies:
        proxy.stop()


@pytest.fixture
def run_agent() -> Callable[..., subprocess.Popen[str]]:
    """Start a script of this folder as an agent process of its own."""
    here = Path(__file__).parent

    def run(script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(here / script), *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **environment},
        )  # fmt: skip

    return run
