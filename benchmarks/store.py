"""How long the dashboard's queries take on a store of millions of calls, while rows come in.

Builds a store with 30 days of calls (10 million by default), has it rolled up, and asks every page
query as the dashboard does in its views of 15 minutes, 24 hours, 7 and 30 days, while 5,000 calls
a second are stored. Then every answer is held against the same counted from the raw rows alone.
"""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from itertools import count
from math import inf
from pathlib import Path

import measuring
import pyarrow as pa
from storing.build import build, roll_up

from fuseboard_collector.store import Batch, Store, ToolCall, named_queries, open_store
from fuseboard_collector.store.rollups.choice import EXACT_WINDOW
from fuseboard_collector.store.rows import micros
from fuseboard_dashboard import bounded, changed
from fuseboard_dashboard.filters import PRESETS, Filters, Window, rfc3339
from fuseboard_dashboard.objectives import ObjectiveBook
from fuseboard_dashboard.screens import sessions
from fuseboard_dashboard.screens.breakers import worth_drawing
from fuseboard_dashboard.view import QUERY_PARAMETERS
from fuseboard_server import allocator, garbage

BAR_MS = 100.0
RAW_BAR_MS = 1000.0
"""For queries of columns that no rollup has."""
ROWS_PER_SECOND = 5_000
BATCH = 500
VIEWS = ("15m", "24h", "7d", "30d")
BUCKETS = {"page_trend": (60, 30), "page_series": (60,), "page_outcomes": (120, 60)}
"""In how many buckets pages ask for the window at most; 120 elsewhere."""
CHECK_MEMORY = "8GB"
"""What counting a hundred million raw rows takes."""
RAW = (
    "page_answer", "page_breaker_damage", "page_cost", "page_dependencies", "page_failed_layers",
    "page_incident_slices", "page_incident_totals", "page_layer_calls", "page_upstream",
)  # fmt: skip
MOST_CALLS = {"page_changes": changed.MOST_CALLS, "page_sessions": sessions.MOST_CALLS} | {
    name: bounded.MOST_CALLS for name in QUERY_PARAMETERS if name.startswith(RAW)
}
"""Queries of raw rows → how many calls a window may have for pages to ask them."""
OF_ONE = {name for name, taken in QUERY_PARAMETERS.items() if {"trace_id", "session"} & {*taken}}
ONE_READS = timedelta(days=2)
"""Queries of one trace or session, and the longest window that pages ask them for."""
KINDS = {"all": 100, "faults": 100, "retried": 100, "slow": 25}
STEP = 2 ** (1 / 8)
"""The widest that a quantile out of a histogram may be off."""


