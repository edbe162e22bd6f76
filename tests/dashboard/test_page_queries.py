"""Golden numbers of every page query on twelve calls computed by hand (see conftest)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from fuseboard.calls import judging
from fuseboard.classification.sdk_errors import CIRCUIT_OPEN
from fuseboard.conventions import (
    SCOPE_NAME,
    BreakerState,
    ErrorClass,
    Layer,
    Outcome,
    ResultSource,
)
from fuseboard_alerts import mutes
from fuseboard_collector.store import (
    Batch,
    BreakerTransition,
    Heartbeat,
    Store,
    ToolCall,
    named_queries,
)
from fuseboard_dashboard.view import QUERY_PARAMETERS

from .conftest import SINCE, UNTIL, at, heartbeats

Ask = Callable[..., list[dict[str, object]]]
PAGE_QUERIES = [name for name in named_queries.names() if name.startswith("page_")]
QUERIES = Path(str(files("fuseboard_collector.store"))) / "queries"


def test_every_page_query_is_listed_with_exactly_its_parameters() -> None:
    found = {name: set(re.findall(r"\$(\w+)", named_queries.text(name))) for name in PAGE_QUERIES}
    assert found == {name: set(names) for name, names in QUERY_PARAMETERS.items()}


@pytest.mark.parametrize("name", PAGE_QUERIES)
def test_every_parameter_is_cast(name: str) -> None:
    sql = named_queries.text(name)
    assert re.findall(r"\$\w+(?!\w|::)", sql) == []


@pytest.mark.parametrize("name", PAGE_QUERIES)
def test_literals_are_names_of_the_conventions(name: str) -> None:
    sql = "\n".join(
        line for line in named_queries.text(name).splitlines()
        if not line.lstrip().startswith("--")
    )  # fmt: skip
    own = {"unknown", "", "tool", "region", "faults", "retried", "slow", "success", "failure",
           "firing", "pending", "no_data", "critical", "warning", "/", ", ",
           SCOPE_NAME}  # fmt: skip
    keys = {f"$.{key}" for key in ("breaker", "tool", "region", "upstream", "state", "since",
                                   "start", "span_id", "args_hash")}  # fmt: skip
    rules = {CIRCUIT_OPEN, *judging._LAYERS}
    errors = {f"%{word}%" for word in ("PoolTimeout", "PoolExhausted", "Timeout", "TimedOut",
                                       "DeadlineExceeded", "JSONDecodeError",
                                       "UnicodeDecodeError")} | {" "}  # fmt: skip
    names = {*ErrorClass, *Outcome, *BreakerState, *Layer, *ResultSource, "$[*]"}
    names |= keys | own | rules | errors
    assert set(re.findall(r"'([^']*)'", sql)) <= names


def test_every_fragment_is_included_and_variants_stand_for_one() -> None:
    texts = {name: named_queries.text(name) for name in named_queries.names()}
    assert not [name for name, sql in texts.items() if "-- include" in sql]
    raw = "\n".join(item.read_text() for item in QUERIES.rglob("*.sql"))
    fragments = QUERIES / "fragments"
    for file in fragments.rglob("*.sql"):
        assert re.search(rf'-- include {file.stem}( of @?\w+)?( by [@\w", *]+)?\n', raw), (
            f"{file.name} is unused"
        )
        if file.parent != fragments:
            assert (fragments / file.name).is_file(), f"{file} is a variant of nothing"


def test_totals(ask: Ask) -> None:
    (row,) = ask("page_totals")
    assert row == {
        "calls": 12, "judged": 11, "errors": 3, "input_faults": 1, "rejected": 1,
        "degraded": 1, "partials": 1, "faults": 6, "attempted": 10, "retried": 2,
        "attempts_made": 13,
        "backoff_total": pytest.approx(1.7), "attempt_total": pytest.approx(1.1),
        "duration_total": pytest.approx(19.053), "p50": 0.3, "p95": 5.0, "p99": 5.0,
        "slowest": 5.0,
    }  # fmt: skip


def test_the_window_excludes_its_start_and_includes_its_end(ask: Ask) -> None:
    (row,) = ask("page_totals", since=_text(UNTIL - timedelta(microseconds=1)))
    assert (row["calls"], row["errors"]) == (1, 1)
    (row,) = ask("page_totals", since=_text(SINCE - timedelta(microseconds=1)), until=_text(SINCE))
    assert row["calls"] == 1


def test_a_class_narrows_errors_but_not_what_they_are_divided_by(ask: Ask) -> None:
    (row,) = ask("page_totals", classes=["L3_transient"])
    assert (row["calls"], row["judged"], row["errors"], row["faults"]) == (12, 11, 2, 3)
    (row,) = ask("page_totals", classes=["L1_input"])
    assert (row["errors"], row["input_faults"], row["faults"]) == (0, 1, 1)
    (row,) = ask("page_totals", classes=["unclassified"])
    assert (row["errors"], row["faults"]) == (1, 1)


def test_tools_and_regions_narrow_calls_and_no_region_is_unknown(ask: Ask) -> None:
    (row,) = ask("page_totals", tools=["alpha"], regions=["eu-west"])
    assert (row["calls"], row["degraded"], row["partials"]) == (2, 1, 1)
    (row,) = ask("page_totals", regions=["unknown"])
    assert row["calls"] == 4


def test_an_empty_window_has_zero_counts_and_no_quantiles(ask: Ask) -> None:
    (row,) = ask("page_totals", tools=["nobody"])
    assert row["calls"] == 0
    assert row["p99"] is None


def test_tools_per_region(ask: Ask) -> None:
    rows = [(r["tool"], r["region"], r["calls"], r["errors"], r["retried"], r["p99"])
            for r in ask("page_tools")]  # fmt: skip
    assert rows == [
        ("alpha", "us-east", 6, 2, 2, 2.0),
        ("beta", "unknown", 4, 1, 0, 5.0),
        ("alpha", "eu-west", 2, 0, 0, 0.4),
    ]


def test_a_bucket_holds_calls_up_to_and_with_its_end(ask: Ask) -> None:
    rows = ask("page_series")
    first = rows[0]
    assert first["bucket"] == SINCE.replace(tzinfo=None)  # the call ended at 12:01:00 sharp
    assert first["calls"] == 1
    assert sum(r["calls"] for r in rows) == 12  # type: ignore[misc]
    assert sum(r["errors"] for r in rows) == 3  # type: ignore[misc]
    assert max(r["slowest"] for r in rows) == 5.0  # type: ignore[type-var]


def test_trend_adds_up_to_the_tools(ask: Ask) -> None:
    rows = ask("page_trend")
    for tool in ask("page_tools"):
        mine = [r for r in rows if (r["tool"], r["region"]) == (tool["tool"], tool["region"])]
        for column in ("calls", "judged", "errors", "attempted", "retried"):
            assert sum(r[column] for r in mine) == tool[column]  # type: ignore[misc]


def test_outcomes(ask: Ask) -> None:
    rows = ask("page_outcomes", bucket_us=3_600_000_000)
    assert {(r["outcome"], r["error_class"]): r["calls"] for r in rows} == {
        ("ok", None): 5, ("error", "L3_transient"): 1, ("error", "L1_input"): 1,
        ("error", "unclassified"): 1, ("rejected", "L3_transient"): 1, ("cancelled", None): 1,
        ("degraded", "L3_transient"): 1, ("partial", "L5_semantic"): 1,
    }  # fmt: skip
    only = ask("page_outcomes", bucket_us=3_600_000_000, classes=["unclassified"])
    assert [(r["outcome"], r["calls"]) for r in only] == [("error", 1)]


def test_error_matrix(ask: Ask) -> None:
    rows = {(r["error_class"], r["tool"], r["region"]): (r["faults"], r["calls"], r["fault_ratio"])
            for r in ask("page_error_matrix")}  # fmt: skip
    assert rows == {
        ("L3_transient", "alpha", "us-east"): (2, 6, pytest.approx(1 / 3)),
        ("L1_input", "alpha", "us-east"): (1, 6, pytest.approx(1 / 6)),
        ("L3_transient", "alpha", "eu-west"): (1, 2, 0.5),
        ("L5_semantic", "alpha", "eu-west"): (1, 2, 0.5),
        ("unclassified", "beta", "unknown"): (1, 4, 0.25),
    }


def test_error_kinds(ask: Ask) -> None:
    first = ask("page_error_kinds")[0]
    assert (first["error_class"], first["classifier_id"], first["http_status"], first["faults"],
            first["regions"]) == ("L3_transient", "http_5xx_matcher", 503, 2, 2)  # fmt: skip


def test_error_arguments_count_all_calls_with_the_hash(ask: Ask) -> None:
    rows = [(r["args_hash"], r["faults"], r["calls"], r["fault_ratio"])
            for r in ask("page_error_arguments")]  # fmt: skip
    assert rows == [("v1:aa", 2, 4, 0.5), ("v1:bb", 1, 1, 1.0)]


def test_calls_by_kind(ask: Ask) -> None:
    newest = ask("page_calls")
    assert len(newest) == 10
    assert newest[0]["end"] == UNTIL.replace(tzinfo=None)
    assert len(ask("page_calls", kind="faults")) == 6
    assert {r["attempts"] for r in ask("page_calls", kind="retried")} == {2, 3}
    assert ask("page_calls", kind="slow")[0]["duration_seconds"] == 5.0
    assert len(ask("page_calls", args_hash="v1:aa")) == 4
    assert len(ask("page_calls", row_limit=3)) == 3


def test_no_table_is_longer_than_a_thousand_rows(store: Store, ask: Ask) -> None:
    store.append(Batch(calls=[ToolCall("many", end=at(60)) for _ in range(1200)])).result(30)
    assert len(ask("page_calls", row_limit=100_000)) == 1000


def test_retries(ask: Ask) -> None:
    us, beta, eu = ask("page_retries")
    assert (us["tool"], us["region"]) == ("alpha", "us-east")
    assert (us["attempted"], us["retried"], us["attempts_made"]) == (5, 2, 8)
    assert (us["recovered"], us["exhausted"], us["succeeded"]) == (1, 1, 2)
    assert us["retry_ratio"] == pytest.approx(0.4)
    assert us["amplification"] == pytest.approx(1.6)
    assert us["backoff_total"] == pytest.approx(1.7)
    assert us["first_try"] == 1  # neither the recovered, nor the wrong, nor the cancelled one
    assert (beta["tool"], beta["attempted"], beta["first_try"]) == ("beta", 4, 3)
    assert (eu["attempted"], eu["retried"]) == (1, 0)


def test_failed_attempts_by_number(ask: Ask) -> None:
    rows = [(r["error_class"], r["number"], r["failures"]) for r in ask("page_attempt_faults")]
    assert rows == [("L3_transient", 1, 2), ("L3_transient", 2, 1), ("L3_transient", 3, 1)]
    assert ask("page_attempt_faults", classes=["L2_access"]) == []


def test_latency_of_calls_includes_back_off_and_of_attempts_does_not(ask: Ask) -> None:
    beta, alpha = ask("page_latency")
    assert (beta["tool"], beta["p99"], beta["mean"]) == ("beta", 5.0, pytest.approx(15.2 / 4))
    assert (alpha["p50"], alpha["p99"], alpha["slowest"]) == (0.1, 2.0, 2.0)
    assert alpha["mean_backoff"] == pytest.approx(1.7 / 8)
    attempts = {row["tool"]: row for row in ask("page_attempt_latency")}
    assert attempts["alpha"]["attempt_p99"] < alpha["p99"]  # type: ignore[operator]
    (only,) = ask("page_latency", classes=["L5_semantic"])
    assert (only["calls"], only["p99"]) == (1, 0.4)


def test_latency_series_and_heatmap_agree(ask: Ask) -> None:
    series = ask("page_latency_series")
    cells = ask("page_latency_heatmap")
    assert sum(r["calls"] for r in series) == sum(r["calls"] for r in cells) == 12  # type: ignore[misc]
    slowest = max(cells, key=lambda r: r["step"])  # type: ignore[arg-type, return-value]
    edge = 2 ** (slowest["step"] / 2) / 1000  # type: ignore[operator]
    assert edge <= 5.0 < edge * 2**0.5


def test_breaker_state_is_the_worst_over_processes(ask: Ask) -> None:
    rows = {r["breaker"]: r for r in ask("page_breaker_states")}
    us, eu = rows["alpha/us-east"], rows["alpha/eu-west"]
    assert (us["state"], us["processes"], us["processes_not_closed"]) == ("open", 2, 1)
    assert us["since_time"] == at(105).replace(tzinfo=None)
    assert (eu["state"], eu["processes_not_closed"]) == ("closed", 0)


def test_breaker_state_is_that_of_the_windows_end(ask: Ask) -> None:
    rows = {r["breaker"]: r["state"] for r in ask("page_breaker_states", until=_text(at(210)))}
    assert rows == {"alpha/us-east": "open", "alpha/eu-west": "open"}


def test_the_state_of_a_silent_process_is_unknown(store: Store, ask: Ask) -> None:
    store.append(heartbeats("two", at(100), UNTIL - timedelta(seconds=46))).result(30)
    rows = {r["breaker"]: r["state"] for r in ask("page_breaker_states")}
    assert rows["alpha/us-east"] == "unknown"
    assert {r["last_state"] for r in ask("page_breaker_states")} == {"open", "closed"}
    store.append(heartbeats("two", UNTIL - timedelta(seconds=10))).result(30)
    rows = {r["breaker"]: r["state"] for r in ask("page_breaker_states")}
    assert rows["alpha/us-east"] == "open"


def test_a_process_that_fell_silent_before_the_window_is_history(store: Store, ask: Ask) -> None:
    """Else the breaker of every restarted process would stay unknown for as long as data live."""
    store.append(heartbeats("two", at(100), at(300))).result(30)
    rows = {r["breaker"]: r for r in ask("page_breaker_states", since=_text(at(400)))}
    us = rows["alpha/us-east"]
    assert (us["state"], us["processes"]) == ("closed", 1)
    states = {r["state"] for r in ask("page_breaker_timeline", since=_text(at(400)))}
    assert states == {"closed"}


def guarded(moment: datetime, tool: str = "delta", instance: str = "one") -> ToolCall:
    """Return a call that a closed breaker let pass."""
    return ToolCall(tool, end=moment, region="us-east", upstream="delta-api",
                    breaker_state="closed", instance=instance)  # fmt: skip


def test_a_breaker_that_never_changed_is_known_from_the_calls_it_guards(
    store: Store, ask: Ask
) -> None:
    bare = ToolCall("bare", end=at(100), region="us-east", instance="one")
    store.append(Batch(calls=[guarded(at(100)), bare])).result(30)
    rows = {r["breaker"]: r for r in ask("page_breaker_states")}
    assert set(rows) == {"alpha/us-east", "alpha/eu-west", "delta/us-east/delta-api"}
    delta = rows["delta/us-east/delta-api"]
    assert (delta["tool"], delta["region"], delta["state"]) == ("delta", "us-east", "closed")
    assert (delta["since_time"], delta["processes"]) == (None, 1)
    assert [r["state"] for r in ask("page_breaker_timeline", tools=["delta"])] == ["closed"]


def test_calls_of_a_breaker_that_changed_make_no_second_breaker(store: Store, ask: Ask) -> None:
    call = ToolCall("alpha", end=at(700), region="us-east", breaker_state="open", instance="two")
    store.append(Batch(calls=[call])).result(30)
    (row,) = ask("page_breaker_states", regions=["us-east"])
    assert (row["breaker"], row["state"], row["processes"]) == ("alpha/us-east", "open", 2)


def test_a_closed_breaker_of_a_process_that_ended_is_unknown_but_yields_to_a_live_one(
    store: Store, ask: Ask
) -> None:
    store.append(Batch(calls=[guarded(at(100))])).result(30)
    store.append(heartbeats("one", at(60), at(300))).result(30)
    (row,) = ask("page_breaker_states", tools=["delta"])
    assert row["state"] == "unknown"
    store.append(Batch(calls=[guarded(at(800), instance="three")])).result(30)
    (row,) = ask("page_breaker_states", tools=["delta"])
    assert (row["state"], row["processes"]) == ("closed", 2)


def beat_listing(breakers: object, moment: datetime = UNTIL) -> Batch:
    """Return a heartbeat of process three that lists breakers."""
    beat = Heartbeat(moment, "three", service="agent", breakers=json.dumps(breakers))
    return Batch(heartbeats=[beat])


def test_a_heartbeat_stands_in_for_a_transition_that_got_lost(store: Store, ask: Ask) -> None:
    opened = {"breaker": "delta/us-east", "tool": "delta", "region": "us-east",
              "upstream": None, "state": "open", "since": "2026-01-05T12:05:00Z"}  # fmt: skip
    store.append(beat_listing([opened])).result(30)
    (row,) = ask("page_breaker_states", tools=["delta"])
    assert (row["state"], row["since_time"]) == ("open", at(300).replace(tzinfo=None))
    assert [r["state"] for r in ask("page_breaker_timeline", tools=["delta"])] == [
        "unknown", "open",
    ]  # fmt: skip


def test_a_heartbeat_without_the_breaker_says_that_it_closed(store: Store, ask: Ask) -> None:
    opening = BreakerTransition(
        at(50), "delta/us-east", "delta", "closed", "open", region="us-east", instance="three"
    )
    store.append(Batch(transitions=[opening])).result(30)
    store.append(beat_listing([])).result(30)
    (row,) = ask("page_breaker_states", tools=["delta"])
    assert row["state"] == "closed"


@pytest.mark.parametrize("junk", [{}, [1], "x", [{"breaker": None}], [{"breaker": "b"}], None])
def test_a_heartbeat_with_a_strange_list_adds_no_breaker(
    store: Store, ask: Ask, junk: object
) -> None:
    store.append(beat_listing(junk)).result(30)
    assert len(ask("page_breaker_states")) == 2
    assert len({r["breaker"] for r in ask("page_breaker_timeline")}) == 2


def stretches(ask: Ask, breaker: str, **changes: object) -> list[tuple[object, object, object]]:
    """Return state, begin and end of a breaker's stretches; times in seconds of the window."""
    start = SINCE.replace(tzinfo=None)
    return [
        (r["state"], *((r[edge] - start).total_seconds() for edge in ("began", "ended")))  # type: ignore[operator]
        for r in ask("page_breaker_timeline", **changes) if r["breaker"] == breaker
    ]  # fmt: skip


