"""Chromium, and what it measures by itself: its clock, its frames, its document."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

VIEWPORT = {"width": 1440, "height": 1000}
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE_MS = 60_000
CALM_MS = 400
"""Nothing is drawn for so long: the page is done."""

# Counted from the start of the navigation, by the browser's own clock, in its own frames.
_FIRST = """selector => {
  const look = () => {
    const found = document.querySelector(selector);
    const box = found && found.getBoundingClientRect();
    const is_there = box && box.width > 0 && box.height > 0
      && (found.tagName !== 'IMG' || (found.complete && found.naturalWidth > 0));
    if (is_there) window.benchFirst = performance.now(); else requestAnimationFrame(look);
  };
  look();
}"""

_WATCH = """() => {
  const watch = window.bench = {input: 0, drawn: 0};
  const note = () => { watch.input = performance.now(); };
  for (const kind of ['pointerdown', 'keydown']) document.addEventListener(kind, note, true);
  new MutationObserver(() => { watch.drawn = performance.now(); }).observe(
    document.querySelector('[data-testid="stMain"]'),
    {subtree: true, childList: true, attributes: true, characterData: true});
}"""

_ADDRESS = "() => location.search"
"""Names the filters that the server knows of: every choice changes it."""

_IS_DRAWN = f"""before => {{
  const state = document.querySelector('[data-test-script-state]');
  return ({_ADDRESS})() !== before
    && document.querySelector('[data-testid="fb-window"]')
    && state && state.getAttribute('data-test-script-state') !== 'running'
    && !document.querySelector('[data-testid="stMain"] [data-stale="true"]')
    && !document.querySelector('[data-testid="stMain"] [data-testid="stSkeleton"]')
    && performance.now() - window.bench.drawn > {CALM_MS};
}}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium without a screen."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise SystemExit("no Chromium found: `apt-get install chromium`, or see docs/platform.md")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=OPTIONS)
        yield browser
        browser.close()


def new_context(browser: Browser) -> BrowserContext:
    """Return a window with a cache of its own, which is empty."""
    return browser.new_context(viewport=VIEWPORT, timezone_id="UTC")  # type: ignore[arg-type]


def first_chart(context: BrowserContext, url: str, selector: str) -> float:
    """Return the ms from the start of a navigation to the first chart that has a size."""
    page = context.new_page()
    try:
        page.add_init_script(f"({_FIRST})({selector!r})")
        page.goto(url, wait_until="commit")
        page.wait_for_function("() => window.benchFirst", timeout=PATIENCE_MS)
        return float(page.evaluate("() => window.benchFirst"))
    finally:
        page.close()


class Session:
    """One page that is stayed on, and its filters."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()

    def open(self, url: str) -> None:
        """Open a page and wait until it is drawn."""
        self.page.goto(url, wait_until="domcontentloaded")
        self.page.wait_for_selector('[data-testid="fb-window"]', timeout=PATIENCE_MS)
        self.page.evaluate(_WATCH)
        self._wait("nowhere")

    def change(self, name: str, choice: str) -> float:
        """Make a choice in a filter; return the ms from the click until all is drawn anew."""
        box = self.page.locator(f".st-key-fb_{name}")
        if name == "reset":
            self.page.get_by_role("button", name=choice).hover()
        else:
            box.locator("input").first.click()
            if name == "tools":
                box.locator("input").first.press_sequentially(choice)
        before = self.page.evaluate(_ADDRESS)
        if name == "reset":
            self.page.get_by_role("button", name=choice).click()
        else:
            self.page.get_by_role("option", name=choice, exact=True).first.click()
        self._wait(before)
        took = float(self.page.evaluate("() => window.bench.drawn - window.bench.input"))
        self.page.keyboard.press("Escape")  # the list of a filter of several values stays open
        return took

    def problems(self) -> list[str]:
        """Return the panels that could not be drawn."""
        shown = '[data-testid="fb-problem"], [data-testid="stException"]'
        return self.page.locator(shown).all_inner_texts()

    def _wait(self, before: str) -> None:
        self.page.wait_for_function(_IS_DRAWN, arg=before, timeout=PATIENCE_MS, polling=50)
