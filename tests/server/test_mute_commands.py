"""`alerts mute|unmute|mutes`, on a folder at rest and on a running server."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from fuseboard.clock import SystemClock
from fuseboard_alerts.mutes import load, save
from fuseboard_collector.receiver import Intake
from fuseboard_collector.remote import RemoteReader
from fuseboard_collector.store import Store, open_store
from fuseboard_dashboard import source
from fuseboard_server.cli import root
from fuseboard_server.composition import build_collector
from fuseboard_server.exits import Exit
from fuseboard_server.presence import Presence
from fuseboard_server.public import Front
from fuseboard_server.remote_dashboard import About
from fuseboard_server.settings import DATA_FILE, ServeSettings

NAME = "ToolCallSlow"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(root, ["alerts", *arguments], prog_name="fuseboard")
    return result.exit_code, result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_store(tmp_path / DATA_FILE, retention_days=None).close()
    return tmp_path


def opened(folder: Path) -> Store:
    return open_store(folder / DATA_FILE, retention_days=None)


def test_mute_list_and_unmute_on_a_folder_that_no_server_runs_on(folder: Path) -> None:
    place = ("--data", str(folder))
    assert run("mutes", *place) == (0, "no alert is muted\n")
    code, text = run("mute", NAME, "--reason", "known", "--for", "30m", "--tool", "weather",
                     "--by", "Ann", *place)  # fmt: skip
    assert code == 0, text
    mute_id = text.split()[0]
    assert run("mutes", *place)[1] == text
    assert "ToolCallSlow  any severity  weather  any region  until " in text
    assert text.endswith("by Ann  known\n")
    store = opened(folder)
    (one,) = load(store, datetime.now(UTC))
    store.close()
    assert timedelta(minutes=29) < one.ends - datetime.now(UTC) <= timedelta(minutes=30)
    assert run("unmute", mute_id, *place) == (0, f"not muted any more: {mute_id}\n")
    assert run("mutes", *place) == (0, "no alert is muted\n")
    assert run("unmute", mute_id, *place)[0] == 0  # it is as wanted
    code, text = run("unmute", "0" * 32, *place)
    assert code == Exit.FAILED
    assert "no mute" in text


def test_one_mute_too_many_is_refused_in_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuseboard_alerts.mute_book.MOST", 0)
    code, text = run("mute", NAME, "--reason", "known", "--data", str(folder))
    assert code == Exit.USAGE
    assert "not muted: 0 mutes are in force" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("Slow", "--reason", "x"), "did you mean 'ToolCallSlow'"),
     ((NAME, "--reason", " "), "needs a reason"),
     ((NAME, "--reason", "x", "--until", "2020-01-01T00:00:00Z"), "in the past"),
     ((NAME, "--reason", "x", "--until", "tomorrow"), "'tomorrow' is no moment"),
     ((NAME, "--reason", "x", "--until", "2099-01-01T00:00:00Z"), "more than 30 days"),
     ((NAME, "--reason", "x", "--for", "1h", "--until", "2099-01-01T00:00:00Z"), "not both"),
     ((NAME, "--reason", "x", "--severity", "fatal"), "no severity 'fatal'"),
     ((NAME,), "--reason")],
)  # fmt: skip
def test_what_makes_no_sense_is_a_usage_error(
    folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    code, text = run("mute", *arguments, "--data", str(folder))
    assert code == Exit.USAGE, text
    assert words in text


def test_words_that_would_move_the_cursor_are_shown_plainly(folder: Path) -> None:
    """Those of a row of before, too: nothing was refused then."""
    place = ("--data", str(folder))
    code, text = run("mute", NAME, "--reason", "x", "--tool", "a\rb", *place)
    assert code == Exit.USAGE
    assert "tool has a character that can't be shown" in text
    assert "x [2Jy" in run("mute", NAME, "--reason", "x\x1b[2Jy", *place)[1]
    store = opened(folder)
    (kept,) = load(store, datetime.now(UTC))
    save(store, replace(kept, id="0" * 32, reason="o\x1bld", tool="a\rb"))
    store.close()
    text = run("mutes", *place)[1]
    assert "\x1b" not in text
    assert "\r" not in text
    assert "o ld" in text


@pytest.mark.parametrize(
    ("token", "takes", "writes"),
    [("secret", "with a token", True), (None, "with a token", False), (None, "from here", True),
     (None, None, False), ("secret", None, True)],
)  # fmt: skip
def test_a_dashboard_of_its_own_mutes_where_the_collector_lets_it(
    token: str | None, takes: str | None, writes: bool
) -> None:
    """The third is a collector without tokens, the fourth one that is away or older."""
    front = Front("http://127.0.0.1:8501", None, None)
    about = About(RemoteReader("http://127.0.0.1:1"), "http://127.0.0.1:1", front, None, token)
    before = source._configured[:]
    try:
        about.tell({"takes_mutes": takes} if takes else None)
        assert (source.current().mutes is not None) == writes
    finally:
        source._configured[:] = before


def test_a_running_server_says_how_it_takes_mutes_and_takes_them(tmp_path: Path) -> None:
    """Through the API that its own port has, with the token for sending alone."""
    store = open_store(tmp_path / DATA_FILE, retention_days=None)
    settings = ServeSettings(data=tmp_path, token="sending", read_token="reading")
    here = Presence(1, "http://127.0.0.1:8501", "http://127.0.0.1:4318", "")
    app = TestClient(build_collector(settings, store, here, Intake(store, SystemClock())))
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    body = {"alert": NAME, "reason": "known", "ends": ends}
    codes = [
        app.post("/api/v1/mutes", json=body, headers={"authorization": f"Bearer {given}"})
        for given in ("reading", "sending")
    ]
    assert [answer.status_code for answer in codes] == [401, 200]
    found = app.get("/api/v1/stats", headers={"authorization": "Bearer reading"}).json()
    assert found["takes_mutes"] == "with a token"
    assert [one.reason for one in load(store, datetime.now(UTC))] == ["known"]
    store.close()
