"""The metrics of the contract: names, labels, zeros, bounds."""

from __future__ import annotations

import shutil
import socket
import subprocess
import urllib.request
from typing import Any

import handmade_calls as handmade
import prometheus_client
import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from fuseboard import setup
from fuseboard.conventions import (
    DURATION_BUCKETS,
    LAYER_ACTIONS,
    BreakerState,
    ErrorClass,
    Outcome,
    RetryEnd,
    legal_outcome_classes,
)
from fuseboard.errors import ConfigurationError
from fuseboard.record import BreakerStatus, BreakerTransition, ToolInfo
from fuseboard.runtime import RUNTIME
from fuseboard.telemetry.metrics import SERIES_PER_BREAKER, SERIES_PER_TOOL

Labels = dict[str, str]
HERE = {"tool": "search", "region": "eu-west"}


def samples(registry: CollectorRegistry, name: str) -> list[tuple[Labels, float]]:
    return [
        (sample.labels, sample.value)
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    ]


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def register(**fields: Any) -> ToolInfo:
    tool = ToolInfo("search", **fields)
    RUNTIME.register(tool)
    return tool


def status(**fields: Any) -> BreakerStatus:
    fields = {
        "name": "search/eu-west",
        "tool": "search",
        "region": "eu-west",
        "upstream": None,
        "state": BreakerState.CLOSED,
        "since_unix_ns": 0,
        **fields,
    }
    return BreakerStatus(**fields)


def transition(before: BreakerState, after: BreakerState, **fields: Any) -> BreakerTransition:
    fields = {
        "name": "search/eu-west",
        "tool": "search",
        "region": "eu-west",
        "upstream": None,
        "reason": "failure ratio",
        "failure_ratio": 0.6,
        "calls": 20,
        "failures": 12,
        "error_class": ErrorClass.L3_TRANSIENT,
        "at_unix_ns": 1,
        **fields,
    }
    return BreakerTransition(from_state=before, to_state=after, **fields)


def test_hc_50_every_legal_series_exists_at_zero_from_registration(
    start: Any, registry: CollectorRegistry
) -> None:
    start(regions=["eu-west", "us-east"])
    register()
    calls = samples(registry, "fuseboard_tool_calls_total")
    assert all(count == 0 for _, count in calls)
    found = {(one["region"], one["outcome"], one["error_class"]) for one, _ in calls}
    legal = {(o.value, e) for o, e in legal_outcome_classes()}
    assert found == {(region, *pair) for region in ("eu-west", "us-east") for pair in legal}
    attempts = samples(registry, "fuseboard_tool_attempts_total")
    assert {(one["result"], one["error_class"]) for one, _ in attempts} == {
        ("success", "none"),
        ("failure", "none"),  # cut short
        *(("failure", error_class.value) for error_class in ErrorClass),
    }
    assert len(attempts) == 2 * (1 + 1 + 6)
    attempted = samples(registry, "fuseboard_tool_attempted_calls_total")
    assert {(one["first_attempt"], one["retry"]) for one, _ in attempted} == {
        ("success", "none"),
        ("failure", "none"),
        ("failure", "recovered"),
        ("failure", "exhausted"),
        ("failure", "stopped"),
    }
    actions = samples(registry, "fuseboard_layer_actions_total")
    assert {(a["layer"], a["action"]) for a, _ in actions} == set(LAYER_ACTIONS)
    for name in ("fuseboard_tool_calls_in_flight", "fuseboard_tool_oldest_call_age_seconds"):
        assert value(registry, name, **HERE) == 0
    for name in ("call_duration_seconds_count", "attempt_duration_seconds_count"):
        assert value(registry, f"fuseboard_tool_{name}", **HERE) == 0
    assert value(registry, "fuseboard_tool_backoff_seconds_total", **HERE) == 0


@pytest.mark.parametrize(
    ("settings", "tool", "regions"),
    [
        ({}, {}, {"unknown"}),
        ({"region": "eu-west"}, {}, {"eu-west"}),
        ({"region": "eu-west", "regions": ["a", "b"]}, {}, {"a", "b"}),
        ({"regions": ["a"]}, {"regions": ("x", "y")}, {"x", "y"}),
    ],
)
def test_the_declared_regions_are_the_tools_else_inits_else_the_process_own(
    start: Any, registry: CollectorRegistry, settings: Any, tool: Any, regions: set[str]
) -> None:
    register(**tool)  # before init: replayed
    start(**settings)
    found = {labels["region"] for labels, _ in samples(registry, "fuseboard_tool_calls_total")}
    assert found == regions


