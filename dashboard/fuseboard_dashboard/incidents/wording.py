"""Sentences with foreign names in them, safe in HTML and in Markdown.

A sentence is a text in which :func:`named` marked the names: HTML escapes all of it, Markdown
writes names as code, where neither markup nor mentions of people or issues are read.
"""

from __future__ import annotations

import re
from typing import Final

from fuseboard_dashboard import markup

_OPEN, _CLOSE = "\x02", "\x03"
_NAMES: Final = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")
_BACKTICKS: Final = re.compile(r"`+")
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|~#$!])")


def named(name: object, limit: int = markup.SHOWN_LENGTH) -> str:
    """Return a name from outside, marked as one, on one line and cut in the middle if long."""
    text = "".join(c if c.isprintable() else " " for c in str(name))
    return f"{_OPEN}{markup.shorten(text, limit)}{_CLOSE}"


def plain(sentence: str) -> str:
    """Return a sentence without the marks."""
    return _NAMES.sub(r"\1", sentence)


def html(sentence: str) -> str:
    """Return a sentence as markup."""
    parts = _NAMES.split(sentence)  # every second one is a name
    return "".join(
        f'<b class="fb-break">{markup.esc(part)}</b>' if place % 2 else markup.esc(part)
        for place, part in enumerate(parts)
    )


def markdown(sentence: str) -> str:
    """Return a sentence as one line of Markdown."""
    parts = _NAMES.split(sentence)
    return "".join(
        code(part) if place % 2 else _SPECIAL.sub(r"\\\1", " ".join(part.split("\n")))
        for place, part in enumerate(parts)
    )


def code(text: str) -> str:
    """Return a text as code of Markdown, whatever it holds."""
    if not text.strip():
        return "` `"
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(text)), default=0))
    pad = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{pad}{text}{pad}{fence}"
