"""What one guarded call costs, against the same facts written by hand.

By hand means OpenTelemetry's SDK and prometheus_client used plainly: a span with ten attributes
through the BatchSpanProcessor, one labelled histogram and one labelled counter. The tool does
nothing, takes three keyword arguments, and fuseboard also hashes those. Figures are CPU
microseconds of the calling thread beyond the bare call.
"""

# ruff: noqa: ARG001, ARG002, D101, D102, SIM105 - tools that do nothing take arguments all the same

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import measuring
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from prometheus_client import CollectorRegistry, Counter, Histogram

import fuseboard

Calls = Callable[[int], float]
ARGUMENTS: dict[str, Any] = {"city": "Oslo", "days": 3, "metric": True}


class NullExporter(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def bare(city: str, days: int, metric: bool) -> None:
    return None


def bare_failing(city: str, days: int, metric: bool) -> None:
    raise ConnectionError("reset")


async def bare_async(city: str, days: int, metric: bool) -> None:
    return None


async def bare_async_failing(city: str, days: int, metric: bool) -> None:
    raise ConnectionError("reset")


FUNCTIONS = {
    "sync ok": bare,
    "sync fail": bare_failing,
    "async ok": bare_async,
    "async fail": bare_async_failing,
}


class ByHand:
    """The floor of performance.md."""

    def __init__(self) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        self.processor = BatchSpanProcessor(NullExporter(), max_queue_size=65536)
        provider.add_span_processor(self.processor)
        self.tracer = provider.get_tracer("by hand")
        registry = CollectorRegistry()
        self.seconds = Histogram("call_seconds", "Duration.", ["tool"], registry=registry)
        self.calls = Counter("calls", "Calls.", ["tool", "outcome"], registry=registry)

    def attributes(self) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "bare",
            "gen_ai.tool.type": "function",
            "cloud.region": "eu-west",
            "args_hash": "v1:0123456789abcdef",
            "outcome": "ok",
            "attempts": 1,
            "attempt.seconds": 0.1,
            "backoff_seconds": 0.0,
            "layer": "tool",
        }

    def count(self, begin: float, outcome: str) -> None:
        self.seconds.labels("bare").observe(time.perf_counter() - begin)
        self.calls.labels("bare", outcome).inc()

    def wrap(self, function: Any) -> Any:
        def wrapper(**arguments: Any) -> Any:
            begin, outcome = time.perf_counter(), "error"
            try:
                with self.tracer.start_as_current_span("execute_tool bare") as span:
                    span.set_attributes(self.attributes())
                    result = function(**arguments)
                    outcome = "ok"
                    return result
            finally:
                self.count(begin, outcome)

        async def async_wrapper(**arguments: Any) -> Any:
            begin, outcome = time.perf_counter(), "error"
            try:
                with self.tracer.start_as_current_span("execute_tool bare") as span:
                    span.set_attributes(self.attributes())
                    result = await function(**arguments)
                    outcome = "ok"
                    return result
            finally:
                self.count(begin, outcome)

        return async_wrapper if asyncio.iscoroutinefunction(function) else wrapper

    def drain(self) -> None:
        self.processor.force_flush()


def sync_seconds(function: Any, calls: int) -> float:
    began = time.thread_time()
    for _ in range(calls):
        try:
            function(**ARGUMENTS)
        except ConnectionError:
            pass
    return time.thread_time() - began


async def async_seconds(function: Any, calls: int) -> float:
    began = time.thread_time()
    for _ in range(calls):
        try:
            await function(**ARGUMENTS)
        except ConnectionError:
            pass
    return time.thread_time() - began


def microseconds(function: Any, calls: int) -> float:
    gc.collect()
    if asyncio.iscoroutinefunction(function):
        return asyncio.run(async_seconds(function, calls)) / calls * 1e6
    return sync_seconds(function, calls) / calls * 1e6


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
