"""What a dialect is: where the spans of one family of instrumentations say what."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias

from fuseboard import conventions as c
from fuseboard_collector.normalise.incoming import Attributes, IncomingSpan, Value

Place: TypeAlias = tuple[str, ...]
"""The name of an attribute, then the keys to follow inside the JSON document that it holds."""

EventPlace: TypeAlias = tuple[str, str]
"""The name of a span event, and of the attribute on it."""

_MAX_DOCUMENT = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Where spans of tools say what; in all lists the first place that says something wins.

    The defaults are OpenTelemetry's GenAI conventions, so that a dialect names its differences
    only, and a sender without a dialect of its own is read by the conventions.

    Attributes:
        arguments: Where the arguments are, perhaps wrapped.
        arguments_event: Where else they are, if no attribute has them.
        result: Where the result is, also one that says that the tool failed.
        failed: Attribute values that mean that the call failed, besides those of OpenTelemetry.
        error_type: Where the error's type is, besides ``error.type`` and exception events.
        message: Where the error's message is, if the status has none.
        server_separator: What parts a group's name from the tool's behind it.
        prefixes: What to cut off a span's name that tells the tool.
        suffixes: The same for its end.
        no_tools: Names of tools that are none.
        no_calls: An attribute (the span's name if empty) and how it begins where a span is no
            call, whatever it claims.
        attempt: Where the number of the attempt within one call is.
    """

    name: str
    tool: tuple[Place, ...] = ((c.GEN_AI_TOOL_NAME,),)
    server: tuple[Place, ...] = ()
    call_id: tuple[Place, ...] = ((c.GEN_AI_TOOL_CALL_ID,),)
    arguments: tuple[Place, ...] = ((c.GEN_AI_TOOL_CALL_ARGUMENTS,),)
    arguments_event: EventPlace | None = None
    result: tuple[Place, ...] = ((c.GEN_AI_TOOL_CALL_RESULT,),)
    result_event: EventPlace | None = None
    failed: tuple[tuple[str, Value], ...] = ()
    error_type: tuple[Place, ...] = ()
    message: tuple[Place, ...] = ()
    attempt: tuple[Place, ...] = ()
    server_separator: str | None = None
    prefixes: tuple[str, ...] = (f"{c.EXECUTE_TOOL} ",)
    suffixes: tuple[str, ...] = ()
    no_tools: frozenset[str] = frozenset()
    no_calls: tuple[tuple[str, str], ...] = ()


def value_at(attributes: Attributes, places: tuple[Place, ...]) -> Value:
    """Return what the first place that has anything has; None if none does.

    Args:
        attributes: A span's attributes.
        places: Where to look.
    """
    for place in places:
        value = attributes.get(place[0])
        if value is None or value == "":
            continue
        if len(place) > 1:
            value = _inside(value, place[1:])
        if value is not None and value != "":
            return value
    return None


def event_value(span: IncomingSpan, place: EventPlace | None) -> Value:
    """Return what a span's event says; None if there is no such event."""
    if place is None:
        return None
    found = (event.attributes for event in span.events if event.name == place[0])
    return next(found, {}).get(place[1])


def arguments_of(span: IncomingSpan, dialect: Dialect) -> Value:
    """Return a call's arguments as sent, perhaps wrapped; None if they are not there."""
    found = value_at(span.attributes, dialect.arguments)
    return event_value(span, dialect.arguments_event) if found is None else found


def result_of(span: IncomingSpan, dialect: Dialect) -> Value:
    """Return a call's result as sent, perhaps wrapped; None if it is not there."""
    found = value_at(span.attributes, dialect.result)
    return event_value(span, dialect.result_event) if found is None else found


def _inside(value: Value, keys: Place) -> Value:
    if isinstance(value, str):
        if len(value) > _MAX_DOCUMENT or f'"{keys[-1]}"' not in value:
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
