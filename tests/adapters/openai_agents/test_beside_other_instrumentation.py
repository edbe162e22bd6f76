"""The OpenAI Agents SDK with other instrumentation on: each tool call counts once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from agents import function_tool, set_trace_processors
from opentelemetry import trace
from tests.adapters.counting import counted, marked, received
from tests.adapters.openai_agents.scripted import asks, run
from tests.instrumentation.telemetry.fake_collector import FakeCollector

from fuseboard import Policy, Retry
from fuseboard.adapters import instrument_openai_agents, uninstrument_openai_agents

OTHERS = {
    "opentelemetry": (
        "opentelemetry.instrumentation.genai.openai_agents",
        "OpenAIAgentsInstrumentor",
    ),
    "openinference": ("openinference.instrumentation.openai_agents", "OpenAIAgentsInstrumentor"),
}


@pytest.fixture
def started(start: Callable[..., None]) -> Iterator[None]:
    set_trace_processors([])
    start()
    policy = Policy(retry=Retry(attempts=3, wait_initial=0.0), effects="none")
    instrument_openai_agents({"fog": policy})
    yield
    uninstrument_openai_agents()
    set_trace_processors([])


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest, started: None) -> Iterator[str]:
    module, name = OTHERS[request.param]
    pytest.importorskip(module)
    instrumentor = getattr(import_module(module), name)()
    instrumentor.instrument(tracer_provider=trace.get_tracer_provider())
    yield request.param
    instrumentor.uninstrument()


def _fog(failures: int) -> Any:
    left = [failures]

    @function_tool
    async def fog(city: str) -> str:
        """Tell the fog."""
        if left[0]:
            left[0] -= 1
            raise ConnectionError("no route")
        return f"fog in {city}"

    return fog


@pytest.mark.parametrize("failures", [0, 2, 99])
async def test_a_call_counts_once(other: str, collector: FakeCollector, failures: int) -> None:
    await run([_fog(failures)], asks("fog", {"city": "Oslo"}))
    spans = received(collector)
    assert counted(spans) == [("execute_tool fog", True)]
    assert len(marked(spans)) == 1


async def test_without_the_adapter_their_span_counts(other: str, collector: FakeCollector) -> None:
    uninstrument_openai_agents()
    await run([_fog(0)], asks("fog", {"city": "Oslo"}))
    assert [is_own for _, is_own in counted(received(collector))] == [False]
