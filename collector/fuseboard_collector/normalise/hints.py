"""What any foreign span says besides its name and times: session, agent, operation, tokens.

Each emitter has its own names for these; of several on one span the most telling wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fuseboard import conventions as c
from fuseboard_collector.normalise.incoming import Attributes, Value
from fuseboard_collector.normalise.naming import unquoted
from fuseboard_collector.normalise.values import count, text

CHAT: Final = "chat"
INVOKE_AGENT: Final = "invoke_agent"
_MAX_TOKENS = 2**53

_SESSION = (
    c.GEN_AI_CONVERSATION_ID,
    "session.id",
    "langfuse.session.id",
    "langsmith.metadata.thread_id",
    "langsmith.metadata.session_id",
    "traceloop.association.properties.thread_id",
    "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId",
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
_ROLES = {
    "session": _SESSION,
    "agent": _AGENT,
    "operation": _OPERATION,
    "http_status": _STATUS,
    "input_tokens": _INPUT,
    "output_tokens": _OUTPUT,
}
# Attribute → what it tells, and its place among those that tell the same.
_RANKS: Mapping[str, tuple[int, str]] = {
    name: (rank, role) for role, names in _ROLES.items() for rank, name in enumerate(names)
}
HINT_NAMES: Final = frozenset(_RANKS)

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


@dataclass(slots=True)
class Hints:
    """What a span's attributes say; counts are of tokens."""

    session: str | None = None
    agent: str | None = None
    operation: str | None = None
    http_status: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


def hints_of(attributes: Attributes) -> Hints:
    """Return what a span's attributes say.

    Args:
        attributes: Of any span.
    """
    hints = Hints()
    for name in sorted(attributes.keys() & HINT_NAMES, key=_RANKS.__getitem__):
        role = _RANKS[name][1]
        if getattr(hints, role) is None:
            setattr(hints, role, _READ[role](name, attributes[name]))
    return hints


def _name(_: str, value: Value) -> str | None:
    return text(unquoted(value))


def _operation(name: str, value: Value) -> str | None:
    said = text(unquoted(value))
    if said is None or name in _SAID_OUTRIGHT:
        return said
    return _OPERATIONS.get(said)


def _status(_: str, value: Value) -> int | None:
    return count(value, 999)


def _tokens(_: str, value: Value) -> int | None:
    return count(value, _MAX_TOKENS)


_READ = {
    "session": _name,
    "agent": _name,
    "operation": _operation,
    "http_status": _status,
    "input_tokens": _tokens,
    "output_tokens": _tokens,
}
