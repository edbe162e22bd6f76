"""Answers with the help of rollups against the same counted independently from the rows."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fuseboard import conventions as c
from fuseboard_collector.store import (
    Attempt,
    Batch,
    Heartbeat,
    Store,
    ToolCall,
    named_queries,
    open_store,
)
from fuseboard_collector.store.rows import micros

NOW = datetime(2026, 3, 10, 9, 41, 23, tzinfo=UTC)
FAULTS = [None, None, None, None, *(item.value for item in c.ErrorClass)]
TOOLS, REGIONS = ["alpha", "beta", "gamma"], ["us-east", "eu-west", None]
STEP = 2 ** (1 / 8)


class FixedClock:
    """Stands at ``NOW``; monotonic time runs as it pleases."""

    def time_ns(self) -> int:
        return int(NOW.timestamp() * 1e9)

    def monotonic(self) -> float:
        return 0.0


def some_calls(seed: int, number: int, days: float = 6.0) -> list[ToolCall]:
    """Return calls that ended in the days before ``NOW``, some of them on the stroke of an hour."""
    rng = random.Random(seed)
    calls = []
    for _ in range(number):
        end = NOW - timedelta(seconds=rng.uniform(0, days * 86400))
        if rng.random() < 0.1:
            end = end.replace(minute=rng.choice([0, 15, 30, 45]), second=0, microsecond=0)
        fault = rng.choice(FAULTS)
        outcome = rng.choice(["error", "rejected", "degraded", "partial"]) if fault else "ok"
        attempts = 0 if outcome == "rejected" else rng.choice([1, 1, 1, 2, 3])
        calls.append(
            ToolCall(
                rng.choice(TOOLS), end=micros(end), duration_seconds=rng.lognormvariate(-1, 1.5),
                outcome=outcome if rng.random() > 0.03 else "cancelled", error_class=fault,
                attempts=attempts, backoff_seconds=0.5 * (attempts - 1) if attempts > 1 else None,
                region=rng.choice(REGIONS), service="agent", agent=rng.choice(["a", "b"]),
                environment="prod", instance=rng.choice(["one", "two"]),
                breaker_state=rng.choice([None, "closed"]), upstream=rng.choice([None, "api"]),
                error_type="ValueError" if fault else None, http_status=rng.choice([None, 503]),
                args_hash=rng.choice([None, "v1:aa", "v1:bb", f"v1:{rng.random()}"]),
                weight=rng.choice([1.0, 1.0, 4.0]), instrumentation=rng.choice(["fuseboard", "x"]),
                framework="f",
            )
        )  # fmt: skip
    return calls


def attempts_of(calls: Iterable[ToolCall]) -> list[Attempt]:
    """Return the attempts that have spans: of calls that failed or needed several."""
    return [
        Attempt(call.trace_id, call.span_id, number, int(call.start) + number, 0.05 * number,  # type: ignore[arg-type]
                call.tool, "failure", region=call.region, weight=call.weight,
                error_class=call.error_class or "L3_transient")
        for call in calls
        if call.attempts > 1 or call.outcome in ("error", "degraded")
        for number in range(1, call.attempts + 1)
    ]  # fmt: skip


def parameters(name: str, since: datetime, until: datetime, **extra: object) -> dict[str, Any]:
    """Return a page query's parameters."""
    from fuseboard_dashboard.view import QUERY_PARAMETERS

    values: dict[str, object] = {
        "since": since, "until": until, "tools": None, "classes": None, "regions": None,
        "bucket_us": 21_600_000_000, "kind": "all", "args_hash": None, "row_limit": 1000,
        "breakers": None, "before_since": since - (until - since), "before_until": since,
        "seen_since": since - timedelta(days=1), "failed_layer": None,
        **dict.fromkeys(("agents", "classifiers", "outcomes", "session", "sessions", "sources",
                         "trace_id", "traces", "upstream")),
        "bound_tools": ["beta"], "bound_seconds": [0.4], "slow_seconds": 0.9,
        **extra,
    }  # fmt: skip
    return {key: values[key] for key in QUERY_PARAMETERS[name]}


Rows = list[dict[str, Any]]


