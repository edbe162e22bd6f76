"""LangChain with other instrumentation on: each tool call counts once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from langchain_core.tools import tool
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.adapters.counting import counted, marked, received
from tests.adapters.langchain.scripted import THREAD, agent_of, asks
from tests.instrumentation.telemetry.fake_collector import FakeCollector

from fuseboard import Policy, Retry
from fuseboard.adapters import instrument_langchain, uninstrument_langchain
from fuseboard.conventions import DUPLICATE

OTHERS = {
    "opentelemetry": ("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor"),
    "openinference": ("openinference.instrumentation.langchain", "LangChainInstrumentor"),
}


@pytest.fixture
def started(start: Callable[..., None]) -> Iterator[None]:
    start()
    instrument_langchain({"fog": Policy(retry=Retry(attempts=3, wait_initial=0.0), effects="none")})
    yield
    uninstrument_langchain()


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest) -> Iterator[str]:
    module, name = OTHERS[request.param]
    pytest.importorskip(module)
    instrumentor = getattr(import_module(module), name)()
    instrumentor.instrument(tracer_provider=trace.get_tracer_provider())
    yield request.param
    instrumentor.uninstrument()


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


def _fog(failures: int) -> Any:
    left = [failures]

    @tool
    async def fog(city: str) -> str:
        """Tell the fog."""
        if left[0]:
            left[0] -= 1
            raise ConnectionError("no route")
        return f"fog in {city}"

    return fog


QUESTION = {"messages": [("user", "?")]}


def test_a_call_of_an_agent_counts_once(
    started: None, other: str, collector: FakeCollector
) -> None:
    agent = agent_of([weather], asks("weather", city="Oslo"))
    agent.invoke(QUESTION, THREAD)
    spans = received(collector)
    assert counted(spans) == [("execute_tool weather", True)]
    assert marked(spans), "the other instrumentation had no span for the call"


async def test_a_retried_call_counts_once(
    started: None, other: str, collector: FakeCollector
) -> None:
    agent = agent_of([_fog(2)], asks("fog", city="Oslo"))
    await agent.ainvoke(QUESTION, THREAD)
    spans = received(collector)
    assert counted(spans) == [("execute_tool fog", True)]
    assert len(marked(spans)) == 1


async def test_a_failed_call_counts_once(
    started: None, other: str, collector: FakeCollector
) -> None:
    agent = agent_of([_fog(99)], asks("fog", city="Oslo"))
    with pytest.raises(ConnectionError):
        await agent.ainvoke(QUESTION, THREAD)
    assert counted(received(collector)) == [("execute_tool fog", True)]


def test_without_the_adapter_their_span_counts(
    started: None, other: str, collector: FakeCollector
) -> None:
    uninstrument_langchain()
    agent_of([weather], asks("weather", city="Oslo")).invoke(QUESTION, THREAD)
    spans = received(collector)
    assert [is_own for _, is_own in counted(spans)] == [False]
    assert marked(spans) == []


def test_spans_of_an_applications_own_provider_are_marked_too(
    start: Callable[..., None],
) -> None:
    module, name = OTHERS["opentelemetry"]
    pytest.importorskip(module)
    exported, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    start(tracer_provider=provider, endpoint=None)
    instrumentor = getattr(import_module(module), name)()
    instrumentor.instrument(tracer_provider=provider)
    instrument_langchain()
    try:
        agent_of([weather], asks("weather", city="Oslo")).invoke(QUESTION, THREAD)
    finally:
        uninstrument_langchain()
        instrumentor.uninstrument()
    tools = [span for span in exported.get_finished_spans() if span.name.endswith("weather")]
    marks = {bool((span.attributes or {}).get(DUPLICATE)) for span in tools}
    assert len(tools) == 2
    assert marks == {True, False}
