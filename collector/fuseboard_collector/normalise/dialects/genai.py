"""OpenTelemetry's GenAI conventions, and what earlier and sloppier followers of them write.

Up to version 1.36 arguments and results were in span events; Strands still writes those.
"""

from __future__ import annotations

from fuseboard import conventions as c
from fuseboard_collector.normalise.dialects.dialect import Dialect

DIALECT = Dialect(
    name="genai",
    arguments=((c.GEN_AI_TOOL_CALL_ARGUMENTS,), ("gen_ai.tool.arguments",), ("input.value",)),
    arguments_event=("gen_ai.tool.message", "content"),
    result=((c.GEN_AI_TOOL_CALL_RESULT,), ("gen_ai.tool.result",), ("output.value",)),
    result_event=("gen_ai.choice", "message"),
    failed=(("gen_ai.tool.status", "error"),),
    # Google ADK merges the results of parallel calls in a span of this name.
    no_tools=frozenset({"(merged tools)"}),
)
MARKS = {c.GEN_AI_OPERATION_NAME: {c.EXECUTE_TOOL: DIALECT}}
