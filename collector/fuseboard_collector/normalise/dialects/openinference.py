"""OpenInference (Arize): spans of kind TOOL.

``tool.parameters`` is the schema of the arguments with most instrumentations, and the arguments
themselves with some. LangChain's reduces a call with one argument to the bare value.
"""

from __future__ import annotations

from dataclasses import replace

from fuseboard import conventions as c
from fuseboard_collector.normalise.dialects.dialect import Dialect

DIALECT = Dialect(
    name="openinference",
    tool=(("tool.name",), (c.GEN_AI_TOOL_NAME,)),
    call_id=(
        ("tool_call.id",),
        ("tool.id",),
        (c.GEN_AI_TOOL_CALL_ID,),
        ("output.value", "tool_call_id"),
    ),
    arguments=(("input.value",), ("tool.parameters",)),
    result=(("output.value",),),
    suffixes=(".run", ".__call__", ".acall", ".call"),
)
SMOLAGENTS = replace(DIALECT, name="smolagents", no_tools=frozenset({"final_answer"}))
MARKS = {"openinference.span.kind": {"TOOL": DIALECT}}
