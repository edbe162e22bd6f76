"""What a call costs all threads until its span is delivered, against the same written by hand.

The floor of ``by_hand.py`` exports through the SDK's OTLP/HTTP exporter, the contender by its own
means, both to a collector in another process. Without arguments the contender is fuseboard; names
of peers measure those in the same way, each in an environment of its own beside the floor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import measuring
import peer_environments

HERE = Path(__file__).resolve().parent
PEERS = {
    "traceloop": "traceloop-sdk",
    "logfire": "logfire",
    "openinference": "openinference-instrumentation",
    "langfuse": "langfuse",
}
BESIDE = ("httpx", "prometheus-client", "opentelemetry-exporter-otlp-proto-http")
"""What the floor needs, and httpx, which one peer imports without asking for it."""
BAR = 0.30


def main() -> int:
    parser = measuring.arguments(__doc__.splitlines()[0])
    parser.add_argument(
        "contenders", nargs="*", default=["fuseboard"],
        help=f"fuseboard (default), opentelemetry, {', '.join(PEERS)}, or all",
    )  # fmt: skip
    args = parser.parse_args()
    names = args.contenders
    if "all" in names:
        names = ["fuseboard", "opentelemetry", *PEERS]
    rounds, calls = (3, 1000) if args.quick else (7, 2000)
    rows: dict[str, dict[str, float]] = {}
    for name in names:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        rows |= measure(name, environment(name), rounds, calls)
    measuring.report("CPU µs per call with a real export, bare call deducted", rows, args)
    return measuring.verdict(missed(rows))


def measure(name: str, python: Path, rounds: int, calls: int) -> dict[str, dict[str, float]]:
    """Return the figures of one contender, with how many spans of each call arrived."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "FUSEBOARD_"))}
    with measuring.sink_process() as endpoint, measuring.sink_process() as floor_endpoint:
        done = subprocess.run(
            [str(python), str(HERE / "contender.py"), name, endpoint, floor_endpoint,
             str(rounds), str(calls)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=clean,
        )  # fmt: skip
        figures = json.loads(done.stdout.splitlines()[-1])
        made = 2 * calls * (rounds + 1) * len(figures)
        taken = measuring.spans_taken(endpoint)
    rows = {f"{name}, {kind}": row for kind, row in figures.items()}
    for row in rows.values():
        row["spans per call"] = taken / made
    return rows


def environment(name: str) -> Path:
    """Return the Python of a contender's environment; a peer's is made where it is missing."""
    if name not in PEERS:
        return Path(sys.executable)
    return peer_environments.python_with(name, [PEERS[name], *BESIDE])


def missed(rows: dict[str, dict[str, float]]) -> list[str]:
    """Return which bars fuseboard missed."""
    ours = {name: row for name, row in rows.items() if name.startswith("fuseboard")}
    failures = [
        f"{name}: all threads {row['all ratio']:.3f} > {BAR}"
        for name, row in ours.items()
        if row["all ratio"] > BAR
    ]
    # A failed call has two spans: its own and its attempt's.
    return (
        failures
        + [
            f"{name}: {row['spans per call']:.3f} spans per call arrived, not 1.5"
            for name, row in ours.items()
            if row["spans per call"] != 1.5
        ][:1]
    )


if __name__ == "__main__":
    sys.exit(main())
