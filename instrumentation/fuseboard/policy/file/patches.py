"""Tables of a configuration file as changes to settings, whatever settings there are.

Nothing here knows a setting by its name: fields and their types come from the dataclasses, and
what is legal is what they accept. So a setting that is new in the code can be written in a file.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from enum import Enum
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from fuseboard.errors import ConfigurationError
from fuseboard.policy.file.places import Path
from fuseboard.policy.file.reading import Document

_COMPLAINT: Final = re.compile(r"\w+\((?P<field>\w+)=.*?\): (?P<problem>.*)", re.DOTALL)
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclass(frozen=True)
class Patch:
    """What one table of a file changes in the settings of one kind.

    Attributes:
        cls: The kind of settings.
        values: By the names of its fields; a part with settings of its own is a patch as well.
    """

    cls: type[Any]
    values: Mapping[str, Any]
    document: Document
    at: Path

    def refused(self, error: ConfigurationError) -> ConfigurationError:
        """Return an error about the settings as a whole, with the place of the table."""
        return self.document.wrong(self.at, f"{_shown(self.at)}: {error}")

    def onto(self, base: object = None) -> Any:
        """Return settings that are those of ``base``, or the defaults, with these changes.

        Raises:
            ConfigurationError: If they are not legal; names the line.
        """
        own = base if isinstance(base, self.cls) else None
        values = self.parts(own)
        try:
            return replace(own, **values) if own is not None else self.cls(**values)
        except ConfigurationError as error:
            raise self._located(error) from None
        except TypeError as error:
            raise self.document.wrong(self.at, f"{_shown(self.at)}: {error}") from None

    def parts(self, base: object = None) -> dict[str, Any]:
        """Return what is changed, by the names of the fields; parts are built over those of base.

        Raises:
            ConfigurationError: If a part with settings of its own is not legal.
        """
        return {
            name: _made(value, getattr(base, name, None)) for name, value in self.values.items()
        }

    def _located(self, error: ConfigurationError) -> ConfigurationError:
        """Say of what the settings refused where it was written."""
        words = str(error)
        complaint = _COMPLAINT.fullmatch(words)
        if complaint is None or complaint["field"] not in self.values:
            return self.refused(error)
        name = complaint["field"]
        given = self._given(name)
        problem = complaint["problem"].replace("or None", "or false")
        return self.document.wrong(
            (*self.at, name), f"{_shown(self.at)} {name} = {given}: {problem}"
        )

    def _given(self, name: str) -> str:
        table: Any = self.document.tables
        for key in self.at:
            table = table[int(key)] if isinstance(table, list) else table[key]
        return as_toml(table[name])


def patch_of(cls: type[Any], table: object, document: Document, at: Path) -> Patch:
    """Return the changes that a table of a file asks for.

    Args:
        cls: The kind of settings.
        table: The table.
        document: The file.
        at: Where the table is in it.

    Raises:
        ConfigurationError: If it is no table, or names a setting that there is not.
    """
    if not isinstance(table, dict):
        raise document.wrong(at, f"{_shown(at)}: must be a table, not {as_toml(table)}")
    known = {each.name: each for each in fields(cls) if each.init}
    values = {}
    for key, value in table.items():
        if key not in known:
            raise document.wrong(
                (*at, key),
                f"{_shown(at)}: there is no setting {key!r} of a {cls.__name__}"
                f"{did_you_mean(key, known)}",
            )
        reader = _Reader(document, (*at, key))
        values[key] = reader.read(_kinds(cls, known[key]), value)
    return Patch(cls, values, document, at)


def did_you_mean(given: str, known: Collection[str]) -> str:
    """Return what to append where a name is unknown."""
    close = get_close_matches(given, known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"


def as_toml(value: object) -> str:
    """Return a value about as it was written, and no more than a line of it."""
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _shown(at: Path) -> str:
    return f"[{'.'.join(key for key in at if not key.isdigit())}]"


def _made(value: object, base: object) -> Any:
    if isinstance(value, Patch):
        return value.onto(base)
    if isinstance(value, tuple):
        return tuple(_made(each, None) for each in value)
    return value


def _kinds(cls: type[Any], each: Field[Any]) -> tuple[Any, ...]:
    """Return the types that the value of a field may have."""
    written = each.type
    # One by one: what is imported only for type checkers is unknown here, the rest is not.
    parts = _alternatives(written) if isinstance(written, str) else [written]
    return tuple(kind for part in parts for kind in _members(_resolved(cls, part)))


def _resolved(cls: type[Any], written: object) -> Any:
    holder: Any = SimpleNamespace(__annotations__={"it": written})
    try:
        return get_type_hints(holder, vars(sys.modules[cls.__module__]))["it"]
    except Exception:
        return _Unknown


def _alternatives(written: str) -> list[str]:
    """Split a union where it is not within brackets."""
    parts, depth = [""], 0
    for character in written:
        depth += (character == "[") - (character == "]")
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


class _Unknown:
    """Stands for a type that is not known here."""


def _members(hint: Any) -> tuple[Any, ...]:
    """Return the types that a value may have."""
    if get_origin(hint) is Annotated:
        return _members(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return tuple(member for each in get_args(hint) for member in _members(each))
    return (hint,)


@dataclass(frozen=True)
class _Reader:
    """Turns the value of one key into what a field of that type takes."""

    document: Document
    at: Path

    def read(self, members: tuple[Any, ...], value: object) -> Any:
        """Return the value; what fits none of the types is left for the settings to refuse."""
        if value is False and NoneType in members and bool not in members:
            return None  # TOML has no word for it
        if isinstance(value, dict):
            return self._table(members, value)
        if isinstance(value, list):
            return self._array(members, value)
        if isinstance(value, str):
            return self._text(members, value)
        return value

    def _table(self, members: tuple[Any, ...], value: dict[str, Any]) -> Any:
        kinds = [each for each in members if isinstance(each, type) and is_dataclass(each)]
        if not kinds or any(get_origin(each) is dict or each is dict for each in members):
            return value
        names = [{field.name for field in fields(kind)} for kind in kinds]
        best = max(range(len(kinds)), key=lambda index: len(names[index] & value.keys()))
        return patch_of(kinds[best], value, self.document, self.at)

    def _array(self, members: tuple[Any, ...], values: list[Any]) -> Any:
        if Any in members:
            return values
        elements = tuple(
            inner
            for member in members
            for inner in (_members(get_args(member)[0]) if _is_array(member) else (member,))
        )
        return tuple(
            _Reader(self.document, (*self.at, str(index))).read(elements, value)
            for index, value in enumerate(values)
        )

    def _text(self, members: tuple[Any, ...], value: str) -> Any:
        for member in members:
            if isinstance(member, type) and issubclass(member, Enum):
                try:
                    return member(value)
                except ValueError:
                    continue
        if any(_is_callable(member) for member in members) and _FUNCTION.fullmatch(value):
            return self._imported(value)
        return value

    def _imported(self, dotted: str) -> Any:
        """Return what ``package.module:name`` stands for."""
        depth = len(self.at) - (2 if self.at[-1].isdigit() else 1)
        where = f"{_shown(self.at[:depth])} {self.at[depth]} = {as_toml(dotted)}"
        if not self.document.may_name_functions:
            raise self.document.wrong(
                self.at,
                f"{where}: everybody may write this file, so what it names is not imported; "
                "take that permission away (chmod o-w)",
            )
        if not self.document.imports:
            return _not_imported
        module, _, name = dotted.partition(":")
        try:
            found: Any = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        except Exception as error:
            raise self.document.wrong(
                self.at, f"{where}: cannot be imported ({type(error).__name__}: {error})"
            ) from error
        return found


def _not_imported(*args: object, **kwargs: object) -> None:
    """Stand for a function whose module is not at hand."""


def _is_array(member: Any) -> bool:
    origin = get_origin(member)
    is_collection = isinstance(origin, type) and issubclass(origin, Collection)
    return is_collection and not issubclass(origin, Mapping) and bool(get_args(member))


def _is_callable(member: Any) -> bool:
    return get_origin(member) in (Callable, type) or member in (Callable, type)
