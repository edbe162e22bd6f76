"""A query that needs too much memory fails alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from fuseboard_collector.errors import StoreError
from fuseboard_collector.store import (
    Batch,
    Store,
    ToolCall,
    memory,
    named_queries,
    open_store,
    space,
)

START = datetime(2026, 11, 30, tzinfo=UTC)
MIB = 1024 * 1024

POUR = """
INSERT INTO tool_calls BY NAME
SELECT md5(i::VARCHAR) AS trace_id, left(md5(i::VARCHAR), 16) AS span_id,
       t AS "start", t AS "end", t AS received_at, (i % 997) / 100 AS duration_seconds,
       'tool ' || i % 50 AS tool, if(i % 20 = 0, 'error', 'ok') AS outcome,
       if(i % 20 = 0, 'L3_transient', NULL) AS error_class, 1 AS attempts, 1 AS weight,
       'v1:' || left(md5((i % 5000)::VARCHAR), 16) AS args_hash,
       repeat(md5((i * 7)::VARCHAR), 128) AS error_message
FROM (SELECT i, make_timestamp($start + i * $gap) AS t FROM range($first, $last) r(i))
"""
HUNGRY = """
SELECT list(error_message || i::VARCHAR) AS everything FROM tool_calls, range(3) t(i)
"""


def pour(path: Path, rows: int) -> None:
    """Store calls with 4 kB of text each, spread over 24 hours, past the write-ahead log."""
    open_store(path, retention_days=None).close()
    bounds = {
        "start": int(START.timestamp() * 1e6), "gap": 86_400_000_000 // rows,
        "first": 0, "last": rows,
    }  # fmt: skip
    with duckdb.connect(str(path), config={"memory_limit": "2GB"}) as connection:
        connection.execute(POUR, bounds)


def overview_queries() -> list[str]:
    """Every query of the pages but those that list single calls."""
    return [
        name for name in named_queries.names() if name.startswith("page_") and name != "page_calls"
    ]


def parameters(name: str) -> dict[str, object]:
    """Return a window of the 24 hours, which is answered from raw rows."""
    given = {"since": START, "until": START + timedelta(days=1), "bucket_us": 600_000_000}
    query = named_queries.load(name)
    wanted = frozenset[str]().union(*(item.parameters for item in query.statements))
    return {key: given.get(key) for key in wanted}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_hc_42_overviews_of_large_payloads_fit_into_256_mb_and_a_bad_query_fails_alone(
    make_store: Callable[..., Store], own_queries: Callable[[str, str], None], tmp_path: Path
) -> None:
    """200,000 calls of 4 kB, three times the limit, stand for five million."""
    pour(tmp_path / "data" / "fuseboard.duckdb", 200_000)
    store = make_store(retention_days=None, memory_limit="256MiB")
    own_queries("hungry", HUNGRY)
    stored: list[int] = []
    stop = threading.Event()

    def ingest() -> None:
        while not stop.is_set():
            store.append(Batch(calls=[ToolCall("new", end=START + timedelta(days=1))])).result(60)
            stored.append(1)

    thread = threading.Thread(target=ingest)
    thread.start()
    try:
        with pytest.raises(StoreError, match=r"memory limit of 256MiB.*shorter time range"):
            store.query("hungry")
        for name in overview_queries():
            store.query(name, parameters(name))
    finally:
        stop.set()
        thread.join(60)
    assert stored
    assert store.stats.get("reopened") == 0
    assert store.query("page_store")["calls"].to_pylist() == [200_000 + len(stored)]


def test_hc_42_a_query_without_memory_says_so_and_the_next_one_works(
    make_store: Callable[..., Store], own_queries: Callable[[str, str], None], tmp_path: Path
) -> None:
    pour(tmp_path / "data" / "fuseboard.duckdb", 20_000)
    store = make_store(retention_days=None, memory_limit="64MiB")
    own_queries("hungry", HUNGRY)
    with pytest.raises(StoreError, match="needs more than the store's memory limit of 64MiB"):
        store.query("hungry")
    store.append(Batch(calls=[ToolCall("new", end=START)])).result(30)
    assert store.query("page_store")["calls"].to_pylist() == [20_001]


# --- how much there is --------------------------------------------------------------------
def test_a_container_s_limit_counts(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(f"{2048 * MIB}\n")
    assert memory.available((limit,)) == 2048 * MIB
    limit.write_text("max\n")
    machine = memory.available((limit,))
    assert machine > 2048 * MIB
    assert memory.available((tmp_path / "none",)) == machine


@pytest.mark.parametrize(
    ("available", "expected"),
    [(400 * MIB, "256MiB"), (8192 * MIB, "2048MiB"), (1 << 40, "4096MiB")],
)
def test_the_engine_gets_a_quarter_within_bounds(
    monkeypatch: pytest.MonkeyPatch, available: int, expected: str
) -> None:
    monkeypatch.setattr(memory, "available", lambda: available)
    assert memory.default_limit() == expected


@pytest.mark.parametrize(
    ("free", "expected"),
    [(100 << 30, space.MAX_SPILL), (2256 * MIB, 1000 * MIB), (10 * MIB, space.MIN_SPILL)],
)
def test_large_sorts_leave_room_for_storing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, expected: int
) -> None:
    monkeypatch.setattr(space, "free_bytes", lambda _folder: free)
    assert space.spill_limit(tmp_path, 256 * MIB) == expected


def test_the_engine_knows_its_limits(make_store: Callable[..., Any]) -> None:
    store = make_store(memory_limit="300MiB")
    with store._open_database().cursor() as cursor:
        settings = dict(
            cursor.execute(
                "SELECT name, value FROM duckdb_settings() "
                "WHERE name IN ('memory_limit', 'max_temp_directory_size')"
            ).fetchall()
        )
    assert settings["memory_limit"] == "300.0 MiB"
    assert settings["max_temp_directory_size"].endswith("iB")
    assert "%" not in settings["max_temp_directory_size"]
