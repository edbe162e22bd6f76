"""A model that says what it was told to say, and an agent around it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent, factory
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

# The first releases tell tools nothing of the agent's name.
AGENT = "weather-bot" if "lc_agent_name" in inspect.getsource(factory) else None
THREAD = {"configurable": {"thread_id": "thread-7"}}


class ScriptedModel(BaseChatModel):
    """Asks for tools as scripted, then says that it is done."""

    script: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        answer = self.script.pop(0) if self.script else AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def asks(name: str, call_id: str = "call-1", **arguments: Any) -> AIMessage:
    """Return a model's message that asks for one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


def agent_of(tools: list[Any], *script: AIMessage, **options: Any) -> Any:
    """Return an agent with these tools whose model follows the script."""
    return create_agent(
        ScriptedModel(script=list(script)),
        tools,
        name="weather-bot",
        checkpointer=InMemorySaver(),
        **options,
    )


def answers_of(state: Any) -> list[ToolMessage]:
    """Return the tools' messages in an agent's final state."""
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]
