"""Photograph every page of the menu: light, dark, narrow, without data; the board on a phone.

The pictures go to docs/images as ``<page>-<kind>.png``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from fuseboard_dashboard.menu import MENU

ROOT = Path(__file__).parents[1]
WINDOW = "range=5m"
TOOL = "weather"
WIDTH, HEIGHT, NARROW = 1440, 900, 1280
PHONE = (390, 844)
COLOURS = 256
"""Of a picture's palette: a third of the size. It covers rare colours, so that a thin orange line
stays orange beside much red."""
IS_DRAWN = """() => {
    const none = what => !document.querySelector(what);
    const seen = what => [...document.querySelectorAll(what)].filter(e => {
        const box = e.getBoundingClientRect();  // what lies further down is drawn when seen
        return box.height && box.top < innerHeight;
    });
    return document.querySelector('.fb-head h1')
        && none('[data-testid="stSkeleton"], [data-stale="true"], [data-testid="fb-reading"]')
        && document.querySelector('[data-test-script-state]')
            ?.getAttribute('data-test-script-state') !== 'running'
        && seen('.js-plotly-plot').every(e => e.querySelector('.xy, .main-svg'))
        && seen('[data-testid="stDataFrame"]').every(e => e.querySelector('canvas'));
}"""
"""Text, charts and tables are there, and nothing is about to be drawn anew."""


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--after", type=float, default=62, help="seconds of demo before the first")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--url", help="photograph this dashboard instead of a demo of its own")
    return parser.parse_args()


def chromium_path() -> str:
    """Return the path of Debian's Chromium."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        sys.exit("chromium not found: apt-get install chromium")
    return found


def start(*command: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server on free ports and return it with the dashboard's address.

    Args:
        command: Its command and the data folder it is given after ``--data``.
    """
    data = Path(command[-1])
    process = subprocess.Popen(
        [sys.executable, "-m", "fuseboard_server", *command, "--ui-port", "0",
         "--otlp-http-port", "0"]
    )  # fmt: skip
    note = data / "server.json"
    while not note.exists():
        if process.poll() is not None:
            sys.exit("the server did not start; its message is above")
        time.sleep(0.2)
    return process, str(json.loads(note.read_text())["dashboard"])


def open_page(browser: Browser, address: str, size: tuple[int, int]) -> Page:
    """Open a page and wait until everything on it is drawn."""
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    page.goto(address)
    page.wait_for_function(IS_DRAWN, timeout=90_000)
    return page


def take(page: Page, target: Path) -> None:
    """Write what the window shows when everything on it is drawn."""
    page.wait_for_function(IS_DRAWN, timeout=90_000)
    page.wait_for_timeout(500)  # colours fade from one scheme to the other
    shot = Image.open(BytesIO(page.screenshot()))
    few = shot.convert("RGB").quantize(
        COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    )
    few.save(target, optimize=True)
    print(target, flush=True)


def photograph_all(browser: Browser, url: str, empty: str, folder: Path) -> None:
    """Write every picture: each page in full and without data, the first on a phone."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    for entry in MENU:
        own = f"&tool={TOOL}" if entry.path == "tool" else ""
        # Paused: no refresh draws a page anew between its pictures.
        page = open_page(browser, f"{url}/{entry.path}?{WINDOW}&to={now}{own}", (WIDTH, HEIGHT))
        take(page, folder / f"{entry.path}-light.png")
        page.emulate_media(color_scheme="dark")
        take(page, folder / f"{entry.path}-dark.png")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": NARROW, "height": HEIGHT})
        take(page, folder / f"{entry.path}-narrow.png")
        page.close()
        page = open_page(browser, f"{empty}/{entry.path}?{WINDOW}", (WIDTH, HEIGHT))
        take(page, folder / f"{entry.path}-empty.png")
        page.close()
    first = MENU[0].path
    page = open_page(browser, f"{url}/{first}?{WINDOW}&to={now}", PHONE)
    take(page, folder / f"{first}-phone.png")


def main() -> None:
    """Photograph every page on demo data and without any."""
    options = parse_arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    executable = chromium_path()
    running: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="fuseboard-screenshots-") as folder:
        try:
            empty_server, empty = start("serve", "--otlp-grpc-port", "0", "--data",
                                        str(Path(folder) / "empty"))  # fmt: skip
            running.append(empty_server)
            url = options.url
            if url is None:
                demo, url = start("demo", "--data", str(Path(folder) / "data"))
                running.append(demo)
                time.sleep(options.after)
            with sync_playwright() as driver:
                arguments = ["--no-sandbox", "--hide-scrollbars"]
                browser = driver.chromium.launch(executable_path=executable, args=arguments)
                photograph_all(browser, url, empty, options.output)
                browser.close()
        finally:
            for process in running:
                process.send_signal(signal.SIGINT)
            for process in running:
                process.wait(timeout=40)


if __name__ == "__main__":
    main()
