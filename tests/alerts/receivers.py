"""Receivers that tests look into: one in memory, one a real HTTP server on loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from fuseboard_alerts.notifiers import TemporaryDeliveryError


def wait_for(is_met: Callable[[], object], deadline: float = 20.0) -> None:
    end = time.monotonic() + deadline
    while not is_met():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


class Inbox:
    """Keeps what it is sent; may be told to fail or to hang."""

    def __init__(self, name: str = "inbox") -> None:
        self.name = name
        self.messages: list[dict[str, Any]] = []
        self.is_failing = False
        self.tries = 0
        self.gate = threading.Event()
        self.gate.set()

    def send(self, message: dict[str, Any]) -> None:
        self.tries += 1
        assert self.gate.wait(60)
        if self.is_failing:
            raise TemporaryDeliveryError("told to fail")
        self.messages.append(message)

    def summary(self) -> list[tuple[str, str]]:
        """Return name and state of each alert, in order of arrival."""
        return [
            (alert["labels"]["alertname"], alert["state"])
            for message in self.messages
            for alert in message["alerts"]
        ]


class Posts:
    """What a loopback web server was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[int] = []
        self.paths: list[str] = []


@contextmanager
def web_receiver() -> Iterator[Posts]:
    """Run a web server; it answers the queued status codes, then 200."""
    posts = Posts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = posts.answers.pop(0) if posts.answers else 200
            posts.paths.append(self.path)
            posts.headers.append(dict(self.headers))
            posts.raw.append(body)
            if status == 200:
                posts.bodies.append(json.loads(body))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    posts.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield posts
    finally:
        server.shutdown()
        server.server_close()
