"""Connections that are not waited for without end, and those that are kept."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from tests.processes import wait_until

from fuseboard_server import connections, running

HEAD = b"GET / HTTP/1.1\r\nhost: x\r\n"


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(1.5)
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.4)
    config = running.configured(application)
    config.lifespan = "off"
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    wait_until(lambda: server.started, seconds=20, what="the start")
    yield int(listener.getsockname()[1])
    server.should_exit = True
    thread.join(20)


def is_closed(link: socket.socket) -> bool:
    """Wait until the server closes; False if it has not after a long while."""
    link.settimeout(20)
    try:
        while link.recv(1000):
            pass  # the rest of an answer
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize("sent", [b"", HEAD, b"GET"], ids=str)
def test_a_request_that_does_not_become_complete_is_given_up(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(sent)
        assert is_closed(link)


def test_so_is_one_that_trickles_in_after_a_good_one(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(HEAD + b"\r\n")
        assert b"200" in link.recv(1000)
        link.sendall(b"GET /")
        assert is_closed(link)


def test_a_request_that_takes_long_to_answer_is_answered(port: int) -> None:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    link.request("GET", "/slow")
    assert link.getresponse().read() == b"ok"
    link.close()


def test_an_idle_connection_is_kept_between_requests(port: int) -> None:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    link.request("GET", "/")
    assert link.getresponse().read() == b"ok"
    kept = link.sock
    time.sleep(1.2)  # three times what a head may take
    link.request("GET", "/")
    assert link.getresponse().read() == b"ok"
    assert link.sock is kept
    link.close()
    assert running.KEEP_ALIVE_SECONDS > 60


def test_a_bound_port_refuses_until_it_is_served() -> None:
    from fuseboard_server.sockets import bind, port_of

    with bind("127.0.0.1", 0, "--ui-port") as bound, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(bound)), timeout=5)