def test_breaker_timeline_covers_the_window_with_the_worst_state(ask: Ask) -> None:
    assert stretches(ask, "alpha/us-east") == [
        ("open", 0, 100), ("half_open", 100, 105), ("open", 105, 900),
    ]  # fmt: skip


def test_breaker_timeline_is_unknown_before_the_first_sign_and_after_missed_heartbeats(
    store: Store, ask: Ask
) -> None:
    change = BreakerTransition(at(300), "delta/us-east", "delta", "closed", "open",
                               region="us-east", instance="three")  # fmt: skip
    store.append(Batch(transitions=[change])).result(30)
    store.append(heartbeats("three", at(200), at(400))).result(30)
    assert stretches(ask, "delta/us-east") == [
        ("unknown", 0, 200), ("closed", 200, 300), ("open", 300, 445), ("unknown", 445, 900),
    ]  # fmt: skip
    (row,) = ask("page_breaker_states", tools=["delta"])
    assert row["state"] == "unknown"


def test_a_restart_leaves_a_gap_that_nobody_knows(store: Store, ask: Ask) -> None:
    first, second = guarded(at(100), instance="three"), guarded(at(600), instance="four")
    store.append(Batch(calls=[first, second])).result(30)
    store.append(heartbeats("three", at(100))).result(30)
    store.append(heartbeats("four", at(500), at(899))).result(30)
    assert stretches(ask, "delta/us-east/delta-api", tools=["delta"]) == [
        ("unknown", 0, 99.9), ("closed", 99.9, 145), ("unknown", 145, 500), ("closed", 500, 900),
    ]  # fmt: skip