def main() -> int:
    allocator.prefer()  # as the server does
    parser = measuring.arguments(__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000_000, help="how many to build")
    parser.add_argument("--data", type=Path, help="keep the store here, or use the one there is")
    parser.add_argument("--rounds", type=int, default=40, help="how often each query is asked")
    parser.add_argument("--no-check", action="store_true", help="leave out the count of raw rows")
    args = parser.parse_args()
    folder = args.data or Path(tempfile.mkdtemp(prefix="fuseboard-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "fuseboard.duckdb"
    try:
        if not path.exists():
            build(path, args.calls)
        roll_up(path)
        return measure(path, 3 if args.quick else args.rounds, args)
    finally:
        if args.data is None:
            shutil.rmtree(folder)


def measure(path: Path, rounds: int, args: object) -> int:
    """Print what the queries take and return the exit code."""
    store = open_store(path, retention_days=None, memory_limit="2GB")
    asked = list(questions(store))
    times: dict[str, list[float]] = {label: [] for label, _, _ in asked}
    raw = MOST_CALLS.keys() - {"page_changes"}
    bars = {label: RAW_BAR_MS if name in raw else BAR_MS for label, name, _ in asked}
    garbage.calm()  # as the server does
    acks: list[float] = []
    started = time.monotonic()
    try:
        with ingesting(store, acks):
            for turn in range(rounds + 1):
                print(f"\rround {turn} of {rounds} ", end="", file=sys.stderr, flush=True)
                for label, name, given in asked:
                    began = time.perf_counter()
                    store.query(name, given)
                    if turn:  # the first warms up
                        times[label].append((time.perf_counter() - began) * 1000)
        took = time.monotonic() - started
    finally:
        store.close()
    different = [] if args.no_check else list(differences(path, asked))  # type: ignore[attr-defined]
    rows = {label: figures(taken) for label, taken in times.items()}
    rows["(acknowledged write)"] = figures(acks)
    measuring.report("ms a query while calls are stored", rows, args)  # type: ignore[arg-type]
    slow = [
        f"{label}: p95 {figures(taken)['p95']:.0f} ms > {bars[label]:.0f} ms"
        for label, taken in times.items()
        if figures(taken)["p95"] > bars[label]
    ]
    rate = len(acks) * BATCH / took
    print(f"{len(acks) * BATCH:,} calls stored meanwhile, {rate:,.0f} a second")
    if rate < 0.95 * ROWS_PER_SECOND:
        slow.append(f"only {rate:,.0f} calls a second were stored, not {ROWS_PER_SECOND:,}")
    return measuring.verdict([*slow, *different])


def questions(store: Store) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield a label, a query and its parameters, for every page query in every view."""
    newest = store.query("page_store")["last_end"][0].as_py().replace(tzinfo=UTC)
    for view in VIEWS:
        window = Filters(range=view, to=newest).window(newest)
        for name in QUERY_PARAMETERS:
            if name in OF_ONE and window.length > ONE_READS:
                continue  # read around its moment
            if calls_in(store, window) > MOST_CALLS.get(name, inf):
                continue  # no page asks
            for kind in KINDS if name == "page_calls" else ("",):
                for number, most in enumerate(BUCKETS.get(name, (120,))):
                    given = parameters(store, name, window, kind, most)
                    words = (name.removeprefix("page_"), kind, f"by_{most}" * bool(number), view)
                    yield " ".join(word for word in words if word), name, given


def calls_in(store: Store, window: Window) -> float:
    """Return how many calls a window has."""
    totals = store.query("page_totals", Filters().parameters(window))
    return float(totals["calls"][0].as_py())


def parameters(store: Store, name: str, window: Window, kind: str, most: int) -> dict[str, object]:
    """Return the parameters of a query in a view without filters."""
    breakers = None
    if "breakers" in QUERY_PARAMETERS[name]:
        states = "page_breaker_states"
        known = store.query(states, parameters(store, states, window, kind, most))
        breakers = worth_drawing(known.to_pandas(), window.since)
    values: dict[str, object] = {
        "since": rfc3339(window.since),
        "before_since": rfc3339(window.since - window.length),
        "before_until": rfc3339(window.since),
        "until": rfc3339(window.until),
        "bucket_us": window.bucket_seconds(most) * 1_000_000,
        "kind": kind,
        "row_limit": KINDS.get(kind),
        "breakers": breakers,
        "trace_id": "0" * 32,
        "session": "none of them",
        "sessions": ["none of them"],
        "traces": ["0" * 32],
        **ObjectiveBook().bounds(),
        "upstream": "api-3.example.org",
        "seen_since": rfc3339(window.since - timedelta(days=1)),
    }
    return {key: values.get(key) for key in QUERY_PARAMETERS[name]}


@contextmanager
def ingesting(store: Store, acks: list[float]) -> Iterator[None]:
    """Store calls at a steady rate meanwhile; note how long each batch waited, in ms."""
    stop = threading.Event()

    def run() -> None:
        patterns = [pattern(number) for number in range(BATCH)]
        began, first_id = time.monotonic(), secrets.randbits(62)
        for number in count():
            pause = began + number * BATCH / ROWS_PER_SECOND - time.monotonic()
            if stop.wait(max(pause, 0)):
                return
            cells = list(fresh(patterns, first_id + number * BATCH))
            sent = time.perf_counter()
            store.append(Batch(call_cells=cells)).result(60)
            acks.append((time.perf_counter() - sent) * 1000)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def pattern(number: int) -> list[object]:
    """Return a call without its ids and times, as cells: so the receiver hands the shim's over."""
    call = ToolCall(
        f"tool_{number * number % 200:03d}",
        end=0,
        duration_seconds=0.05 + number % 37 / 50,
        region="us-east-1",
        service=f"service-{number % 24:02d}",
        instance=f"service-{number % 24:02d}-0",
        args_hash=f"v1:{number % 40:016x}",
    )
    return [getattr(call, item.name) for item in fields(call)]


PLACES = {item.name: place for place, item in enumerate(fields(ToolCall))}


def fresh(patterns: list[list[object]], first_id: int) -> Iterator[list[object]]:
    """Yield calls like these that end now."""
    now = micros(datetime.now(UTC))
    names = ("end", "start", "received_at", "trace_id", "span_id")
    end_at, start_at, received_at, trace_at, span_at = (PLACES[name] for name in names)
    for number, made in enumerate(patterns):
        cells = made.copy()
        cells[end_at] = cells[received_at] = now - number
        cells[start_at] = now - number + made[start_at]
        cells[trace_at] = f"{first_id + number:032x}"
        cells[span_at] = f"{first_id + number:016x}"
        yield cells


def differences(path: Path, asked: list[tuple[str, str, dict[str, object]]]) -> Iterator[str]:
    """Yield which answers differ from those counted from the raw rows alone."""
    store = open_store(path, retention_days=None, memory_limit=CHECK_MEMORY)
    try:
        for label, name, given in asked:
            print(f"\rcounting raw rows for {label:40}", end="", file=sys.stderr, flush=True)
            query = named_queries.load(name, variants=plainest(label))
            with store._open_database().cursor() as cursor:
                bound = query.bind(given)
                plain = cursor.sql(query.statements[0].sql, params=bound).to_arrow_table()
            is_long = PRESETS[label.rsplit(" ", 1)[1]][1] > EXACT_WINDOW
            if why := unlike(store.query(name, given), plain, widths(name, is_long=is_long)):
                yield f"{label} differs from the raw rows: {why}"
    finally:
        store.close()


def plainest(label: str) -> tuple[str, ...]:
    """Return the variants of a query that look at nothing but raw rows."""
    if label.startswith("error_arguments"):
        return ("keyed",)  # by number: a hundred million texts at once fit into no memory
    return ("slowest",) if "slow" in label else ()


def widths(name: str, *, is_long: bool) -> dict[str, float]:
    """Return by which factor a column may be off; all others have to be equal."""
    if is_long and name == "page_error_arguments":
        # Of six hours in which arguments neither failed nor came often, their calls are not kept.
        return {"calls": 1.1, "fault_ratio": 1.1}
    if is_long and name.startswith("page_slo"):
        return {"slow": inf}  # estimated; test_rollups holds it to the step that the bound is in
    quantiles = [f"{kind}{share}" for kind in ("", "attempt_") for share in ("p50", "p95", "p99")]
    return dict.fromkeys(quantiles, STEP) if is_long else {}


def unlike(one: pa.Table, other: pa.Table, widths: Mapping[str, float]) -> str:
    """Return in what two answers differ; empty if in nothing that matters."""
    if one.schema != other.schema:
        return f"columns {one.schema} against {other.schema}"
    keys = [
        name for name in one.schema.names if not pa.types.is_floating(one.schema.field(name).type)
    ]
    rows, others = (sorted(table.to_pylist(), key=lambda row: str([row[key] for key in keys]))
                    for table in (one, other))  # fmt: skip
    if len(rows) != len(others):
        return f"{len(rows)} rows against {len(others)}"
    for row, also in zip(rows, others, strict=True):
        for name, value in row.items():
            if not alike(value, also[name], widths.get(name, 1 + 1e-9)):
                return f"{name} {value!r} against {also[name]!r} in {dict(list(also.items())[:3])}"
    return ""


def alike(value: object, other: object, factor: float) -> bool:
    if not isinstance(value, float) or not isinstance(other, float):
        return value == other
    if factor == inf:
        return True
    return value == other or (value > 0 and other / factor <= value <= other * factor)


def figures(taken: list[float]) -> Mapping[str, float]:
    """Return median, 95th percentile and maximum."""
    return {
        "p50": measuring.percentile(taken, 0.5),
        "p95": measuring.percentile(taken, 0.95),
        "max": max(taken),
    }


if __name__ == "__main__":
    sys.exit(main())
