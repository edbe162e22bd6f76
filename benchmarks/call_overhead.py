"""What one guarded call costs, against the same facts written by hand.

By hand means OpenTelemetry's SDK and prometheus_client used plainly: a span with ten attributes
through the BatchSpanProcessor, one labelled histogram and one labelled counter. The tool does
nothing, takes three keyword arguments, and fuseboard also hashes those. Figures are CPU
microseconds of the calling thread beyond the bare call.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

import measuring
from by_hand import FUNCTIONS, ByHand, microseconds
from prometheus_client import CollectorRegistry

import fuseboard

POLICY = fuseboard.Policy(retry=fuseboard.Retry(), breaker=fuseboard.Breaker())
BARS = {"sync ok": 0.25, "sync fail": 0.10, "async ok": 0.25, "async fail": 0.10}
ADDED_BARS = {"sync ok, retry + breaker": 0.05, "async ok, retry + breaker": 0.05}


def main() -> int:
    parser = measuring.arguments(__doc__.splitlines()[0])
    args = parser.parse_args()
    rounds, calls = (3, 1000) if args.quick else (9, 2000)
    floor = ByHand()
    with measuring.sink_process() as endpoint:
        fuseboard.init(
            "benchmark", region="eu-west", endpoint=endpoint, registry=CollectorRegistry()
        )
        rows = {}
        for name, function in FUNCTIONS.items():
            hand = floor.wrap(function)
            ours = fuseboard.tool(function, name=name.replace(" ", "_"))
            rows[name] = compare(function, hand, ours, floor, rounds, calls)
        for name in ("sync ok", "async ok"):
            function = FUNCTIONS[name]
            label = f"{name.replace(' ', '_')}_guarded"
            guarded = fuseboard.tool(function, name=label, policy=POLICY)
            observed = fuseboard.tool(function, name=name.replace(" ", "_"))
            rows[f"{name}, retry + breaker"] = compare(
                function, floor.wrap(function), guarded, floor, rounds, calls, observed
            )
        fuseboard.shutdown()
    measuring.report("CPU µs of the calling thread per call, bare call deducted", rows, args)
    return measuring.verdict(missed(rows))


def compare(
    plain: Any,
    hand: Any,
    ours: Any,
    floor: ByHand,
    rounds: int,
    calls: int,
    observed: Any = None,
) -> dict[str, float]:
    """Return medians over interleaved rounds; ``added`` is what ``ours`` adds to ``observed``."""
    figures = []
    for _ in range(rounds + 1):
        base = microseconds(plain, calls)
        by_hand = microseconds(hand, calls) - base
        floor.drain()
        guarded = microseconds(ours, calls) - base
        fuseboard.flush()
        figure = {"by hand": by_hand, "fuseboard": guarded, "ratio": guarded / by_hand}
        if observed is not None:
            figure["added"] = (guarded - microseconds(observed, calls) + base) / by_hand
            fuseboard.flush()
        figures.append(figure)
    return {key: statistics.median(f[key] for f in figures[1:]) for key in figures[0]}


def missed(rows: dict[str, dict[str, float]]) -> list[str]:
    """Return which bars were missed."""
    bars = [(name, "ratio", bar) for name, bar in BARS.items()]
    bars += [(name, "added", bar) for name, bar in ADDED_BARS.items()]
    return [
        f"{name}: {column} {rows[name][column]:.3f} > {bar}"
        for name, column, bar in bars
        if rows[name][column] > bar
    ]


if __name__ == "__main__":
    sys.exit(main())
