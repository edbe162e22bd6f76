"""The spans that the demo's agent and its model leave."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fuseboard_server.demo import thinking
from fuseboard_server.demo.thinking import AGENT, THOUGHT_TOKENS, Conversation

from .test_demo_model import fault, make


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    provider, kept = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(thinking, "_tracer", lambda: provider.get_tracer("test"))
    yield kept
    provider.shutdown()


def tokens(span: ReadableSpan) -> int:
    assert span.attributes is not None
    return int(span.attributes["gen_ai.usage.input_tokens"])  # type: ignore[arg-type]


def test_thoughts_lie_within_the_agent_and_read_what_tools_answered(
    spans: InMemorySpanExporter, tmp_path: Path
) -> None:
    async def talk() -> None:
        conversation = Conversation("s-1", make(tmp_path))
        with conversation.agent(AGENT):
            await conversation.think()
            conversation.read("x" * 400)
            await conversation.think()

    asyncio.run(talk())
    first, second, agent = spans.get_finished_spans()
    assert agent.name == f"invoke_agent {AGENT}"
    assert first.parent is not None
    assert agent.context is not None
    assert first.parent.span_id == agent.context.span_id
    assert tokens(second) == tokens(first) + 100 + THOUGHT_TOKENS
    assert {span.attributes["gen_ai.conversation.id"] for span in (first, second, agent)} == {  # type: ignore[index]
        "s-1"
    }


def test_a_model_repeats_itself_only_while_the_scenario_wants_it(tmp_path: Path) -> None:
    assert {make(tmp_path).repeats("hotels") for _ in range(50)} == {0}
    model = make(tmp_path, fault("repeat"))
    repeats = {model.repeats("hotels") for _ in range(200)}
    assert repeats == set(range(3, 13))
    assert {model.repeats("weather") for _ in range(50)} == {0}
    assert model.arguments("hotels", {"nights": 2}) == {"nights": 2}