def test_breaker_transitions_are_those_in_the_window(ask: Ask) -> None:
    rows = ask("page_breaker_transitions")
    assert len(rows) == 5
    assert rows[0]["time"] == at(260).replace(tzinfo=None)
    assert rows[0]["trace_id"] == "ab" * 16


def test_alerts_now_and_history(ask: Ask) -> None:
    now = [(r["alert"], r["state"]) for r in ask("page_alerts_now")]
    assert now == [("ToolCallRetryRateHigh", "firing"), ("ToolCallErrorRatioHigh", "pending")]
    before = [(r["alert"], r["state"]) for r in ask("page_alerts_now", until=_text(at(150)))]
    assert before == [("ToolCallSlow", "firing"), ("ToolCallRetryRateHigh", "pending")]
    assert len(ask("page_alert_history")) == 5


def test_objectives_are_judged_by_calls_per_tool(ask: Ask) -> None:
    alpha, beta = ask("page_slo")
    assert alpha == {"tool": "alpha", "calls": 8, "judged": 7, "errors": 2, "answered": 4,
                     "unsound": 2, "slow": 0}  # fmt: skip
    assert beta == {"tool": "beta", "calls": 4, "judged": 4, "errors": 1, "answered": 3,
                    "unsound": 0, "slow": 3}  # fmt: skip


