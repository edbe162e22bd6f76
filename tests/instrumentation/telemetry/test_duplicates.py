"""Spans of other instrumentation that tell of a call of ours are marked; others are left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fake_collector import FakeCollector, as_dict
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import fuseboard
from fuseboard import guard
from fuseboard.conventions import DUPLICATE, GEN_AI_OPERATION_NAME, GEN_AI_TOOL_NAME, OUTCOME
from fuseboard.telemetry.duplicates import mark_current, mark_started


def _tool(inside: Callable[[], Any]) -> Callable[[], None]:
    @fuseboard.tool
    def weather() -> None:
        inside()

    return weather


def _span(name: str, **attributes: str) -> None:
    with trace.get_tracer("other").start_as_current_span(name, attributes=attributes):
        pass


def _marked(collector: FakeCollector) -> dict[str, bool]:
    assert fuseboard.flush(10)
    return {
        span.name: bool(as_dict(span.attributes).get(DUPLICATE))
        for span in collector.spans()
        if OUTCOME not in as_dict(span.attributes)
    }


@pytest.mark.parametrize(
    "name",
    [
        "weather", "execute_tool weather", "tools/call weather", "MCP send tools/call weather",
        "weather.tool", "weather.run", "running tool: weather",
    ],
)  # fmt: skip
def test_a_span_within_a_call_that_has_its_name_is_marked(
    start: Callable[..., None], collector: FakeCollector, name: str
) -> None:
    start()
    _tool(lambda: _span(name))()
    assert _marked(collector) == {name: True}


def test_a_span_whose_attributes_have_the_name_is_marked(
    start: Callable[..., None], collector: FakeCollector
) -> None:
    start()
    attributes = {GEN_AI_TOOL_NAME: "weather", GEN_AI_OPERATION_NAME: "execute_tool"}
    _tool(lambda: _span("something else", **attributes))()
    assert _marked(collector) == {"something else": True}


@pytest.mark.parametrize(
    "name", ["GET", "execute_tool weather_2", "weather forecast", "execute_tool"]
)
def test_other_spans_within_a_call_are_left_alone(
    start: Callable[..., None], collector: FakeCollector, name: str
) -> None:
    start()
    _tool(lambda: _span(name))()
    assert _marked(collector) == {name: False}


def test_a_span_outside_of_a_call_is_left_alone(
    start: Callable[..., None], collector: FakeCollector
) -> None:
    start()
    _span("execute_tool weather")
    assert _marked(collector) == {"execute_tool weather": False}


def test_the_span_around_a_call_of_an_adapter_is_marked(
    start: Callable[..., None], collector: FakeCollector
) -> None:
    start()
    for name in ("execute_tool weather", "invoke_agent bot"):
        with trace.get_tracer("other").start_as_current_span(name):
            mark_current("weather")
    assert _marked(collector) == {"execute_tool weather": True, "invoke_agent bot": False}


def test_spans_of_ours_are_never_marked(
    start: Callable[..., None], collector: FakeCollector
) -> None:
    exported, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    start(tracer_provider=provider)
    inner = _tool(lambda: mark_current("weather"))
    _tool(inner)()
    spans = exported.get_finished_spans()
    assert len(spans) == 2
    assert not any(DUPLICATE in (span.attributes or {}) for span in spans)


def test_a_strange_span_harms_nobody(start: Callable[..., None]) -> None:
    start()
    guard.forget_faults()
    _tool(lambda: mark_started(object()))()  # type: ignore[arg-type]
    assert sum(guard.fault_counts().values()) == 1
    guard.forget_faults()
