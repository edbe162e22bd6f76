"""The framework behind a foreign span, from the name of its instrumentation scope."""

from __future__ import annotations

from collections.abc import Collection

_PREFIXES = (
    "opentelemetry.instrumentation.genai.",
    "openinference.instrumentation.",
    "opentelemetry.instrumentation.",
    "@traceloop/instrumentation-",
    "@arizeai/openinference-instrumentation-",
)
_NAMES = {
    "gcp.vertex.agent": "google_adk",
    "strands.telemetry.tracer": "strands",
    "agent_framework": "agent_framework",
    "autogen-core": "autogen",
    "fastmcp": "fastmcp",
    "logfire.mcp": "mcp",
    "logfire.openai_agents": "openai_agents",
    "pydantic-ai": "pydantic_ai",
    "mcp-python-sdk": "mcp",
    "langfuse-sdk": "langfuse",
    "ai": "vercel_ai",
    "gen_ai": "vercel_ai",
    "mlflow.tracing.provider": "mlflow",
    "traceloop.tracer": "traceloop",
}

_EXPORTERS = frozenset({"langfuse", "langsmith"})
# Metadata that LangChain gives to whoever listens.
_OF_LANGCHAIN = (".metadata.ls_integration", ".metadata.langgraph_node", ".is_langchain_root")

WITHOUT_RETRIES = frozenset({"openai_agents"})
"""Frameworks that try no tool again, so that equal calls are the model's own."""


def framework_behind(framework: str | None, names: Collection[str]) -> str | None:
    """Return the framework whose calls a general exporter tells of, as far as it shows.

    Args:
        framework: What the scope says.
        names: Those of a span's attributes.
    """
    if framework in _EXPORTERS and any(name.endswith(_OF_LANGCHAIN) for name in names):
        return "langchain"
    return framework


def framework_of(scope: str) -> str | None:
    """Return the framework's name; an unknown scope's own name; None without a scope."""
    if scope in _NAMES:
        return _NAMES[scope]
    if scope.startswith(("semantic_kernel", "Microsoft.SemanticKernel")):
        return "semantic_kernel"
    for prefix in _PREFIXES:
        if scope.startswith(prefix):
            return scope.removeprefix(prefix).split(".", 1)[0]
    return scope[:256] or None
