"""`alerts mute|unmute|mutes`, on a folder at rest and on a running server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from fuseboard_alerts.mutes import load
from fuseboard_collector.store import Store, open_store
from fuseboard_server.cli import root
from fuseboard_server.exits import Exit
from fuseboard_server.settings import DATA_FILE

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
    code, text = run("unmute", mute_id, *place)
    assert code == Exit.FAILED
    assert "no mute" in text


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
    text = run("mute", NAME, "--reason", "x\x1b[2Jy", "--tool", "a\rb", "--data", str(folder))[1]
    assert "\x1b" not in text
    assert "\r" not in text
    assert "x [2Jy" in text
