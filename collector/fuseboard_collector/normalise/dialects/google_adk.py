"""Google's Agent Development Kit, by itself and under OpenInference.

It flags a result that has ``error`` as an error, and adds a span for merged results.
"""

from __future__ import annotations

from dataclasses import replace

from fuseboard_collector.normalise.dialects import genai

DIALECT = replace(
    genai.DIALECT,
    name="google_adk",
    arguments=(
        *genai.DIALECT.arguments,
        ("gcp.vertex.agent.tool_call_args",),
        ("tool.parameters",),
    ),
    result=(*genai.DIALECT.result, ("gcp.vertex.agent.tool_response",)),
)
