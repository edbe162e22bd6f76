"""A store with a small, hand-computed set of calls, and the app on top of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import fuseboard_dashboard
from fuseboard_collector.errors import StoreError
from fuseboard_collector.store import (
    Attempt,
    Batch,
    BreakerTransition,
    Heartbeat,
    Store,
    ToolCall,
    open_store,
)
from fuseboard_dashboard import source
from fuseboard_dashboard.data import CACHE
from fuseboard_dashboard.filters import Filters, Window
from fuseboard_dashboard.objectives import ObjectiveBook
from fuseboard_dashboard.view import QUERY_PARAMETERS

APP = Path(str(fuseboard_dashboard.__file__)).with_name("app.py")
UNTIL = datetime(2026, 1, 5, 12, 15, tzinfo=UTC)
SINCE = UNTIL - timedelta(minutes=15)
WINDOW = Window(SINCE, UNTIL)


def at(seconds: float) -> datetime:
    """Return a moment this many seconds into the window."""
    return SINCE + timedelta(seconds=seconds)


def failed(call: ToolCall, number: int, seconds: float, delay: float = 0.0) -> Attempt:
    """Return a failed attempt of a call, ``seconds`` after its start."""
    assert isinstance(call.start, int)
    start = datetime.fromtimestamp(call.start / 1e6, UTC) + timedelta(seconds=seconds)
    return Attempt(
        call.trace_id, call.span_id, number, start, 0.2, call.tool, "failure",
        delay_seconds=delay, region=call.region, error_class="L3_transient",
        error_type="httpx.HTTPStatusError", http_status=503,
    )  # fmt: skip


def hand_computed() -> Batch:
    """Return twelve weighted calls; every golden number of the tests is computed from these."""
    us = {"tool": "alpha", "region": "us-east", "service": "agent"}
    eu = {"tool": "alpha", "region": "eu-west", "service": "agent"}
    fault = {"error_class": "L3_transient", "error_type": "httpx.HTTPStatusError",
             "classifier_id": "http_5xx_matcher", "http_status": 503}  # fmt: skip
    recovered = ToolCall(**us, end=at(120), duration_seconds=1.0, attempts=2, backoff_seconds=0.5,
                         attempt_seconds=0.4, args_hash="v1:aa")  # fmt: skip
    exhausted = ToolCall(**us, end=at(180), duration_seconds=2.0, attempts=3, outcome="error",
                         backoff_seconds=1.2, attempt_seconds=0.6, args_hash="v1:aa",
                         error_message="503 from https://example.org", **fault)  # fmt: skip
    calls = [
        ToolCall(**us, end=at(60), duration_seconds=0.1, attempt_seconds=0.1, args_hash="v1:aa"),
        recovered,
        exhausted,
        ToolCall(**us, end=at(240), duration_seconds=0.05, outcome="error",
                 error_class="L1_input", error_type="TypeError", classifier_id="binding",
                 args_hash="v1:bb"),
        ToolCall(**us, end=at(300), duration_seconds=0.001, outcome="rejected", attempts=0,
                 error_class="L3_transient", classifier_id="circuit_open", args_hash="v1:aa"),
        ToolCall(**us, end=at(360), duration_seconds=0.3, outcome="cancelled"),
        ToolCall(**eu, end=at(420), duration_seconds=0.002, outcome="degraded", attempts=0,
                 **fault),
        ToolCall(**eu, end=at(480), duration_seconds=0.4, outcome="partial",
                 error_class="L5_semantic", classifier_id="partial_failures"),
        ToolCall(tool="beta", end=at(600), duration_seconds=5.0, weight=3.0),
        ToolCall(tool="beta", end=UNTIL, duration_seconds=0.2, outcome="error"),
        ToolCall(**us, end=SINCE, duration_seconds=0.7),
    ]  # fmt: skip
    attempts = [
        failed(recovered, 1, 0.0),
        Attempt(recovered.trace_id, recovered.span_id, 2, at(119.8), 0.2, "alpha", "success",
                delay_seconds=0.5, region="us-east"),
        *(failed(exhausted, n, 0.6 * n, 0.6 if n > 1 else 0.0) for n in (1, 2, 3)),
    ]  # fmt: skip
    return Batch(calls=calls, attempts=attempts, transitions=transitions())


def transitions() -> list[BreakerTransition]:
    """Return two processes' breakers of alpha/us-east and one closed again of alpha/eu-west."""

    def change(moment: datetime, where: str, instance: str, old: str, new: str) -> object:
        return BreakerTransition(
            moment, f"alpha/{where}", "alpha", old, new, region=where, service="agent",
            instance=instance, reason="failure ratio", failure_ratio=0.6, calls=20, failures=12,
            error_class="L3_transient", trace_id="ab" * 16,
        )  # fmt: skip

    return [
        change(SINCE - timedelta(minutes=1), "us-east", "one", "closed", "open"),
        change(at(100), "us-east", "one", "open", "half_open"),
        change(at(110), "us-east", "one", "half_open", "closed"),
        change(at(105), "us-east", "two", "closed", "open"),
        change(at(200), "eu-west", "one", "closed", "open"),
        change(at(260), "eu-west", "one", "open", "closed"),
    ]  # type: ignore[list-item]


