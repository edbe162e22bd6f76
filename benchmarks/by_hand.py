"""The floor: what fuseboard records of a call, written plainly with the SDK and prometheus_client.

A span with ten attributes through the BatchSpanProcessor, one labelled histogram and one
labelled counter. Imports nothing of fuseboard, since it also runs where that is not installed.
"""

# ruff: noqa: ARG001, ARG002, D101, D102, SIM105 - tools that do nothing take arguments all the same

from __future__ import annotations

import asyncio
import gc
import inspect
import time
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from prometheus_client import CollectorRegistry, Counter, Histogram

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
    def __init__(self, exporter: SpanExporter | None = None) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        self.processor = BatchSpanProcessor(exporter or NullExporter(), max_queue_size=65536)
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

        return async_wrapper if inspect.iscoroutinefunction(function) else wrapper

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
    """Return the CPU microseconds of the calling thread per call."""
    gc.collect()
    if inspect.iscoroutinefunction(function):
        return asyncio.run(async_seconds(function, calls)) / calls * 1e6
    return sync_seconds(function, calls) / calls * 1e6
