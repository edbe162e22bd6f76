"""``/metrics`` of the collector: what is counted, under which names, in Prometheus' format."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient

from fuseboard_collector import api, metrics
from fuseboard_collector.stats import BUCKETS, Stats
from fuseboard_collector.store import Store

JSON = {"content-type": "application/json"}
PAGE = Path(__file__).parents[2] / "docs" / "platform.md"


def samples(client: TestClient) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name.removeprefix("fuseboard_collector_"), frozenset(sample.labels.items())):
            sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }  # fmt: skip


def value(client: TestClient, name: str, **labels: str) -> float:
    return samples(client).get((name, frozenset(labels.items())), 0.0)


@pytest.fixture
def used(client: TestClient, otlp: Any) -> TestClient:
    """A collector that has seen one of everything."""
    good = otlp.json(otlp.traces(otlp.span(), otlp.span(trace="00" * 16)))
    for body in (good, good, b"{"):
        client.post("/v1/traces", content=body, headers=JSON)
    client.post("/v1/logs", content=otlp.json(otlp.logs("other", {})), headers=JSON)
    client.post("/v1/metrics", content=b'{"resourceMetrics": []}', headers=JSON)
    client.get("/api/v1/stats")
    return client


def test_requests_are_counted_by_protocol_signal_and_status(used: TestClient) -> None:
    def requests(signal: str, status: str) -> float:
        return value(used, "requests_total", protocol="http", signal=signal, status=status)

    assert requests("traces", "200") == 2
    assert requests("traces", "400") == 1
    assert requests("logs", "200") == 1
    assert requests("metrics", "200") == 1


def test_records_are_counted_by_what_became_of_them(used: TestClient) -> None:
    assert value(used, "accepted_records_total", signal="traces") == 2
    assert value(used, "rejected_records_total", signal="traces", reason="bad trace_id") == 2
    assert value(used, "ignored_records_total", signal="logs") == 1
    assert value(used, "stored_rows_total", table="tool_calls") == 1
    assert value(used, "repeated_rows_total", table="tool_calls") == 1
    assert value(used, "commits_total") >= 1


def test_spans_of_others_are_counted_by_dialect(client: TestClient, otlp: Any) -> None:
    marks = ({"gen_ai.operation.name": "execute_tool"}, {"openinference.span.kind": "TOOL"},
             {"openinference.span.kind": "LLM"})  # fmt: skip
    for number, attributes in enumerate((*marks, marks[0]), 1):
        span = {**otlp.span(attributes=attributes), "spanId": f"{number:016x}"}
        body = otlp.json(otlp.traces(span, scope="some.instrumentation"))
        assert client.post("/v1/traces", content=body, headers=JSON).status_code == 200
    found = {name: value(client, "foreign_spans_total", dialect=name)
             for name in ("genai", "openinference", "mcp")}  # fmt: skip
    assert found == {"genai": 2, "openinference": 1, "mcp": 0}


def test_the_time_of_commits_is_a_histogram(used: TestClient) -> None:
    found = samples(used)
    bounds = {
        dict(labels)["le"]: n for (name, labels), n in found.items()
        if name == "commit_seconds_bucket"
    }  # fmt: skip
    assert len(bounds) == len(BUCKETS) + 1
    assert list(bounds.values()) == sorted(bounds.values())
    assert bounds["+Inf"] == value(used, "commit_seconds_count") == 2
    assert value(used, "commit_seconds_sum") > 0


def test_the_state_of_the_store_is_told(used: TestClient, store: Store) -> None:
    assert value(used, "store_available") == 1
    assert value(used, "queue_rows") == 0
    assert value(used, "store_size_bytes") > 0
    assert value(used, "store_free_block_bytes") >= 0
    assert 0 <= value(used, "oldest_row_age_seconds") < 3600
    assert value(used, "build_info", version=_version()) == 1
    assert samples(used)[("process_resident_memory_bytes", frozenset())] > 1e6


def _version() -> str:
    from importlib.metadata import version

    return version("fuseboard")


def test_a_store_that_is_away_is_told_and_metrics_still_come(
    make_store: Callable[..., Store],
) -> None:
    full = make_store(free_space_floor=1 << 62)
    with TestClient(Starlette(routes=api.routes(full))) as client:
        assert value(client, "store_available") == 0
        answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "left; nothing is stored" in answer.json()["reason"]


def test_a_server_that_stops_is_not_ready(store: Store) -> None:
    with TestClient(Starlette(routes=api.routes(store, is_stopping=lambda: True))) as client:
        answer = client.get("/readyz")
        assert client.get("/healthz").status_code == 200
    assert (answer.status_code, answer.json()["reason"]) == (503, "the server is stopping")


def test_a_counter_of_another_part_is_shown_under_its_own_name(
    client: TestClient, store: Store
) -> None:
    store.stats.add("staged_spans", 3)
    store.stats.add("deleted_rows", 4, "tool_calls")
    assert value(client, "staged_spans_total") == 3
    assert value(client, "deleted_rows_total", kind="tool_calls") == 4


def test_promtool_finds_nothing_to_lint(used: TestClient, promtool: Path) -> None:
    done = subprocess.run(
        [str(promtool), "check", "metrics"], input=used.get("/metrics").text,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_openmetrics_is_spoken_to_who_asks_for_it(used: TestClient) -> None:
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}
    answer = used.get("/metrics", headers=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


def test_every_metric_is_documented(used: TestClient) -> None:
    page = PAGE.read_text()
    shown = {
        re.sub("_(bucket|sum|count)$", "", f"fuseboard_collector_{name}")
        for name, _ in samples(used)
        if not name.startswith("process_")
    }
    assert shown <= metrics.NAMES
    assert [name for name in sorted(metrics.NAMES) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.0051, 10.0, 10.1, 1e9])
def test_a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed(seconds: float) -> None:
    stats = Stats()
    stats.observe("commit", seconds)
    timing = stats.timing("commit")
    expected = next((i for i, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
    assert timing.counts.index(1) == expected
    assert (sum(timing.counts), timing.total) == (1, seconds)
    assert sum(stats.timing("other").counts) == 0
