"""Every named query gives the same rows on DuckDB and on ClickHouse."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engines import Database
from random_rows import END, SPAN, TOOLS, TRACE, Rows

from fuseboard_alerts.catalogue import CATALOGUE
from fuseboard_alerts.targets.sql import question
from fuseboard_collector.store import AnyStore, Store, named_queries, open_store

QUERIES = [name for name in named_queries.names() if named_queries.load(name).reads_only]
MEASURED = 1e-9
"""Share by which sums of the same numbers in another order may differ."""
QUICK = 5_000
THOROUGHLY = {"page_calls", "page_lost_calls"}
"""Queries that are asked every choice by itself in the quick comparison, too."""
GOLDEN = Path(__file__).parents[1] / "golden"

CHOICES: dict[str, list[object]] = {
    "tools": [None, TOOLS[4:10], ["nobody"], []],
    "regions": [None, ["unknown", "eu-west"]],
    "classes": [None, ["L3_transient", "unclassified"], ["L1_input"]],
    "since": [END - timedelta(hours=1), END - SPAN],
    "kind": ["all", "slow", "faults", "retried"],
    "args_hash": [None, "v1:0007"],
    "outcomes": [None, ["degraded"]],
    "sources": [None, ["cache", "unknown"]],
    "trace_id": [TRACE, "0" * 32],
    "session": ["s-7", "nobody's"],
    "sessions": [None, ["s-7", "s-8"]],
    "agents": [None, ["planner"]],
    "failed_layer": [None, "tool", "timeout"],
    "bound_tools": [[], TOOLS[3:5]],
    "upstream": ["model-x", "api.example.org"],
}
FIXED: dict[str, object] = {
    "until": END - timedelta(minutes=1), "bucket_us": 600_000_000, "row_limit": 200,
    "no_service": "unknown_service", "no_region": "unknown", "slower_than": 5.0,
    "seen_since": END - timedelta(hours=20), "bound_seconds": [0.1, 3.0], "slow_seconds": 1.0,
    # Some of the rows have these: the generator begins with them.
    "traces": [call.trace_id for call in next(Rows(seed=QUICK).batches(50)).calls],
    "before_since": END - timedelta(hours=2), "before_until": END - timedelta(hours=1),
    "live_since": END - timedelta(hours=12), "unheard_since": END - timedelta(hours=15),
}  # fmt: skip


def parameters_of(name: str, thorough: bool = True) -> Iterator[dict[str, object]]:
    """Yield parameters to ask a query with: the plain ones, then others.

    Args:
        name: The query.
        thorough: Make each choice by itself, of all its values; else all choices at once.
    """
    wanted = {item for part in named_queries.load(name).statements for item in part.parameters}
    # An export of everything is large; its window is looked at elsewhere.
    chosen = [key for key in CHOICES if key in wanted and not name.startswith("export_")]
    plain = {key: FIXED.get(key, CHOICES.get(key, [None])[0]) for key in wanted}
    yield plain
    if not thorough:
        if chosen:
            yield {**plain, **{key: CHOICES[key][1] for key in chosen}}
        return
    for key in chosen:
        for value in CHOICES[key][1:]:
            yield {**plain, key: value}


@pytest.fixture(scope="module")
def pair(engine: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, AnyStore]]:
    with both(engine, tmp_path_factory.mktemp("duckdb"), calls=QUICK) as stores:
        yield stores


class both:
    """The same rows in a store of each engine."""

    def __init__(self, engine: Any, folder: Path, calls: int) -> None:
        from fuseboard_collector.store.clickhouse.address import Address
        from fuseboard_collector.store.clickhouse.setup import initialise

        database = Database(Address("engine", 1, f"pair_{calls}"), engine)
        initialise(engine(), "engine", database.address.database)
        self._stores = (
            open_store(folder / "fuseboard.duckdb", retention_days=None),
            database.open(),
        )
        for batch in Rows(seed=calls).batches(calls):
            for done in [store.append(batch) for store in self._stores]:
                done.result(120)

    def __enter__(self) -> tuple[Store, AnyStore]:
        return self._stores

    def __exit__(self, *_: object) -> None:
        for store in self._stores:
            store.close()


def sorted_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in an order that small differences between floats do not change."""

    def key(row: Mapping[str, Any]) -> str:
        exact = {k: v for k, v in row.items() if not isinstance(v, float)}
        rough = {k: f"{v:.6g}" for k, v in row.items() if isinstance(v, float)}
        return repr((sorted(exact.items(), key=repr), sorted(rough.items())))

    return sorted(rows, key=key)


