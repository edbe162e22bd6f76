"""Waiting for the store is said, and the first call is welcomed."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import pyarrow as pa
import pytest

from fuseboard_collector.store import Batch, Store, ToolCall
from fuseboard_dashboard import empty, refresh
from fuseboard_dashboard.data import CACHE
from fuseboard_dashboard.waiting import waiting, words

from .conftest import FlakyReader, at, html, open_page, serve


class SlowReader(FlakyReader):
    """A reader whose answer to one question takes until somebody lets it go."""

    def __init__(self, reader: Store, slow: str) -> None:
        super().__init__(reader)
        self.slow = slow
        self.let_go = threading.Event()

    def query(self, name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        if name == self.slow:
            assert self.let_go.wait(30)
        return super().query(name, parameters)


def test_a_wait_is_said_with_how_far_it_has_come() -> None:
    heard: list[str] = []
    spoken = threading.Event()

    def say(markup: str) -> None:
        heard.append(markup)
        spoken.set()

    with waiting(say, lambda: 3, patience=0.01):
        assert spoken.wait(10)
    assert "Reading the store, 0 s · 3 answers so far" in heard[0]
    assert 'data-testid="fb-reading"' in heard[0]


def test_a_short_wait_says_nothing() -> None:
    heard: list[str] = []
    with waiting(heard.append, lambda: 0, patience=60):
        pass
    assert heard == []


def test_nothing_is_said_after_the_wait_even_when_it_ends_in_an_error() -> None:
    heard: list[str] = []
    with pytest.raises(ZeroDivisionError), waiting(heard.append, lambda: 0, patience=0.01):
        time.sleep(0.05)
        1 / 0  # noqa: B018
    spoken = len(heard)
    assert spoken
    time.sleep(0.1)
    assert len(heard) == spoken


def test_one_answer_is_one_answer() -> None:
    assert "12 s · 1 answer so far" in words(12.3, 1)


def test_a_page_tells_of_a_slow_store_in_its_head_and_then_of_the_data(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "waiting", lambda say, answers: waiting(say, answers, 0.02))
    reader = SlowReader(store, "page_tools")
    serve(reader)
    said: list[str] = []
    real = refresh.markup.heading

    def heading(title: str, question: str, as_of: str) -> str:
        said.append(as_of)
        reader.let_go.set()
        return real(title, question, as_of)

    monkeypatch.setattr(refresh.markup, "heading", heading)
    app = open_page()
    assert not app.exception
    assert 'data-testid="fb-reading"' in said[0]
    assert 'data-testid="fb-reading"' not in html(app)
    assert "data as of" in html(app)


def test_the_first_call_is_welcomed_once_by_those_who_waited_for_it(empty_store: Store) -> None:
    serve(empty_store)
    waited = open_page()
    assert "Waiting for the first call" in html(waited)
    assert not waited.toast
    empty_store.append(
        Batch(calls=[ToolCall("get_*weather*", end=at(880), region="us-east")])
    ).result(30)
    CACHE.clear()
    waited.run()
    assert [toast.value for toast in waited.toast] == [
        r"The first call has arrived: get\_\*weather\*. Welcome to the board."
    ]
    waited.run()
    assert not waited.toast
    assert not open_page().toast


def test_names_in_a_toast_are_no_markup() -> None:
    assert empty._plain("a<b>[x](y)\n") == r"a\<b\>\[x\]\(y\)"