def test_a_tool_has_its_own_bound_and_a_call_of_just_that_long_is_in_time(ask: Ask) -> None:
    own = {"bound_tools": ["beta", "alpha"], "bound_seconds": [5.0, 0.4], "slow_seconds": 0.01}
    alpha, beta = ask("page_slo", **own)
    assert (alpha["slow"], beta["slow"]) == (2, 0)  # 1.0 s and 2.0 s; the one of 0.4 s is in time
    (alpha,) = ask("page_slo", **own, tools=["alpha"], regions=["eu-west"])
    assert (alpha["calls"], alpha["slow"], alpha["unsound"]) == (2, 0, 2)
    alpha, _ = ask("page_slo", bound_tools=None, bound_seconds=None, slow_seconds=0.01)
    assert alpha["slow"] == 6


def test_objectives_over_time_add_up_to_the_tools(ask: Ask) -> None:
    series, tools = ask("page_slo_series"), ask("page_slo")
    for column in ("calls", "judged", "errors", "answered", "unsound", "slow"):
        assert sum(r[column] for r in series) == sum(r[column] for r in tools)  # type: ignore[misc]
    assert [r["slow"] for r in series if r["slow"]] == [3]


def test_each_call_that_spends_a_budget_failed_in_one_layer(ask: Ask) -> None:
    rows = [(r["failed_layer"], r["outcome"], r["calls"]) for r in ask("page_failed_layers")]
    assert rows == [
        ("breaker", "rejected", 1), ("retry", "error", 1), ("tool", "degraded", 1),
        ("tool", "error", 1), ("validation", "partial", 1),
    ]  # fmt: skip
    (row,) = ask("page_layer_calls", failed_layer="breaker")
    assert (row["outcome"], row["end"]) == ("rejected", at(300).replace(tzinfo=None))
    newest = ask("page_layer_calls")
    assert [r["outcome"] for r in newest] == ["error", "partial", "degraded", "rejected", "error"]
    assert set(newest[0]) == set(ask("page_calls")[0])


