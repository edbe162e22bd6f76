"""An agent with threads, event loops and forked children that keeps its own books.

    python agent_under_load.py ENDPOINT REPORTS SECONDS THREADS TASKS FORKS

Each process calls tools for so many seconds from as many threads, each with an event loop of as
many tasks, and then writes to the folder REPORTS what it did and what its metrics say.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

import fuseboard
from fuseboard import Breaker, Policy, Retry

RETRY = Retry(attempts=3, wait_initial=0.001, wait_max=0.002)
BREAKER = Breaker(minimum_throughput=20, sampling_duration=1, break_duration=0.05)
GUARDED = Policy(retry=RETRY, breaker=BREAKER)
CONFIGURED = Policy(retry=RETRY, breaker=BREAKER, timeout=30, effects="none", budget=60)


def _act(runs: list[int], failures: int) -> str:
    runs.append(1)
    if len(runs) <= failures:
        raise ConnectionRefusedError
    return "done"


@fuseboard.tool
def bare(runs: list[int], failures: int) -> str:
    return _act(runs, failures)


@fuseboard.tool(policy=GUARDED)
def guarded(runs: list[int], failures: int) -> str:
    return _act(runs, failures)


@fuseboard.tool(policy=GUARDED)
def streamed(runs: list[int], failures: int) -> Iterator[str]:
    yield _act(runs, failures)


@fuseboard.tool
async def bare_async(runs: list[int], failures: int) -> str:
    await asyncio.sleep(0)
    return _act(runs, failures)


@fuseboard.tool(policy=GUARDED)
async def guarded_async(runs: list[int], failures: int) -> str:
    await asyncio.sleep(0)
    return _act(runs, failures)


@fuseboard.tool(policy=CONFIGURED)
async def limited_async(runs: list[int], failures: int) -> str:
    await asyncio.sleep(0)
    return _act(runs, failures)


@fuseboard.tool(policy=GUARDED)
async def streamed_async(runs: list[int], failures: int) -> AsyncIterator[str]:
    await asyncio.sleep(0)
    yield _act(runs, failures)


SYNC = (bare, guarded, lambda runs, failures: list(streamed(runs, failures)))
ASYNC = (bare_async, guarded_async, limited_async)


class Books:
    """What one thread did."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.attempts = 0
        self.spans = 0

    def note(self, outcome: str, runs: list[int]) -> None:
        """Count a call; its attempts have spans if it needed several, or its only one failed."""
        self.outcomes[outcome] += 1
        self.attempts += len(runs)
        self.spans += 1
        if len(runs) > 1 or (runs and outcome == "error"):
            self.spans += len(runs)


def failures_of(draw: random.Random) -> int:
    """Draw how many attempts fail: mostly none, sometimes all."""
    return draw.choice((0, 0, 0, 0, 1, 2, 9))


def call(books: Books, draw: random.Random) -> None:
    """Make one call in this thread."""
    runs: list[int] = []
    try:
        draw.choice(SYNC)(runs, failures_of(draw))
        books.note("ok", runs)
    except fuseboard.CircuitOpenError:
        books.note("rejected", runs)
    except ConnectionRefusedError:
        books.note("error", runs)


async def call_async(books: Books, draw: random.Random) -> None:
    """Make one call in this task, sometimes one that is cancelled or left."""
    runs: list[int] = []
    try:
        if draw.random() < 0.2:
            async for _ in streamed_async(runs, failures_of(draw)):
                pass
        else:
            await draw.choice(ASYNC)(runs, failures_of(draw))
        books.note("ok", runs)
    except fuseboard.CircuitOpenError:
        books.note("rejected", runs)
    except ConnectionRefusedError:
        books.note("error", runs)


async def cancelled_call(books: Books) -> None:
    """Make a call that is cancelled while it runs."""
    runs: list[int] = []
    runs_now = asyncio.Event()

    @fuseboard.tool(name="bare_async")
    async def waits() -> None:
        runs.append(1)
        runs_now.set()
        await asyncio.sleep(600)

    task = asyncio.ensure_future(waits())
    await runs_now.wait()
    task.cancel()
    await asyncio.wait([task])
    books.note("cancelled", runs)


async def tasks_until(end: float, books: Books, draw: random.Random, tasks: int) -> None:
    """Run so many tasks that call one tool after the other."""

    async def work() -> None:
        await cancelled_call(books)
        while time.monotonic() < end:
            await call_async(books, draw)
            call(books, draw)

    await asyncio.gather(*(work() for _ in range(tasks)))


def run_threads(end: float, threads: int, tasks: int) -> list[Books]:
    """Run so many threads with an event loop each; return their books."""
    books = [Books() for _ in range(threads)]
    loads = [
        threading.Thread(
            target=lambda each: asyncio.run(tasks_until(end, each, random.Random(id(each)), tasks)),
            args=(each,),
        )
        for each in books
    ]
    for load in loads:
        load.start()
    return [load.join() or each for load, each in zip(loads, books, strict=True)]


def read_metrics() -> dict[str, dict[str, float]]:
    """Return what the exposition text says, by metric and by the label that matters."""
    found: dict[str, Counter[str]] = {}
    for family in text_string_to_metric_families(fuseboard.metrics_text()[0].decode()):
        for sample in family.samples:
            labels = sample.labels
            key = labels.get("outcome") or labels.get("signal") or labels.get("result") or ""
            found.setdefault(sample.name, Counter())[key] += sample.value
    return {name: dict(counts) for name, counts in found.items()}


def report(folder: Path, books: list[Books], *, is_complete: bool) -> None:
    """Write what this process did."""
    facts = {
        "is_complete": is_complete,
        "outcomes": sum((each.outcomes for each in books), Counter()),
        "attempts": sum(each.attempts for each in books),
        "spans": sum(each.spans for each in books),
        "metrics": read_metrics(),
    }
    (folder / f"{os.getpid()}.json").write_text(json.dumps(facts))


def child(folder: Path) -> None:
    """Do a smaller load in a forked child, and end without a word to anybody."""
    try:
        books = run_threads(time.monotonic() + 0.4, threads=2, tasks=10)
        report(folder, books, is_complete=fuseboard.shutdown(60))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def main(endpoint: str, reports: str, seconds: str, threads: str, tasks: str, forks: str) -> None:
    """Run the parent."""
    folder = Path(reports)
    fuseboard.init("load", endpoint=endpoint, shutdown_timeout=60)
    end = time.monotonic() + float(seconds)
    books: list[Books] = []
    load = threading.Thread(target=lambda: books.extend(run_threads(end, int(threads), int(tasks))))
    load.start()
    pause = float(seconds) / (int(forks) + 1)
    for _ in range(int(forks)):
        time.sleep(pause)
        if os.fork() == 0:
            child(folder)
    load.join()
    statuses = [os.wait()[1] for _ in range(int(forks))]
    report(folder, books, is_complete=fuseboard.shutdown(60))
    sys.exit(1 if any(statuses) else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
