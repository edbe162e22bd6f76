"""The page on degradation: golden numbers, plain counting, and what its cells lead to."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pandas as pd
import pytest

from fuseboard.conventions import Confidence, Outcome, ResultSource
from fuseboard_collector.store import Batch, Store, ToolCall
from fuseboard_dashboard import answers, theme
from fuseboard_dashboard.bounded import MOST_CALLS, bounded
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.source import Source
from fuseboard_dashboard.view import QUERY_PARAMETERS, View

from .conftest import SINCE, UNTIL, WINDOW, at, html, open_page, serve, stat

Ask = Callable[..., list[dict[str, object]]]
PLACE = {"tool": "rates", "region": "us-east"}
FAULT = {"error_class": "L4_persistent", "error_type": "httpx.ConnectError",
         "cause_type": "OSError", "layer": "fallback"}  # fmt: skip


def answered() -> list[ToolCall]:
    """Return ten answers of one tool: every kind, three with a cache's ages."""

    def stood_in(second: float, source: str | None, **more: object) -> ToolCall:
        values = {**PLACE, **FAULT, "outcome": "degraded", "result_source": source, **more}
        return ToolCall(end=at(second), **values)  # type: ignore[arg-type]

    return [
        ToolCall(**PLACE, end=at(61), result_source="live", confidence="high"),
        ToolCall(**PLACE, end=at(62), result_source="live", confidence="high"),
        ToolCall(**PLACE, end=at(63), result_source="cache", confidence="medium_high",
                 result_age_seconds=10.0, attempts=0),
        ToolCall(**PLACE, end=at(64), result_source="cache", confidence="medium_high",
                 result_age_seconds=30.0, attempts=0),
        stood_in(65, "cache", result_age_seconds=4000.0, confidence="low"),
        stood_in(66, "fallback", fallback_tool="old_rates", confidence="medium"),
        stood_in(127, "fallback", fallback_tool="old_rates", confidence="medium"),
        stood_in(128, "default", fallback_tool="default", confidence="low", attempts=0,
                 classifier_id="circuit_open", breaker_state="open"),
        ToolCall(**PLACE, end=at(129), outcome="partial", result_source="live",
                 partial_failures=3, error_class="L5_semantic"),
        ToolCall(**PLACE, end=at(130), outcome="cancelled"),
    ]  # fmt: skip


@pytest.fixture
def degraded(store: Store) -> Store:
    store.append(Batch(calls=answered())).result(30)
    return store


def test_answers_by_tool_region_and_source(degraded: Store, ask: Ask) -> None:
    rows = [
        (answers.kind(r["outcome"], r["result_source"]), r["calls"], r["judged"], r["age_p50"],
         r["oldest"])
        for r in ask("page_answers", tools=["rates"])
    ]  # fmt: skip
    assert rows == [
        ("fallback", 2, 9, None, None), ("stale", 1, 9, 4000, 4000), ("default", 1, 9, None, None),
        ("partial", 1, 9, None, None), ("cache", 2, 9, 10, 30), ("live", 2, 9, None, None),
    ]  # fmt: skip
    (untold,) = ask("page_answers", regions=["eu-west"], classes=["L3_transient"])
    assert answers.kind(untold["outcome"], untold["result_source"]) == "untold"
    assert (untold["calls"], untold["judged"]) == (1, 2)


def test_ages_per_bucket_and_of_the_whole_window(degraded: Store, ask: Ask) -> None:
    (row,) = ask("page_answer_ages", bucket_us=2**61)
    assert (row["answers"], row["p50"], row["p95"], row["oldest"]) == (3, 30, 4000, 4000)
    (row,) = ask("page_answer_ages")
    assert (row["bucket"], row["answers"]) == (at(60).replace(tzinfo=None), 3)


def test_causes_tell_class_classifier_and_breaker(degraded: Store, ask: Ask) -> None:
    rows = [
        (answers.cause(pd.Series(r)), r["error_class"], r["cause_type"], r["breaker_state"],
         r["calls"])
        for r in ask("page_answer_causes", tools=["rates"])
    ]  # fmt: skip
    assert rows == [
        ("Live call failed", "L4_persistent", "OSError", None, 3),
        ("Breaker open, no attempt made", "L4_persistent", "OSError", "open", 1),
        ("Parts of the answer failed", "L5_semantic", None, None, 1),
    ]


