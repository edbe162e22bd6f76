"""Telemetry as it arrives, whatever the encoding: the normaliser's only input."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = "str | int | float | bool | bytes | list[Value] | dict[str, Value] | None"
Attributes: TypeAlias = dict[str, Value]

SPAN_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
STATUS_CODES = ("unset", "ok", "error")
ERROR_STATUS = STATUS_CODES.index("error")


@dataclass(slots=True)
class Source:
    """Who sent it: the resource and the instrumentation scope of a group of records."""

    resource: Attributes
    scope: str = ""
    scope_version: str = ""
    _texts: dict[str, str | None] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.scope = _storable(self.scope)

    def text(self, name: str) -> str | None:
        """Return a resource attribute as text; None if it is absent or empty."""
        try:
            return self._texts[name]
        except KeyError:
            value = self.resource.get(name)
            found = _storable(str(value)[:256]) if value not in (None, "") else None
            self._texts[name] = found
            return found


def _storable(text: str) -> str:
    return text.replace("\0", "�") if "\0" in text else text


@dataclass(slots=True)
class Event:
    """A timed event of a span."""

    name: str
    attributes: Attributes


@dataclass(slots=True)
class IncomingSpan:
    """A span with valid ids: 32 and 16 lower-case hex digits, not all zero."""

    trace_id: str
    span_id: str
    name: str = ""
    parent_span_id: str | None = None
    trace_state: str = ""
    kind: int = 0
    start_ns: int = 0
    end_ns: int = 0
    attributes: Attributes = field(default_factory=dict)
    status_code: int = 0
    status_message: str = ""
    events: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class IncomingLog:
    """A log record; its ids are empty where it belongs to no span."""

    event: str
    time_ns: int
    attributes: Attributes
    trace_id: str = ""
    span_id: str = ""


@dataclass(slots=True)
class Traces:
    """A decoded trace request.

    Attributes:
        rejected: Spans that can't be stored, by reason.
    """

    groups: list[tuple[Source, list[IncomingSpan]]] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Logs:
    """A decoded log request."""

    groups: list[tuple[Source, list[IncomingLog]]] = field(default_factory=list)
