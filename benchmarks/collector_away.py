"""What a missing collector costs an agent: nothing it could notice.

A no-op tool is called with the collector absent (its name does not resolve), refusing and
black-holed, each against a collector that answers from the other core. Bars: p50 at most 1.10
times, p99 at most 1.5 times, and the agent ends within 5 seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time

import measuring

P50_BAR = 1.10
P99_BAR = 1.5
EXIT_BAR = 5.0

AGENT = """
import json, os, sys, time
os.sched_setaffinity(0, {int(sys.argv[2])})
import logging
logging.getLogger("fuseboard").setLevel(logging.ERROR)
import fuseboard
fuseboard.init("benchmark", endpoint=sys.argv[1])

@fuseboard.tool
def nothing(city, days, metric):
    return None

calls, pause = int(sys.argv[3]), float(sys.argv[4])
clock = time.perf_counter
for _ in range(200):
    nothing(city="Oslo", days=3, metric=True)
times = []
for _ in range(calls):
    begin = clock()
    nothing(city="Oslo", days=3, metric=True)
    times.append(clock() - begin)
    time.sleep(pause)
times.sort()
print(json.dumps({"p50": times[calls // 2], "p99": times[calls * 99 // 100], "end": time.time()}))
"""


def run(endpoint: str, calls: int, pause: float) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", AGENT, endpoint, str(measuring.cores()[0]), str(calls), str(pause)],
        capture_output=True,
        text=True,
        check=True,
        env={k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "FUSEBOARD_"))},
    )
    ended = time.time()
    figures = json.loads(done.stdout)
    return {
        "p50 µs": figures["p50"] * 1e6,
        "p99 µs": figures["p99"] * 1e6,
        "exit s": ended - figures["end"],
    }


def main() -> int:
    parser = measuring.arguments(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--pause", type=float, default=0.0002, help="seconds between calls")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.calls = 5, 1000
    with contextlib.ExitStack() as stack:
        endpoints = {
            "answering": stack.enter_context(measuring.sink_process()),
            "absent": "http://collector.invalid:4318",
            "refusing": stack.enter_context(measuring.refusing_port()),
            "black-holed": stack.enter_context(measuring.black_hole()),
        }
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in endpoints}
        for number in range(args.rounds):
            # Each round starts elsewhere, so that no case always follows the same one.
            turn = number % len(endpoints)
            for name in [*list(endpoints)[turn:], *list(endpoints)[:turn]]:
                rounds[name].append(run(endpoints[name], args.calls, args.pause))
    rows = summarise(rounds)
    measuring.report("A no-op tool while the collector is away", rows, args)
    return measuring.verdict(missed(rows))


def summarise(rounds: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return medians, with the ratios taken within each round."""
    rows = {}
    for name, figures in rounds.items():
        ratios = [
            {
                "p50 ratio": mine["p50 µs"] / base["p50 µs"],
                "p99 ratio": mine["p99 µs"] / base["p99 µs"],
            }
            for mine, base in zip(figures, rounds["answering"], strict=True)
        ]
        rows[name] = measuring.medians(figures) | measuring.medians(ratios)
        rows[name]["exit s max"] = max(figure["exit s"] for figure in figures)
    return rows


def missed(rows: dict[str, dict[str, float]]) -> list[str]:
    failures = []
    for name, row in rows.items():
        for column, bar in (
            ("p50 ratio", P50_BAR),
            ("p99 ratio", P99_BAR),
            ("exit s max", EXIT_BAR),
        ):
            if row[column] > bar:
                failures.append(f"{name}: {column} {row[column]:.2f} > {bar}")
    return failures


if __name__ == "__main__":
    sys.exit(main())
