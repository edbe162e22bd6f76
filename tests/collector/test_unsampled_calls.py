"""Calls whose spans were not sampled count in the store's rates like all others."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from fuseboard_collector.store import Store

AGENT = """
import sys
import fuseboard
from fuseboard import Fallback, Policy, Retry

fuseboard.init("rates", endpoint=sys.argv[1])
POLICY = Policy(retry=Retry(attempts=3, wait_initial=0), fallback=Fallback(value="old"))

@fuseboard.tool(policy=POLICY)
def weather(failures, runs):
    runs.append(1)
    if len(runs) <= failures:
        raise ConnectionRefusedError("down")
    return "clear"

@fuseboard.tool
def search(fails):
    if fails:
        raise KeyError("x")

for failures in (0, 0, 1, 2, 9, 0):
    weather(failures, [])
for fails in (False, True, False):
    try:
        search(fails)
    except KeyError:
        pass
assert fuseboard.shutdown(30)
"""


def run_agent(url: str, sampler: str) -> None:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "FUSEBOARD_"))}
    subprocess.run(
        [sys.executable, "-c", AGENT, url],
        env={**inherited, "OTEL_TRACES_SAMPLER": sampler},
        check=True,
        timeout=100,
    )


@pytest.fixture
def stores(make_store: Any, serve: Any) -> tuple[Store, Store]:
    """A store of sampled calls, and one of the same calls not sampled."""
    made = make_store("sampled.duckdb"), make_store("unsampled.duckdb")
    for store, sampler in zip(made, ("always_on", "always_off"), strict=True):
        with serve(store) as url:
            run_agent(url, sampler)
    return made


def read(store: Store, query: str) -> list[dict[str, Any]]:
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    parameters = {
        "since": now - dt.timedelta(hours=1),
        "until": now + dt.timedelta(hours=1),
        "tools": None,
        "regions": None,
    }
    return store.query(query, parameters).to_pylist()


def test_rates_of_retries_do_not_depend_on_sampling(stores: tuple[Store, Store]) -> None:
    sampled, unsampled = (
        [{**row, "backoff_total": None} for row in read(store, "page_retries")] for store in stores
    )
    assert sampled == unsampled
    (weather,) = [row for row in sampled if row["tool"] == "weather"]
    counts = {key: weather[key] for key in ("attempted", "retried", "attempts_made", "first_try")}
    assert counts == {"attempted": 6, "retried": 3, "attempts_made": 11, "first_try": 3}
    assert (weather["recovered"], weather["exhausted"]) == (2, 1)


def test_every_fact_of_a_call_arrives_either_way(stores: tuple[Store, Store]) -> None:
    sampled, unsampled = (Counter(read_facts(store)) for store in stores)
    assert sampled == unsampled
    assert sampled.total() == 9


def read_facts(store: Store) -> list[tuple[Any, ...]]:
    database = store._database
    assert database is not None
    with database.cursor() as cursor:
        return cursor.execute(
            "SELECT tool, outcome, error_class, classifier_id, attempts, layer, result_source, "
            "confidence, fallback_tool, retry_strategy FROM tool_calls"
        ).fetchall()