@pytest.mark.parametrize(
    ("classifier", "words"),
    [
        ("attempt_timeout", "Attempt timed out"), ("timeout_matcher", "Timed out"),
        ("connect_timeout_matcher", "Connecting timed out"),
        ("limit_exceeded", "Over our own limit"), ("budget_exhausted", "Time budget used up"),
        ("session_budget_exhausted", "Session budget used up"), ("mine", "Live call failed"),
    ],
)  # fmt: skip
def test_a_cause_is_named_by_who_judged_it(classifier: str, words: str) -> None:
    assert answers.cause(pd.Series({"classifier_id": classifier, "outcome": "degraded"})) == words


def test_kinds_with_confidence_and_what_stood_in(degraded: Store, ask: Ask) -> None:
    rows = {(r["outcome"], r["result_source"], r["confidence"], r["fallback_tool"]): r["calls"]
            for r in ask("page_answer_kinds", tools=["rates"])}  # fmt: skip
    assert rows == {
        ("ok", "live", "high", None): 2, ("ok", "cache", "medium_high", None): 2,
        ("degraded", "cache", "low", None): 1, ("degraded", "fallback", "medium", "old_rates"): 2,
        ("degraded", "default", "low", "default"): 1, ("partial", "live", None, None): 1,
    }  # fmt: skip


@pytest.mark.parametrize("kind", theme.ANSWER_MARKS)
def test_the_calls_of_a_kind_are_exactly_those(degraded: Store, ask: Ask, kind: str) -> None:
    rows = ask("page_answer_calls", **answers.chosen(kind))
    expected = {"default": 1, "fallback": 2, "stale": 1, "untold": 1, "partial": 2, "cache": 2}
    assert [answers.kind(r["outcome"], r["result_source"]) for r in rows] == [kind] * expected[kind]


@pytest.mark.parametrize("outcome", ["ok", "partial", "degraded"])
@pytest.mark.parametrize("source", ["live", "cache", "fallback", "default", "a friend's", None])
def test_an_answer_is_among_the_calls_of_its_kind_and_of_no_other(
    empty_store: Store, outcome: str, source: str | None
) -> None:
    only = ToolCall("odd", end=at(60), outcome=outcome, result_source=source)
    empty_store.append(Batch(calls=[only])).result(30)
    wanted = {**Filters().parameters(WINDOW), "row_limit": 9, "classifiers": None}
    found = [
        kind for kind in theme.ANSWER_MARKS
        if len(empty_store.query("page_answer_calls", {**wanted, **answers.chosen(kind)}))
    ]  # fmt: skip
    own = answers.kind(outcome, source)
    assert found == ([] if own == answers.LIVE else [own])


def test_a_classifier_narrows_the_calls(degraded: Store, ask: Ask) -> None:
    (row,) = ask("page_answer_calls", classifiers=["circuit_open"])
    assert (row["result_source"], row["breaker_state"]) == ("default", "open")
    assert len(ask("page_answer_calls", **answers.chosen(None))) == 7


@pytest.mark.parametrize("source", [None, *ResultSource])
@pytest.mark.parametrize("outcome", ["ok", "partial", "degraded"])
def test_every_answer_has_a_kind(outcome: str, source: str | None) -> None:
    assert answers.kind(outcome, source) in {*theme.ANSWER_MARKS, answers.LIVE}
    if outcome == "degraded":
        assert answers.kind(outcome, source) in answers.STAND_INS


def made(seed: int) -> list[ToolCall]:
    """Return calls of every outcome, source, confidence and age."""
    dice = random.Random(seed)
    return [
        ToolCall(
            dice.choice("abc"), end=SINCE + timedelta(seconds=dice.uniform(1, 900)),
            region=dice.choice([None, "eu"]), outcome=dice.choice(list(Outcome)),
            result_source=dice.choice([None, *ResultSource]),
            confidence=dice.choice([None, *Confidence]),
            result_age_seconds=dice.choice([None, dice.uniform(0, 5000)]),
            weight=dice.choice([1.0, 4.0]),
        )
        for _ in range(600)
    ]  # fmt: skip


