"""One contender against the floor, both with a real export; run by ``with_export.py``.

Runs in the contender's own environment, so it imports nothing of fuseboard unless fuseboard is
the contender. Prints one line of JSON.
"""

# ruff: noqa: SIM105 - contextlib.suppress costs more than some contenders do

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from by_hand import ARGUMENTS, FUNCTIONS, ByHand, microseconds

Wrap = Callable[..., Any]
Flush = Callable[[], object]


def fuseboard(endpoint: str) -> tuple[Wrap, Flush]:
    import fuseboard as library

    library.init("benchmark", region="eu-west", endpoint=endpoint)
    names = iter(range(100))
    return (lambda function: library.tool(function, name=f"bare{next(names)}")), library.flush


def opentelemetry(endpoint: str) -> tuple[Wrap, Flush]:
    """Return the API's own decorator: a span, no attributes, no metrics."""
    provider = _provider(endpoint)
    tracer = provider.get_tracer("benchmark")
    return (lambda function: tracer.start_as_current_span("tool")(function)), provider.force_flush


def openinference(endpoint: str) -> tuple[Wrap, Flush]:
    from openinference.instrumentation import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(_exporter(endpoint), max_queue_size=65536))
    tracer = provider.get_tracer("benchmark")
    return tracer.tool, provider.force_flush


def logfire(endpoint: str) -> tuple[Wrap, Flush]:
    import logfire as library
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    library.configure(
        send_to_logfire=False,
        console=False,
        additional_span_processors=[BatchSpanProcessor(_exporter(endpoint), max_queue_size=65536)],
    )
    return library.instrument(), library.force_flush


def langfuse(endpoint: str) -> tuple[Wrap, Flush]:
    from langfuse import Langfuse, observe

    client = Langfuse(public_key="pk", secret_key="sk", host=endpoint)
    return (lambda function: observe(function, as_type="tool")), client.flush


def traceloop(endpoint: str) -> tuple[Wrap, Flush]:
    from opentelemetry.trace import get_tracer_provider
    from traceloop.sdk import Traceloop
    from traceloop.sdk.decorators import tool

    os.environ["TRACELOOP_TELEMETRY"] = "false"
    Traceloop.init(app_name="benchmark", api_endpoint=endpoint, instruments=set())
    provider: Any = get_tracer_provider()
    return tool(name="bare"), provider.force_flush


CONTENDERS = {
    each.__name__: each
    for each in (fuseboard, opentelemetry, traceloop, logfire, openinference, langfuse)
}


def _exporter(endpoint: str) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")


def _provider(endpoint: str) -> Any:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_exporter(endpoint), max_queue_size=65536))
    return provider


def all_threads(function: Any, flush: Flush, calls: int) -> float:
    """Return the CPU microseconds of all threads per call, until everything is delivered."""
    gc.collect()
    began = time.process_time()
    if inspect.iscoroutinefunction(function):
        asyncio.run(_call_async(function, calls))
    else:
        _call(function, calls)
    flush()
    return (time.process_time() - began) / calls * 1e6


def _call(function: Any, calls: int) -> None:
    for _ in range(calls):
        try:
            function(**ARGUMENTS)
        except ConnectionError:
            pass


async def _call_async(function: Any, calls: int) -> None:
    for _ in range(calls):
        try:
            await function(**ARGUMENTS)
        except ConnectionError:
            pass


def main() -> None:
    name, endpoint, floor_endpoint, rounds, calls = sys.argv[1:]
    warnings.simplefilter("ignore")
    wrap, flush = CONTENDERS[name](endpoint)
    floor = ByHand(_exporter(floor_endpoint))
    rows = {
        kind: compare(
            function, floor.wrap(function), floor, wrap(function), flush, int(rounds), int(calls)
        )
        for kind, function in FUNCTIONS.items()
    }
    print(json.dumps(rows))


def compare(
    plain: Any, hand: Any, floor: ByHand, theirs: Any, flush: Flush, rounds: int, calls: int
) -> dict[str, float]:
    """Return medians over interleaved rounds, the first of which warms up."""
    figures = []
    for _ in range(rounds + 1):
        base = microseconds(plain, calls)
        by_hand = microseconds(hand, calls) - base
        floor.drain()
        caller = microseconds(theirs, calls) - base
        flush()
        all_by_hand = all_threads(hand, floor.drain, calls) - base
        everything = all_threads(theirs, flush, calls) - base
        figures.append(
            {
                "by hand": by_hand,
                "caller": caller,
                "caller ratio": caller / by_hand,
                "by hand, all": all_by_hand,
                "all threads": everything,
                "all ratio": everything / all_by_hand,
            }
        )
    return {key: statistics.median(f[key] for f in figures[1:]) for key in figures[0]}


if __name__ == "__main__":
    main()
