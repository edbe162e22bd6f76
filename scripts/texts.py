"""Keep the catalogues of the dashboard's texts equal to its source.

Adds what is missing, removes what nothing uses, sorts by where texts are used, and says what waits
for a translation; ``--check`` changes nothing. Exit status 1 if a text has no translation, or one
whose placeholders are not those of the English text.
"""

from __future__ import annotations

import argparse
import ast
import string
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fuseboard_dashboard.catalogue import Entry, dump, parse

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "dashboard" / "fuseboard_dashboard"
TEXTS = SOURCE / "texts"
ALERTS = ROOT / "alerts" / "fuseboard_alerts" / "catalogue.py"
"""Its summaries are shown, too: ``t(rule.summary)``."""

ELSEWHERE = ("english", "summary")
"""Attributes whose texts are found where they are written: of marks, and of alert rules."""
TRANSLATED = {"t": 1, "later": 1, "n": 2, "Mark": 1}
"""What takes texts → how many; ``Mark`` gives its label in the viewer's language."""


@dataclass(frozen=True, slots=True)
class Use:
    """One place where a text is used.

    Attributes:
        where: Module and line.
        one: The English text; None where it is no literal.
        many: The text for several things, for counted ones.
    """

    where: str
    one: str | None
    many: str | None = None


def uses(path: Path) -> Iterator[Use]:
    """Yield the texts that a module passes to what translates them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = called(node)
        if name not in TRANSLATED or _has_its_text_elsewhere(node):
            continue
        where = f"{path.relative_to(SOURCE)}:{node.lineno}"
        texts = [_literal(argument) for argument in node.args[: TRANSLATED[name]]]
        if len(texts) < TRANSLATED[name] or None in texts:
            yield Use(where, None)
        else:
            yield Use(where, *texts)


def _has_its_text_elsewhere(node: ast.Call) -> bool:
    """Tell whether a call is about a name from outside, or about words that are found elsewhere."""
    is_foreign = any(keyword.arg == "is_foreign" for keyword in node.keywords)
    first = node.args[0] if node.args else None
    return is_foreign or (isinstance(first, ast.Attribute) and first.attr in ELSEWHERE)


def called(node: ast.Call) -> str:
    """Return the name of what is called, without what it belongs to; nothing for an expression."""
    of = node.func
    return of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""


def _literal(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def summaries(path: Path = ALERTS) -> Iterator[Use]:
    """Yield what the alert catalogue says of each rule in one sentence."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "summary":
            yield Use(f"{path.parent.name}/{path.name}:{node.lineno}", _literal(node.value))


def all_uses() -> list[Use]:
    """Return the texts of the dashboard, module by module in the order of their names."""
    modules = sorted(path for path in SOURCE.rglob("*.py") if path.name != "language.py")
    return [*(use for path in modules for use in uses(path)), *summaries()]


def placeholders(text: str) -> set[tuple[str | None, str | None, str | None]]:
    """Return what a text leaves to be filled in: name, format and conversion of each."""
    parts = string.Formatter().parse(text)
    return {(name, form, conversion) for _, name, form, conversion in parts if name is not None}


def ambiguous(found: list[Use]) -> list[str]:
    """Return a sentence for each text that is counted in two ways: gettext has room for one."""
    ways: dict[str, set[str]] = {}
    for use in found:
        if use.one is not None and use.many is not None:
            ways.setdefault(use.one, set()).add(use.many)
    return [f"{one!r} has several texts for many: {sorted(many)}" for one, many in ways.items()
            if len(many) > 1]  # fmt: skip


def renewed(entries: list[Entry], found: list[Use]) -> list[Entry]:
    """Return a catalogue's entries for the texts that are used, in the order of their use."""
    header, *old = entries
    known = {entry.one: entry for entry in old}
    wanted: dict[str, Entry] = {}
    for use in found:
        if use.one is None:
            continue
        module = f"#: {use.where.partition(':')[0]}"
        entry = wanted.get(use.one) or replace(
            known.get(use.one, Entry(use.one)), many=None, comments=_notes(known.get(use.one))
        )
        many = use.many if entry.many is None else entry.many
        if module not in entry.comments:
            entry = replace(entry, comments=(*entry.comments, module))
        wanted[use.one] = replace(entry, many=many)
    return [header, *wanted.values()]


def _notes(entry: Entry | None) -> tuple[str, ...]:
    """Return what translators wrote beside a text."""
    comments = entry.comments if entry else ()
    return tuple(line for line in comments if not line.startswith("#:"))


def faults(entries: list[Entry]) -> list[str]:
    """Return what is wrong with a catalogue's translations, a sentence each."""
    wrong = []
    for entry in entries[1:]:
        if not all(entry.forms):
            wrong.append(f"not translated: {entry.one!r}")
            continue
        english = placeholders(entry.one if entry.many is None else entry.many)
        for form in entry.forms:
            try:
                same = placeholders(form) == english
            except ValueError:
                same = False
            if not same:
                wrong.append(f"other placeholders than {entry.many or entry.one!r}: {form!r}")
    return wrong


def main() -> int:
    """Bring every catalogue up to date, and say what is left to do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    found = all_uses()
    wrong = [f"{use.where}: no literal text" for use in found if use.one is None]
    wrong += ambiguous(found)
    for path in sorted(TEXTS.glob("*.po")):
        before = path.read_text(encoding="utf-8")
        entries = renewed(parse(before, str(path)), found)
        after = dump(entries)
        wrong += [f"{path.name}: {words}" for words in faults(entries)]
        if check and after != before:
            wrong.append(f"{path.name}: differs from the source; run `make texts`")
        elif after != before:
            path.write_text(after, encoding="utf-8")
        print(f"{path.name}: {len(entries) - 1} texts")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
