"""Catalogues of translations: gettext's ``.po`` files, read and written.

Of a ``.po`` file this takes what a catalogue of ours holds: comments, ``msgid``, ``msgid_plural``,
``msgstr``, ``msgstr[n]``, and the header's ``Plural-Forms``.
"""

from __future__ import annotations

import ast
import gettext
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_LINE: Final = re.compile(r'(?:(msgid|msgid_plural|msgstr|msgstr\[\d+\])\s+)?(".*")')
_PLURAL: Final = re.compile(r"plural\s*=\s*([^;]+)")
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\t": r"\t"})


class CatalogueError(ValueError):
    """A catalogue cannot be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One text with its translation.

    Attributes:
        one: The English text; of a counted text the one for exactly one thing.
        many: The English text for any other number; None where nothing is counted.
        forms: The translations, one per plural form; empty texts are not translated yet.
        comments: Lines for translators, each with its ``#``.
    """

    one: str
    many: str | None = None
    forms: tuple[str, ...] = ("",)
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The texts of one language.

    Attributes:
        forms: English text → its translations, by plural form.
        plural: Returns which of them a number takes.
    """

    forms: Mapping[str, tuple[str, ...]]
    plural: Callable[[int], int]

    def text(self, english: str) -> str | None:
        """Return the translation of a text; None where there is none."""
        return next(iter(self.forms.get(english, ())), None) or None

    def counted(self, one: str, count: int) -> str | None:
        """Return the translation of a counted text for a number; None where there is none."""
        forms, place = self.forms.get(one, ()), self.plural(int(count))
        return (forms[place] or None) if 0 <= place < len(forms) else None


@dataclass(slots=True)
class _Draft:
    comments: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def entry(self) -> Entry:
        forms = [text for key, text in self.texts.items() if key.startswith("msgstr")]
        many = self.texts.get("msgid_plural")
        return Entry(self.texts["msgid"], many, tuple(forms), tuple(self.comments))


def load(path: Path) -> Catalogue:
    """Return the catalogue in a file.

    Raises:
        CatalogueError: If the file is no catalogue.
    """
    header, *entries = parse(path.read_text(encoding="utf-8"), str(path))
    found = _PLURAL.search(header.forms[0])
    plural = gettext.c2py(found[1].strip() if found else "n != 1")
    return Catalogue({entry.one: entry.forms for entry in entries}, plural)


def parse(text: str, name: str = "catalogue") -> list[Entry]:
    """Return the entries of a catalogue, the header first.

    Args:
        text: Of a ``.po`` file.
        name: For messages.

    Raises:
        CatalogueError: If a line makes no sense, or an English text comes twice.
    """
    drafts: list[_Draft] = [_Draft()]
    last = ""
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line.startswith("#") or not line:
            if drafts[-1].texts:
                drafts.append(_Draft())
            drafts[-1].comments += [line] if line else []
            continue
        found = _LINE.fullmatch(line)
        if found is None or not (found[1] or last):
            raise CatalogueError(f"{name}, line {number}: {line!r} is no line of a catalogue")
        if found[1] == "msgid" and drafts[-1].texts:
            drafts.append(_Draft())
        last = found[1] or last
        texts = drafts[-1].texts
        texts[last] = texts.get(last, "") + _unquoted(found[2], f"{name}, line {number}")
    return _unique([draft.entry() for draft in drafts if "msgid" in draft.texts], name)


def _unquoted(quoted: str, where: str) -> str:
    try:
        # The escapes of C that gettext writes are among Python's.
        value = ast.literal_eval(quoted)
    except (SyntaxError, ValueError) as fault:
        raise CatalogueError(f"{where}: {quoted} is no quoted text") from fault
    return str(value)


def _unique(entries: list[Entry], name: str) -> list[Entry]:
    if not entries or entries[0].one:
        raise CatalogueError(f'{name} has no header: its first entry must be msgid ""')
    seen: set[str] = set()
    for entry in entries:
        if entry.one in seen:
            raise CatalogueError(f"{name}: {entry.one!r} comes twice")
        seen.add(entry.one)
    return entries


def dump(entries: Iterable[Entry]) -> str:
    """Return entries, the header first, as the text of a ``.po`` file."""
    return "\n".join(_block(entry) for entry in entries)


def _block(entry: Entry) -> str:
    lines = [*entry.comments, *_field("msgid", entry.one)]
    if entry.many is None:
        lines += _field("msgstr", entry.forms[0])
    else:
        lines += _field("msgid_plural", entry.many)
        for place, form in enumerate(entry.forms):
            lines += _field(f"msgstr[{place}]", form)
    return "".join(f"{line}\n" for line in lines)


def _field(key: str, text: str) -> list[str]:
    """Return the lines of one text; only one of several lines is broken, at their ends."""
    pieces = text.splitlines(keepends=True)
    if len(pieces) < 2:
        return [f'{key} "{text.translate(_ESCAPES)}"']
    return [f'{key} ""', *(f'"{piece.translate(_ESCAPES)}"' for piece in pieces)]
