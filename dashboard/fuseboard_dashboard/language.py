"""Texts of the dashboard in the viewer's language: English in the source, the rest by catalogue.

Every text a viewer reads goes through :func:`t` or :func:`n`, its English words as a literal, so
that a catalogue can be kept complete by reading the source. Names that come from outside (tools,
regions, error types) are values and never translated.
"""

from __future__ import annotations


def t(english: str, **values: object) -> str:
    """Return a text in the viewer's language.

    Args:
        english: The text, a literal, with ``{name}`` for each value.
        values: What is filled in.
    """
    return english.format(**values) if values else english


def n(one: str, many: str, count: int, **values: object) -> str:
    """Return the text for one or for several things; ``{count}`` is filled in, too.

    Args:
        one: The English text for exactly one thing, a literal.
        many: The English text for any other number, a literal.
        count: How many there are.
        values: What else is filled in.
    """
    return (one if count == 1 else many).format(count=count, **values)
