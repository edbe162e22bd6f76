"""Langfuse: the tool is the span's name; of a fault there is the message only."""

from __future__ import annotations

from fuseboard_collector.normalise.dialects.dialect import Dialect

DIALECT = Dialect(
    name="langfuse",
    tool=(),
    call_id=(("langfuse.observation.metadata.tool_call_id",),),
    arguments=(("langfuse.observation.input",),),
    result=(("langfuse.observation.output",),),
    failed=(("langfuse.observation.level", "ERROR"),),
    message=(("langfuse.observation.status_message",),),
    prefixes=(),
)
MARKS = {"langfuse.observation.type": {"tool": DIALECT}}
