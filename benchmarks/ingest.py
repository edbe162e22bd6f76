"""What the collector takes in, against a plain receiver that only parses and inserts.

Both get the same ready-made OTLP/HTTP requests of 512 spans from clients in another process, in
turns, and answer after the commit. Afterwards everything acknowledged must be in the file. With
``--peers`` other products are put under the same load.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import measuring
from ingesting import contenders, peers, workload

BARS = {"own": 0.7, "foreign": 0.4, "foreign tools": 0.4}
"""Least spans per second of each kind of load, as share of the plain receiver's."""
DISK_BAR = 250
"""Most bytes on disk per span after a checkpoint."""
CLIENTS = 8
VARIATIONS: dict[str, dict[str, Any]] = {
    "32 clients": {"clients": 32},
    "gzip": {"clients": CLIENTS, "gzip": True},
    "one span a request": {"clients": CLIENTS, "single": True},
}
"""Other ways to send our own spans; without bars."""
PEER_REQUESTS = 5
"""Of each client; the slowest peer takes minutes for them."""


def main() -> int:
    parser = measuring.arguments(__doc__.splitlines()[0])
    parser.add_argument("--kinds", default=",".join(BARS), help="of load, separated by commas")
    parser.add_argument("--peers", action="store_true", help="measure Phoenix and MLflow as well")
    parser.add_argument("--folder", type=Path, help="for the data, deleted afterwards")
    args = parser.parse_args()
    rounds, seconds = (3, 3.0) if args.quick else (5, 6.0)
    rows: dict[str, dict[str, float]] = {}
    failures: list[str] = []
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        facts = workload.write(Path(folder))
        for kind in filter(None, args.kinds.split(",")):
            print(f"measuring {kind} spans …", file=sys.stderr, flush=True)
            rows |= measure(kind, Path(folder), rounds, seconds, failures)
        if args.peers:
            rows |= measure_peers(Path(folder), 1 if args.quick else PEER_REQUESTS, failures)
    measuring.report("Requests", facts, args)
    measuring.report("Spans stored, acknowledged after their commit", rows, args)
    return measuring.verdict(failures + missed(rows))


def measure(
    kind: str, folder: Path, rounds: int, seconds: float, failures: list[str]
) -> dict[str, dict[str, float]]:
    """Return the figures of both receivers under one kind of load, in turns."""
    requests = folder / f"{kind}.requests"
    names = [f"{name}, {kind}" for name in ("reference", "fuseboard")]
    rows: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        servers = [contenders.start(name, folder / name) for name in names]
        for server in servers:
            stack.callback(server.process.kill)
        for number in range(rounds + 1):
            for server in servers:
                answer = server.load(requests, clients=CLIENTS, seconds=seconds)
                if number:  # the first warms up
                    server.rounds.append(figures(answer))
        for server in servers:
            rows[server.name] = measuring.medians(server.rounds)
            rows[server.name]["peak MB"] = server.peak_megabytes()
        if kind == "own":
            rows |= variations(servers, folder, seconds)
        for server in servers:
            server.stop()
    reference, ours = servers
    for server in servers:
        rows[server.name]["bytes/span"] = server.bytes_stored() / server.spans
        failures += filter(None, [server.lost()])
    shares = [
        mine["spans/s"] / plain["spans/s"]
        for mine, plain in zip(ours.rounds, reference.rounds, strict=True)
    ]
    rows[ours.name]["share"] = statistics.median(shares)
    return rows


def variations(
    servers: Sequence[contenders.Server], folder: Path, seconds: float
) -> dict[str, dict[str, float]]:
    """Return the figures of other ways to send the same."""
    rows = {}
    for name, options in VARIATIONS.items():
        single = ".single" if "single" in options else ""
        given = {key: value for key, value in options.items() if key != "single"}
        for server in servers:
            answer = server.load(folder / f"own{single}.requests", seconds=seconds, **given)
            rows[f"{server.name}, {name}"] = figures(answer)
    return rows


def measure_peers(folder: Path, requests: int, failures: list[str]) -> dict[str, dict[str, float]]:
    """Return the figures of everyone under the same traces of an agent and its seven tools.

    Phoenix answers before it stores, so everybody's time ends when all spans are in the database.
    """
    rows: dict[str, dict[str, float]] = {}
    starts = {"reference, agents": contenders.start, "fuseboard, agents": contenders.start}
    for name, start in {**starts, **dict.fromkeys(peers.PEERS, peers.start)}.items():
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        server = start(name, folder / name)
        try:
            # The first requests of a fresh server wait for its imports.
            server.load(folder / "agents.requests", clients=1, most=1)
            began = time.monotonic()
            answer = server.load(folder / "agents.requests", clients=CLIENTS, most=requests)
            if name in peers.PEERS:
                peers.wait_until_stored(server)
                answer["seconds"] = time.monotonic() - began
            rows[name] = figures(answer)
            if name in peers.PEERS:  # they have other processes, whose time is not known
                del rows[name]["CPU µs/span"]
        finally:
            server.stop()
        if name not in peers.PEERS:
            failures += filter(None, [server.lost()])
        rows[name]["bytes/span"] = server.bytes_stored() / server.spans
    for name in peers.PEERS:
        rows[name]["fuseboard is"] = rows["fuseboard, agents"]["spans/s"] / rows[name]["spans/s"]
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
