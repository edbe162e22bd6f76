"""Garbage on every port: no crash, no stall of a healthy client, memory within bounds."""

from __future__ import annotations

import gzip
import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.processes import Server, free_port

pytestmark = pytest.mark.e2e

HEALTHY_SECONDS = 5.0
"""For 99 in 100; HC-36 asks for 2 s, on a machine that does nothing else."""
MEMORY_MB = 700
"""Of the whole process, dashboard included: it has about 190 when nothing happens, and here 400. A
message that outlives its refusal costs more than twice this."""
PATHS = ("/v1/traces", "/v1/logs", "/v1/metrics")
PB, JSON = "application/x-protobuf", "application/json"


def garbage(random_: random.Random) -> tuple[str, bytes, dict[str, str]]:
    """Return a request that is wrong in one of many ways."""
    noise = random_.randbytes(random_.randrange(2000))
    spans = [{"traceId": "0" * 31 + "1", "spanId": f"{n:016x}"} for n in range(1, 3000)]
    bodies: list[tuple[str, bytes]] = [
        (PB, noise),
        (JSON, noise),
        (PB, b"\x0a\x00" * 200_000),
        (JSON, b"[" * 100_000),
        (JSON, b'{"resourceSpans": [' + b"{}," * 300_000 + b"{}]}"),
        (JSON, json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()),
        (PB, bytes(1 << 20)),
        ("text/plain", noise),
    ]
    kind, body = random_.choice(bodies)
    headers = {"content-type": kind}
    packing = random_.choice(["", "gzip", "zstd", "br", "gzip-bomb"])
    if packing == "gzip-bomb":
        body, packing = gzip.compress(bytes(48 << 20), 1), "gzip"
    elif packing == "gzip" and random_.random() < 0.7:
        body = gzip.compress(body, 1)
    if packing:
        headers["content-encoding"] = packing
    return random_.choice(PATHS), body, headers


class Load:
    """Threads that send until told to stop, and what they were answered."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.answers: Counter[Any] = Counter()
        self.faults: list[str] = []
        self._threads: list[threading.Thread] = []

    def start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                while not self.over.is_set():
                    work()
            except Exception as error:
                self.faults.append(repr(error))

        thread = threading.Thread(target=run)
        thread.start()
        self._threads.append(thread)

    def end(self) -> None:
        self.over.set()
        for thread in self._threads:
            thread.join(60)


def http_garbage(load: Load, port: int, seed: int) -> Callable[[], None]:
    random_ = random.Random(seed)

    def work() -> None:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        path, body, headers = garbage(random_)
        try:
            link.request("POST", path, body, headers)
            answer = link.getresponse()
            answer.read()
            load.answers[answer.status] += 1
            if answer.status == 503:
                assert answer.getheader("retry-after")
        except (BrokenPipeError, ConnectionResetError):
            load.answers["closed"] += 1  # refused before all of it was sent
        finally:
            link.close()

    return work


def grpc_garbage(load: Load, port: int, seed: int) -> Callable[[], None]:
    random_ = random.Random(seed)
    channel = grpc.insecure_channel(
        f"127.0.0.1:{port}", options=[("grpc.max_send_message_length", -1)]
    )
    export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")

    def work() -> None:
        try:
            export(garbage(random_)[1], timeout=60)
            load.answers["OK"] += 1
        except grpc.RpcError as error:
            load.answers[error.code().name] += 1

    return work


def healthy(port: int, seconds: float) -> list[float]:
    """Send a small request every 50 ms; return how long each took."""
    took = []
    ends = time.monotonic() + seconds
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    number = 0
    while time.monotonic() < ends:
        number += 1
        span = {
            "traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "execute_tool t",
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
                {"key": "gen_ai.tool.name", "value": {"stringValue": "healthy"}},
            ],
        }  # fmt: skip
        scope = {"scope": {"name": "fuseboard"}, "spans": [span]}
        body = json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]})
        began = time.monotonic()
        link.request("POST", "/v1/traces", body, {"content-type": JSON})
        answer = link.getresponse()
        answer.read()
        took.append(time.monotonic() - began)
        assert answer.status == 200
        time.sleep(0.05)
    link.close()
    return sorted(took)


def peak_memory_mb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (peak,) = [line for line in lines if line.startswith("VmHWM")]
    return int(peak.split()[1]) // 1024


def await_calls(server: Server, expected: int) -> None:
    """Wait for calls that other instrumentation tells of: they show after a grace time."""
    deadline = time.monotonic() + 30
    found = -1
    while found != expected:
        assert time.monotonic() < deadline, (found, expected)
        found = sum(call["tool"] == "healthy" for call in server.export("calls"))


@pytest.mark.parametrize(
    "seconds", [6, pytest.param(60, marks=pytest.mark.long)], ids=["short", "long"]
)
def test_a_healthy_client_is_served_while_others_send_garbage(tmp_path: Path, seconds: int) -> None:
    port = free_port()
    server = Server(tmp_path / "data", tmp_path / "log", ("--otlp-grpc-port", str(port)))
    server.start()
    try:
        load = Load()
        for seed in range(2):
            load.start(http_garbage(load, server.otlp_port, seed))
            load.start(grpc_garbage(load, port, 100 + seed))
        took = healthy(server.otlp_port, seconds)
        load.end()
        assert load.faults == []
        statuses = {status for status in load.answers if isinstance(status, int)}
        assert statuses <= {200, 400, 413, 415, 503}, load.answers
        assert statuses >= {400, 413, 415}
        codes = {code for code in load.answers if isinstance(code, str)} - {"closed"}
        assert codes <= {"OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}, load.answers
        p99 = took[int(0.99 * (len(took) - 1))]
        assert p99 < HEALTHY_SECONDS, (p99, took[-1], load.answers)
        assert server.process is not None
        assert peak_memory_mb(server.process.pid) < MEMORY_MB
        await_calls(server, len(took))
        assert server.stop() == 0
        assert "Traceback" not in server.log.read_text()
    finally:
        server.end()


@pytest.mark.parametrize("kind", ["json", "protobuf"])
def test_the_largest_bodies_cost_a_bounded_amount_of_memory(tmp_path: Path, kind: str) -> None:
    """Four at once, each as large as may be, made of what costs most."""
    server = Server(tmp_path / "data", tmp_path / "log")
    server.start()
    try:
        if kind == "json":
            body = b'{"resourceSpans": [' + b'{"a":1},' * 990_000 + b'{}], "x": "'
            body += b"x" * 8_000_000 + b'"}'
            media = JSON
        else:
            span = b"\x12\x1c\x0a\x10" + b"\x01" * 16 + b"\x12\x08" + b"\x02" * 8
            inner = span * 40_000
            scope = b"\x12" + _varint(len(inner)) + inner
            body = b"\x0a" + _varint(len(scope)) + scope
            media = PB
        packed = gzip.compress(body, 1)

        def post() -> int:
            link = http.client.HTTPConnection("127.0.0.1", server.otlp_port, timeout=120)
            headers = {"content-type": media, "content-encoding": "gzip"}
            link.request("POST", "/v1/traces", packed, headers)
            status = link.getresponse().status
            link.close()
            return status

        answers: list[int] = []
        threads = [threading.Thread(target=lambda: answers.append(post())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert set(answers) <= {200, 413, 503}, answers
        assert server.process is not None
        assert peak_memory_mb(server.process.pid) < MEMORY_MB
    finally:
        server.end()


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