FAILURES = [
    ("fallback", {"outcome": "error", "layer": "fallback", "classifier_id": "attempt_timeout"}),
    ("breaker", {"outcome": "rejected", "layer": "breaker"}),
    ("breaker", {"outcome": "degraded", "layer": "fallback", "classifier_id": "circuit_open"}),
    ("breaker", {"outcome": "rejected", "attempts": 0, "breaker_state": "isolated"}),
    ("tool", {"outcome": "error", "attempts": 1, "breaker_state": "open"}),
    ("limit", {"outcome": "rejected", "layer": "limit", "attempts": 0}),
    ("budget", {"outcome": "error", "layer": "budget", "attempts": 3}),
    (
        "budget",
        {"outcome": "degraded", "layer": "fallback", "classifier_id": "session_budget_exhausted"},
    ),
    ("pool", {"outcome": "error", "layer": "retry", "classifier_id": "pool_exhausted_matcher"}),
    ("pool", {"outcome": "error", "error_type": "httpx.PoolTimeout"}),
    ("timeout", {"outcome": "error", "layer": "timeout"}),
    ("timeout", {"outcome": "degraded", "layer": "cache", "classifier_id": "attempt_timeout"}),
    ("timeout", {"outcome": "error", "layer": "retry", "cause_type": "httpx.ReadTimeout"}),
    ("timeout", {"outcome": "error", "layer": "tool", "http_status": 504}),
    ("serialization", {"outcome": "error", "error_type": "json.decoder.JSONDecodeError"}),
    ("validation", {"outcome": "error", "error_class": "L5_semantic", "attempts": 3}),
    ("validation", {"outcome": "partial", "error_class": "L5_semantic"}),
    ("retry", {"outcome": "error", "layer": "retry", "attempts": 3, "http_status": 503}),
    ("retry", {"outcome": "error", "attempts": 2}),
    ("tool", {"outcome": "error", "layer": "tool", "error_type": "KeyError"}),
    ("tool", {"outcome": "degraded", "layer": "fallback", "http_status": 503}),
]


