"""Objectives from a file: ``[objectives]`` and ``[objectives.tools.NAME]`` of a TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from fuseboard.errors import ConfigurationError
from fuseboard.policy.file.patches import as_toml, did_you_mean, patch_of
from fuseboard.policy.file.reading import Document, read
from fuseboard_dashboard.objectives import ObjectiveBook, Objectives, doubts

TABLE: Final = "objectives"
_TOOLS: Final = "tools"
_PERIOD: Final = "period_days"


def read_objectives(path: Path) -> tuple[ObjectiveBook, list[str]]:
    """Read the objectives of a file; other tables are an agent's and left alone.

    Args:
        path: Where the file is.

    Returns:
        The objectives, and a sentence for each setting that is hardly meant.

    Raises:
        ConfigurationError: If the file can't be read, has no objectives, or says something that is
            not legal; names the line.
    """
    document = read(path.absolute(), imports=False)
    if TABLE not in document.tables:
        raise ConfigurationError(
            f"{document.path}: has no table [{TABLE}]; add one, or start without the file for the "
            "default objectives"
        )
    table = _table(document, (TABLE,), document.tables[TABLE])
    named = _table(document, (TABLE, _TOOLS), table.get(_TOOLS, {}))
    shared = {key: value for key, value in table.items() if key not in (_TOOLS, _PERIOD)}
    default = _objectives(document, (TABLE,), shared, Objectives())
    tools = {
        name: _objectives(document, (TABLE, _TOOLS, name), each, default)
        for name, each in named.items()
    }
    book = ObjectiveBook(default, tools, _period(document, table))
    return book, _doubts(document, book, named)


def _table(document: Document, at: tuple[str, ...], found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise document.wrong(at, f"[{'.'.join(at)}]: must be a table, not {as_toml(found)}")
    return found


def _objectives(
    document: Document, at: tuple[str, ...], table: object, base: Objectives
) -> Objectives:
    known = (_PERIOD, _TOOLS) if at == (TABLE,) else ()
    for key in table if isinstance(table, dict) else ():
        if key not in Objectives.__dataclass_fields__:
            names = (*Objectives.__dataclass_fields__, *known)
            words = f"[{'.'.join(at)}]: there is no setting {key!r}{did_you_mean(key, names)}"
            raise document.wrong((*at, key), words)
    made: Objectives = patch_of(Objectives, table, document, at).onto(base)
    return made


def _period(document: Document, table: dict[str, Any]) -> int:
    days = table.get(_PERIOD, ObjectiveBook().period_days)
    try:
        return ObjectiveBook(period_days=days).period_days
    except ConfigurationError as error:
        problem = str(error).partition("): ")[2]
        words = f"[{TABLE}] {_PERIOD} = {as_toml(days)}: {problem}"
        raise document.wrong((TABLE, _PERIOD), words) from None


def _doubts(document: Document, book: ObjectiveBook, named: dict[str, Any]) -> list[str]:
    found = [f"{document.path}: [{TABLE}] {words}" for words in doubts(book.default)]
    for name, own in book.tools.items():
        # What a tool has from the default is told of once.
        mine = [words for words in doubts(own) if words.partition(" ")[0] in named[name]]
        found += [f"{document.path}: [{TABLE}.{_TOOLS}.{name}] {words}" for words in mine]
    return found
