"""Where `fuseboard export` reads from, in which order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuseboard_collector.store import open_store
from fuseboard_server import presence, reading
from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.settings import DATA_FILE, DEFAULT_COLLECTOR

ELSEWHERE = "http://127.0.0.1:7"


@pytest.fixture
def alive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> set[str]:
    """The addresses at which a server answers."""
    monkeypatch.setenv("FUSEBOARD_DATA", str(tmp_path / "default"))
    addresses: set[str] = set()
    monkeypatch.setattr(presence, "answers", lambda url: url in addresses)
    return addresses


def make(folder: Path, *, owner: str | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    open_store(folder / DATA_FILE).close()
    if owner:
        presence.announce(folder, presence.Presence(os.getpid(), "http://127.0.0.1:8", owner))
    return folder


def source(collector: str | None = None, data: Path | None = None) -> str:
    with reading.source(collector, data) as found:
        place = found.reader.store_id
        assert found.place in {f"the server at {place}", f"the folder {Path(place).parent}"}
        return place


def test_a_named_collector_is_asked_and_nothing_else(alive: set[str], tmp_path: Path) -> None:
    make(tmp_path / "default")
    alive.add(ELSEWHERE)
    assert source(ELSEWHERE) == ELSEWHERE
    with pytest.raises(CommandError, match="fuseboard serve"):
        source("http://127.0.0.1:6")


def test_a_named_folder_is_asked_from_its_owner_or_opened(alive: set[str], tmp_path: Path) -> None:
    folder = make(tmp_path / "mine", owner=ELSEWHERE)
    alive |= {ELSEWHERE, DEFAULT_COLLECTOR}
    assert source(data=folder) == ELSEWHERE
    alive.discard(ELSEWHERE)
    assert source(data=folder) == str(folder / DATA_FILE)


def test_without_either_the_default_folder_then_the_default_server(
    alive: set[str], tmp_path: Path
) -> None:
    folder = make(tmp_path / "default", owner=ELSEWHERE)
    alive |= {ELSEWHERE, DEFAULT_COLLECTOR}
    assert source() == ELSEWHERE
    alive.discard(ELSEWHERE)
    assert source() == DEFAULT_COLLECTOR
    alive.clear()
    assert source() == str(folder / DATA_FILE)


def test_a_folder_without_data_is_left_alone(alive: set[str], tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        source(data=tmp_path / "none")
    assert caught.value.exit_code == Exit.DATA_UNUSABLE
    assert not (tmp_path / "none").exists()


def test_a_folder_that_is_in_use_says_so(alive: set[str], tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    held = open_store(folder / DATA_FILE)
    try:
        with pytest.raises(CommandError) as caught:
            source(data=folder)
    finally:
        held.close()
    assert caught.value.exit_code == Exit.DATA_IN_USE
