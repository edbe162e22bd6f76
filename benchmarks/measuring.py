"""What the benchmarks share: interleaved rounds, medians, a collector in another process."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import socket
import statistics
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SINK = """
import gzip, http.server, os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
bodies = []
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/v1/traces"):
            bodies.append((self.headers.get("Content-Encoding"), body))
        self.answer(b"")
    def do_GET(self):
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
        count = 0
        while bodies:
            encoding, body = bodies.pop()
            body = gzip.decompress(body) if encoding == "gzip" else body
            for group in service.ExportTraceServiceRequest.FromString(body).resource_spans:
                count += sum(len(scope.spans) for scope in group.scope_spans)
        self.answer(str(count).encode())
    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, rougher numbers")
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    return parser


def cores() -> tuple[int, int]:
    """Return the core of the agent and the core of the collector; equal on one-core machines."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


@contextlib.contextmanager
def sink_process() -> Iterator[str]:
    """Run a collector that only counts spans, on the other core; yield its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", SINK, str(cores()[1])], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))
        return int(once.getsockname()[1])


def spans_taken(endpoint: str) -> int:
    """Return how many spans a sink has taken since it was last asked."""
    with urllib.request.urlopen(endpoint, timeout=60) as answer:
        return int(answer.read())


@contextlib.contextmanager
def refusing_port() -> Iterator[str]:
    """Yield an address where nothing listens."""
    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))  # bound but not listening: refuses, and stays ours
        yield f"http://127.0.0.1:{once.getsockname()[1]}"


@contextlib.contextmanager
def black_hole() -> Iterator[str]:
    """Yield an address that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that ``share`` of the values do not exceed (nearest rank)."""
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each figure over the rounds."""
    return {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}


def report(title: str, rows: Mapping[str, Mapping[str, float]], args: argparse.Namespace) -> None:
    """Print a table and one line of JSON, and write the JSON where asked."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    width = max(len(name) for name in rows)
    print(f"\n{title}")
    print(" " * width, *(f"{column:>16}" for column in columns))
    for name, row in rows.items():
        cells = (f"{row[c]:16.3f}" if c in row else " " * 16 for c in columns)
        print(f"{name:<{width}}", *cells)
    result = json.dumps({"title": title, "rows": rows})
    print(result)
    if args.json:
        args.json.write_text(result + "\n")


def verdict(failures: Sequence[str]) -> int:
    """Print which bars were missed; return the exit code."""
    for failure in failures:
        print(f"MISSED: {failure}")
    if not failures:
        print("all bars met")
    return 1 if failures else 0