def asker(store: Store, since: datetime, until: datetime, **extra: object) -> Callable[[str], Rows]:
    return lambda name: store.query(name, parameters(name, since, until, **extra)).to_pylist()


def within(calls: Iterable[ToolCall], since: datetime, until: datetime) -> list[ToolCall]:
    low, high = micros(since), micros(until)
    return [call for call in calls if low < int(call.end) <= high]  # type: ignore[arg-type]


def is_fault(call: ToolCall) -> bool:
    return call.error_class is not None or call.outcome in ("error", "rejected")


def weighted_quantile(pairs: Iterable[tuple[float, float]], share: float) -> float:
    """Return the smallest value that this share of the weights does not exceed."""
    ordered = sorted(pairs)
    total, below = sum(weight for _, weight in ordered), 0.0
    for value, weight in ordered:
        below += weight
        if below >= share * total:
            return value
    raise AssertionError("no values")


def check(store: Store, calls: list[ToolCall], since: datetime, until: datetime) -> None:
    """Hold the answers of a window to a count of its rows in Python."""
    mine = within(calls, since, until)
    ask = asker(store, since, until)
    check_totals(ask("page_totals")[0], mine, is_exact=until - since <= timedelta(hours=25))
    by_place: dict[tuple[str, str], list[ToolCall]] = defaultdict(list)
    for call in mine:
        by_place[call.tool, call.region or "unknown"].append(call)
    tools = {(row["tool"], row["region"]): row for row in ask("page_tools")}
    assert tools.keys() == by_place.keys()
    for place, row in tools.items():
        check_totals(row, by_place[place], is_exact=until - since <= timedelta(hours=25))
    check_faults(ask, mine)
    check_retries(ask("page_retries"), by_place)
    check_facets(ask("page_facets"), mine)
    check_objectives(ask, mine, is_exact=until - since <= timedelta(hours=25))


def check_totals(row: Mapping[str, Any], mine: list[ToolCall], *, is_exact: bool) -> None:
    def weigh(chosen: Callable[[ToolCall], bool]) -> float:
        return sum(call.weight for call in mine if chosen(call))

    assert row["calls"] == weigh(lambda call: True)
    assert row["judged"] == weigh(lambda call: call.outcome != "cancelled")
    assert row["faults"] == weigh(is_fault)
    assert row["errors"] == weigh(
        lambda call: call.outcome in ("error", "rejected") and call.error_class != "L1_input"
    )
    assert row["degraded"] == weigh(lambda call: call.outcome == "degraded")
    assert row["attempted"] == weigh(lambda call: call.attempts >= 1)
    assert row["retried"] == weigh(lambda call: call.attempts >= 2)
    if "attempts_made" in row:  # tools have some of the columns alone
        assert row["attempts_made"] == sum(call.weight * call.attempts for call in mine)
        assert row["duration_total"] == pytest.approx(
            sum(call.weight * call.duration_seconds for call in mine)
        )
    assert row["slowest"] == max((call.duration_seconds for call in mine), default=None)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        if name not in row:
            continue  # tools are told apart by their slowest calls alone
        if not mine:
            assert row[name] is None
            continue
        exact = weighted_quantile([(call.duration_seconds, call.weight) for call in mine], share)
        if is_exact:
            assert row[name] == exact
        else:
            assert exact / STEP <= row[name] <= exact * STEP


def check_objectives(ask: Callable[[str], Rows], mine: list[ToolCall], *, is_exact: bool) -> None:
    bounds = {"beta": 0.4}
    rows = {row["tool"]: row for row in ask("page_slo")}
    assert rows.keys() == {call.tool for call in mine}
    for tool, row in rows.items():
        calls = [call for call in mine if call.tool == tool]
        assert row["calls"] == sum(call.weight for call in calls)
        assert row["unsound"] == sum(
            call.weight for call in calls if call.outcome in ("partial", "degraded")
            or (call.outcome in ("ok", "error") and call.error_class == "L5_semantic")
        )  # fmt: skip
        bound = bounds.get(tool, 0.9)
        wide = 1.0 if is_exact else STEP
        most, least = (
            sum(call.weight for call in calls if call.duration_seconds > edge)
            for edge in (bound / wide, bound * wide)
        )
        assert least - 1e-6 <= row["slow"] <= most + 1e-6
    series = ask("page_slo_series")
    for column in ("calls", "judged", "errors", "answered", "unsound", "slow"):
        total = sum(row[column] for row in rows.values())
        assert sum(row[column] for row in series) == pytest.approx(total)


