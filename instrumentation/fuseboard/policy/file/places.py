"""Where in a TOML file a table or a key stands; the parser of the standard library does not say."""

from __future__ import annotations

import re
from typing import Final

Path = tuple[str, ...]
"""Names of tables and the key; the elements of an array of tables are ``"0"``, ``"1"``, …"""

_BARE: Final = r"[A-Za-z0-9_-]+"
_KEY: Final = rf"(?:{_BARE}|\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_DOTTED: Final = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE: Final = re.compile(rf"\s*(?P<open>\[\[?)\s*(?P<name>{_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_ASSIGNED: Final = re.compile(rf"\s*(?P<name>{_DOTTED})\s*=(?P<value>.*)$")
_LONG: Final = ('"""', "'''")


def lines_of(text: str) -> dict[Path, int]:
    """Return the line, from 1, of each table and key that begins a line of a valid file."""
    found: dict[Path, int] = {}
    arrays: dict[Path, int] = {}
    table: Path = ()
    end: str | None = None  # of a text over several lines
    for number, line in enumerate(text.splitlines(), 1):
        if end is not None:
            end = None if end in line else end
        elif header := _TABLE.match(line):
            table = _split(header["name"])
            if header["open"] == "[[":
                arrays[table] = index = arrays.get(table, -1) + 1
                found.setdefault(table, number)
                table = (*table, str(index))
            else:
                table = _within(table, arrays)
            found.setdefault(table, number)
        elif assigned := _ASSIGNED.match(line):
            found.setdefault((*table, *_split(assigned["name"])), number)
            end = _begun(assigned["value"])
    return found


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """Return the line of a path, or of what is nearest: within it, or else around it."""
    if path not in lines:
        within = [line for each, line in lines.items() if each[: len(path)] == path]
        if within:
            return min(within)
    around = (path[:length] for length in range(len(path), 0, -1))
    return next((lines[each] for each in around if each in lines), None)


def _split(dotted: str) -> Path:
    return tuple(_unquoted(key) for key in re.findall(_KEY, dotted))


def _unquoted(key: str) -> str:
    return key[1:-1] if key[0] in "\"'" else key


def _within(table: Path, arrays: dict[Path, int]) -> Path:
    """Name the element of an array of tables that a table lies in."""
    for length in range(len(table) - 1, 0, -1):
        if table[:length] in arrays:
            return (*table[:length], str(arrays[table[:length]]), *table[length:])
    return table


def _begun(value: str) -> str | None:
    """Return what ends a text that begins here and goes on in the next line."""
    for quotes in _LONG:
        if value.count(quotes) % 2:
            return quotes
    return None
