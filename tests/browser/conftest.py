"""A real browser on three stores: demo data, nothing, and what wants to break the pages."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright
from tests.browser import hostile
from tests.browser.recount import Records
from tests.browser.viewer import Viewer, new_viewer
from tests.processes import FUSEBOARD, Server, free_port, wait_until

DEMO_SECONDS = 70
CHROMIUM_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def run_demo(data: Path) -> None:
    """Run the demo into a data folder and wait for its end."""
    done = subprocess.run(
        [str(FUSEBOARD), "demo", "--data", str(data), "--ui-port", str(free_port()),
         "--otlp-http-port", str(free_port()), "--speed", "8", "--for", f"{DEMO_SECONDS}s"],
        capture_output=True, text=True, timeout=DEMO_SECONDS + 90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the demo once for all processes of this run and return a copy of what it stored."""
    own = tmp_path_factory.mktemp("demo")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        run_demo(own / "data")
        return own / "data"
    shared = tmp_path_factory.getbasetemp().parent / "shared-demo"
    done = shared / "done"
    try:
        shared.mkdir()
    except FileExistsError:
        wait_until(done.exists, seconds=DEMO_SECONDS + 90, what="the demo of another process")
    else:
        run_demo(shared / "data")
        done.touch()
    shutil.copytree(shared / "data", own / "data")
    return own / "data"


@pytest.fixture(scope="session")
def board(demo_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the demo's data, at rest."""
    server = Server(demo_data, tmp_path_factory.mktemp("log") / "serve.log")
    yield server.start()
    server.end()


@pytest.fixture(scope="session")
def calls(board: Server) -> Records:
    """Return the demo's calls as exported."""
    return board.export("calls")


@pytest.fixture(scope="session")
def transitions(board: Server) -> Records:
    """Return the demo's transitions as exported."""
    return board.export("transitions")


@pytest.fixture(scope="session")
def empty_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a new data folder."""
    folder = tmp_path_factory.mktemp("empty")
    server = Server(folder / "data", folder / "serve.log")
    yield server.start()
    server.end()


@pytest.fixture(scope="session")
def hostile_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a store that wants to break the pages."""
    folder = tmp_path_factory.mktemp("hostile")
    server = Server(hostile.build(folder / "data", datetime.now(UTC)), folder / "serve.log")
    yield server.start()
    server.end()


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Callable[[str], Server]:
    """Return the server of a store by its name: ``demo``, ``empty`` or ``hostile``."""
    fixtures = {"demo": "board", "empty": "empty_board", "hostile": "hostile_board"}

    def get(store: str) -> Server:
        found: Server = request.getfixturevalue(fixtures[store])
        return found

    return get


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    """Run Chromium without a screen.

    For one module only: until Playwright ends, its event loop counts as running in this thread,
    and no test of a coroutine can start one of its own.
    """
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=str(chromium), args=CHROMIUM_OPTIONS, headless=True
        )
        yield running
        running.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """Share what the browser caches between the windows of a module: scripts load once."""
    shared = browser.new_context(viewport={"width": 1440, "height": 1000}, timezone_id="UTC")
    yield shared
    shared.close()


@pytest.fixture
def viewer(context: BrowserContext) -> Iterator[Viewer]:
    """Open a window of 1440 pixels; each is a session of its own."""
    window = new_viewer(context)
    yield window
    window.page.close()


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Any:
    """Try both colour schemes."""
    return request.param


@pytest.fixture
def viewer_in_scheme(viewer: Viewer, scheme: Any) -> Viewer:
    """Open a window that prefers a colour scheme."""
    viewer.page.emulate_media(color_scheme=scheme)
    return viewer
