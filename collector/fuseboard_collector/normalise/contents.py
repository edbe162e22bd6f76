"""Attributes that hold what was said: prompts, answers, arguments, results. Not stored."""

from __future__ import annotations

from fuseboard_collector.normalise.incoming import Attributes

_NAMES = frozenset(
    {
        "all_messages_events", "events", "final_result", "input", "output", "request", "response",
        "system_prompt", "tool_arguments", "tool_response", "message", "messages", "prompt",
        "completion", "result", "return", "metadata", "error",
    }
)  # fmt: skip

_PREFIXES = (
    "ai.prompt", "ai.response", "ai.result", "ai.toolCall.args", "ai.toolCall.result",
    "ai.settings", "gcp.vertex.agent.data", "gcp.vertex.agent.llm_", "gcp.vertex.agent.tool_",
    "gen_ai.completion", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt",
    "gen_ai.system_instructions", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
    "gen_ai.tool.definitions", "input.value", "output.value", "langfuse.observation.input",
    "langfuse.observation.output", "langfuse.trace.input", "langfuse.trace.output",
    "langsmith.metadata.LANGSMITH_", "llm.input_messages", "llm.output_messages", "llm.prompts",
    "llm.tools", "llm.invocation_parameters", "logfire.json_schema", "logfire.msg",
    "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.traceRequest", "model_request_parameters",
    "pydantic_ai.all_messages", "retrieval.documents", "tool.json_schema", "tool.parameters",
    "traceloop.entity.input", "traceloop.entity.output",
)  # fmt: skip


def contents_in(attributes: Attributes) -> set[str]:
    """Return the names of the attributes that hold content."""
    return {name for name in attributes if name in _NAMES or name.startswith(_PREFIXES)}
