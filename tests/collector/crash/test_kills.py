"""SIGKILL at random instants: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from crash.books import OFFSETS, Books
from crash.clients import Crew

from fuseboard_collector.remote import RemoteReader

VICTIM = Path(__file__).with_name("victim.py")
CLIENTS = 16
START = time.time_ns() // 1000
LOOK_BACK, FULL_EVERY = 30.0, 25
"""Seconds that each check looks back, and every how many rounds it looks at everything."""


class Victims:
    """Collectors on one data file, one after the other."""

    def __init__(self, path: Path, log: Path) -> None:
        self._path = path
        self._log = log.open("ab")
        self._parent = subprocess.Popen(
            [sys.executable, str(VICTIM)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
        )  # fmt: skip
        self._running: int | None = None
        self.port = 0

    def start(self, port: int) -> str:
        """Have the next one open the file; return its address."""
        assert self._parent.stdin is not None
        self._parent.stdin.write(f"{self._path} {port}\n")
        self._parent.stdin.flush()
        said = {self._hear(), self._hear()}
        assert "open" in said, f"it did not start: {said}"
        self._running = int((said - {"open"}).pop())
        self.port = port
        return f"http://127.0.0.1:{port}"

    def kill(self) -> None:
        """Kill the one that runs."""
        assert self._running is not None
        os.kill(self._running, signal.SIGKILL)
        assert self._hear() == "gone"
        self._running = None

    def _hear(self) -> str:
        assert self._parent.stdout is not None
        return self._parent.stdout.readline().strip()

    def end(self) -> None:
        """Leave no process behind."""
        if self._running is not None:
            self.kill()
        self._parent.communicate()
        self._log.close()


class Served:
    """``fuseboard serve`` on a data folder, with dashboard, alerts and all."""

    def __init__(self, folder: Path, log: Path, port: int) -> None:
        self.port = port
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fuseboard_server", "serve", "--data", str(folder),
                 "--ui-port", "0", "--otlp-http-port", str(port), "--otlp-grpc-port", "off"],
                stdout=file, stderr=file,
            )  # fmt: skip

    def kill(self) -> None:
        """Kill it; returns when it is gone."""
        assert self._process.poll() is None, "it ended by itself"
        self._process.kill()
        self._process.wait(30)


def ask(url: str, data: bytes | None = None) -> Any:
    with urllib.request.urlopen(url, data, timeout=60) as answer:
        return json.load(answer)


def rows(url: str, kind: str, since: int) -> list[dict[str, Any]]:
    """Return what belongs to traces made after an instant, a second more to be sure."""
    reader = RemoteReader(url)
    found: list[dict[str, Any]] = []
    for offset in OFFSETS:
        window = {
            "since": moment(since - offset - 1_000_000),
            "until": moment(time.time_ns() // 1000 - offset),
        }
        found += reader.query(f"export_{kind}", window).to_pylist()
    return found


def moment(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def check(url: str, books: Books, seconds: float | None) -> int:
    """Assemble what waits and hold the store against the books, and its rollups against it."""
    ask(f"{url}/settle", b"")
    assert ask(f"{url}/doubles") == []
    rollups = ask(f"{url}/rollups", b"")
    assert rollups["wrong"] == []
    since = START if seconds is None else time.time_ns() // 1000 - int(seconds * 1e6)
    found = books.check(rows(url, "calls", since), rows(url, "attempts", since), since)
    assert rollups["rows"] or not found
    return found


def at_work(books: Books) -> None:
    """Wait until a request is acknowledged."""
    before, deadline = books.acknowledged, time.monotonic() + 60
    while books.acknowledged == before:
        assert time.monotonic() < deadline, "no request is acknowledged"
        time.sleep(0.005)


def provoke(url: str, books: Books, chance: Random) -> None:
    """Let it live for a while: at work mostly, at times as soon as it is there."""
    if chance.random() < 0.85:
        at_work(books)
        time.sleep(chance.uniform(0.0, 1.2))
    else:
        time.sleep(chance.uniform(0.0, 0.3))
    if chance.random() < 0.25:
        threading.Thread(target=settle, args=[url], daemon=True).start()
        time.sleep(chance.uniform(0.0, 0.05))


def settle(url: str) -> None:
    """Have it in the middle of assembling all that waits."""
    with suppress(OSError):
        ask(f"{url}/settle", b"")


@pytest.fixture
def victims(tmp_path: Path) -> Iterator[Victims]:
    victims = Victims(tmp_path / "fuseboard.duckdb", tmp_path / "victims.log")
    yield victims
    victims.end()


@pytest.fixture
def seed() -> int:
    seed = time.time_ns() % 1_000_000_000
    print(f"seed {seed}")
    return seed


@pytest.fixture
def crew(seed: int) -> Iterator[Crew]:
    crew = Crew(CLIENTS, seed)
    yield crew
    crew.finish()


@pytest.mark.parametrize(
    "kills", [3, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(2400)])]
)
def test_killed_at_random_instants_the_store_agrees_with_what_was_acknowledged(
    victims: Victims, crew: Crew, free_ports: Iterator[int], seed: int, kills: int
) -> None:
    chance, books = Random(seed), crew.books
    url = victims.start(next(free_ports))
    for number in range(1, kills + 1):
        crew.resume(victims.port)
        provoke(url, books, chance)
        victims.kill()
        crew.pause()
        url = victims.start(next(free_ports))
        looked_at = check(url, books, None if number % FULL_EVERY == 0 else LOOK_BACK)
        print(f"kill {number}: {books.acknowledged} requests, {looked_at} calls looked at")
    assert check(url, books, None) > 3 * kills


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_whole_server_killed_under_load_loses_and_doubles_nothing(
    victims: Victims, crew: Crew, free_ports: Iterator[int], seed: int, tmp_path: Path
) -> None:
    """With its own grace time and checkpoints: what it left is looked at between its lives."""
    chance, books = Random(seed), crew.books
    for number in range(1, 9):
        server = Served(tmp_path, tmp_path / "server.log", next(free_ports))
        try:
            crew.resume(server.port)
            at_work(books)
            time.sleep(chance.uniform(0.0, 6.0))
        finally:
            server.kill()
        crew.pause()
        looked_at = check(victims.start(next(free_ports)), books, None)
        victims.kill()
        print(f"kill {number}: {books.acknowledged} requests, {looked_at} calls looked at")
    assert looked_at > 100
