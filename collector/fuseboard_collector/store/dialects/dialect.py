"""What a dialect is, and how a query's text is put into it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PARAMETER_TYPES: Final = (
    "TIMESTAMP", "VARCHAR[]", "VARCHAR", "BIGINT", "DOUBLE[]", "DOUBLE", "BOOLEAN",
)  # fmt: skip
"""The types that a query's parameter may be cast to; any of them may be null."""

_MACRO = re.compile(r"@(?P<name>[a-z_]+)\(")
_PARAMETER = re.compile(r"\$(?P<name>\w+)::(?P<type>(?:VARCHAR|DOUBLE)\[\]|[A-Z]+)")
_COMMENT = re.compile(r"--[^\n]*")
_CLOSING = {"(": ")", "[": "]"}


class MacroError(ValueError):
    """A query uses a macro that its dialect does not have, or in a wrong way."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine writes what engines write differently.

    Attributes:
        name: The engine.
        macros: Macro → what it stands for, with ``{0}``, ``{1}`` … for its arguments.
        parameters: Type of a parameter → how a parameter is written, with ``{name}`` for its
            name. Types that are missing stay as they are in the query.
    """

    name: str
    macros: Mapping[str, str]
    parameters: Mapping[str, str]

    def render(self, sql: str) -> str:
        """Return the text of a query in this dialect.

        Raises:
            MacroError: If it has a macro that the dialect does not know, or one that is not
                closed or has the wrong number of arguments.
        """
        return _PARAMETER.sub(self._parameter, self._expanded(sql))

    def _expanded(self, sql: str) -> str:
        """Expand macros from the last to the first, so that inner ones come before outer ones."""
        for found in reversed(list(_MACRO.finditer(sql))):
            arguments, end = _arguments(sql, found.end())
            sql = sql[: found.start()] + self._stands_for(found["name"], arguments) + sql[end:]
        return sql

    def _stands_for(self, name: str, arguments: list[str]) -> str:
        template = self.macros.get(name)
        if template is None:
            raise MacroError(f"{self.name} has no macro @{name}; it has {sorted(self.macros)}")
        wanted = len(set(re.findall(r"\{(\d)\}", template)))
        if template and len(arguments) != wanted:
            raise MacroError(f"@{name} takes {wanted} arguments, not {len(arguments)}")
        return re.sub(r"\{(\d)\}", lambda place: arguments[int(place[1])], template)

    def _parameter(self, found: re.Match[str]) -> str:
        if found["type"] not in PARAMETER_TYPES:
            raise MacroError(f"a parameter can't be {found['type']}; see PARAMETER_TYPES")
        template = self.parameters.get(found["type"])
        return found[0] if template is None else template.replace("{name}", found["name"])


def parameter_types(sql: str) -> dict[str, str]:
    """Return the parameters of a query's text and their types."""
    return {found["name"]: found["type"] for found in _PARAMETER.finditer(_COMMENT.sub("", sql))}


def _arguments(sql: str, start: int) -> tuple[list[str], int]:
    """Return the arguments that begin at ``start``, and where the text goes on behind them."""
    arguments, begin, closing, quote = [], start, [")"], ""
    for place in range(start, len(sql)):
        character = sql[place]
        if quote or character in "'\"":
            quote = "" if character == quote else quote or character
        elif character in _CLOSING:
            closing.append(_CLOSING[character])
        elif character == closing[-1]:
            closing.pop()
            if not closing:
                arguments.append(sql[begin:place].strip())
                return arguments, place + 1
        elif character == "," and len(closing) == 1:
            arguments.append(sql[begin:place].strip())
            begin = place + 1
    raise MacroError(f"a macro is not closed: {sql[max(0, start - 30) : start + 30]!r}")
