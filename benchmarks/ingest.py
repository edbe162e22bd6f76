"""What the collector takes in, against a plain receiver that only parses and inserts.

Both get the same ready-made OTLP/HTTP requests of 512 spans from clients in another process, in
turns, and answer after the commit. Afterwards everything acknowledged must be in the file. With
``--peers`` other products are put under the same load.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import measuring
from ingesting import contenders, workload

BARS = {"own": 0.7, "foreign": 0.4, "foreign tools": 0.4}
"""Least spans per second of each kind of load, as share of the plain receiver's."""
DISK_BAR = 250
"""Most bytes on disk per span after a checkpoint."""
CLIENTS = 8
LOADS = tuple(BARS)


def main() -> int:
    parser = measuring.arguments(__doc__.splitlines()[0])
    parser.add_argument("--kinds", default=",".join(LOADS), help="of load, separated by commas")
    parser.add_argument("--folder", type=Path, help="for the data, deleted afterwards")
    args = parser.parse_args()
    rounds, seconds = (3, 3.0) if args.quick else (5, 6.0)
    rows: dict[str, dict[str, float]] = {}
    failures: list[str] = []
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        facts = workload.write(Path(folder))
        for kind in args.kinds.split(","):
            print(f"measuring {kind} spans …", file=sys.stderr, flush=True)
            rows |= measure(kind, Path(folder), rounds, seconds, failures)
    measuring.report("Requests", facts, args)
    measuring.report("Spans stored, acknowledged after their commit", rows, args)
    return measuring.verdict(failures + missed(rows))


def measure(
    kind: str, folder: Path, rounds: int, seconds: float, failures: list[str]
) -> dict[str, dict[str, float]]:
    """Return the figures of both receivers under one kind of load."""
    requests = folder / f"{kind}.requests"
    servers = [
        contenders.start(f"{name}, {kind}", folder / f"{kind}, {name}")
        for name in ("reference", "fuseboard")
    ]
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.process.kill)
        for number in range(rounds + 1):
            for server in servers:
                answer = server.load(requests, clients=CLIENTS, seconds=seconds)
                if number:  # the first warms up
                    server.rounds.append(figures(answer))
        memory = {server.name: server.peak_megabytes() for server in servers}
        for server in servers:
            server.stop()
    rows = {server.name: measuring.medians(server.rounds) for server in servers}
    reference, ours = servers
    for server in servers:
        rows[server.name]["bytes/span"] = server.file.stat().st_size / server.spans
        rows[server.name]["peak MB"] = memory[server.name]
        failures += filter(None, [server.lost()])
    shares = [
        mine["spans/s"] / plain["spans/s"]
        for mine, plain in zip(ours.rounds, reference.rounds, strict=True)
    ]
    rows[ours.name]["share"] = statistics.median(shares)
    return rows


def figures(answer: Mapping[str, Any]) -> dict[str, float]:
    """Return what one round comes to."""
    return {
        "spans/s": answer["spans"] / answer["seconds"],
        "ack p50 ms": measuring.percentile(answer["answers"], 0.5) * 1e3,
        "ack p99 ms": measuring.percentile(answer["answers"], 0.99) * 1e3,
        "CPU µs/span": answer["cpu"] / answer["spans"] * 1e6,
    }


def missed(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return which bars were missed."""
    failures = []
    for kind, bar in BARS.items():
        row = rows.get(f"fuseboard, {kind}")
        if row is None:
            continue
        if row["share"] < bar:
            failures.append(
                f"{kind} spans: {row['share']:.2f} of the plain receiver's rate < {bar}"
            )
        if row["bytes/span"] > DISK_BAR:
            failures.append(f"{kind} spans: {row['bytes/span']:.0f} bytes on disk > {DISK_BAR}")
    return failures


if __name__ == "__main__":
    sys.exit(main())