def alert_rows() -> pa.Table:
    """Return one alert that fires, one that was resolved and one pending."""
    labels = json.dumps({"job": "agent", "region": "us-east", "tool": "alpha"})
    other = json.dumps({"job": "agent", "region": "eu-west", "tool": "alpha"})

    def event(seconds: float, name: str, about: str, state: str, value: float) -> dict[str, object]:
        moment = at(seconds).replace(tzinfo=None)
        return {
            "time": moment, "alert": name, "severity": "warning", "labels": about, "state": state,
            "active_at": moment, "fired_at": moment if state == "firing" else None,
            "resolved_at": moment if state == "resolved" else None, "value": value,
        }  # fmt: skip

    rows = [
        event(100, "ToolCallRetryRateHigh", labels, "pending", 0.2),
        event(220, "ToolCallRetryRateHigh", labels, "firing", 0.29),
        event(100, "ToolCallSlow", other, "firing", 0.02),
        event(500, "ToolCallSlow", other, "resolved", 0.0),
        event(700, "ToolCallErrorRatioHigh", labels, "pending", 0.1),
    ]
    times = dict.fromkeys(("time", "active_at", "fired_at", "resolved_at"), pa.timestamp("us"))
    texts = dict.fromkeys(("alert", "severity", "labels", "state"), pa.string())
    kinds = {**times, **texts, "value": pa.float64()}
    schema = pa.schema([(name, kinds[name]) for name in rows[0]])
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.fixture(autouse=True)
def _fresh_cache() -> Iterator[None]:
    CACHE.clear()
    yield
    CACHE.clear()


@pytest.fixture(autouse=True)
def _same_main() -> Iterator[None]:
    """Put the main module back that AppTest replaces: processes spawned later would run the app."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture
def empty_store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "empty" / "fuseboard.duckdb", retention_days=None)
    yield store
    store.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "data" / "fuseboard.duckdb", retention_days=None)
    store.append(hand_computed()).result(30)
    store.insert("alert_events", alert_rows())
    yield store
    store.close()


@pytest.fixture
def ask(store: Store) -> Callable[..., list[dict[str, object]]]:
    """Run a page query over the window and return its rows."""

    def run(name: str, **changes: object) -> list[dict[str, object]]:
        values: dict[str, object] = {
            **Filters().parameters(WINDOW), **Filters().before_parameters(WINDOW),
            "bucket_us": 60_000_000, "kind": "all", "args_hash": None, "row_limit": 50,
            "breakers": None, "outcomes": None, "sources": None, "classifiers": None,
            "trace_id": None, "session": None, "sessions": None, "traces": None, "agents": None,
            "failed_layer": None, **ObjectiveBook().bounds(),
            "seen_since": (SINCE - timedelta(days=1)).isoformat(),
            "upstream": None, **changes,
        }  # fmt: skip
        wanted = {key: values[key] for key in QUERY_PARAMETERS[name]}
        rows: list[dict[str, object]] = store.query(name, wanted).to_pylist()
        return rows

    return run


class FlakyReader:
    """A reader that fails while told to, and counts what it is asked."""

    def __init__(self, reader: Store) -> None:
        self.store_id = reader.store_id
        self.failing: str | None = None
        self.asked: list[str] = []
        self._reader = reader

    def query(self, name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        self.asked.append(name)
        if self.failing is not None and name.startswith(self.failing):
            raise StoreError("the disk has gone for a walk")
        return self._reader.query(name, parameters)


@pytest.fixture
def flaky(store: Store) -> FlakyReader:
    return FlakyReader(store)


def serve(reader: object, now: datetime = UNTIL, **options: object) -> None:
    """Make the app read from ``reader``, at a standing clock."""
    source.configure(source.Source(reader=reader, clock=lambda: now, **options))  # type: ignore[arg-type]


def open_page(page: str = "", query: Mapping[str, Sequence[str] | str] | None = None) -> AppTest:
    """Open a page of the app in a new session, as its URL would."""
    app = AppTest.from_file(str(APP), default_timeout=60)
    for name, value in (query or {}).items():
        app.query_params[name] = value  # type: ignore[assignment]
    return go_to(app, page)


def go_to(app: AppTest, page: str) -> AppTest:
    """Change the page within a session and run it."""
    app._page_hash = calc_hash(page)
    return app.run()


def html(app: AppTest) -> str:
    """Return all markup of the page, the sidebar's included."""
    return "\n".join(element.value for element in app.html)


def stat(app: AppTest, name: str) -> float:
    """Return a headline number by its hook."""
    after = html(app).split(f'data-stat="{name}" data-value="')[1]
    return float(after.split('"')[0])


def heartbeats(instance: str, *moments: datetime) -> Batch:
    return Batch(heartbeats=[Heartbeat(moment, instance, service="agent") for moment in moments])
