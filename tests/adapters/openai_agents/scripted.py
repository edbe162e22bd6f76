"""A model that says what it was told to say."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

CONFIG = RunConfig(group_id="thread-7")


def asks(name: str, arguments: Any, call_id: str = "call-1") -> ResponseFunctionToolCall:
    """Return a model's wish for one tool; arguments may be a text that is no JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ResponseFunctionToolCall(
        type="function_call", name=name, arguments=text, call_id=call_id, id=f"item-{call_id}"
    )


def says(text: str) -> ResponseOutputMessage:
    """Return a model's last words."""
    return ResponseOutputMessage(
        id="message",
        type="message",
        role="assistant",
        status="completed",
        content=[ResponseOutputText(type="output_text", text=text, annotations=[])],
    )


class ScriptedModel(Model):
    """Asks for tools as scripted, one turn each, then says that it is done."""

    def __init__(self, *turns: list[Any]) -> None:
        self.turns = list(turns)
        self.seen: list[Any] = []

    def _next(self, given: Any) -> list[Any]:
        self.seen.append(given)
        return self.turns.pop(0) if self.turns else [says("done")]

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the SDK's name
        *args: Any,
        **kwargs: Any,
    ) -> ModelResponse:
        return ModelResponse(output=self._next(input), usage=Usage(), response_id=None)

    async def stream_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the SDK's name
        *args: Any,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        response = Response(
            id="response",
            created_at=0,
            model="scripted",
            object="response",
            output=self._next(input),
            parallel_tool_calls=False,
            tool_choice="auto",
            tools=[],
        )
        yield ResponseCompletedEvent(
            type="response.completed", response=response, sequence_number=0
        )

    @property
    def told(self) -> list[str]:
        """What the model was told of its calls, in order."""
        items = [item for item in self.seen[-1] if isinstance(item, dict)]
        return [str(i["output"]) for i in items if i.get("type") == "function_call_output"]


async def run(tools: list[Any], *calls: Any, **options: Any) -> ScriptedModel:
    """Run an agent that makes these calls in its first turn; return its model."""
    model = ScriptedModel(list(calls))
    agent: Agent[Any] = Agent(name="weather-bot", model=model, tools=tools, **options)
    await Runner.run(agent, "?", run_config=CONFIG)
    return model
