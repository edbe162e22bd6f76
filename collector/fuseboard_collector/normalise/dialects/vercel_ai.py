"""Vercel's AI SDK 5 and 6, and 7 with its older telemetry; 7 itself follows GenAI conventions."""

from __future__ import annotations

from fuseboard_collector.normalise.dialects.dialect import Dialect

DIALECT = Dialect(
    name="vercel_ai",
    tool=(("ai.toolCall.name",),),
    call_id=(("ai.toolCall.id",),),
    arguments=(("ai.toolCall.args",), ("ai.toolCall.input",)),
    result=(("ai.toolCall.result",), ("ai.toolCall.output",)),
    prefixes=(),
)
MARKS = {"ai.operationId": {"ai.toolCall": DIALECT}}
NAMES = {"ai.toolCall": DIALECT}
