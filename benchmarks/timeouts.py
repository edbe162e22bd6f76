"""What time limits cost: an async one against telemetry by hand, a sync one against a hop.

An async limit is a timer in the caller's own task; what it adds to an observed call is compared
with the floor of by_hand.py. A sync limit needs a second thread; the whole guarded call,
telemetry included, is compared with the plain way to bound a function:
``ThreadPoolExecutor.submit().result(timeout)``, which records nothing. Hops are wall time on one
core: where threads run on two, the machine's idea of waking a core is larger than either.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import by_hand
import measuring
from call_overhead import compare
from prometheus_client import CollectorRegistry

import fuseboard
from fuseboard import Policy

ASYNC_BAR = 0.15
HOP_BAR = 1.3
SECONDS = 5.0
HOPS = 50
"""Calls in a row before the next contender's turn; short, because other jobs come and go."""


def main() -> int:
    args = measuring.arguments(__doc__.splitlines()[0]).parse_args()
    rounds, calls, turns = (3, 1000, 60) if args.quick else (9, 2000, 300)
    with measuring.sink_process() as endpoint:
        fuseboard.init(
            "benchmark", region="eu-west", endpoint=endpoint, registry=CollectorRegistry()
        )
        added = compare_async(rounds, calls)
        os.sched_setaffinity(0, {measuring.cores()[0]})
        hops = compare_hops(turns)
        fuseboard.shutdown()
    measuring.report("CPU µs of the calling thread per async call", added, args)
    measuring.report("Wall µs per sync call on one core", hops, args)
    missed = [
        f"{name}: added {row['added']:.3f} > {ASYNC_BAR}"
        for name, row in added.items()
        if row["added"] > ASYNC_BAR
    ]
    ratio = hops["fuseboard, timeout"]["ratio"]
    if ratio > HOP_BAR:
        missed.append(f"sync timeout: {ratio:.3f} x an executor hop > {HOP_BAR}")
    return measuring.verdict(missed)


def compare_async(rounds: int, calls: int) -> dict[str, dict[str, float]]:
    """Return what limits add to an observed async call, as a share of the floor."""
    floor, function = by_hand.ByHand(), by_hand.bare_async
    observed = fuseboard.wrap(function, name="observed")
    policies = {"async timeout": Policy(timeout=SECONDS), "async budget": Policy(budget=SECONDS)}
    return {
        name: compare(
            function,
            floor.wrap(function),
            fuseboard.wrap(function, name=name.replace(" ", "_"), policy=policy),
            floor,
            rounds,
            calls,
            observed,
        )
        for name, policy in policies.items()
    }


def compare_hops(turns: int) -> dict[str, dict[str, float]]:
    """Return medians over turns of a few calls each, and the ratio to the hop of the same turn."""
    function = by_hand.bare
    with ThreadPoolExecutor(1) as executor:

        def hop(**arguments: Any) -> Any:
            return executor.submit(function, **arguments).result(SECONDS)

        contenders = {
            "bare executor hop": hop,
            "fuseboard, no limit": fuseboard.wrap(function, name="unlimited"),
            "fuseboard, timeout": fuseboard.wrap(
                function, name="limited", policy=Policy(timeout=SECONDS)
            ),
        }
        samples: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(turns + 1):
            for name, call in contenders.items():
                samples[name].append(wall_microseconds(call))
            fuseboard.flush()
    base = samples["bare executor hop"][1:]
    return {
        name: {
            "µs": statistics.median(found[1:]),
            "ratio": statistics.median(a / b for a, b in zip(found[1:], base, strict=True)),
        }
        for name, found in samples.items()
    }


def wall_microseconds(call: Callable[..., Any]) -> float:
    began = time.perf_counter()
    for _ in range(HOPS):
        call(**by_hand.ARGUMENTS)
    return (time.perf_counter() - began) / HOPS * 1e6


if __name__ == "__main__":
    sys.exit(main())