def test_a_recovered_call_counts_in_each_metric(start: Any, registry: CollectorRegistry) -> None:
    start(region="eu-west")
    register()
    call = handmade.start()  # no region of its own: the process's
    assert value(registry, "fuseboard_tool_calls_in_flight", **HERE) == 1
    handmade.attempt(call, handmade.fault(), duration=0.2)
    handmade.attempt(call, delay=0.3, duration=0.1)
    handmade.end(
        call,
        duration=0.6,
        retry_end=RetryEnd.RECOVERED,
        layer_actions=(("timeout", "timed_out"), ("fallback", "served")),
    )
    expected = {
        ("calls_total", "outcome=ok", "error_class=none"): 1,
        ("calls_total", "outcome=error", "error_class=L3_transient"): 0,
        ("attempted_calls_total", "first_attempt=failure", "retry=recovered"): 1,
        ("attempts_total", "result=failure", "error_class=L3_transient"): 1,
        ("attempts_total", "result=success", "error_class=none"): 1,
        ("call_duration_seconds_sum",): 0.6,
        ("call_duration_seconds_count",): 1,
        ("attempt_duration_seconds_count",): 2,
        ("backoff_seconds_total",): 0.3,
        ("calls_in_flight",): 0,
    }
    for (name, *pairs), number in expected.items():
        labels = dict(pair.split("=") for pair in pairs)
        got = value(registry, f"fuseboard_tool_{name}", **HERE, **labels)
        assert got == pytest.approx(number), name
    actions = {
        (a["layer"], a["action"]): n for a, n in samples(registry, "fuseboard_layer_actions_total")
    }
    assert actions["timeout", "timed_out"] == actions["fallback", "served"] == 1
    assert sum(actions.values()) == 2


@pytest.mark.parametrize("outcome", list(Outcome))
def test_no_outcome_makes_an_illegal_series(
    start: Any, registry: CollectorRegistry, outcome: Outcome
) -> None:
    start()
    register()
    before = len(samples(registry, "fuseboard_tool_calls_total"))
    for problem in (None, handmade.fault(ErrorClass.L5_SEMANTIC)):
        handmade.end(handmade.start(), outcome=outcome, fault=problem)
    after = samples(registry, "fuseboard_tool_calls_total")
    assert len(after) == before
    assert sum(n for labels, n in after if labels["outcome"] == outcome.value) == 2


def test_a_call_without_an_attempt_is_not_an_attempted_call(
    start: Any, registry: CollectorRegistry
) -> None:
    start()
    register()
    handmade.end(handmade.start(), outcome=Outcome.REJECTED, fault=handmade.fault())
    assert sum(n for _, n in samples(registry, "fuseboard_tool_attempted_calls_total")) == 0


def test_cost_of_attempts_that_were_not_used_is_wasted(
    start: Any, registry: CollectorRegistry
) -> None:
    start(region="eu-west")
    register()
    call = handmade.start()
    handmade.attempt(call, handmade.fault()).cost = 0.2
    handmade.attempt(call).cost = 0.3
    handmade.end(call, cost=0.5)
    handmade.end(handmade.start(), outcome=Outcome.DEGRADED, cost=1.0, fault=handmade.fault())
    name = "fuseboard_tool_cost_total"
    assert value(registry, name, **HERE, wasted="true") == pytest.approx(1.2)
    assert value(registry, name, **HERE, wasted="false") == pytest.approx(0.3)


def test_hc_51_buckets_reach_ten_minutes(start: Any, registry: CollectorRegistry) -> None:
    start()
    register()
    for _ in range(100):
        handmade.end(handmade.start(), duration=45.0)
    handmade.end(handmade.start(), duration=900.0)
    buckets = {
        labels["le"]: n
        for labels, n in samples(registry, "fuseboard_tool_call_duration_seconds_bucket")
    }
    assert [float(le) for le in buckets] == [*DURATION_BUCKETS, float("inf")]
    assert buckets["30.0"] == 0
    assert buckets["60.0"] == 100
    assert buckets["600.0"] == 100
    assert buckets["+Inf"] == 101


def test_hc_51_a_quantile_of_slow_calls_lies_in_their_bucket(
    start: Any, registry: CollectorRegistry
) -> None:
    start()
    register()
    for _ in range(100):
        handmade.end(handmade.start(), duration=45.0)
    buckets = [
        (float(labels["le"]), n)
        for labels, n in samples(registry, "fuseboard_tool_call_duration_seconds_bucket")
    ]
    # As Prometheus does: interpolate within the first bucket that holds the rank.
    rank = 0.95 * buckets[-1][1]
    place = next(i for i, (_, n) in enumerate(buckets) if n >= rank)
    (low, before), (high, upto) = buckets[place - 1], buckets[place]
    p95 = low + (high - low) * (rank - before) / (upto - before)
    assert (low, high) == (30.0, 60.0)
    assert p95 == pytest.approx(58.5)


