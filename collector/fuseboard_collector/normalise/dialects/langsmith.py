"""LangSmith's OpenTelemetry export: arguments and results look like those of a model's call."""

from __future__ import annotations

from fuseboard_collector.normalise.dialects.dialect import Dialect

DIALECT = Dialect(
    name="langsmith",
    arguments=(("gen_ai.prompt",),),
    result=(("gen_ai.completion",),),
    prefixes=(),
)
MARKS = {"langsmith.span.kind": {"tool": DIALECT}}
