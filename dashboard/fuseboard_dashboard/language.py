"""Texts of the dashboard in the viewer's language: English in the source, the rest by catalogue.

Every text a viewer reads goes through :func:`t` or :func:`n`, its English words as a literal, so
that a catalogue can be kept complete by reading the source; a text that is defined before anybody
reads it is wrapped by :func:`later`. Names that come from outside (tools, regions, error types)
are values and never translated.

A catalogue is gettext's ``texts/<language>.po``: every translator's tool opens it, its English
stands beside its translation in a diff, and lines merge. It is read as it is, once per process:
a compiled ``.mo`` would be a second copy that falls behind, and the standard library reads nothing
else of gettext's; Babel and polib do, but what we need of them is a module of ours
(:mod:`fuseboard_dashboard.catalogue`), and one dependency less to trust. JSON or TOML would need no
parser, but leave translators alone with a text editor and plural forms to us.

The language is the one that the viewer chose (in the sidebar, or ``lang=zh`` in the URL), else the
browser's, else English. It belongs to a session: two viewers of one process read two languages.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Final

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from fuseboard_dashboard import catalogue
from fuseboard_dashboard.catalogue import Catalogue

logger = logging.getLogger("fuseboard.dashboard")

ENGLISH: Final = "en"
LANGUAGES: Final[dict[str, str]] = {ENGLISH: "English", "zh": "简体中文"}
"""By their names in the URL, each as its own readers call it."""

TAGS: Final = {ENGLISH: "en", "zh": "zh-Hans"}
"""What a browser is told: it chooses fonts, voices and offers to translate by them."""

LANGUAGE: Final = "lang"
"""The URL parameter."""
CHOSEN: Final = "fb_language"
"""What the viewer chose, in the session; empty = as the browser."""
_WRITTEN: Final = "fb_language_written"
_TRADITIONAL: Final = frozenset({"hant", "tw", "hk", "mo"})


class _Memo(threading.local):
    language: str | None = None
    chosen: str | None = None


_memo = _Memo()
"""Of the run of a page that this thread is drawing."""

_speaking: ContextVar[str | None] = ContextVar("fuseboard_language", default=None)


def t(english: str, **values: object) -> str:
    """Return a text in the viewer's language.

    Args:
        english: The text, a literal, with ``{name}`` for each value.
        values: What is filled in.
    """
    found = _catalogue(current())
    return _filled(found.text(english) if found else None, english, values)


def n(one: str, many: str, count: int, **values: object) -> str:
    """Return the text for one or for several things; ``{count}`` is filled in, too.

    Args:
        one: The English text for exactly one thing, a literal.
        many: The English text for any other number, a literal.
        count: How many there are.
        values: What else is filled in.
    """
    found = _catalogue(current())
    english = one if count == 1 else many
    return _filled(found.counted(one, count) if found else None, english, values | {"count": count})


def later(english: str) -> Callable[[], str]:
    """Return a function that gives a text in the language of whoever reads it then.

    For constants: an import happens once, in nobody's language.

    Args:
        english: The text, a literal without values.
    """
    return lambda: t(english)


def _filled(translated: str | None, english: str, values: dict[str, object]) -> str:
    if translated is not None:
        try:
            return translated.format(**values) if values else translated
        except (LookupError, ValueError, AttributeError):
            # A translator's slip must not take a page down; a test finds it in our own catalogue.
            logger.warning("the translation %r cannot be filled in", translated)
    return english.format(**values) if values else english


@cache
def _catalogue(language: str) -> Catalogue | None:
    """Return a language's texts; None for English, and where they can't be read."""
    if language == ENGLISH:
        return None
    try:
        return catalogue.load(Path(__file__).parent / "texts" / f"{language}.po")
    except (OSError, ValueError):
        logger.exception("texts in %s can't be read; showing English", LANGUAGES[language])
        return None


def current() -> str:
    """Return the language of whoever reads: a key of ``LANGUAGES``."""
    return _speaking.get() or _memo.language or chosen() or _of_browser()


def remember() -> None:
    """Find out once for this run of a page what its texts are in.

    Asking Streamlit for each of a thousand texts took 49 microseconds each, remembering takes 2.
    A run has a thread of its own session.
    """
    _memo.chosen = chosen()
    _memo.language = _memo.chosen or _of_browser()


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Give all texts of the block in one language, also where nobody looks at a page.

    Args:
        language: A key of ``LANGUAGES``.
    """
    token = _speaking.set(language)
    try:
        yield
    finally:
        _speaking.reset(token)


def chosen() -> str:
    """Return what this session's viewer chose, or nothing."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return ""
    value = st.session_state.get(CHOSEN)
    return value if value in LANGUAGES else ""


def pairs() -> list[tuple[str, str]]:
    """Return the URL parameters that keep the viewer's choice."""
    choice = chosen() if _memo.chosen is None else _memo.chosen
    return [(LANGUAGE, choice)] if choice else []


def follow_url(raw: Sequence[str]) -> None:
    """Take the language from the URL unless this session wrote it there itself.

    A URL without one on a session that has one comes from a bare link: the choice stays.

    Args:
        raw: Values of the parameter; the last one counts.
    """
    asked = raw[-1] if raw else ""
    if asked in LANGUAGES and asked != st.session_state.get(_WRITTEN):
        st.session_state[CHOSEN] = asked
    st.session_state[_WRITTEN] = chosen()
    remember()


def _of_browser() -> str:
    if get_script_run_ctx(suppress_warning=True) is None:
        return ENGLISH
    return match(st.context.locale or "")


def match(tag: str) -> str:
    """Return the language for a browser's tag, as ``zh-Hans-CN``; English if we have none.

    Readers of Traditional Chinese get English: another script is no translation.
    """
    first, *rest = tag.replace("_", "-").casefold().split("-")
    if first not in LANGUAGES or (first == "zh" and _TRADITIONAL.intersection(rest)):
        return ENGLISH
    return first