def check_faults(ask: Callable[[str], Rows], mine: list[ToolCall]) -> None:
    faults = [call for call in mine if is_fault(call)]
    matrix: Counter[tuple[str, str, str]] = Counter()
    for call in faults:
        key = (call.error_class or "unclassified", call.tool, call.region or "unknown")
        matrix[key] += call.weight  # type: ignore[assignment]
    assert matrix == {
        (row["error_class"], row["tool"], row["region"]): row["faults"]
        for row in ask("page_error_matrix")
    }
    assert sum(row["faults"] for row in ask("page_error_kinds")) == sum(matrix.values())
    last = max((row["last_end"] for row in ask("page_error_kinds")), default=None)
    ends = [datetime.fromtimestamp(int(call.end) / 1e6, UTC) for call in faults]  # type: ignore[arg-type]
    assert last == max((end.replace(tzinfo=None) for end in ends), default=None)
    for row in ask("page_error_arguments"):
        same = [call for call in mine
                if (call.tool, call.args_hash) == (row["tool"], row["args_hash"])]  # fmt: skip
        assert row["calls"] == sum(call.weight for call in same)
        assert row["faults"] == sum(call.weight for call in same if is_fault(call))
    outcomes: Counter[str] = Counter()
    for row in ask("page_outcomes"):
        outcomes[row["outcome"]] += row["calls"]
    expected: Counter[str] = Counter()
    for call in mine:
        expected[call.outcome] += call.weight  # type: ignore[assignment]
    assert outcomes == expected


def check_retries(rows: Rows, by_place: Mapping[tuple[str, str], list[ToolCall]]) -> None:
    for row in rows:
        mine = [item for item in by_place[row["tool"], row["region"]] if item.attempts]
        good = ("ok", "partial")
        assert row["attempted"] == sum(item.weight for item in mine)
        assert row["first_try"] == sum(
            item.weight for item in mine if item.attempts == 1 and item.outcome in good
        )
        assert row["recovered"] == sum(
            item.weight for item in mine if item.attempts > 1 and item.outcome in good
        )


def check_facets(rows: Rows, mine: list[ToolCall]) -> None:
    expected: Counter[tuple[str, str]] = Counter()
    for call in mine:
        expected["tool", call.tool] += call.weight  # type: ignore[assignment]
        expected["region", call.region or "unknown"] += call.weight  # type: ignore[assignment]
    assert expected == {(row["facet"], row["value"]): row["calls"] for row in rows}


WINDOWS = [
    (NOW - timedelta(days=30), NOW),
    (NOW - timedelta(hours=24), NOW),
    (datetime(2026, 3, 6, 1, 2, 3, 4, tzinfo=UTC), datetime(2026, 3, 8, 23, 0, 0, 1, tzinfo=UTC)),
]


@pytest.mark.parametrize("seed", [1])
def test_answers_equal_the_rows_before_and_after_the_keeper_and_in_between(
    make_store: Callable[..., Store], seed: int
) -> None:
    store = make_store(retention_days=None, clock=FixedClock())
    calls = some_calls(seed, 800)
    store.append(Batch(calls=calls, attempts=attempts_of(calls))).result(60)
    for window in WINDOWS:
        check(store, calls, *window)
    store.roll_up()
    assert store.hours_to_roll_up() <= 2, "an hour that is over is not rolled up"
    for window in WINDOWS:
        check(store, calls, *window)
    late = some_calls(seed + 100, 40)
    store.append(Batch(calls=late, attempts=attempts_of(late))).result(60)
    assert store.hours_to_roll_up() > 10
    for window in WINDOWS:
        check(store, calls + late, *window)
    store.roll_up()
    for window in WINDOWS:
        check(store, calls + late, *window)


@pytest.fixture(scope="module")
def rolled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, list[ToolCall]]]:
    """Return a store whose hours are rolled up but for some, and its calls."""
    path = tmp_path_factory.mktemp("rolled") / "fuseboard.duckdb"
    store = open_store(path, retention_days=None, clock=FixedClock())
    calls = some_calls(7, 800, days=3)
    store.append(Batch(calls=calls, attempts=attempts_of(calls))).result(60)
    store.roll_up()
    late = some_calls(8, 5, days=3)
    store.append(Batch(calls=late)).result(60)
    yield store, calls + late
    store.close()


