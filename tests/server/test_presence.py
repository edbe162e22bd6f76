from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuseboard_server import presence
from fuseboard_server.presence import Presence


def note(pid: int, collector: str = "http://127.0.0.1:9") -> Presence:
    return Presence(pid, "http://127.0.0.1:8", collector)


def test_a_note_is_read_back_and_removed_by_its_writer(tmp_path: Path) -> None:
    mine = note(os.getpid())
    presence.announce(tmp_path, mine)
    assert presence.read(tmp_path) == mine
    assert [path.name for path in tmp_path.iterdir()] == [presence.NOTE_FILE]
    presence.withdraw(tmp_path)
    assert presence.read(tmp_path) is None


def test_another_processs_note_is_left_alone(tmp_path: Path) -> None:
    presence.announce(tmp_path, note(1))
    presence.withdraw(tmp_path)
    assert presence.read(tmp_path) == note(1)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": "x"}', '{"pid": 1}'])
def test_a_damaged_note_is_no_note(tmp_path: Path, text: str) -> None:
    (tmp_path / presence.NOTE_FILE).write_text(text)
    assert presence.read(tmp_path) is None


def test_the_note_of_a_dead_or_silent_process_is_stale(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    presence.announce(tmp_path, note(dead.pid))
    assert presence.running(tmp_path) is None
    presence.announce(tmp_path, note(os.getpid()))
    assert presence.running(tmp_path) is None, "nothing listens on port 9"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "nonsense", "", "http://[::1"])
def test_no_answer_from_what_is_no_server(url: str) -> None:
    assert not presence.answers(url)
