"""Named SQL: one statement file each, with ``$name`` parameters that are always bound.

A line ``-- include NAME`` stands for the text of ``fragments/NAME.sql``: what several queries
must agree on is written once; ``-- include NAME of TABLE`` puts TABLE where the fragment says
``@these``, and ``by COLUMNS`` after that puts these columns where it says ``@keys``. A variant of a
query takes fragments from ``fragments/VARIANT`` where there are such, and what a query alone wants
otherwise is in ``fragments/QUERY``.
Macros and parameters are put into an engine's own words by
:mod:`~fuseboard_collector.store.dialects`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from textwrap import indent

import duckdb

from fuseboard_collector.errors import QueryParameterError, UnknownQueryError
from fuseboard_collector.store.dialects import DUCKDB, Dialect

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_INCLUDE = re.compile(
    r"^(?P<indent> *)-- include (?P<name>\w+)"
    r'(?: of (?P<table>\w+)(?: by (?P<keys>\*|[\w"]+(?:, [\w"]+)*))?)?$',
    re.MULTILINE,
)
_SHARED = "queries/fragments"
_OFFSET_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)\Z")


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement and the parameters that it names."""

    sql: str
    parameters: frozenset[str]
    reads: bool


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query file: one reading statement, or writing statements that run in a transaction."""

    name: str
    statements: tuple[Statement, ...]

    @property
    def reads_only(self) -> bool:
        """Whether it may be offered to readers."""
        return len(self.statements) == 1 and self.statements[0].reads

    def bind(self, given: Mapping[str, object] | None) -> dict[str, object]:
        """Check that exactly the query's parameters are given, and make times UTC.

        Raises:
            QueryParameterError: If one is missing or unknown; the message lists them.
        """
        given = given or {}
        wanted = frozenset[str]().union(*(item.parameters for item in self.statements))
        if missing := sorted(wanted - given.keys()):
            raise QueryParameterError(
                f"query {self.name!r} needs {_names(missing)} too (null means no restriction); "
                f"its parameters are {_names(sorted(wanted))}"
            )
        if unknown := sorted(given.keys() - wanted):
            raise QueryParameterError(
                f"query {self.name!r} has no parameter {_names(unknown)}; "
                f"its parameters are {_names(sorted(wanted)) or 'none'}"
            )
        return {name: _utc(value) for name, value in given.items()}


def _names(names: list[str]) -> str:
    return ", ".join(f"${name}" for name in names)


def _utc(value: object) -> object:
    """Return a time as naive UTC: the engine ignores the offset of a time given as text."""
    if isinstance(value, str) and _OFFSET_TIME.match(value):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


@cache
def parsed(sql: str) -> duckdb.Statement:
    """Return the statement of a query's text; there are only so many texts."""
    (statement,) = duckdb.extract_statements(sql)
    return statement


@cache
def load(name: str, folder: str = "queries", variants: tuple[str, ...] = ()) -> NamedQuery:
    """Return the query ``<folder>/<name>.sql``.

    Args:
        name: The query.
        folder: Where its file is.
        variants: Whose fragments to take where they have their own; the first that has decides.

    Raises:
        UnknownQueryError: If there is no such file; the message lists near names.
    """
    file = files(__package__).joinpath(folder, f"{name}.sql")
    if not _NAME.match(name) or not file.is_file():
        raise UnknownQueryError(_unknown(name, folder))
    parsed = duckdb.extract_statements(text(name, folder, variants=variants))
    return NamedQuery(
        name,
        tuple(
            Statement(
                statement.query,
                frozenset(statement.named_parameters),
                statement.type == duckdb.StatementType.SELECT,
            )
            for statement in parsed
        ),
    )


def text(
    name: str,
    folder: str = "queries",
    dialect: Dialect = DUCKDB,
    variants: tuple[str, ...] = (),
) -> str:
    """Return the SQL of a query with its fragments in place, in one engine's dialect."""
    return dialect.render(source(name, folder, variants=variants))


def source(
    name: str,
    folder: str = "queries",
    fragments: str | None = None,
    variants: tuple[str, ...] = (),
) -> str:
    """Return the SQL of a query with its fragments in place, macros and all.

    Args:
        name: The query.
        folder: Where its file is.
        fragments: The folder whose fragments it includes, if that is another one. What is missing
            there is one of ``queries``.
        variants: Whose fragments to take where they have their own.
    """
    home = files(__package__)
    shared = home.joinpath(fragments or folder, "fragments")
    places = [*(shared.joinpath(place) for place in (name, *variants)), shared, home / _SHARED]

    def fragment(line: re.Match[str]) -> str:
        found = (place.joinpath(f"{line['name']}.sql") for place in places)
        file = next((item for item in found if item.is_file()), None)
        if file is None:
            raise FileNotFoundError(f"{name}.sql includes {line['name']}, which is no fragment")
        content = file.read_text(encoding="utf-8").rstrip("\n")
        if line["table"]:
            content = content.replace("@these", line["table"])
            content = content.replace("@keys", line["keys"] or "")
        return indent(_INCLUDE.sub(fragment, content), line["indent"])

    return _INCLUDE.sub(fragment, home.joinpath(folder, f"{name}.sql").read_text(encoding="utf-8"))


def names(folder: str = "queries") -> list[str]:
    """Return the names of all queries, sorted."""
    found = files(__package__).joinpath(folder).iterdir()
    return sorted(item.name.removesuffix(".sql") for item in found if item.name.endswith(".sql"))


def _unknown(name: str, folder: str) -> str:
    import difflib

    near = difflib.get_close_matches(name[:80], names(folder), n=3)
    hint = f"; did you mean {' or '.join(repr(item) for item in near)}?" if near else ""
    return f"there is no query named {name[:80]!r}{hint}"