def test_numbers_equal_those_counted_over_the_records(empty_store: Store) -> None:
    calls = made(7)
    empty_store.append(Batch(calls=calls)).result(30)
    view = View(Source(empty_store, clock=lambda: UNTIL), Filters(), WINDOW, UNTIL.tzinfo, "UTC")  # type: ignore[arg-type]
    table = answers.by_place(answers.with_kinds(view.ask("page_answers")))
    counted: Counter[tuple[str, str, str]] = Counter()
    judged: Counter[tuple[str, str]] = Counter()
    oldest: dict[tuple[str, str], float] = {}
    for call in calls:
        place = (call.tool, call.region or "unknown")
        if call.outcome not in ("cancelled", "abandoned", "interrupted"):
            judged[place] += call.weight  # type: ignore[assignment]
        if call.outcome in ("ok", "partial", "degraded"):
            kind = answers.kind(call.outcome, call.result_source)
            counted[(*place, kind)] += call.weight  # type: ignore[assignment]
            if kind != answers.LIVE:
                oldest[place] = max(oldest.get(place, 0.0), call.result_age_seconds or 0.0)
    assert len(table) == len(judged) == 6
    for row in table.itertuples():
        place = (row.tool, row.region)
        assert row.judged == judged[place]
        assert row.oldest == oldest[place]
        for kind in theme.ANSWER_MARKS:
            assert getattr(row, kind) == counted[(*place, kind)], (place, kind)
    series = answers.with_kinds(view.buckets("page_answer_series", view.axis(60)))
    for kind, number in series.groupby("kind")["calls"].sum().items():
        if kind != answers.LIVE:
            assert number == sum(n for (*_, other), n in counted.items() if other == kind)


def test_the_page_shows_every_kind_and_its_share(degraded: Store) -> None:
    serve(degraded)
    app = open_page("degradation", {"tool": "rates"})
    assert not app.exception
    assert "fb-problem" not in html(app)
    found = {kind: stat(app, f"answers-{kind}") for kind in theme.ANSWER_MARKS if kind != "untold"}
    assert found == {"default": 1, "fallback": 2, "stale": 1, "partial": 1, "cache": 2}
    assert stat(app, "degraded-ratio") == pytest.approx(4 / 9)
    assert stat(app, "cache-hit-ratio") == pytest.approx(2 / 9)
    assert stat(app, "answer-age-p95") == 4000
    cells = re.findall(r'fb-answer-cell" data-kind="(\w+)" data-tool="rates" '
                       r'data-region="us-east" data-value="([\d.]+)"', html(app))  # fmt: skip
    assert dict(cells) == {"default": "1.0", "fallback": "2.0", "stale": "1.0", "partial": "1.0",
                           "cache": "2.0"}  # fmt: skip
    assert "old_rates" in html(app)


def test_a_cell_leads_to_the_calls_behind_it(degraded: Store) -> None:
    serve(degraded)
    href = "degradation?tool=rates&amp;region=us-east&amp;answer=stale"
    assert f'href="{href}"' in html(open_page("degradation"))
    app = open_page("degradation", {"tool": "rates", "region": "us-east", "answer": "stale"})
    assert "Only answers of this kind: Stale cache." in html(app)
    (row,) = app.dataframe[0].value.to_dict("records")
    assert row["age"] == "66.7 min"
    assert re.match(r"trace\?tool=rates&region=us-east&trace=[0-9a-f]{32}&at=", row["trace"])


def test_a_filter_of_classes_does_not_turn_hits_into_misses(degraded: Store) -> None:
    serve(degraded)
    app = open_page("degradation", {"tool": "rates", "class": "L4_persistent"})
    assert stat(app, "cache-hit-ratio") == pytest.approx(2 / 9)
    assert 'href="degradation?tool=rates&amp;class=L4_persistent&amp;region=us-east' in html(app)
    assert "No cache at work here" not in html(app)


def test_a_cause_leads_to_its_own_calls_or_nowhere(empty_store: Store) -> None:
    calls = [ToolCall(**PLACE, end=at(60), outcome="partial"),
             ToolCall(**PLACE, end=at(61), outcome="degraded")]  # fmt: skip
    empty_store.append(Batch(calls=calls)).result(30)
    serve(empty_store)
    drawn = html(open_page("degradation"))
    assert 'href="degradation?answer=partial"' in drawn
    assert "<u>Parts of the answer failed</u>" in drawn
    assert "Live call failed" in drawn
    assert "<u>Live call failed</u>" not in drawn


