"""OpenLLMetry (Traceloop): its instrumentations, and its SDK's decorators.

Its instrumentation of MCP wraps the arguments; that of LangChain adds tags and metadata.
"""

from __future__ import annotations

from fuseboard import conventions as c
from fuseboard_collector.normalise.dialects.dialect import Dialect

DIALECT = Dialect(
    name="openllmetry",
    tool=((c.GEN_AI_TOOL_NAME,), ("traceloop.entity.name",)),
    arguments=((c.GEN_AI_TOOL_CALL_ARGUMENTS,), ("traceloop.entity.input",)),
    result=((c.GEN_AI_TOOL_CALL_RESULT,), ("traceloop.entity.output",)),
    failed=(("gen_ai.task.status", "failure"),),
    suffixes=(".tool",),
)
MARKS = {"traceloop.span.kind": {"tool": DIALECT}}
