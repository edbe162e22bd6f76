"""Threads, tasks and forks under load: what was made was delivered, or dropped and counted."""

from __future__ import annotations

import gzip
import http.server
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

AGENT = Path(__file__).with_name("agent_under_load.py")


class SlowReceiver:
    """An OTLP/HTTP receiver that takes its time, and at times takes nothing at all."""

    def __init__(self, delay: float, refuses_every: int) -> None:
        self.bodies: list[tuple[str, bytes]] = []
        self.requests = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests += 1
                time.sleep(delay)
                is_refused = bool(refuses_every) and receiver.requests % refuses_every == 0
                if not is_refused:
                    receiver.bodies.append((self.path, gzip.decompress(body)))
                self.send_response(503 if is_refused else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> Iterator[tuple[str, Any]]:
        """Yield each span and the process it comes from."""
        for path, body in self.bodies:
            if path == "/v1/traces":
                for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                    instance = _instance(group)
                    for scope in group.scope_spans:
                        yield from ((instance, span) for span in scope.spans)

    def transitions(self) -> int:
        """Count the breakers' transitions that arrived."""
        requests = [ExportLogsServiceRequest.FromString(b) for p, b in self.bodies if "logs" in p]
        scopes = [s for r in requests for group in r.resource_logs for s in group.scope_logs]
        names = [record.event_name for scope in scopes for record in scope.log_records]
        return names.count("fuseboard.breaker.transition")


def _instance(group: Any) -> str:
    return next(
        attribute.value.string_value
        for attribute in group.resource.attributes
        if attribute.key == "service.instance.id"
    )


def run_agent(receiver: SlowReceiver, folder: Path, queue: int, *load: float) -> list[Any]:
    """Run the agent and return the reports of its processes, the parent's last."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "FUSEBOARD_"))}
    agent = subprocess.Popen(
        [sys.executable, str(AGENT), receiver.url, str(folder), *map(str, load)],
        env={**inherited, "OTEL_BSP_MAX_QUEUE_SIZE": str(queue)},
        stderr=subprocess.PIPE,
        text=True,
    )
    errors = agent.communicate(timeout=load[0] + 150)[1]
    assert agent.returncode == 0, errors
    files = sorted(folder.glob("*.json"), key=lambda file: file.stem == str(agent.pid))
    return [json.loads(file.read_text()) for file in files]


@pytest.mark.parametrize(
    ("queue", "delay", "refuses_every", "load"),
    [
        pytest.param(200, 0.02, 0, (4, 8, 200, 3), id="small queue"),
        pytest.param(
            400,
            0.01,
            7,
            (60, 8, 200, 20),
            id="for a minute, and the collector refuses some",
            marks=[pytest.mark.long, pytest.mark.timeout(600)],
        ),
        pytest.param(
            1_000_000,
            0.0,
            5,
            (20, 8, 200, 10),
            id="a queue for all, and the collector refuses some",
            marks=[pytest.mark.long, pytest.mark.timeout(600)],
        ),
    ],
)
def test_what_was_made_is_delivered_or_counted(
    tmp_path: Path, queue: int, delay: float, refuses_every: int, load: tuple[float, ...]
) -> None:
    receiver = SlowReceiver(delay, refuses_every)
    try:
        reports = run_agent(receiver, tmp_path, queue, *load)
    finally:
        receiver.close()
    assert len(reports) == load[3] + 1
    dropped = 0.0
    for each in reports:
        check_metrics(each)
        dropped += each["metrics"]["fuseboard_telemetry_dropped_total"]["spans"]
    spans = list(receiver.spans())
    made = sum(each["spans"] for each in reports)
    assert len(spans) + dropped == made
    assert len({span.span_id for _, span in spans}) == len(spans), "a span arrived twice"
    assert bool(dropped) == (queue < 1_000_000), "the load was not what it should be"
    moved = sum(
        sum(each["metrics"]["fuseboard_breaker_transitions_total"].values()) for each in reports
    )
    lost_logs = sum(
        each["metrics"]["fuseboard_telemetry_dropped_total"]["logs"] for each in reports
    )
    assert moved > 0
    assert lost_logs == 0
    assert receiver.transitions() == moved
    # Each process by itself, by the size of what it delivered.
    delivered = Counter(instance for instance, _ in spans)
    assert len(delivered) == len(reports)
    expected = sorted(
        each["spans"] - each["metrics"]["fuseboard_telemetry_dropped_total"]["spans"]
        for each in reports
    )
    assert sorted(delivered.values()) == expected


def check_metrics(each: Any) -> None:
    """Compare what a process did with what it says of itself."""
    metrics = each["metrics"]
    counted = {name: n for name, n in metrics["fuseboard_tool_calls_total"].items() if n}
    assert counted == each["outcomes"]
    calls = sum(each["outcomes"].values())
    assert sum(metrics["fuseboard_tool_call_duration_seconds_count"].values()) == calls
    assert sum(metrics["fuseboard_tool_attempts_total"].values()) == each["attempts"]
    assert (
        sum(metrics["fuseboard_tool_attempt_duration_seconds_count"].values()) == (each["attempts"])
    )
    assert sum(metrics["fuseboard_tool_calls_in_flight"].values()) == 0
    assert calls >= 20  # one of each task of a child
