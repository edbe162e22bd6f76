from __future__ import annotations

from urllib.parse import quote

import pytest
import streamlit as st
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest
from tests.dashboard.conftest import open_page, serve

from fuseboard_collector.store import Store
from fuseboard_dashboard import source


def shown(
    who: str | None, monkeypatch: pytest.MonkeyPatch, store: Store, **options: bool
) -> AppTest:
    serve(store, **options)
    headers = {} if who is None else {source.VIEWER_HEADER: quote(who)}
    monkeypatch.setattr(ContextProxy, "headers", headers)
    return open_page()


def names(app: AppTest) -> list[str]:
    return [one.proto.body for one in app.get("html") if "fb-visitor" in one.proto.body
            and "<style" not in one.proto.body]  # fmt: skip


@pytest.mark.parametrize("who", ["kim@ops.example", "Jürgen <b>Groß</b>"])
@pytest.mark.parametrize("can_log_out", [True, False])
def test_who_is_logged_in_is_named_and_let_out_where_that_is_ours(
    who: str, can_log_out: bool, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    app = shown(who, monkeypatch, store, has_login=True, can_log_out=can_log_out)
    assert not app.exception
    (body,) = names(app)
    assert who.replace("<", "&lt;").replace(">", "&gt;") in body
    assert ("Log out" in [button.label for button in app.button]) is can_log_out


def test_without_a_login_nobody_is_named_whatever_a_client_sends(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    app = shown("eve", monkeypatch, store, has_login=False, can_log_out=False)
    assert names(app) == []
    assert "Log out" not in [button.label for button in app.button]


def test_logging_out_is_streamlits(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    left: list[bool] = []
    monkeypatch.setattr(st, "logout", lambda: left.append(True))
    app = shown("kim", monkeypatch, store, has_login=True, can_log_out=True)
    assert left == []
    (button,) = [one for one in app.button if one.label == "Log out"]
    button.click().run()
    assert left == [True]