PAGES = [
    name
    for name in named_queries.names()
    if name.startswith("page_") and name != "page_breaker_timeline"  # begins with its window
]


@pytest.mark.parametrize("name", PAGES)
def test_the_switch_at_24_hours_changes_neither_columns_nor_counts(
    rolled: tuple[Store, list[ToolCall]], name: str
) -> None:
    """No call ended in the microsecond between the two windows."""
    store, _ = rolled
    since, until = NOW - timedelta(hours=24), NOW
    short = store.query(name, parameters(name, since, until))
    long = store.query(name, parameters(name, since - timedelta(microseconds=1), until))
    assert short.schema == long.schema
    assert short.num_rows == long.num_rows
    assert _counts(short) == _counts(long)


def _counts(table: Any) -> list[tuple[object, ...]]:
    """Return the rows in order, without quantiles."""
    rows = [
        tuple(
            pytest.approx(value) if isinstance(value, float) else value
            for column, value in row.items()
            if column.removeprefix("attempt_") not in ("p50", "p95", "p99")
            and column not in ("mean", "mean_backoff", "mean_attempt")
        )
        for row in table.to_pylist()
    ]
    return sorted(rows, key=lambda row: str([item for item in row if isinstance(item, str)]))


@pytest.mark.parametrize("minutes", [1, 15, 20, 60, 90, 120, 360, 1440])
@pytest.mark.parametrize("days", [1, 3])
def test_buckets_of_any_width_hold_what_ended_in_them(
    rolled: tuple[Store, list[ToolCall]], minutes: int, days: int
) -> None:
    store, calls = rolled
    width = minutes * 60_000_000
    ask = asker(store, NOW - timedelta(days=days), NOW, bucket_us=width)
    mine = within(calls, NOW - timedelta(days=days), NOW)
    expected: Counter[int] = Counter()
    for call in mine:
        expected[(micros(call.end or 0) - 1) // width * width] += call.weight  # type: ignore[assignment]
    for name in ("page_series", "page_latency_series"):
        assert {micros(row["bucket"]): row["calls"] for row in ask(name)} == expected
    for name in ("page_trend", "page_outcomes", "page_latency_heatmap"):
        found: Counter[int] = Counter()
        for row in ask(name):
            found[micros(row["bucket"])] += row["calls"]
        assert found == expected


def test_steps_of_the_heat_map_are_the_same_from_rows_and_from_rollups(
    rolled: tuple[Store, list[ToolCall]],
) -> None:
    store, calls = rolled
    expected: Counter[int] = Counter()
    for call in within(calls, NOW - timedelta(days=3), NOW):
        step = math.floor(2 * math.log2(max(call.duration_seconds * 1000, 0.001)))
        expected[max(0, step)] += call.weight  # type: ignore[assignment]
    found: Counter[int] = Counter()
    for row in asker(store, NOW - timedelta(days=3), NOW)("page_latency_heatmap"):
        found[row["step"]] += row["calls"]
    assert found == expected


@pytest.mark.parametrize(
    "narrowed",
    [{"tools": ["alpha", "gamma"]}, {"regions": ["unknown"]}, {"classes": ["L3_transient"]},
     {"tools": ["beta"], "regions": ["eu-west"], "classes": ["unclassified", "L1_input"]}],
)  # fmt: skip
def test_filters_narrow_rollups_as_they_narrow_rows(
    rolled: tuple[Store, list[ToolCall]], narrowed: dict[str, list[str]]
) -> None:
    store, calls = rolled
    mine = [
        call
        for call in within(calls, NOW - timedelta(days=3), NOW)
        if call.tool in narrowed.get("tools", TOOLS)
        and (call.region or "unknown") in narrowed.get("regions", ["us-east", "eu-west", "unknown"])
    ]
    classes = narrowed.get("classes", list(c.ErrorClass))
    faults = sum(call.weight for call in mine
                 if is_fault(call) and (call.error_class or "unclassified") in classes)  # fmt: skip
    ask = asker(store, NOW - timedelta(days=3), NOW, **narrowed)
    (row,) = ask("page_totals")
    assert (row["calls"], row["faults"]) == (sum(call.weight for call in mine), faults)
    assert sum(row["faults"] for row in ask("page_error_kinds")) == faults
    shown = [call for call in mine if "classes" not in narrowed or call.error_class in classes]
    assert sum(row["calls"] for row in ask("page_latency")) == sum(call.weight for call in shown)


def test_quantiles_out_of_histograms_are_close_to_exact_ones(
    make_store: Callable[..., Store],
) -> None:
    """Golden: 20,000 durations of one tool over three days; exact ones by sorting."""
    store = make_store("golden.duckdb", retention_days=None, clock=FixedClock())
    rng = random.Random(5)
    lengths = [rng.lognormvariate(-1, 1) for _ in range(20_000)]
    calls = [
        ToolCall("alpha", end=micros(NOW) - rng.randrange(3 * 86_400_000_000), duration_seconds=it)
        for it in lengths
    ]
    store.append(Batch(calls=calls)).result(60)
    store.roll_up()
    (row,) = asker(store, NOW - timedelta(days=30), NOW)("page_totals")
    ordered = sorted(lengths)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        exact = ordered[math.ceil(share * len(ordered)) - 1]
        assert row[name] == pytest.approx(exact, rel=0.02)


def test_durations_without_end_and_below_any_step_are_counted(
    make_store: Callable[..., Store],
) -> None:
    store = make_store("odd.duckdb", retention_days=None, clock=FixedClock())
    odd = [0.0, 1e-9, 1e300, math.inf]
    end = micros(NOW - timedelta(days=2))
    calls = [ToolCall("alpha", end=end, start=end - 1, duration_seconds=0.1) for _ in odd]
    for call, length in zip(calls, odd, strict=True):
        call.duration_seconds = length
    store.append(Batch(calls=calls)).result(60)
    store.roll_up()
    ask = asker(store, NOW - timedelta(days=30), NOW)
    assert ask("page_totals")[0]["calls"] == 4
    assert sum(row["calls"] for row in ask("page_latency_heatmap")) == 4
    assert ask("page_latency")[0]["slowest"] == math.inf


def test_breakers_are_known_from_rolled_up_calls_and_heartbeats(
    make_store: Callable[..., Store],
) -> None:
    store = make_store("breakers.duckdb", retention_days=None, clock=FixedClock())
    then = NOW - timedelta(days=4)
    call = ToolCall("alpha", end=micros(then), breaker_state="closed", instance="one")
    beats = [Heartbeat(micros(then + timedelta(hours=n)), "one") for n in (0, 90)]
    listed = '[{"breaker": "alpha", "tool": "alpha", "state": "open"}]'
    beats.append(Heartbeat(micros(NOW - timedelta(seconds=9)), "one", breakers=listed))
    store.append(Batch(calls=[call], heartbeats=beats)).result(60)
    answers = []
    for _ in range(2):
        ask = asker(store, NOW - timedelta(days=7), NOW)
        answers.append((ask("page_breaker_states"), ask("page_breaker_timeline")))
        store.roll_up()
    assert answers[0] == answers[1]
    assert answers[0][0][0]["state"] == "open"


@pytest.mark.parametrize("narrowed", [{}, {"tools": ["beta"]}, {"classes": ["L3_transient"]}])
@pytest.mark.parametrize("row_limit", [5, 1000])
def test_the_slowest_calls_are_found_with_the_help_of_rollups(
    rolled: tuple[Store, list[ToolCall]], narrowed: dict[str, list[str]], row_limit: int
) -> None:
    store, calls = rolled
    mine = [
        call.duration_seconds
        for call in within(calls, NOW - timedelta(days=3), NOW)
        if call.tool in narrowed.get("tools", TOOLS)
        and (not narrowed.get("classes") or call.error_class in narrowed["classes"])
    ]
    ask = asker(store, NOW - timedelta(days=3), NOW, kind="slow", row_limit=row_limit, **narrowed)
    found = [row["duration_seconds"] for row in ask("page_calls")]
    assert found == sorted(mine, reverse=True)[:row_limit]
