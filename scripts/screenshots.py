"""Photograph every page of the dashboard on demo data, light and dark, into docs/images."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
PAGES = {
    "board": "?range=5m",
    "tool": "tool?range=5m&tool=weather",
    "errors": "errors?range=5m",
    "breakers": "breakers?range=5m",
    "retries": "retries?range=5m",
    "latency": "latency?range=5m",
    "degradation": "degradation?range=5m",
    "sessions": "sessions?range=5m",
    "session": "sessions?range=5m",
    "traces": "trace?range=5m",
    "trace": "trace?range=5m",
    "dependencies": "dependencies?range=5m",
    "slos": "slos?range=5m",
    "alerts": "alerts?range=5m",
    "incident": "incident?range=5m",
}
"""Name of the picture → path of the page."""
FOLLOWED = {"session": "fb-session-head", "trace": "fb-waterfall"}
"""Pictures of what the first line of the page's table leads to → what is there then."""
WIDTH, HEIGHT = 1440, 900
SETTLE_SECONDS = 2.5
"""Charts draw after the text; this is how long the slowest took, with a margin."""


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


def start_demo(data: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start a demo on free ports and return it with the dashboard's address."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "fuseboard_server", "demo", "--data", str(data)),
            *("--ui-port", "0", "--otlp-http-port", "0"),
        ]
    )
    note = data / "server.json"
    while not note.exists():
        if process.poll() is not None:
            sys.exit("the demo did not start; its message is above")
        time.sleep(0.2)
    return process, str(json.loads(note.read_text())["dashboard"])


def photograph(browser: Browser, url: str, name: str, path: str, theme: str, folder: Path) -> None:
    """Write the picture of one page."""
    page = browser.new_page(
        viewport={"width": WIDTH, "height": HEIGHT},
        color_scheme="dark" if theme == "dark" else "light",
    )
    try:
        page.goto(f"{url}/{path}")
        page.get_by_test_id("stApp").wait_for()
        page.wait_for_function(
            "() => !document.querySelector('[data-testid=stSkeleton]')"
            " && document.querySelector('h1, h2')"
        )
        if name in FOLLOWED:
            page.locator(".fb-table a").first.click()
            page.get_by_test_id(FOLLOWED[name]).wait_for()
        page.wait_for_timeout(SETTLE_SECONDS * 1000)
        target = folder / f"{name}-{theme}.png"
        page.screenshot(path=target)
        print(target)
    finally:
        page.close()


def main() -> None:
    """Photograph every page in both themes."""
    options = parse_arguments()
    options.output.mkdir(parents=True, exist_ok=True)
    executable = chromium_path()
    demo: subprocess.Popen[bytes] | None = None
    url = options.url
    with tempfile.TemporaryDirectory(prefix="fuseboard-screenshots-") as folder:
        try:
            if url is None:
                demo, url = start_demo(Path(folder) / "data")
                time.sleep(options.after)
            with sync_playwright() as driver:
                arguments = ["--no-sandbox", "--hide-scrollbars"]
                browser = driver.chromium.launch(executable_path=executable, args=arguments)
                for name, path in PAGES.items():
                    for theme in ("light", "dark"):
                        photograph(browser, url, name, path, theme, options.output)
                browser.close()
        finally:
            if demo is not None:
                demo.send_signal(signal.SIGINT)
                demo.wait(timeout=40)


if __name__ == "__main__":
    main()