def test_a_kind_that_does_not_exist_is_ignored(degraded: Store) -> None:
    serve(degraded)
    app = open_page("degradation", {"answer": "<b>"})
    assert "fb-narrowed" not in html(app)
    assert len(app.dataframe[0].value) == 7


def test_a_window_of_live_answers_says_what_would_make_another(empty_store: Store) -> None:
    empty_store.append(Batch(calls=[ToolCall("alpha", end=at(60), result_source="live")])).result()
    serve(empty_store)
    app = open_page("degradation")
    assert "fb-all-live" in html(app)
    assert "Policy(fallback=…)" in html(app)
    assert stat(app, "degraded-ratio") == 0
    assert not app.dataframe


def test_a_cache_without_hits_is_still_a_cache(empty_store: Store) -> None:
    call = ToolCall(**PLACE, end=at(60), result_source="live", confidence="high")
    empty_store.append(Batch(calls=[call])).result(30)
    serve(empty_store)
    app = open_page("degradation")
    assert stat(app, "cache-hit-ratio") == 0
    assert "fb-all-live" in html(app)


def test_a_confidence_without_a_source_is_no_sign_of_a_cache(empty_store: Store) -> None:
    call = ToolCall(**PLACE, end=at(60), confidence="high")
    empty_store.append(Batch(calls=[call])).result(30)
    serve(empty_store)
    assert 'data-stat="cache-hit-ratio" data-value=""' in html(open_page("degradation"))


def test_the_degraded_number_of_other_pages_leads_here(degraded: Store) -> None:
    serve(degraded)
    assert 'href="degradation" target="_self" title="calls answered with' in html(open_page(""))


def test_a_window_of_too_many_calls_is_cut_and_says_so(store: Store) -> None:
    view = View(Source(store, clock=lambda: UNTIL), Filters(), WINDOW, UNTIL.tzinfo, "UTC")  # type: ignore[arg-type]
    assert bounded(view) == (view, "")
    narrower, words = bounded(view, most=6)
    assert narrower.window.until == view.window.until
    assert narrower.window.length == timedelta(minutes=5)
    assert "12 in this window" in words
    assert "last 5 min" in words
    assert MOST_CALLS >= 10_000_000


@pytest.mark.parametrize("chosen", [{"tools": ("beta",)}, {"regions": ("eu-west",)}])
def test_a_filter_does_not_let_a_page_read_more(
    store: Store, chosen: dict[str, tuple[str, ...]]
) -> None:
    """The store passes over all rows of the window for the few that are asked for."""
    filters = Filters(**chosen)  # type: ignore[arg-type]
    view = View(Source(store, clock=lambda: UNTIL), filters, WINDOW, UNTIL.tzinfo, "UTC")  # type: ignore[arg-type]
    narrower, words = bounded(view, most=6)
    assert narrower.window.length == timedelta(minutes=5)
    assert "12 in this window" in words


def test_links_and_comparisons_of_a_cut_window_are_about_what_is_left(store: Store) -> None:
    view = View(Source(store, clock=lambda: UNTIL), Filters(), WINDOW, UNTIL.tzinfo, "UTC")  # type: ignore[arg-type]
    narrower, _ = bounded(view, most=6)
    assert narrower.filters.window(UNTIL + timedelta(days=1)) == narrower.window
    assert narrower.before().window.until == narrower.window.since


@pytest.mark.parametrize("name", ["page_answers", "page_costs"])
def test_what_rollups_help_to_count_stays_the_same(empty_store: Store, name: str) -> None:
    dice = random.Random(11)
    calls = made(11)
    for call in calls:
        call.end = UNTIL - timedelta(seconds=dice.uniform(0, 3 * 86_400))
        call.cost = dice.choice([None, 0.25])
    empty_store.append(Batch(calls=calls)).result(30)
    values = {**Filters().parameters(WINDOW), "since": (UNTIL - timedelta(days=3)).isoformat()}
    wanted = {key: values[key] for key in QUERY_PARAMETERS[name]}
    before = empty_store.query(name, wanted).to_pylist()
    empty_store.roll_up()
    after = empty_store.query(name, wanted).to_pylist()
    assert len(before) > 2
    assert after == before
