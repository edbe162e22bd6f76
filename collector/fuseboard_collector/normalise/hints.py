"""What any foreign span says besides its name and times: session, agent, operation, tokens.

Each emitter has its own names for these; of several on one span the most telling wins.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from fuseboard import conventions as c
from fuseboard_collector.normalise.incoming import Attributes
from fuseboard_collector.normalise.naming import unquoted
from fuseboard_collector.normalise.values import count, name_of, text

CHAT: Final = "chat"
INVOKE_AGENT: Final = "invoke_agent"

_SESSION = (
    c.GEN_AI_CONVERSATION_ID,
    "session.id",
    "langfuse.session.id",
    "langsmith.metadata.thread_id",
    "langsmith.metadata.session_id",
    "traceloop.association.properties.thread_id",
    "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId",
    "ai.telemetry.metadata.session_id",
    "ai.telemetry.metadata.conversationId",
    "ai.telemetry.metadata.threadId",
    "langfuse.trace.metadata.session_id",
    "langfuse.observation.metadata.session_id",
    "langfuse.trace.metadata.thread_id",
    "langfuse.observation.metadata.thread_id",
    "mlflow.trace.session",
)
_AGENT = (
    c.GEN_AI_AGENT_NAME,
    "agent.name",
    "tool.agent_role",
    "agent_name",
    "langsmith.metadata.lc_agent_name",
    "traceloop.association.properties.lc_agent_name",
    "langfuse.observation.metadata.lc_agent_name",
    "gen_ai.workflow.name",
    "traceloop.workflow.name",
    "ai.telemetry.functionId",
)
_OPERATION = (
    c.GEN_AI_OPERATION_NAME,
    "openinference.span.kind",
    "langfuse.observation.type",
    "langsmith.span.kind",
    "mlflow.spanType",
    "traceloop.span.kind",
    "llm.request.type",
    "ai.operationId",
    "mcp.method.name",
    "rpc.method",
    "logfire.msg_template",
)
_STATUS = (c.HTTP_RESPONSE_STATUS_CODE, "http.status_code")
_INPUT = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
)
_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
)
# Other words for the operations of GenAI conventions; those left out say nothing of use here.
_OPERATIONS: Mapping[str, str] = {
    "LLM": CHAT, "AGENT": INVOKE_AGENT, "TOOL": c.EXECUTE_TOOL, "EMBEDDING": "embeddings",
    "RETRIEVER": "retrieval", "llm": CHAT, "agent": INVOKE_AGENT, "tool": c.EXECUTE_TOOL,
    "workflow": "invoke_workflow", "generation": CHAT, "embedding": "embeddings",
    "retriever": "retrieval", "CHAT_MODEL": CHAT, "completion": CHAT, "chat": CHAT,
    "ai.generateText": INVOKE_AGENT, "ai.streamText": INVOKE_AGENT, "ai.toolCall": c.EXECUTE_TOOL,
    "ai.generateText.doGenerate": CHAT, "ai.streamText.doStream": CHAT,
    "Agent run: {name!r}": INVOKE_AGENT, "Responses API with {gen_ai.request.model!r}": CHAT,
    "Chat completion with {gen_ai.request.model!r}": CHAT,
}  # fmt: skip
_SAID_OUTRIGHT = frozenset({c.GEN_AI_OPERATION_NAME, "mcp.method.name", "rpc.method"})


@dataclass(frozen=True, slots=True)
class HintNames:
    """Which of a span's attributes tell what, the most telling first."""

    session: tuple[str, ...]
    agent: tuple[str, ...]
    operation: tuple[str, ...]
    http_status: tuple[str, ...]
    input_tokens: tuple[str, ...]
    output_tokens: tuple[str, ...]


def hint_names(names: Collection[str]) -> HintNames:
    """Return which attributes tell what.

    Args:
        names: Those of a span's attributes.
    """
    roles = (_SESSION, _AGENT, _OPERATION, _STATUS, _INPUT, _OUTPUT)
    return HintNames(*(tuple(name for name in role if name in names) for role in roles))


def name_in(attributes: Attributes, names: tuple[str, ...]) -> str | None:
    """Return the first name that attributes have.

    Args:
        attributes: Of any span.
        names: Where to look.
    """
    for name in names:
        if (found := name_of(unquoted(attributes[name]))) is not None:
            return found
    return None


def operation_in(attributes: Attributes, names: tuple[str, ...]) -> str | None:
    """Return what a span does, in the words of GenAI conventions where they have one for it.

    Args:
        attributes: Of any span.
        names: Where to look.
    """
    for name in names:
        said = text(unquoted(attributes[name]))
        found = said if name in _SAID_OUTRIGHT else _OPERATIONS.get(said or "")
        if found is not None:
            return found
    return None


def count_in(attributes: Attributes, names: tuple[str, ...], most: int = 2**53) -> int | None:
    """Return the first count that attributes have.

    Args:
        attributes: Of any span.
        names: Where to look.
        most: What is taken for more.
    """
    for name in names:
        if (found := count(attributes[name], most)) is not None:
            return found
    return None
