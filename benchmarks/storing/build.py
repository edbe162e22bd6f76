"""Builds a store of many calls: made by SQL, inserted as the store does, and rolled up."""

from __future__ import annotations

import secrets
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb

from fuseboard_collector.store import open_store
from fuseboard_collector.store.named_queries import load

HERE = Path(__file__).resolve().parent
DAYS = 30
CHUNK = 1_000_000
TRANSITIONS_PER_CALL = 0.0036


def build(path: Path, calls: int) -> None:
    """Make a data file with this many calls that ended in the last 30 days."""
    open_store(path, retention_days=None).close()
    ended = datetime.now(UTC).replace(tzinfo=None)
    began = ended - timedelta(days=DAYS)
    connection = duckdb.connect(str(path))
    for setting in ("enable_progress_bar = false", "TimeZone = 'UTC'", "memory_limit = '4GB'",
                    "checkpoint_threshold = '1GB'"):  # fmt: skip
        connection.execute(f"SET {setting}")
    started = time.monotonic()
    for first in range(0, calls, CHUNK):
        last = min(calls, first + CHUNK)
        step = DAYS * 86_400e6 / calls
        _insert(connection, first, last, began + timedelta(microseconds=first * step), step)
        _progress("built", last, calls, started)
    given = {"began": began, "days": DAYS, "transitions": round(calls * TRANSITIONS_PER_CALL)}
    for statement in duckdb.extract_statements(_sql("signs")):
        wanted = {name: given[name] for name in statement.named_parameters}
        connection.execute(statement.query, wanted or None).fetchall()
    connection.execute("CHECKPOINT")
    connection.close()
    print(f"\n{path.stat().st_size / calls:.0f} bytes a call before rollups", file=sys.stderr)


def top_up(path: Path, calls: int, minutes: float) -> None:
    """Add this many calls that ended in the last minutes, whatever the file's age."""
    open_store(path, retention_days=None).close()
    connection = duckdb.connect(str(path))
    connection.execute("SET TimeZone = 'UTC'")
    first = 10**12 + secrets.randbits(50)  # other ids than those before
    began = datetime.now(UTC).replace(tzinfo=None) - timedelta(minutes=minutes)
    _insert(connection, first, first + calls, began, minutes * 60e6 / calls)
    connection.close()


def roll_up(path: Path) -> None:
    """Have the keeper roll up everything."""
    store = open_store(path, retention_days=None, memory_limit="4GB")
    before, started = path.stat().st_size, time.monotonic()
    hours = store.hours_to_roll_up()
    store.roll_up()
    took = time.monotonic() - started
    store.close()
    print(
        f"{hours} hours rolled up in {took:.0f} s; "
        f"{(path.stat().st_size - before) / 1e6:.0f} MB more",
        file=sys.stderr,
    )


def _insert(
    connection: duckdb.DuckDBPyConnection, first: int, last: int, began: datetime, step_us: float
) -> None:
    given = {"first": first, "last": last, "began": began, "step_us": step_us}
    connection.execute(_sql("generate"), given).fetchall()
    connection.execute(_sql("attempts"))
    connection.execute("BEGIN")
    for table, source in (("tool_calls", "made_calls"), ("attempts", "made_attempts")):
        connection.execute(f"CREATE OR REPLACE TEMP VIEW incoming AS SELECT * FROM {source}")
        for statement in load(f"insert_{table}", "writes").statements:
            connection.execute(statement.sql).fetchall()
    connection.execute("COMMIT")


def _sql(name: str) -> str:
    return (HERE / f"{name}.sql").read_text(encoding="utf-8")


def _progress(what: str, done: int, of: int, started: float) -> None:
    took = time.monotonic() - started
    left = took / done * (of - done)
    print(f"\r{what} {done:,} of {of:,}, {left:.0f} s left ", end="", file=sys.stderr, flush=True)
