"""Real processes: the server as users start it, and a proxy that can hurt what passes."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

FUSEBOARD = Path(sys.executable).parent / "fuseboard"


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Poll until the condition holds, or fail naming what did not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not happen within {seconds} s")
        time.sleep(0.05)


@dataclass
class Server:
    """One ``fuseboard serve`` on fixed ports and a fixed data folder; may be restarted."""

    data: Path
    log: Path
    options: tuple[str, ...] = ()
    ui_port: int = field(default_factory=free_port)
    otlp_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def otlp_url(self) -> str:
        return f"http://127.0.0.1:{self.otlp_port}"

    @property
    def ui_url(self) -> str:
        return f"http://127.0.0.1:{self.ui_port}"

    def start(self) -> Server:
        command = [
            str(FUSEBOARD), "serve", "--data", str(self.data),
            "--ui-port", str(self.ui_port), "--otlp-http-port", str(self.otlp_port),
            *self.options,
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self.is_ready, seconds=60, what=f"readiness ({self.log.read_text()[-2000:]})")
        return self

    def is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()[-4000:]
        try:
            with urllib.request.urlopen(f"{self.otlp_url}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """Stop as Ctrl-C does and return the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)

    def export(self, kind: str, *more: str) -> list[dict[str, Any]]:
        """Return the records of ``fuseboard export`` from the running server."""
        return export_records(kind, "--collector", self.otlp_url, *more)

    def export_at_rest(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of ``fuseboard export`` from the data folder."""
        return export_records(kind, "--data", str(self.data))


def export_records(kind: str, *options: str) -> list[dict[str, Any]]:
    """Run ``fuseboard export`` and return its JSON lines."""
    done = subprocess.run(
        [str(FUSEBOARD), "export", kind, "--format", "jsonl", *options],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


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
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait(timeout=10)


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
