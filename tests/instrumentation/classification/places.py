"""Servers on free ports of this machine that fail in every way that a client can meet."""

from __future__ import annotations

import contextlib
import http.server
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

PATIENCE = 0.3
"""Seconds that clients are told to wait for what never comes."""

Talk = Callable[[socket.socket], None]


class _Answering(http.server.BaseHTTPRequestHandler):
    """Answers with what the first part of the path stands for."""

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        self.body = self.rfile.read(length)
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.server.answers[self.path.split("/")[1]](self)  # type: ignore[attr-defined]

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815 - the names that the server calls

    def do_CONNECT(self) -> None:
        self.send_error(502)

    def log_message(self, *words: Any) -> None:
        pass


class _HttpServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.answers: dict[str, Callable[[_Answering], None]] = {}

    def handle_error(self, *words: Any) -> None:
        """Say nothing: clients that hang up are what these tests are about."""


class Places:
    """Where clients can be sent; every address is on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self.over = threading.Event()
        self._http = _HttpServer()
        self._stack.callback(self._http.server_close)
        self._stack.callback(self._http.shutdown)
        self._run(self._http.serve_forever, 0.02)

    def close(self) -> None:
        self.over.set()
        self._stack.close()

    # --- HTTP -----------------------------------------------------------------------------

    def http(self, status: int, body: Any = "", headers: Mapping[str, str] | None = None) -> str:
        """Return an address that answers so; the body is a text or made into JSON."""
        is_text = isinstance(body, str)
        encoded = (body if is_text else json.dumps(body)).encode()
        kind = "text/plain" if is_text else "application/json"

        told = {"content-type": kind, **(headers or {})}
        return self._address(lambda handler: _send(handler, status, encoded, told))

    def script(self, *answers: Any) -> tuple[str, list[Any]]:
        """Return an address that gives these answers in turn, and what it is told each time."""
        waiting, told = list(answers), []

        def answer(handler: _Answering) -> None:
            told.append(json.loads(handler.body))
            _send(handler, 200, json.dumps(waiting.pop(0)).encode())

        return self._address(answer), told

    def raw(self, answer: bytes) -> str:
        """Return an address that answers with these bytes and hangs up."""
        return self._address(lambda handler: _write(handler, answer))

    @property
    def hanging(self) -> str:
        """An address that takes the request and never answers."""
        return self._address(lambda handler: _drop(self.over.wait(30)), "hanging")

    @property
    def cut(self) -> str:
        """An address that takes the request and hangs up."""
        return self._address(lambda handler: handler.connection.shutdown(socket.SHUT_RDWR))

    @property
    def half(self) -> str:
        """An address that hangs up in the middle of its answer."""
        return self.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of i")

    @property
    def proxy(self) -> str:
        """A proxy that connects nobody."""
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def circle(self) -> str:
        """An address that redirects to itself."""
        key = str(len(self._http.answers))
        return self.http(302, headers={"location": f"/{key}"})

    def _address(self, answer: Callable[[_Answering], None], name: str = "") -> str:
        key = f"{name}{len(self._http.answers)}"
        self._http.answers[key] = answer
        return f"http://127.0.0.1:{self._http.server_port}/{key}"

    # --- Below HTTP -----------------------------------------------------------------------

    @property
    def refused_port(self) -> int:
        """A port that nobody listens on, and nobody else can take meanwhile."""
        unused = self._stack.enter_context(socket.socket())
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port

    @property
    def refused(self) -> str:
        """An address where the connection is refused."""
        return f"http://127.0.0.1:{self.refused_port}/"

    @property
    def untrusted(self) -> str:
        """An address whose certificate nobody trusts."""
        import trustme

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)

        def greet(line: socket.socket) -> None:
            with contextlib.suppress(OSError), context.wrap_socket(line, server_side=True):
                pass

        return f"https://127.0.0.1:{self.listen(greet)}/"

    @property
    def plain(self) -> str:
        """An address that is called with TLS and answers without."""
        return f"https://127.0.0.1:{self.listen(_answer_plainly)}/"

    def listen(self, talk: Talk) -> int:
        """Return a port where each connection is handed to ``talk``, then closed."""
        listener = self._stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def take_one(line: socket.socket) -> None:
            with line, contextlib.suppress(OSError, EOFError):
                line.settimeout(10)
                talk(line)

        def take_all() -> None:
            while not self.over.is_set():
                try:
                    if select.select([listener], [], [], 0.05)[0]:
                        self._run(take_one, listener.accept()[0])
                except (OSError, ValueError):
                    return

        self._run(take_all)
        port: int = listener.getsockname()[1]
        return port

    def _run(self, work: Callable[..., Any], *args: Any) -> None:
        threading.Thread(target=work, args=args, daemon=True).start()

    def until_over(self, line: socket.socket) -> None:
        """Keep a connection open and say nothing."""
        self.over.wait(30)


def patience_for(url: str) -> float:
    """Return seconds: few for an address that never answers, many for one that does."""
    return PATIENCE if "hanging" in url else 20.0


def receive(line: socket.socket, count: int) -> bytes:
    """Return exactly so many bytes."""
    received = b""
    while len(received) < count:
        more = line.recv(count - len(received))
        if not more:
            raise EOFError
        received += more
    return received


def _send(
    handler: _Answering,
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
) -> None:
    handler.send_response(status)
    for name, value in (headers or {"content-type": "application/json"}).items():
        handler.send_header(name, value)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def _write(handler: _Answering, answer: bytes) -> None:
    handler.wfile.write(answer)
    handler.wfile.flush()


def _drop(_: object) -> None:
    """Answer nothing."""


def _answer_plainly(line: socket.socket) -> None:
    line.recv(4096)
    line.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    time.sleep(0.05)  # let the client read before the reset


def unresolvable(code: int) -> Any:
    """Return a ``socket.getaddrinfo`` that finds no address, with this code."""

    def getaddrinfo(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(code, "no address")

    return getaddrinfo


@contextlib.contextmanager
def without_names(code: int) -> Iterator[None]:
    """Let every name fail to resolve with this code, within a block."""
    real, socket.getaddrinfo = socket.getaddrinfo, unresolvable(code)
    try:
        yield
    finally:
        socket.getaddrinfo = real
