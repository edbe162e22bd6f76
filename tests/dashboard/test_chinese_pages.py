"""Every page in Chinese: no panel breaks, and no sentence of ours stays English."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape

import pytest
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest

from fuseboard_collector.store import Store
from fuseboard_dashboard.menu import MENU

from .conftest import open_page, serve

PAGES = [entry.path for entry in MENU]
ENGLISH = re.compile(r"[A-Za-z][A-Za-z'’-]*(?:,? [A-Za-z][A-Za-z'’-]*)+")
"""Two words or more in a row."""

NAMES = re.compile(
    r"503 from https://example.org|Language · 语言|English|Google SRE workbook|Alerting on SLOs"
    r"|fuseboard alerts (?:render|mutes?)|fuseboard dashboard --token|failure ratio"
)
"""Messages and reasons from outside, commands, titles of books; and what finds the way back."""

RUNBOOK = "#### Meaning"
"""Runbooks are documents in English, whoever reads them."""

_CODE = re.compile(r"<style.*?</style>|<pre.*?</pre>|<code.*?</code>", re.DOTALL)
_TITLE = re.compile(r'(?:title|alt|aria-label|placeholder)="([^"]*)"')
_FIGURE_TEXTS = ("text", "name", "hovertemplate", "ticktext", "hovertext")


def shown_by(app: AppTest) -> Iterator[str]:
    """Yield what a viewer may read on a page: texts, tooltips, labels, axes, legends, columns."""
    for element in app.html:
        markup = _CODE.sub(" ", element.value)
        yield from re.split(r"<[^>]*>", markup)
        yield from _TITLE.findall(markup)
    for node in _nodes(app):
        yield from _words(node)


def _nodes(app: AppTest) -> Iterator[dict[str, object]]:
    """Yield every element but markup and code, as the browser gets it."""
    waiting = [app._tree]
    while waiting:
        block = waiting.pop()
        waiting += [child for child in block.children.values() if hasattr(child, "children")]
        for child in block.children.values():
            proto = getattr(child, "proto", None)
            if proto is not None and child.type not in ("html", "code"):
                yield MessageToDict(proto)


def _words(value: object, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _words(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner, key)
    elif isinstance(value, str):
        if key == "spec":
            yield from _of_figure(json.loads(value))
        elif key == "columns":
            yield from _words(json.loads(value))
        elif key in ("label", "help", "placeholder", "body", "options", "text", "content"):
            yield value


def _of_figure(value: object, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _of_figure(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _of_figure(inner, key)
    elif isinstance(value, str) and key in _FIGURE_TEXTS:
        yield value


def english_in(texts: Iterator[str]) -> list[str]:
    own = (text for text in map(unescape, texts) if not text.startswith(RUNBOOK))
    return sorted({text for text in own if ENGLISH.search(NAMES.sub("", text))})


@pytest.mark.parametrize("page", PAGES)
def test_a_page_with_calls_speaks_chinese(page: str, store: Store) -> None:
    serve(store)
    app = open_page(page, {"lang": "zh"})
    assert not app.exception
    assert [e.value for e in app.html if "fb-problem" in e.value] == []
    assert english_in(shown_by(app)) == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_without_calls_speaks_chinese(page: str, empty_store: Store) -> None:
    serve(empty_store)
    app = open_page(page, {"lang": "zh", "tool": "gone", "range": "2h", "to": "yesterday"})
    assert not app.exception
    assert [e.value for e in app.html if "fb-problem" in e.value] == []
    assert english_in(shown_by(app)) == []


def test_english_is_found_where_it_is(store: Store) -> None:
    """The check above is worth something: in English it finds many of each kind."""
    serve(store)
    found = english_in(shown_by(open_page("tool", {"lang": "en", "tool": "alpha"})))
    for text in (
        "Reset filters", "Regions and breakers", "share of calls (%)", "Error rate", "Decided by",
        "Which calls", "All tools", "calls with at least one retry / calls that made an attempt",
    ):  # fmt: skip
        assert text in found