@pytest.mark.parametrize(("layer", "call"), FAILURES)
def test_the_layer_that_failed(store: Store, ask: Ask, layer: str, call: dict[str, Any]) -> None:
    row = {"error_class": "L3_transient", "attempts": 1, **call}
    store.append(Batch(calls=[ToolCall("delta", end=at(100), **row)])).result(30)
    found = [(r["failed_layer"], r["calls"]) for r in ask("page_failed_layers", tools=["delta"])]
    assert found == [(layer, 1)]
    assert len(ask("page_layer_calls", tools=["delta"], failed_layer=layer)) == 1


def test_calls_that_spend_no_budget_failed_in_no_layer(store: Store, ask: Ask) -> None:
    fine = [{"outcome": "ok"}, {"outcome": "cancelled", "error_class": "L3_transient"},
            {"outcome": "error", "error_class": "L1_input"}]  # fmt: skip
    store.append(Batch(calls=[ToolCall("delta", end=at(100), **c) for c in fine])).result(30)  # type: ignore[arg-type]
    assert ask("page_failed_layers", tools=["delta"]) == []
    assert ask("page_layer_calls", tools=["delta"]) == []
    (row,) = ask("page_slo", tools=["delta"])
    assert (row["errors"], row["unsound"]) == (0, 0)