# --- HC-49 ----------------------------------------------------------------------------------
def test_hc_49_invented_names_messages_and_ids_make_no_series(
    start: Any, registry: CollectorRegistry
) -> None:
    start(regions=["eu-west"])
    register()
    handmade.succeed(region="eu-west")
    handmade.succeed(tool=ToolInfo("never registered"), region="eu-west")
    before = sum(len(family.samples) for family in registry.collect())
    for number in range(10_000):
        handmade.fail(
            tool=ToolInfo(f"tool-{number}"),
            region="eu-west",
            message=f"no such thing {number}",
            session=f"session-{number}",
        )
    after = sum(len(family.samples) for family in registry.collect())
    assert after == before
    assert value(registry, "fuseboard_label_overflow_total", label="tool") >= 10_000
    other = {"tool": "_other", "region": "eu-west"}
    errors = value(
        registry, "fuseboard_tool_calls_total", **other, outcome="error", error_class="L3_transient"
    )
    assert errors == 10_000


def test_hc_49_series_are_bounded_by_what_is_registered(
    start: Any, registry: CollectorRegistry
) -> None:
    def count() -> int:
        return sum(len(family.samples) for family in registry.collect())

    def use(tool: ToolInfo) -> None:
        for outcome in Outcome:
            call = handmade.start(tool=tool, region="eu-west")
            for problem in (handmade.fault(), None):
                handmade.attempt(call, problem).cost = 0.1
            actions = list(LAYER_ACTIONS)
            handmade.end(call, outcome=outcome, fault=handmade.fault(), layer_actions=actions)

    start(region="eu-west")
    constant = count()
    registered = [ToolInfo(f"tool-{number}") for number in range(5)]
    for tool in registered:
        RUNTIME.register(tool)
        use(tool)
    assert count() == constant + len(registered) * SERIES_PER_TOOL
    for number in range(1000):
        use(ToolInfo(f"invented-{number}"))
    assert count() == constant + (len(registered) + 1) * SERIES_PER_TOOL
    before = count()
    RUNTIME.telemetry.breaker_created(status(tool="tool-0"))
    assert count() == before + SERIES_PER_BREAKER


def test_hc_49_a_scrape_counts_no_overflow(start: Any, registry: CollectorRegistry) -> None:
    start(region="eu-west")
    call = handmade.start(tool=ToolInfo("never registered"), region="mars")
    for _ in range(3):
        other = {"tool": "_other", "region": "_other"}
        assert value(registry, "fuseboard_tool_calls_in_flight", **other) == 1
    assert value(registry, "fuseboard_label_overflow_total", label="tool") == 0
    handmade.end(call)
    assert value(registry, "fuseboard_label_overflow_total", label="tool") == 1


def test_hc_49_regions_and_breakers_are_bounded_too(
    start: Any, registry: CollectorRegistry
) -> None:
    start()
    register()
    for number in range(300):
        handmade.succeed(region=f"region-{number}")
        RUNTIME.telemetry.breaker_created(
            status(name=f"search/region-{number}", region=f"region-{number}")
        )
    regions = {labels["region"] for labels, _ in samples(registry, "fuseboard_tool_calls_total")}
    assert len(regions) <= 51
    assert "_other" in regions
    assert value(registry, "fuseboard_label_overflow_total", label="region") >= 250


def test_hc_49_even_registered_tools_are_bounded(start: Any, registry: CollectorRegistry) -> None:
    start()
    for number in range(700):
        RUNTIME.telemetry.tool_registered(ToolInfo(f"generated-{number}"))
    tools = {labels["tool"] for labels, _ in samples(registry, "fuseboard_tool_calls_total")}
    assert len(tools) == 501


def test_hc_11_labels_are_valid_text(start: Any, registry: CollectorRegistry) -> None:
    start()
    RUNTIME.register(ToolInfo("half \ud83e"))
    handmade.succeed(tool=ToolInfo("half \ud83e"), region="\udc00")
    assert 'tool="half \ufffd"' in setup.metrics_text()[0].decode()


