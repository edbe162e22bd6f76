"""Is a foreign span a call of a tool, and whose words does it use?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TypeAlias

from fuseboard import conventions as c
from fuseboard_collector.normalise.dialects import (
    agent_framework,
    crewai,
    genai,
    google_adk,
    langfuse,
    langsmith,
    logfire,
    mcp,
    mlflow,
    openai_agents,
    openinference,
    openllmetry,
    pydantic_ai,
    strands,
    vercel_ai,
)
from fuseboard_collector.normalise.dialects.dialect import Dialect
from fuseboard_collector.normalise.incoming import IncomingSpan

Marks: TypeAlias = tuple[tuple[str, Mapping[str, Dialect]], ...]
"""Attributes that may mark a span as a call, and which values do in which dialect."""

# A span may carry several of these; the more special come first.
_MARKS: Marks = tuple(
    item
    for module in (
        openllmetry, openinference, vercel_ai, langfuse, langsmith, mlflow, mcp, logfire, genai,
    )
    for item in module.MARKS.items()
)  # fmt: skip
_NAMES: Mapping[str, Dialect] = {**logfire.NAMES, **pydantic_ai.NAMES, **vercel_ai.NAMES}
_OPENINFERENCE = "openinference.instrumentation."
_SCOPES = {
    "agent_framework": agent_framework.DIALECT,
    "ai": vercel_ai.DIALECT,
    "autogen-core": agent_framework.DIALECT,
    "fastmcp": mcp.DIALECT,
    "gcp.vertex.agent": google_adk.DIALECT,
    "langfuse-sdk": langfuse.DIALECT,
    "langsmith": langsmith.DIALECT,
    "logfire.mcp": logfire.MCP,
    "logfire.openai_agents": logfire.OPENAI_AGENTS,
    "mcp-python-sdk": mcp.DIALECT,
    "mlflow.tracing.provider": mlflow.DIALECT,
    "pydantic-ai": pydantic_ai.DIALECT,
    "strands.telemetry.tracer": strands.DIALECT,
    "traceloop.tracer": openllmetry.DIALECT,
}
_SCOPE_PREFIXES = {
    f"{_OPENINFERENCE}crewai": crewai.DIALECT,
    f"{_OPENINFERENCE}google_adk": google_adk.DIALECT,
    f"{_OPENINFERENCE}openai_agents": openai_agents.DIALECT,
    f"{_OPENINFERENCE}smolagents": openinference.SMOLAGENTS,
    "Microsoft.SemanticKernel": agent_framework.SEMANTIC_KERNEL,
    "semantic_kernel": agent_framework.SEMANTIC_KERNEL,
}


@lru_cache(maxsize=1024)
def dialect_of_scope(scope: str) -> Dialect | None:
    """Return the dialect that an instrumentation scope is known to use; None if unknown."""
    found = _SCOPES.get(scope)
    if found is None:
        found = next((d for name, d in _SCOPE_PREFIXES.items() if scope.startswith(name)), None)
    return found


def marks_among(names: Collection[str]) -> Marks:
    """Return which attributes may mark a span as a call of a tool, and their values that do.

    Args:
        names: Those of a span's attributes.
    """
    return tuple(mark for mark in _MARKS if mark[0] in names)


def recognise(span: IncomingSpan, marks: Marks, scoped: Dialect | None) -> Dialect | None:
    """Return the dialect in which a span tells of a call of a tool; None if it tells of none.

    Args:
        span: A span of anyone else.
        marks: Those among its attributes.
        scoped: The dialect of its scope, which knows better than a mark on the span.
    """
    attributes = span.attributes
    for name, dialects in marks:
        value = attributes[name]
        if type(value) is str and (found := dialects.get(value)) is not None:
            break
    else:
        found = _named(span)
    if found is None:
        return None
    dialect = scoped or found
    return None if _refused(span, dialect) else dialect


def _named(span: IncomingSpan) -> Dialect | None:
    """Recognise a span by its name; old GenAI spans had no attribute for the operation."""
    name, attributes = span.name, span.attributes
    if (found := _NAMES.get(name)) is not None or not name.startswith(c.EXECUTE_TOOL):
        return found
    is_old = c.GEN_AI_TOOL_NAME in attributes and c.GEN_AI_OPERATION_NAME not in attributes
    return genai.DIALECT if is_old else None


def _refused(span: IncomingSpan, dialect: Dialect) -> bool:
    for name, beginning in dialect.no_calls:
        value = span.attributes.get(name) if name else span.name
        if isinstance(value, str) and value.startswith(beginning):
            return True
    return False