def test_slices_of_an_incident_have_their_first_and_last_bad_call(ask: Ask) -> None:
    rows = {(r["tool"], r["region"], r["error_class"]): r for r in ask("page_incident_slices")}
    assert {key: (r["bad"], r["errors"], r["degraded"]) for key, r in rows.items()} == {
        ("alpha", "us-east", "L3_transient"): (2, 2, 0),
        ("alpha", "eu-west", "L3_transient"): (1, 0, 1),
        ("alpha", "eu-west", "L5_semantic"): (1, 0, 0),
        ("beta", "unknown", "unclassified"): (1, 1, 0),
    }  # fmt: skip
    us = rows["alpha", "us-east", "L3_transient"]
    assert [us[edge] for edge in ("first_bad", "last_bad", "first_degraded")] == [
        at(180).replace(tzinfo=None), at(300).replace(tzinfo=None), None,
    ]  # fmt: skip
    eu = rows["alpha", "eu-west", "L3_transient"]
    assert eu["first_degraded"] == at(420).replace(tzinfo=None)


def test_whom_an_incident_touched(store: Store, ask: Ask) -> None:
    assert ask("page_incident_totals") == [
        {"affected": 5, "errors": 2, "rejected": 1, "degraded": 1, "unusable": 1, "sessions": 0,
         "agents": 0, "tools": 2, "priced": 0, "cost_of_these": None}
    ]  # fmt: skip
    priced = [
        ToolCall("delta", end=at(90 + n), outcome=outcome, cost=0.5, weight=2.0, session=f"s{n}",
                 agent="planner")
        for n, outcome in enumerate(("error", "error", "ok"))
    ]  # fmt: skip
    store.append(Batch(calls=priced)).result(30)
    (row,) = ask("page_incident_totals", tools=["delta"])
    assert (row["affected"], row["sessions"], row["agents"]) == (4, 2, 1)
    assert (row["priced"], row["cost_of_these"]) == (4, 2.0)
    (row,) = ask("page_incident_totals", tools=["nobody"])
    assert (row["affected"], row["cost_of_these"]) == (0, None)


