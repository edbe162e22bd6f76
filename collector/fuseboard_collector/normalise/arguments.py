"""A foreign call's arguments → the hash that our own call with the same arguments has.

Every dialect wraps them in its own way. They are unwrapped to a dictionary by name, hashed as
the shim hashes, and dropped. What can't be bound by name gets no hash rather than a wrong one:
positional arguments, the bare value to which OpenInference's LangChain reduces a call with one
argument, and JSON that was cut.
"""

from __future__ import annotations

import json
from typing import Any, Final

from fuseboard.arguments import hash_arguments
from fuseboard.conventions import ARGS_HASH_VERSION, GEN_AI_TOOL_CALL_ARGUMENTS
from fuseboard.telemetry.capture import captured
from fuseboard_collector.normalise.dialects.dialect import Dialect, arguments_of
from fuseboard_collector.normalise.incoming import IncomingSpan, Value
from fuseboard_collector.normalise.literals import literal
from fuseboard_collector.normalise.values import MAX_JSON

UNBOUND: Final = "raw"
"""Stands for the version in what :func:`likeness_of` returns."""

_MAX_TEXT: Final = 262_144
_MAX_LITERAL: Final = 16_384
_MAX_LEVELS: Final = 4
_INPUT_STR: Final = '{"input_str": '
_DECODER: Final = json.JSONDecoder()
# Arguments with some instrumentations, the tool's definition with others.
_PARAMETERS: Final = "tool.parameters"
_CALLABLE_KEYS: Final = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})


def hash_of(span: IncomingSpan, dialect: Dialect) -> str | None:
    """Return the hash of a call's arguments; None if they are not told by name.

    Args:
        span: A span that tells of a call.
        dialect: Whose words it uses.
    """
    told = arguments_of(span, dialect)
    if told is None:
        return None
    bound = bound_by_name(told)
    if bound is None or (told is span.attributes.get(_PARAMETERS) and is_schema(bound)):
        return None
    return hash_arguments(bound)


def likeness_of(span: IncomingSpan, dialect: Dialect) -> str | None:
    """Return what calls with equal arguments have in common, if there is no hash to compare.

    Args:
        span: A span that tells of a call.
        dialect: Whose words it uses.

    Returns:
        ``raw:`` and a hash of the arguments as they came; None if they didn't.
    """
    told = arguments_of(span, dialect)
    if told is None or told is span.attributes.get(_PARAMETERS):
        return None
    return hash_arguments({"": told}).replace(ARGS_HASH_VERSION, UNBOUND, 1)


def with_arguments(document: str | None, span: IncomingSpan, dialect: Dialect) -> str | None:
    """Return a call's attributes with its arguments in them: redacted and bounded as the shim's.

    Args:
        document: The attributes as JSON text; None if there are none.
        span: A span that tells of a call.
        dialect: Whose words it uses.
    """
    told = arguments_of(span, dialect)
    bound = bound_by_name(told)
    if told is None or (told is span.attributes.get(_PARAMETERS) and is_schema(bound or {})):
        return document
    kept = json.loads(document) if document else {}
    kept[GEN_AI_TOOL_CALL_ARGUMENTS] = captured(told if bound is None else bound)
    longer = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
    return longer if len(longer) <= MAX_JSON else document


def bound_by_name(value: Value) -> dict[str, Any] | None:
    """Return a call's arguments by name; None if they can't be bound by name.

    Args:
        value: As they came: a structure, JSON text, JSON text quoted once more, in a wrapper.
    """
    found: Any = value
    for _ in range(_MAX_LEVELS):
        if isinstance(found, str):
            found = _parsed(found)
            if isinstance(found, str):
                continue
        if not isinstance(found, dict):
            return None
        is_wrapped, found = _unwrapped(found)
        if not is_wrapped:
            return found if all(type(name) is str for name in found) else None
    return None


def is_schema(arguments: dict[str, Any]) -> bool:
    """Return whether a dictionary defines parameters: JSON schema, or a definition of each."""
    if arguments.get("type") == "object" and isinstance(arguments.get("properties"), dict):
        return True
    return bool(arguments) and all(
        isinstance(item, dict) and "type" in item and "description" in item
        for item in arguments.values()
    )


def _parsed(document: str) -> object:
    """Return what a text stands for; None if it stands for no dictionary."""
    document = document.strip()
    if len(document) > _MAX_TEXT or document[:1] not in ("{", '"'):
        return None
    try:
        return json.loads(document)
    except (ValueError, RecursionError):
        pass
    if document.startswith(_INPUT_STR):
        # Cut somewhere behind the arguments, which come first.
        return _input_str(document)
    return literal(document, _MAX_LITERAL) if document.startswith("{'") else None


def _input_str(document: str) -> object:
    try:
        found, _ = _DECODER.raw_decode(document, len(_INPUT_STR))
    except ValueError:
        return None
    return literal(found, _MAX_LITERAL) if isinstance(found, str) else None


def _unwrapped(value: dict[Any, Any]) -> tuple[bool, Any]:
    """Return whether a dictionary is a known wrapper, and what is in it."""
    keys = value.keys()
    if "kwargs" in keys and keys <= _CALLABLE_KEYS:
        # Decorators, LlamaIndex, smolagents. Which names positional ones have is unknown.
        return True, None if value.get("args") else value["kwargs"]
    if "input_str" in keys and "metadata" in keys:
        inputs, text = value.get("inputs"), value["input_str"]
        return True, inputs if isinstance(inputs, dict) else literal(str(text), _MAX_LITERAL)
    if "arguments" in keys and keys <= {"tool_name", "arguments"}:
        return True, value["arguments"]
    if keys <= {"method", "params"} and isinstance(value.get("params"), dict):
        return "method" in keys, value["params"].get("arguments") if "method" in keys else value
    if value.get("type") == "tool_call" and isinstance(value.get("args"), dict):
        return True, value["args"]
    return False, value
