"""A real browser on real demo data: the demo runs, ends, and its data folder is served."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

FUSEBOARD = Path(sys.executable).parent / "fuseboard"
DEMO_SECONDS = 70
CHROMIUM_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Board:
    """A served data folder."""

    ui_url: str
    otlp_url: str

    def export(self, kind: str) -> list[dict[str, Any]]:
        """Return what ``fuseboard export`` says, the independent view of the same data."""
        done = subprocess.run(
            [str(FUSEBOARD), "export", kind, "--collector", self.otlp_url, "--format", "jsonl"],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return [json.loads(line) for line in done.stdout.splitlines()]


def serve(data: Path, log: Path) -> Iterator[Board]:
    """Serve a data folder until the fixture ends."""
    ui_port, otlp_port = free_port(), free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(FUSEBOARD), "serve", "--data", str(data), "--ui-port", str(ui_port),
             "--otlp-http-port", str(otlp_port)],
            stdout=output, stderr=output,
        )  # fmt: skip
    try:
        board = Board(f"http://127.0.0.1:{ui_port}", f"http://127.0.0.1:{otlp_port}")
        wait_for_ready(board, process, log)
        yield board
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for_ready(board: Board, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{board.otlp_url}/readyz", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the server is not ready: {log.read_text()}")


@pytest.fixture(scope="session")
def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the demo once and return the data folder that it filled."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [str(FUSEBOARD), "demo", "--data", str(folder / "data"), "--ui-port", str(free_port()),
         "--otlp-http-port", str(free_port()), "--speed", "8", "--for", f"{DEMO_SECONDS}s"],
        capture_output=True, text=True, timeout=DEMO_SECONDS + 90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "data"


@pytest.fixture(scope="session")
def board(demo_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """Serve the demo's data, at rest."""
    yield from serve(demo_data, tmp_path_factory.mktemp("log") / "serve.log")


@pytest.fixture(scope="session")
def empty_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    """Serve a new data folder."""
    folder = tmp_path_factory.mktemp("empty")
    yield from serve(folder / "data", folder / "serve.log")


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


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    """Try both colour schemes."""
    return str(request.param)


@dataclass
class Viewer:
    """One browser window and everything it complained about."""

    page: Page
    complaints: list[str]

    def open(self, url: str) -> None:
        """Open a page and wait until it is drawn and calm."""
        self.page.goto(url, wait_until="domcontentloaded")
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is being drawn any more."""
        self.page.wait_for_selector(".fb-head", timeout=60_000)
        self.page.wait_for_function(
            """() => !document.querySelector('[data-testid="stSkeleton"]')
            && !document.querySelector('[data-testid="stStatusWidget"]')
            && !document.querySelector('[data-stale="true"]')
            && document.querySelector('[data-test-script-state]')
                ?.getAttribute('data-test-script-state') !== 'running'""",
            timeout=60_000,
        )

    def assert_is_sound(self) -> None:
        """Fail on exception boxes, failed panels, console errors and horizontal overflow."""
        for box in ('[data-testid="stException"]', '[data-testid="fb-problem"]'):
            assert self.page.locator(box).all_inner_texts() == []
        assert self.complaints == []
        overflow = self.page.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0

    def stats(self) -> dict[str, float | None]:
        """Return the headline numbers by name."""
        found = self.page.locator('[data-testid="fb-stat"]').all()
        values = {s.get_attribute("data-stat"): s.get_attribute("data-value") for s in found}
        return {str(name): float(value) if value else None for name, value in values.items()}

    def window(self) -> tuple[str, str]:
        """Return the ends of the window that the page is about, RFC 3339."""
        hook = self.page.locator('[data-testid="fb-window"]').first
        return str(hook.get_attribute("data-since")), str(hook.get_attribute("data-until"))


def new_viewer(context: BrowserContext) -> Viewer:
    """Open a window that remembers complaints of the console."""
    page = context.new_page()
    complaints: list[str] = []

    def note(message: ConsoleMessage) -> None:
        # Opened by a deep link, Streamlit finds its base path by asking below the page first.
        is_probe = "/_stcore/" in message.location["url"] and "404" in message.text
        if message.type == "error" and not is_probe:
            complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return Viewer(page, complaints)


@pytest.fixture
def viewer(browser: Browser) -> Iterator[Viewer]:
    """Open a window of 1440 pixels."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, timezone_id="UTC")
    yield new_viewer(context)
    context.close()


@pytest.fixture
def viewer_in_scheme(browser: Browser, scheme: str) -> Iterator[Viewer]:
    """Open a window that prefers a colour scheme."""
    context = browser.new_context(
        viewport={"width": 1440, "height": 1000}, timezone_id="UTC", color_scheme=scheme
    )
    yield new_viewer(context)
    context.close()
