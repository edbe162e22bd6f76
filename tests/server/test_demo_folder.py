"""Folders of killed demos are removed by the next one; those in use and others' are not."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuseboard_server.demo.folder import LOCK_FILE, PREFIX, demo_folder, sweep

OWNER = """
import time
from fuseboard_server.demo.folder import demo_folder
with demo_folder() as folder:
    (folder / "data").mkdir()
    (folder / "data" / "file").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def owner() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process with a folder of its own."""
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        folder = Path(process.stdout.readline().strip())
    yield process, folder
    process.kill()
    process.wait(20)


def test_a_folder_is_private_and_removed_at_the_end(temporary: Path) -> None:
    with demo_folder() as folder:
        assert folder.parent == temporary
        assert folder.stat().st_mode & 0o077 == 0
        assert [path.name for path in folder.iterdir()] == [LOCK_FILE]
    assert not list(temporary.iterdir())


def test_it_is_removed_after_an_error(temporary: Path) -> None:
    with pytest.raises(RuntimeError), demo_folder():
        raise RuntimeError
    assert not list(temporary.iterdir())


def test_the_folder_of_a_killed_owner_goes_with_the_next_start(
    owner: tuple[subprocess.Popen[str], Path],
) -> None:
    process, left = owner
    with demo_folder():
        assert (left / "data" / "file").exists(), "its owner lives"
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    assert left.exists()
    with demo_folder() as mine:
        assert not left.exists()
        assert mine.exists()


def test_what_is_no_folder_of_a_demo_stays(temporary: Path) -> None:
    elsewhere = temporary / "mine"
    elsewhere.mkdir()
    (elsewhere / LOCK_FILE).write_text("")
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    (temporary / f"{PREFIX}file").write_text("")
    (temporary / f"{PREFIX}starting").mkdir()  # its owner has not locked it yet
    before = sorted(temporary.rglob("*"))
    sweep()
    assert sorted(temporary.rglob("*")) == before
