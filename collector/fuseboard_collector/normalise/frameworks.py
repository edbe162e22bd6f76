"""The framework behind a foreign span, from the name of its instrumentation scope."""

from __future__ import annotations

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

WITHOUT_RETRIES = frozenset({"openai_agents"})
"""Frameworks that try no tool again, so that equal calls are the model's own."""


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