def differences(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[str]:
    """Return how two answers differ, beginning with the columns."""
    if len(first) != len(second):
        return [f"{len(first)} rows and {len(second)}"]
    found = []
    for one, other in zip(sorted_rows(first), sorted_rows(second), strict=True):
        if list(one) != list(other):
            return [f"columns {list(one)} and {list(other)}"]
        found += [
            f"{column}: {value!r} and {other[column]!r} in {one}"
            for column, value in one.items()
            if not same(value, other[column])
        ]
    return found[:3]


def same(one: object, other: object) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        if one is None or other is None:
            return one is other
        return math.isclose(float(one), float(other), rel_tol=MEASURED, abs_tol=1e-12)  # type: ignore[arg-type]
    return one == other and (isinstance(one, bool) == isinstance(other, bool))


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_the_same_rows(pair: tuple[Store, AnyStore], name: str) -> None:
    duckdb, clickhouse = pair
    filled = 0
    for number, parameters in enumerate(parameters_of(name, name in THOROUGHLY)):
        expected = duckdb.query(name, parameters)
        found = clickhouse.query(name, parameters)
        assert found.schema.names == expected.schema.names
        assert differences(expected.to_pylist(), found.to_pylist()) == [], parameters
        if number == 0 and name.startswith("page_"):
            assert in_order(found) == in_order(expected)
        assert kinds(found) == kinds(expected)
        filled += expected.num_rows > 0
    assert filled or name in {"alert_memory_load", "alert_mute", "alert_mutes",
                              "export_alerts", "page_alert_history", "page_alerts_now",
                              "page_incident_mutes"}  # fmt: skip


def in_order(answer: pa.Table) -> list[list[object]]:
    """Return what tells in which order rows came."""
    return [[v for v in row.values() if not isinstance(v, float)] for row in answer.to_pylist()]


def kinds(answer: pa.Table) -> list[list[str]]:
    """Return the types of values: readers need not know the engine."""

    def kind(value: object) -> str:
        return "number" if type(value) in (int, float) else type(value).__name__

    return [[kind(v) for v in row.values()] for row in sorted_rows(answer.to_pylist())[:20]]


def test_the_alert_queries_give_the_golden_rows(database: Database) -> None:
    import importlib.util

    from made_calls import Seeded, at

    spec = importlib.util.spec_from_file_location("golden", GOLDEN / "test_alert_queries.py")
    assert spec is not None
    assert spec.loader is not None
    golden = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(golden)
    store = database.open()
    try:
        golden.seed(Seeded(store))  # type: ignore[arg-type]
        conditions = {rule.condition.query: rule.condition for rule in CATALOGUE}
        for name, expected in json.loads((GOLDEN / "alert_queries.json").read_text()).items():
            rows = question(conditions[name], at(golden.NOW)).ask(store)
            assert json.loads(json.dumps(rows, default=str)) == expected, name
    finally:
        store.close()


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_million_calls_give_the_same_rows(engine: Any, tmp_path: Path) -> None:
    with both(engine, tmp_path, calls=1_000_000) as (duckdb, clickhouse):
        assert clickhouse.query("page_store").to_pylist() == duckdb.query("page_store").to_pylist()
        different = []
        for name in QUERIES:
            for parameters in parameters_of(name):
                expected = duckdb.query(name, parameters).to_pylist()
                found = clickhouse.query(name, parameters).to_pylist()
                if unlike := differences(expected, found):
                    different.append((name, parameters, unlike))
        assert different == []


def test_times_are_compared_to_the_microsecond(pair: tuple[Store, AnyStore]) -> None:
    calls = pair[0].query("export_calls", {"since": None, "until": None}).column("end")
    moment: datetime = calls[len(calls) // 2].as_py()
    for since in (moment, moment - timedelta(microseconds=1)):
        first, second = (
            store.query("export_calls", {"since": since, "until": moment}) for store in pair
        )
        assert first.num_rows == second.num_rows
        assert (first.num_rows > 0) == (since < moment)
