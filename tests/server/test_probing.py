"""What is at an address, by what it answers to an empty export request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fuseboard_server import presence
from fuseboard_server.doctor import Finding, Grade, Setup, examine
from fuseboard_server.probing import Kind, probe

Answering = Callable[[bytes], "Answerer"]


class Answerer:
    """A server on loopback that answers each connection with fixed bytes."""

    def __init__(self, reply: bytes) -> None:
        self.reply = reply
        self.seen: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                self.seen.append(client.recv(65536))
                client.sendall(self.reply)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)


@pytest.fixture
def answering() -> Iterator[Answering]:
    made: list[Answerer] = []

    def make(reply: bytes) -> Answerer:
        made.append(Answerer(reply))
        return made[-1]

    yield make
    for one in made:
        one.close()


def http(status: int, body: bytes = b"", kind: str = "application/x-protobuf") -> bytes:
    head = f"HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


ASTRAY = http(404, b'{"error": "OTLP is elsewhere", "kind": "NotHere"}', "application/json")
REPLIES = [
    (http(200), Kind.OTLP, Grade.OK),
    (http(200, b"{}", "application/json"), Kind.OTLP, Grade.OK),
    (http(200, b"<html>", "text/html"), Kind.ELSE, Grade.FAIL),
    (http(404, b"<html>", "text/html"), Kind.ELSE, Grade.FAIL),
    (http(404, b"[]", "application/json"), Kind.ELSE, Grade.FAIL),
    (http(302), Kind.ELSE, Grade.FAIL),
    (http(405), Kind.ELSE, Grade.FAIL),
    (ASTRAY, Kind.ASTRAY, Grade.FAIL),
    (http(401), Kind.REFUSES, Grade.FAIL),
    (http(503), Kind.BUSY, Grade.WARN),
    (b"\x00\x00\x12\x04 no http at all", Kind.ELSE, Grade.FAIL),
]


def collector(data: Path, url: str) -> Finding:
    return {f.subject: f for f in examine(Setup(data, url))}["collector"]


@pytest.mark.parametrize(("reply", "kind", "grade"), REPLIES)
def test_only_what_answers_as_otlp_does_is_ok(
    answering: Answering, tmp_path: Path, reply: bytes, kind: Kind, grade: Grade
) -> None:
    server = answering(reply)
    assert probe(server.url).kind is kind
    finding = collector(tmp_path, server.url)
    assert finding.grade is grade
    assert server.url in finding.seen
    assert bool(finding.advice) is (grade is not Grade.OK)
    assert server.seen[-1].startswith(b"POST /v1/traces HTTP/1.1\r\n")


def test_the_hint_of_a_fuseboard_is_passed_on(answering: Answering, tmp_path: Path) -> None:
    assert "OTLP is elsewhere" in collector(tmp_path, answering(ASTRAY).url).seen


def test_a_base_path_is_kept(answering: Answering) -> None:
    server = answering(http(200))
    assert probe(f"{server.url}/otel/").kind is Kind.OTLP
    assert server.seen[0].startswith(b"POST /otel/v1/traces HTTP/1.1\r\n")


def test_a_port_without_a_listener_is_silence_and_only_a_warning(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))  # bound and not listening: refuses, and stays ours
        url = f"http://127.0.0.1:{holder.getsockname()[1]}"
        assert probe(url).kind is Kind.SILENCE
        assert collector(tmp_path, url).grade is Grade.WARN


def test_the_agents_headers_go_to_the_agents_endpoint_only(
    answering: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = answering(http(200)), answering(http(200))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"{mine.url}/")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t0ken")
    assert "t0ken" not in collector(tmp_path, mine.url).seen
    collector(tmp_path, other.url)
    assert b"Bearer t0ken" in mine.seen[0]
    assert b"t0ken" not in other.seen[0]


def test_health_is_asked_past_proxies_and_survives_what_is_no_http(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = answering(http(502)), answering(http(200))
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert presence.answers(server.url)
    assert not proxy.seen
    assert not presence.answers(answering(b"no http at all\r\n\r\n").url)
