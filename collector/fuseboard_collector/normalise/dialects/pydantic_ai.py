"""Pydantic AI, also under Logfire: GenAI conventions; older formats name arguments otherwise.

An output function ends a run and is called like a tool, but is none. The number of a retry is
one of the model's, which asked again: a call of its own.
"""

from __future__ import annotations

from dataclasses import replace

from fuseboard_collector.normalise.dialects import genai

DIALECT = replace(
    genai.DIALECT,
    name="pydantic_ai",
    arguments=(*genai.DIALECT.arguments, ("tool_arguments",)),
    result=(*genai.DIALECT.result, ("tool_response",)),
    prefixes=(*genai.DIALECT.prefixes, "running tool: "),
    no_calls=(("logfire.msg", "running output function"), ("", "running output function")),
)
NAMES = {"running tool": DIALECT}
