"""How long pages take in a browser, on a store of millions of calls, and whether memory grows.

Starts `fuseboard serve` on a store of 10 million calls of 30 days, with an agent that goes on
calling, and the two lines of `paging/floor.py` on the same server with the same options. Chromium
opens the board and the floor in turns; then it chooses filters on page after page; then one
session makes the server draw 200 times. Every time is taken by the browser's own clock.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import measuring
from paging import browsing, servers
from playwright.sync_api import Browser
from storing.build import build, roll_up, top_up

NAVIGATION_BAR = 2.0
"""Most that the board's first chart may take, as a multiple of the floor's; medians."""
FILTER_BAR = 1.0
"""Most seconds from choosing a filter to charts drawn anew; the 95th percentile."""
MEMORY_BAR = 0.05
"""Most that the server may grow from the 50th to the 200th time of drawing."""

RECENT_CALLS, RECENT_MINUTES = 60_000, 30
SPARK, CHART = "img.fb-spark", '[data-testid="stVegaLiteChart"] svg'
PAGES = ("board", "tool", "errors", "breakers", "retries", "latency", "degradation")
"""Those that are charts and figures of the chosen window."""
CHOICES = (
    ("range", "Last hour"), ("range", "Last 24 hours"), ("tools", "tool_003"),
    ("range", "Last 7 days"), ("reset", "Reset filters"), ("regions", "us-east-1"),
    ("range", "Last hour"), ("classes", "↻ L3 transient"), ("reset", "Reset filters"),
)  # fmt: skip
WARM_UP, RERUNS = 50, 200


def main() -> int:
    parser = measuring.arguments(__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000_000, help="how many to build")
    parser.add_argument("--data", type=Path, help="keep the store here, or use the one there is")
    parser.add_argument("--rounds", type=int, default=21, help="of opening the board")
    parser.add_argument("--only", choices=("navigation", "filters", "memory"), help="measure this")
    args = parser.parse_args()
    folder = args.data or Path(tempfile.mkdtemp(prefix="fuseboard-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        prepare(folder / "fuseboard.duckdb", args.calls)
        with tempfile.TemporaryDirectory() as logs:
            rows, missed = measure(folder, Path(logs), args)
    finally:
        if args.data is None:
            shutil.rmtree(folder)
    measuring.report("pages in Chromium", rows, args)
    return measuring.verdict(missed)


def prepare(path: Path, calls: int) -> None:
    """Make the store unless there is one, and fill the last half hour of it."""
    if not path.exists():
        build(path, calls)
    top_up(path, RECENT_CALLS, RECENT_MINUTES)
    roll_up(path)


Rows = dict[str, dict[str, float]]


def measure(folder: Path, logs: Path, args) -> tuple[Rows, list[str]]:  # type: ignore[no-untyped-def]
    """Return the figures, and which bars were missed."""
    rows: Rows = {}
    missed: list[str] = []
    with (
        servers.fuseboard(folder, logs / "fuseboard.log") as (board, otlp),
        servers.floor(logs / "floor.log") as floor,
        servers.agent(otlp),
        browsing.chromium() as browser,
    ):
        if args.only in (None, "navigation"):
            navigation(browser, board, floor, 5 if args.quick else args.rounds, rows, missed)
        if args.only in (None, "filters"):
            filters(browser, board, 1 if args.quick else 3, rows, missed)
        if args.only in (None, "memory"):
            memory(browser, board, rows, missed)
    return rows, missed


def navigation(
    browser: Browser, board: servers.Served, floor: servers.Served, rounds: int,
    rows: Rows, missed: list[str],
) -> None:  # fmt: skip
    """Open the board and the floor in turns, with a warm cache of the browser and without."""
    targets = {"board": (f"{board.url}/", SPARK), "floor": (f"{floor.url}/", CHART)}
    for kind in ("warm", "cold"):
        taken: dict[str, list[float]] = {name: [] for name in targets}
        context = browsing.new_context(browser)
        for turn in range(rounds + 1):
            order = list(targets) if turn % 2 else list(reversed(targets))
            for name in order:
                if kind == "cold":
                    context.close()
                    context = browsing.new_context(browser)
                took = browsing.first_chart(context, *targets[name])
                if turn:  # the first warms up
                    taken[name].append(took)
            progress(f"{kind} navigation", turn, rounds)
        context.close()
        ratio = statistics.median(taken["board"]) / statistics.median(taken["floor"])
        for name, times in taken.items():
            rows[f"first chart, {kind} cache: {name}"] = spread(times)
        rows[f"first chart, {kind} cache: board / floor"] = {"p50": ratio}
        if ratio > NAVIGATION_BAR:
            missed.append(f"the board's first chart took {ratio:.2f} times the floor's ({kind})")


def filters(
    browser: Browser, board: servers.Served, rounds: int, rows: Rows, missed: list[str]
) -> None:
    """Choose filters on every page; the first round loads what the browser lacks."""
    context = browsing.new_context(browser)
    session = browsing.Session(context)
    taken: dict[str, list[float]] = {page: [] for page in PAGES}
    for turn in range(rounds + 1):
        for page in PAGES:
            session.open(f"{board.url}/{page}")
            for name, choice in CHOICES:
                took = session.change(name, choice)
                if turn:
                    taken[page].append(took)
                    verbose(f"{page}, {choice}: {took:.0f} ms")
            missed += [f"{page}: {words}" for words in session.problems()]
        progress("filters", turn, rounds)
    context.close()
    for page, times in taken.items():
        rows[f"filter chosen: {page}"] = spread(times)
    every = [took for times in taken.values() for took in times]
    rows["filter chosen: all pages"] = spread(every)
    p95 = measuring.percentile(every, 0.95)
    if p95 > FILTER_BAR * 1000:
        missed.append(f"p95 of a filter's charts was {p95:.0f} ms")


def memory(browser: Browser, board: servers.Served, rows: Rows, missed: list[str]) -> None:
    """Draw 200 times and compare the server's memory with that after 50 times."""
    context = browsing.new_context(browser)
    session = browsing.Session(context)
    sizes: list[float] = []
    for page, name, choice in turns():
        if name == "open":
            session.open(f"{board.url}/{page}")
        else:
            session.change(name, choice)
        sizes.append(board.memory())
        progress("memory", len(sizes), RERUNS)
        if len(sizes) % 10 == 0:
            verbose(f"{len(sizes)} times: {sizes[-1]:.0f} MB")
    context.close()
    before = statistics.median(sizes[WARM_UP - 5 : WARM_UP + 5])
    after = statistics.median(sizes[-10:])
    growth = after / before - 1
    rows[f"MB of memory after {WARM_UP} times"] = {"p50": before}
    rows[f"MB of memory after {RERUNS} times"] = {"p50": after}
    rows["growth of memory"] = {"p50": growth}
    if growth > MEMORY_BAR:
        missed.append(f"the server grew by {growth:.1%} ({before:.0f} to {after:.0f} MB)")


def turns() -> Iterator[tuple[str, str, str]]:
    """Return what the session does: page after page, filter after filter."""
    steps = [(page, *step) for page in PAGES for step in (("open", ""), *CHOICES)]
    return itertools.islice(itertools.cycle(steps), RERUNS)


def spread(times: list[float]) -> dict[str, float]:
    """Return median, 95th percentile and maximum."""
    return {
        "p50": statistics.median(times),
        "p95": measuring.percentile(times, 0.95),
        "max": max(times),
    }


def verbose(words: str) -> None:
    """Say a single figure to who looks; the table is printed at the end."""
    print(f"\r{words:70}", file=sys.stderr)


def progress(what: str, done: int, of: int) -> None:
    print(f"\r{what}: {done} of {of} ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
