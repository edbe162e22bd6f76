"""The names of a foreign call's tool and of the server that has it."""

from __future__ import annotations

import json

from fuseboard import conventions as c
from fuseboard_collector.normalise.dialects.dialect import Dialect, Place, value_at
from fuseboard_collector.normalise.incoming import Attributes, IncomingSpan, Value
from fuseboard_collector.normalise.values import name_of

_BY_CONVENTION = ((c.GEN_AI_TOOL_NAME,),)
_MCP_PREFIX = "mcp__"
# Google ADK's words for an id that it doesn't have.
_NO_CALL_ID = "<not specified>"


def tool_and_server(span: IncomingSpan, dialect: Dialect) -> tuple[str | None, str | None]:
    """Return a call's tool without what a framework adds to its name, and its server.

    Args:
        span: A span that tells of a call.
        dialect: Its dialect.
    """
    attributes = span.attributes
    server = named(attributes, dialect.server) if dialect.server else None
    tool = named(attributes, dialect.tool) or named(attributes, _BY_CONVENTION)
    tool = tool or name_of(_cut(span.name, dialect))
    if tool is not None:
        if tool.startswith(_MCP_PREFIX):
            group, _, rest = tool.removeprefix(_MCP_PREFIX).partition("__")
        elif dialect.server_separator is not None:
            group, _, rest = tool.partition(dialect.server_separator)
        else:
            return tool, server
        if group and rest:
            return rest, server or group
    return tool, server


def call_id_of(attributes: Attributes, dialect: Dialect) -> str | None:
    """Return the id under which the model asked for a call; None if it isn't told."""
    found = named(attributes, dialect.call_id)
    return None if found == _NO_CALL_ID else found


def named(attributes: Attributes, places: tuple[Place, ...]) -> str | None:
    """Return a name that the first place with anything has; None if none has."""
    return name_of(unquoted(value_at(attributes, places)))


def unquoted(value: Value) -> Value:
    """Return text without the quotes of emitters whose every value is JSON."""
    if type(value) is str and len(value) > 1 and value[0] == '"' == value[-1]:
        try:
            found = json.loads(value)
        except ValueError:
            return value
        return found if isinstance(found, str) else value
    return value


def _cut(name: str, dialect: Dialect) -> str:
    """Return what of a span's name is the tool's."""
    for prefix in dialect.prefixes:
        if f"{name} ".startswith(prefix):
            name = name[len(prefix) :]
            break
    for suffix in dialect.suffixes:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name