# --- Breakers -------------------------------------------------------------------------------
def test_a_breaker_has_one_series_per_state_and_counts_its_time(
    start: Any, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuseboard.clock import SystemClock

    now = [100.0]
    clock = SystemClock()
    monkeypatch.setattr(clock, "monotonic", lambda: now[0], raising=False)
    monkeypatch.setattr(RUNTIME, "clock", clock)
    monkeypatch.setattr(RUNTIME, "breaker_statuses", lambda: [status()])
    start()
    register()
    RUNTIME.telemetry.breaker_created(status())
    moves = samples(registry, "fuseboard_breaker_transitions_total")
    assert len(moves) == 9
    assert all(count == 0 for _, count in moves)
    now[0] += 60
    RUNTIME.telemetry.breaker_changed(transition(BreakerState.CLOSED, BreakerState.OPEN))
    now[0] += 30
    labels = {**HERE, "breaker": "search/eu-west"}
    states = {s["state"]: n for s, n in samples(registry, "fuseboard_breaker_state")}
    assert states == {"closed": 0, "open": 1, "half_open": 0, "isolated": 0}
    spent = "fuseboard_breaker_state_seconds_total"
    assert value(registry, spent, **labels, state="closed") == 60
    assert value(registry, spent, **labels, state="open") == 30
    moved = "fuseboard_breaker_transitions_total"
    assert value(registry, moved, **labels, from_state="closed", to_state="open") == 1


# --- Process --------------------------------------------------------------------------------
def test_process_metrics(
    start: Any, registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    monkeypatch.setattr(RUNTIME, "abandoned_threads", lambda: 3)
    assert value(registry, "fuseboard_abandoned_threads") == 3
    ((labels, one),) = samples(registry, "fuseboard_build_info")
    assert one == 1
    assert labels["version"]
    dropped = samples(registry, "fuseboard_telemetry_dropped_total")
    assert {labels["signal"] for labels, _ in dropped} == {"spans", "logs"}
    assert all(count == 0 for _, count in dropped)


def test_age_of_the_oldest_call(start: Any, registry: CollectorRegistry) -> None:
    start(region="eu-west")
    register()
    old, young = handmade.start(), handmade.start()
    old.started -= 1000
    name = "fuseboard_tool_oldest_call_age_seconds"
    assert value(registry, name, **HERE) >= 1000
    handmade.end(old)
    assert value(registry, name, **HERE) < 500
    handmade.end(young)
    assert value(registry, name, **HERE) == 0


def test_exemplars_carry_the_trace_of_sampled_calls(start: Any) -> None:
    start()
    register()
    call = handmade.succeed()
    text, content_type = setup.metrics_text("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert f'# {{trace_id="{handmade.ids(call).trace_id:032x}"}}' in text.decode()


def test_created_series_are_off_for_ours_and_untouched_for_others(
    start: Any, registry: CollectorRegistry
) -> None:
    start()
    register()
    Counter("theirs", "Of the application.", registry=registry).inc()
    text = setup.metrics_text()[0].decode()
    created = [line for line in text.splitlines() if "_created" in line and line[0] != "#"]
    assert created
    assert all(line.startswith("theirs_created") for line in created)


def test_the_exposition_can_be_parsed_and_names_each_family_once(start: Any) -> None:
    start()
    register()
    handmade.fail()
    RUNTIME.telemetry.breaker_created(status())
    text = setup.metrics_text()[0].decode()
    names = [family.name for family in text_string_to_metric_families(text)]
    assert len(names) == len(set(names)) == 17
    assert all(name.startswith("fuseboard_") for name in names)


@pytest.mark.prometheus
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing_to_complain_about(start: Any) -> None:
    start(regions=["eu-west"])
    register()
    handmade.fail()
    call = handmade.start()
    handmade.end(call, cost=1.0)
    RUNTIME.telemetry.breaker_created(status())
    checked = subprocess.run(
        ["promtool", "check", "metrics"],
        input=setup.metrics_text()[0],
        capture_output=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stderr == b""


# --- Serving --------------------------------------------------------------------------------
def test_serve_metrics_listens_on_loopback_and_says_which_port(start: Any) -> None:
    start()
    register()
    port = setup.serve_metrics(0)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b"fuseboard_build_info" in answer.read()
    assert setup.serve_metrics(port) == port  # serves there already
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{busy}.*another port"):
            setup.serve_metrics(busy)


@pytest.mark.parametrize("port", [-1, 65536, True, "9464", None])
def test_serve_metrics_refuses_a_port_that_is_none(start: Any, port: Any) -> None:
    start()
    with pytest.raises(ConfigurationError, match="0 to 65535"):
        setup.serve_metrics(port)


def test_metrics_need_init(clean_setup: None) -> None:
    with pytest.raises(ConfigurationError, match=r"call fuseboard.init\(\) before"):
        setup.metrics_text()
    with pytest.raises(ConfigurationError, match=r"call fuseboard.init\(\) before"):
        setup.serve_metrics(0)


def test_the_global_registry_is_the_default(clean_setup: None, collector: Any) -> None:
    setup.init("x", endpoint=collector.url)
    name = "fuseboard_telemetry_dropped_total"
    labels = {"signal": "spans", "reason": "queue_full"}
    assert prometheus_client.REGISTRY.get_sample_value(name, labels) == 0
    setup.shutdown()
    setup.init("y", endpoint=collector.url)  # registers anew without a clash
