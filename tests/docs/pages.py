"""How tests read pages: sections, tables, blocks of code, anchors."""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "alerts" / "runbooks").glob("*.md")),
]
POLICY_PAGES = {
    path.stem: path.read_text()
    for path in sorted((ROOT / "docs" / "policies").glob("*.md"))
    if path.stem != "README"
}
OVERVIEW = (ROOT / "docs" / "policies" / "README.md").read_text()
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
CLASSIFICATION = (ROOT / "docs" / "classification.md").read_text()


def name_of(page: Path) -> str:
    """Return a page's path in the repository."""
    return str(page.relative_to(ROOT))


def section(text: str, heading: str) -> str:
    """Return what stands under a heading, up to the next one of its level or above."""
    level = heading.split(" ", maxsplit=1)[0]
    prose = without_code(text)
    start = prose.index(f"\n{heading}\n") + len(heading) + 2
    end = re.search(rf"^#{{1,{len(level)}}} ", prose[start:], flags=re.MULTILINE)
    return text[start : start + end.start()] if end else text[start:]


def without_code(text: str) -> str:
    """Return a page of the same length whose blocks of code are blank."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    return re.sub(r"^```.*?^```$", blank, text, flags=re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    """Return the blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def table(text: str, first_header: str) -> Iterator[list[str]]:
    """Yield the rows of the table whose header begins so, as lists of cells."""
    lines = text.splitlines()
    heads = (
        number
        for number, line in enumerate(lines[:-1])
        if line.startswith(f"| {first_header} |") and lines[number + 1].startswith("|---")
    )
    head = next(heads, None)
    assert head is not None, f"no table begins with {first_header!r}"
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def documented(text: str, first_header: str) -> dict[str, str]:
    """Return the option → default of a table of options."""
    return {name.strip("`"): default.strip("`") for name, default, *_ in table(text, first_header)}


def defaults_of(function: Callable[..., Any]) -> dict[str, str]:
    """Return the parameter → default of a function, as pages show them."""
    signature = inspect.signature(function)
    return {
        name: "required"
        if parameter.default is inspect.Parameter.empty
        else show(parameter.default)
        for name, parameter in signature.parameters.items()
    }


def show(value: object) -> str:
    """Return a default as pages show it."""
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value)


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings have on GitHub."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text()), flags=re.MULTILINE)
    found: set[str] = set()
    for heading in headings:
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        kept = string.ascii_lowercase + string.digits + " -_"
        plain = "".join(c for c in words if c in kept or (c.isalpha() and not c.isascii()))
        anchor = plain.replace(" ", "-")
        number = 0
        while (unique := f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(unique)
    return found