def test_the_series_of_an_incident_has_the_worst_tools_alone(store: Store, ask: Ask) -> None:
    rows = ask("page_incident_series")
    assert {r["tool"] for r in rows} == {"alpha", "beta"}
    assert sum(r["calls"] for r in rows) == 12  # type: ignore[misc]
    assert sum(r["errors"] for r in rows) == 3  # type: ignore[misc]
    assert [r["degraded"] for r in rows if r["degraded"]] == [1]
    many = [ToolCall(f"t{n:02d}", end=at(90), outcome="error", weight=n) for n in range(3, 33)]
    store.append(Batch(calls=[*many, ToolCall("fine", end=at(90))])).result(30)
    assert {r["tool"] for r in ask("page_incident_series")} == {f"t{n}" for n in range(13, 33)}


def test_what_each_breaker_did(ask: Ask) -> None:
    us, eu = ask("page_incident_breakers")
    assert (us["breaker"], us["moves"], us["openings"], us["processes"]) == (
        "alpha/us-east", 3, 1, 2,
    )  # fmt: skip
    assert (us["first_time"], us["first_opened"], us["last_time"]) == tuple(
        at(second).replace(tzinfo=None) for second in (100, 105, 110)
    )
    assert (eu["breaker"], eu["moves"], eu["openings"]) == ("alpha/eu-west", 2, 1)


def test_mutes_in_the_window(store: Store, ask: Ask) -> None:
    mute = mutes.draft("ToolCallSlow", "known", UNTIL, at(60), region="us-east", author="kim")
    mutes.save(store, mute)
    mutes.save(store, mutes.draft("ToolCallSlow", "before", UNTIL, SINCE))
    mutes.save(store, mutes.ended(mute, at(90)))
    one, other = ask("page_incident_mutes")
    assert one == {
        "time": at(60).replace(tzinfo=None), "alert": "ToolCallSlow", "severity": None,
        "tool": None, "region": "us-east", "ends": UNTIL.replace(tzinfo=None), "reason": "known",
        "author": "kim",
    }  # fmt: skip
    assert other["ends"] == other["time"] == at(90).replace(tzinfo=None)


def test_processes_and_their_versions(store: Store, ask: Ask) -> None:
    beats = [Heartbeat(at(second), instance, service="agent", version=version)
             for second, instance, version in ((-60, "one", "1"), (30, "one", "1"),
                                               (60, "two", "2"), (90, "two", "2"))]  # fmt: skip
    store.append(Batch(heartbeats=beats)).result(30)
    rows = [(r["instance"], r["version"], r["first_beat"], r["last_beat"])
            for r in ask("page_processes")]  # fmt: skip
    assert rows == [
        ("two", "2", at(60).replace(tzinfo=None), at(90).replace(tzinfo=None)),
        ("one", "1", at(-60).replace(tzinfo=None), at(30).replace(tzinfo=None)),
    ]
    assert len(ask("page_processes", seen_since=_text(at(40)))) == 1


def test_facets_and_store(ask: Ask) -> None:
    rows = [(r["facet"], r["value"], r["calls"]) for r in ask("page_facets")]
    assert rows == [
        ("region", "us-east", 6), ("region", "unknown", 4), ("region", "eu-west", 2),
        ("tool", "alpha", 8), ("tool", "beta", 4),
    ]  # fmt: skip
    assert ask("page_store")[0]["calls"] == 11


def _text(moment: object) -> str:
    return moment.isoformat()  # type: ignore[attr-defined, no-any-return]
