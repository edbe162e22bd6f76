"""Recorded exports through the real store: order, portions, repeats and restarts change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from random import Random
from typing import Any

import pytest
from assembled_exports import Sent, expected_of, sent
from recorded_exports import RECEIVED, recordings

from fuseboard_collector.normalise.incoming import Traces
from fuseboard_collector.normalise.normaliser import normalise_traces
from fuseboard_collector.store import Store, open_store

NAMES = list(recordings())
OPTIONS: dict[str, Any] = {"retention_days": None}


def put(store: Store, spans: Iterable[Sent], received: int) -> Future[None]:
    groups = [(source, [span]) for source, span in spans]
    return store.append(normalise_traces(Traces(groups=groups), received))


def stored(store: Store) -> list[tuple[object, ...]]:
    """Return all rows but their times of arrival, which do depend on the order."""
    store.settle()
    database = store._database
    assert database is not None
    rows: list[tuple[object, ...]] = []
    with database.cursor() as cursor:
        for table in ("tool_calls", "attempts", "spans"):
            found = cursor.execute(
                f"SELECT '{table}', * EXCLUDE (received_at) FROM {table}"
            ).fetchall()
            rows += found
    return sorted(rows, key=repr)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    """What comes of all recordings, each sent in one request."""
    store = open_store(tmp_path_factory.mktemp("whole") / "fuseboard.duckdb", **OPTIONS)
    try:
        waiting = [put(store, sent(recordings()[name]), RECEIVED) for name in NAMES]
        for done in waiting:
            done.result(30)
        return stored(store)
    finally:
        store.close()


def test_all_calls_are_there_once(whole: list[tuple[object, ...]]) -> None:
    expected = sum(len(expected_of(recordings()[name])) for name in NAMES)
    assert sum(row[0] == "tool_calls" for row in whole) == expected > 380


@pytest.mark.parametrize("seed", [1, 2])
def test_order_portions_repeats_and_restarts_change_no_row(
    make_store: Callable[..., Store], whole: list[tuple[object, ...]], seed: int
) -> None:
    chance = Random(seed)
    spans = [item for name in NAMES for item in sent(recordings()[name])]
    spans += chance.sample(spans, 300)
    chance.shuffle(spans)
    store = make_store(**OPTIONS)
    waiting: list[Future[None]] = []
    restarts = set(chance.sample(range(len(spans)), 2))
    for number, span in enumerate(spans):
        waiting.append(put(store, [span], RECEIVED + number))
        if chance.random() < 0.01:
            store.settle()
        if number in restarts:
            store.close()
            store = make_store(**OPTIONS)
    for done in waiting:
        done.result(30)
    assert stored(store) == whole
    assert store.stats.get("repeats", "sightings") > 0
