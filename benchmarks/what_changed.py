"""Whether "what changed" names the cause of a new fault, and how fast.

Each drill stores half an hour of calls of 50 tools in three regions with failure rates of their
own. In the second quarter calls of one tool in one region with one argument hash fail ten times as
often, in 1 of 10 calls instead of 1 of 100. The cause has to be ranked first, within 10 seconds of
the data being stored. Ranking the same slices by their number of errors alone is the baseline.
"""

from __future__ import annotations

import secrets
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import measuring
import numpy as np

from fuseboard_collector.store import Batch, Store, ToolCall, open_store
from fuseboard_dashboard.changes import MEASURES, changes
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.slices import Cells
from fuseboard_dashboard.view import QUERY_PARAMETERS

TOOLS, HASHES = 50, 12
REGIONS = ("eu-west", "us-east", "us-west")
CALLS = 40_000
"""In each quarter of an hour: 44 a second."""
LEAST_IN_SLICE = 150
USUAL, FAULTY = 0.01, 0.10
WINDOW = timedelta(minutes=15)
UNTIL = datetime(2026, 1, 5, 12, 15, tzinfo=UTC)
BAR_FOUND, BAR_SECONDS = 0.95, 10.0
CLASSES = ("L2_access", "L3_transient", "L4_persistent", "L5_semantic")


def main() -> int:
    parser = measuring.arguments(__doc__.splitlines()[0])
    parser.add_argument("--drills", type=int, default=20, help="how many faults are looked for")
    parser.add_argument("--seed", type=int, default=1, help="of the first drill")
    args = parser.parse_args()
    first = baseline = 0
    seconds = []
    for seed in range(args.seed, args.seed + (5 if args.quick else args.drills)):
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(Path(folder) / "fuseboard.duckdb", retention_days=None)
            try:
                is_first, is_most, took, said = drill(store, np.random.default_rng(seed))
            finally:
                store.close()
        first, baseline = first + is_first, baseline + is_most
        seconds.append(took)
        print(f"drill {seed}: {'found' if is_first else 'MISSED'} in {took:.2f} s: {said}")
    drills = len(seconds)
    rows = {
        "ranked first by what changed": {"drills": first, "share": first / drills},
        "ranked first by number of errors": {"drills": baseline, "share": baseline / drills},
        "seconds from stored to ranked": {
            "drills": drills, "share": measuring.percentile(seconds, 0.95),
        },
    }  # fmt: skip
    measuring.report("what changed", rows, args)
    missed = []
    if first < BAR_FOUND * drills:
        missed.append(f"the cause was first in {first} of {drills} drills")
    if max(seconds) > BAR_SECONDS:
        missed.append(f"an answer took {max(seconds):.1f} s")
    return measuring.verdict(missed)


def drill(store: Store, random: np.random.Generator) -> tuple[bool, bool, float, str]:
    """Inject one fault; return whether it was found, found by counting, how fast, and as what."""
    cause, batch = calls(random)
    store.append(batch).result(120)
    began = time.perf_counter()
    cells = ask(store)
    ranked = changes(Cells(cells), MEASURES[0])
    took = time.perf_counter() - began
    said = ", ".join(f"{k} {v}" for k, v in ranked[0].where.items()) if ranked else "nothing"
    counted = cells.groupby(["tool", "region", "args_hash"])["errors"].sum()
    return (
        bool(ranked) and matches(ranked[0].where, cause),
        len(counted) > 0 and tuple(counted.idxmax()) == cause,
        took,
        said,
    )


def matches(where: dict[str, str], cause: tuple[str, str, str]) -> bool:
    """Tell whether a slice is the cause, and no more and no less."""
    return tuple(where.get(name) for name in ("tool", "region", "args_hash")) == cause


def ask(store: Store):  # type: ignore[no-untyped-def]
    """Return the cells of the window."""
    now = Filters(range="15m", to=UNTIL)
    window = now.window(UNTIL)
    values = now.parameters(window) | now.before_parameters(window)
    wanted = {key: values[key] for key in QUERY_PARAMETERS["page_changes"]}
    return store.query("page_changes", wanted).to_pandas()


def calls(random: np.random.Generator) -> tuple[tuple[str, str, str], Batch]:
    """Return the cause of a random fault, and two windows of calls."""
    rates = random.choice([0.002, 0.005, 0.01, 0.01, 0.02, 0.05, 0.15], TOOLS)
    shares = random.dirichlet(np.full(TOOLS, 0.8))
    hashes = [[f"v1:{secrets.token_hex(8)}" for _ in range(HASHES)] for _ in range(TOOLS)]
    weights = 1 / np.arange(1, HASHES + 1)
    places = {
        "tool": random.choice(TOOLS, 2 * CALLS, p=shares),
        "region": random.integers(0, len(REGIONS), 2 * CALLS),
        "hash": random.choice(HASHES, 2 * CALLS, p=weights / weights.sum()),
    }
    keys = np.stack(list(places.values()), axis=1)
    is_now = np.arange(2 * CALLS) >= CALLS
    slices, counts = np.unique(keys[is_now], axis=0, return_counts=True)
    likely = slices[counts >= LEAST_IN_SLICE]
    tool, region, number = likely[random.integers(len(likely))]
    inside = (keys == (tool, region, number)).all(axis=1)
    chance = rates[places["tool"]]
    chance = np.where(inside, np.where(is_now, FAULTY, USUAL), chance)
    fails = random.random(2 * CALLS) < chance
    seconds = random.random(2 * CALLS) * WINDOW.total_seconds()
    begin = UNTIL - 2 * WINDOW
    classes = random.choice(CLASSES, 2 * CALLS)
    fault_class = random.choice(CLASSES)
    batch = [
        ToolCall(
            f"tool_{keys[i, 0]:02d}",
            end=begin + (WINDOW if is_now[i] else timedelta(0)) + timedelta(seconds=seconds[i]),
            duration_seconds=float(random.exponential(0.2)),
            region=REGIONS[keys[i, 1]],
            agent=f"agent-{random.integers(4)}",
            service=f"service-{random.integers(6)}",
            args_hash=hashes[keys[i, 0]][keys[i, 2]],
            outcome="error" if fails[i] else "ok",
            error_class=(fault_class if inside[i] else classes[i]) if fails[i] else None,
        )
        for i in range(2 * CALLS)
    ]
    cause = (f"tool_{tool:02d}", REGIONS[region], hashes[tool][number])
    return cause, Batch(calls=batch)


if __name__ == "__main__":
    sys.exit(main())
