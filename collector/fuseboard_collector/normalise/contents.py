"""Attributes that hold what was said: prompts, answers, arguments, results. Not stored.

Known places are listed. An attribute of anybody else counts by the last word of its name, so
that a dialect that is not known yet does not bring contents into the store.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from fuseboard_collector.normalise.incoming import Attributes

_PREFIXES: Final = (
    "ai.prompt", "ai.response", "ai.result", "ai.settings", "ai.toolCall.args",
    "ai.toolCall.input", "ai.toolCall.output", "ai.toolCall.result", "crewai.", "crew_agents",
    "crew_tasks", "db.query.", "db.statement", "exception.", "gcp.vertex.agent.data",
    "gcp.vertex.agent.llm_", "gcp.vertex.agent.tool_", "gen_ai.completion",
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt",
    "gen_ai.system_instructions", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
    "gen_ai.tool.definitions", "http.request.body", "http.request.header.", "http.response.body",
    "http.response.header.", "input.value", "langfuse.observation.input",
    "langfuse.observation.output", "langfuse.trace.input", "langfuse.trace.output",
    "langsmith.metadata.LANGSMITH_", "llm.input_messages", "llm.invocation_parameters",
    "llm.output_messages", "llm.prompts", "llm.tools", "logfire.json_schema", "logfire.msg",
    "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.traceRequest", "model_request_parameters",
    "output.value", "pydantic_ai.all_messages", "retrieval.documents", "rpc.request.metadata.",
    "rpc.response.metadata.", "tool.json_schema", "tool.parameters", "tool.task_name",
    "traceloop.entity.input", "traceloop.entity.output",
)  # fmt: skip
_WORDS: Final = (
    "answers?|args|arguments|backstory|body|completions?|contents?|data|documents?|error|events?"
    "|expected_output|goal|history|inputs?|instructions|json_schema|messages?|metadata|msg|outputs?"
    "|parameters|params|payload|prompts?|query|questions?|requests?|responses?|results?|return"
    "|stacktrace|statement|status_message|system_prompt|task_description|texts?|tool_output"
    "|transcript|tools_output|tasks_output"
)
_SECRETS: Final = "api_?keys?|authorization|cookies?|credentials?|passw(?:or)?d|secrets?|token"
_TASKS: Final = ("task_description", "crewai.task.description")
_LAST_WORD: Final = re.compile(rf"(?:^|[._/-])(?:{_WORDS}|{_SECRETS})\Z")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Held(Enum):
    """What an attribute of some name holds; a number may be a count of contents."""

    FACT = "fact"
    CONTENT = "content"
    CONTENT_OR_COUNT = "content, or a count if it is a number"


def held_by(name: str) -> Held:
    """Return what an attribute of this name holds."""
    if name.startswith(_PREFIXES):
        return Held.CONTENT
    if _LAST_WORD.search(_CAMEL.sub("_", name).lower()):
        return Held.CONTENT_OR_COUNT
    return Held.FACT


def plain_name(name: str, attributes: Attributes) -> str:
    """Return a span's name without the task that CrewAI was given, which is a prompt."""
    for place in _TASKS:
        task = attributes.get(place)
        if isinstance(task, str) and task:
            name = name.replace(task, "…")
    return name
