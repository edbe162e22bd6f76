"""Spans of a trace that are no sightings, as far as calls need to know of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Relative:
    """A span of a trace that is no sighting: context, or a call or an attempt of our own.

    Attributes:
        start: Microseconds since the epoch.
        end: Microseconds since the epoch.
        own_tool: The tool, if the span is a call that the shim recorded.
        operation: What it does, in the words of GenAI conventions.
    """

    span_id: str
    parent_span_id: str | None
    start: int
    end: int
    own_tool: str | None = None
    session: str | None = None
    agent: str | None = None
    http_status: int | None = None
    operation: str | None = None
