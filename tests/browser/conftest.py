"""A real browser on real demo data: the demo runs, ends, and its data folder is served."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from tests.processes import FUSEBOARD, Server, free_port

DEMO_SECONDS = 70
CHROMIUM_OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


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
def board(demo_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the demo's data, at rest."""
    server = Server(demo_data, tmp_path_factory.mktemp("log") / "serve.log")
    yield server.start()
    server.end()


@pytest.fixture(scope="session")
def empty_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a new data folder."""
    folder = tmp_path_factory.mktemp("empty")
    server = Server(folder / "data", folder / "serve.log")
    yield server.start()
    server.end()


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


def choose(viewer: Viewer, title: str, option: str) -> None:
    """Pick one value in a filter of the sidebar, as a hand would.

    On a busy machine the list of options is drawn anew after it opened, and a click that meets
    this moment is lost; a hand clicks again when nothing was chosen.
    """
    sidebar = viewer.page.locator('[data-testid="stSidebar"]')
    field = sidebar.locator('[data-testid="stMultiSelect"]').filter(has_text=title)
    for _ in range(3):
        field.get_by_role("combobox").first.click()
        viewer.page.get_by_role("option").filter(has_text=option).first.click()
        with suppress(PlaywrightTimeout):
            field.get_by_text(option).first.wait_for(timeout=5_000)
            break
        viewer.page.keyboard.press("Escape")
    viewer.page.keyboard.press("Escape")
    viewer.settle()


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
