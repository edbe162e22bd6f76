"""Mark the spans with which other instrumentation tells of a call that fuseboard records itself.

Frameworks and instrumentation packages have spans of their own for tool calls, above or below
fuseboard's, or beside them. They stay, with one attribute more, by which the collector knows that
the call has been counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import get_current_span

from fuseboard import guard
from fuseboard.calls.current import CURRENT, LaterAttempt
from fuseboard.calls.invocation import RUNNING
from fuseboard.conventions import DUPLICATE, GEN_AI_TOOL_NAME, SCOPE_NAME

# Where the dialects of others have a tool's name.
_NAMES: Final = (GEN_AI_TOOL_NAME, "tool.name", "traceloop.entity.name", "mlflow.spanFunctionName")
# What they put around it in the name of a span.
_AROUND: Final = re.compile(
    r"(?:execute_tool |running tool: |MCP send tools/call |tools/call )?"
    r"(?P<tool>.+?)(?:\.tool|\.run|\.__call__|\.a?call)?",
    re.DOTALL,
)


def mark_started(span: Span) -> None:
    """Mark a span that begins within a call and tells of the same."""
    try:
        if not _is_own(span) and any(_tells_of(span, tool) for tool in _running_here()):
            span.set_attribute(DUPLICATE, True)
    except Exception as fault:
        guard.swallow("looking at a span of other instrumentation", fault)


def mark_current(tool: str) -> None:
    """Mark the span around a call that begins, if that tells of the same call.

    Args:
        tool: The tool's name.
    """
    try:
        span = get_current_span()
        if isinstance(span, ReadableSpan) and not _is_own(span) and _tells_of(span, tool):
            span.set_attribute(DUPLICATE, True)
    except Exception as fault:
        guard.swallow("looking at a span of other instrumentation", fault)


class DuplicateMarker(SpanProcessor):
    """Marks duplicates among the spans of a provider that belongs to the application."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        """Mark the span if it is one."""
        mark_started(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Do nothing."""

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        """Do nothing."""
        return True


def _is_own(span: ReadableSpan) -> bool:
    scope = span.instrumentation_scope
    return scope is not None and scope.name == SCOPE_NAME


def _running_here() -> list[str]:
    """Return the names of the tools whose calls are recorded here."""
    running, current = RUNNING.get(), CURRENT.get()
    names = [running.tool] if running is not None else []
    if running is not None and running.alias is not None:
        names.append(running.alias)
    call = current.call if isinstance(current, LaterAttempt) else current
    return names if call is None else [*names, call.tool.name]


def _tells_of(span: ReadableSpan, tool: str) -> bool:
    attributes: Mapping[str, object] = span.attributes or {}
    if any(attributes.get(name) == tool for name in _NAMES):
        return True
    found = _AROUND.fullmatch(span.name)
    return found is not None and found["tool"] == tool
