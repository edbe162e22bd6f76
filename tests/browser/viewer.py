"""One browser window, everything it complained about, and what is seen in it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import parse_qs, quote, urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, Response
from playwright.sync_api import TimeoutError as PlaywrightTimeout

IS_CALM = """() => !document.querySelector('[data-testid="stSkeleton"]')
    && !document.querySelector('[data-testid="stStatusWidget"]')
    && !document.querySelector('[data-stale="true"]')
    && document.querySelector('[data-test-script-state]')
        ?.getAttribute('data-test-script-state') !== 'running'"""

TOO_WIDE = """() => {
    const name = e => `${e.tagName.toLowerCase()}.${[...e.classList].join('.')} "${
        e.textContent.slice(0, 40)}" ${e.scrollWidth} > ${e.clientWidth}`;
    const wide = e => e.clientWidth && e.scrollWidth > e.clientWidth + 1;
    const scrolls = [document.documentElement, document.querySelector('[data-testid="stMain"]')];
    const ours = document.querySelectorAll('[data-testid="stMain"] :is(.fb, .fb *)');
    const spills = [...ours].filter(e => {
        const style = getComputedStyle(e);
        return style.display !== 'inline' && !['hidden', 'clip'].includes(style.overflowX);
    });
    return [...scrolls, ...spills].filter(wide).map(name);
}"""
"""What scrolls sideways or lets its content stick out: the document, the page in it (Streamlit
scrolls that, the document never moves), and every panel of ours. Cut on purpose is not wide."""

CUT = """() => [...document.querySelectorAll('.fb-stat .fb-label, .fb-stat .fb-value,'
        + ' .fb-gauges .fb-label, .fb-gauges .fb-value, .fb-table th, .fb h1, .fb h2')]
    .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
    .map(e => e.textContent)"""
"""Words of ours that must be there whole, and aren't."""

BOXES = ('[data-testid="stException"]', '[data-testid="fb-problem"]')


@dataclass
class Viewer:
    """One browser window and everything it complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def open(self, url: str) -> None:
        """Open a page and wait until it is drawn and calm."""
        self.page.goto(url, wait_until="domcontentloaded")
        self.settle()

    def settle(self) -> None:
        """Wait until nothing is being drawn any more."""
        self.page.wait_for_selector(".fb-head", timeout=60_000)
        self.page.wait_for_function(IS_CALM, timeout=60_000)

    def resize(self, width: int, height: int = 1000) -> None:
        """Change the window's size and wait until charts have followed."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_function(
            """() => [...document.querySelectorAll('.js-plotly-plot')].every(plot => {
                const drawn = plot.querySelector('.main-svg');
                return !drawn || drawn.getBoundingClientRect().right
                    <= plot.parentElement.getBoundingClientRect().right + 2;
            })""",
            timeout=30_000,
        )

    def assert_is_sound(self) -> None:
        """Fail on exception boxes, failed panels, complaints and horizontal overflow."""
        for box in BOXES:
            assert self.page.locator(box).all_inner_texts() == []
        assert self.complaints == [], "\n".join(self.complaints)
        self.assert_fits()

    def assert_fits(self) -> None:
        """Fail on anything that stays wider than its place: after a resize, some take a moment."""
        with suppress(PlaywrightTimeout):
            self.page.wait_for_function(f"() => !({TOO_WIDE})().length", timeout=5_000)
        found = self.page.evaluate(TOO_WIDE)
        assert found == [], "\n".join(found)

    def cut_words(self) -> list[str]:
        """Return headings and headline numbers that are cut off."""
        found: list[str] = self.page.evaluate(CUT)
        return found

    def stats(self) -> dict[str, float | None]:
        """Return the headline numbers by name."""
        found = self.page.locator('[data-testid="fb-stat"]').all()
        values = {s.get_attribute("data-stat"): s.get_attribute("data-value") for s in found}
        return {str(name): float(value) if value else None for name, value in values.items()}

    def window(self) -> tuple[str, str]:
        """Return the ends of the window that the page is about, RFC 3339."""
        hook = self.page.locator('[data-testid="fb-window"]').first
        return str(hook.get_attribute("data-since")), str(hook.get_attribute("data-until"))

    def heading(self) -> str:
        """Return the page's title."""
        return self.page.locator(".fb-head h1").first.inner_text()

    def asked(self) -> dict[str, list[str]]:
        """Return the parameters in the address."""
        return parse_qs(urlsplit(self.page.url).query, keep_blank_values=True)


def paused() -> str:
    """Return the last hour as it is now: no refresh redraws the page under the test's eyes."""
    return f"range=1h&to={quote(datetime.now(UTC).isoformat(timespec='seconds'))}"


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
    """Open a window that remembers complaints of the console and requests that failed."""
    viewer = Viewer(context.new_page())
    complain = viewer.complaints.append

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and not _is_probe(message.location["url"], message.text):
            complain(message.text)

    def failed(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # what a page that is left was still loading
            complain(f"{request.url}: {request.failure}")

    def answered(response: Response) -> None:
        if response.status >= 400 and not _is_probe(response.url, str(response.status)):
            complain(f"{response.url}: {response.status}")

    viewer.page.on("console", note)
    viewer.page.on("pageerror", lambda error: complain(str(error)))
    viewer.page.on("requestfailed", failed)
    viewer.page.on("response", answered)
    return viewer


def _is_probe(url: str, words: str) -> bool:
    """Tell whether Streamlit looks for its base path: a deep link makes it ask below first."""
    return "/_stcore/" in url and "404" in words
