"""The Trace page: what it finds, what it tells of a call, and where it leads."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from streamlit.testing.v1 import AppTest

from fuseboard_collector.store import Batch, Store, ToolCall

from .conftest import UNTIL, FlakyReader, at, html, open_page, serve, stat
from .trip import BASE, REFUSED, RETRIED, TRACE, big_trace, trip

AT = at(BASE + 3).isoformat()


@pytest.fixture
def traced(store: Store) -> Store:
    store.append(trip()).result(30)
    serve(store)
    return store


def calls(markup: str) -> list[tuple[str, str]]:
    """Return tool and outcome of each call that is drawn, by the hooks."""
    return re.findall(
        r'data-testid="fb-call" data-span="\w+" data-tool="([^"]*)" data-region="[^"]*" '
        r'data-outcome="(\w+)"',
        markup,
    )


def parameter(app: AppTest, name: str) -> str:
    """Return a parameter of the URL, whether this test set it or the app did."""
    value = app.query_params[name]
    return value if isinstance(value, str) else value[-1]


def test_a_trace_is_drawn_in_the_order_of_its_tree(traced: Store) -> None:
    app = open_page("trace", {"trace": TRACE, "at": AT})
    assert not app.exception
    drawn = html(app)
    assert "fb-problem" not in drawn
    assert calls(drawn) == [("maps", "ok"), ("weather", "degraded"), ("weather", "rejected")]
    assert drawn.index("invoke_agent planner") < drawn.index("chat small") < drawn.index("maps")
    assert (stat(app, "trace-calls"), stat(app, "trace-faults")) == (3, 2)
    assert (stat(app, "trace-attempts"), stat(app, "trace-backoff")) == (3, 0.2)
    assert stat(app, "trace-seconds") == pytest.approx(2.501)
    assert (stat(app, "trace-changes"), stat(app, "trace-tokens")) == (1, 1234)


def test_the_story_of_a_call_names_attempts_waits_and_the_breaker(traced: Store) -> None:
    drawn = html(open_page("trace", {"trace": TRACE, "at": AT}))
    story = drawn.split(f'data-span="{RETRIED}"')[1].split("</ol>")[0]
    told = re.findall("<li>(.*?)</li>", story)
    assert told == [
        "Attempt 1 failed after 400 ms: L3 transient, httpx.ConnectError.",
        "Waited 200 ms.",
        "Attempt 2 failed after 500 ms: L3 transient, httpx.ConnectError.",
        "Breaker weather/eu-west went from closed to open: too many failures, 12 of 20 failed.",
        "No attempt was made after that.",
        "A default was served instead. Behind it: L3 transient, httpx.ConnectError.",
    ]
    assert "&lt;b&gt;refused&lt;/b&gt;" in drawn
    assert "<b>refused" not in drawn


def test_the_worst_call_is_open_from_the_start_and_only_that(traced: Store) -> None:
    drawn = html(open_page("trace", {"trace": TRACE, "at": AT}))
    (opened,) = re.findall(r'data-span="(\w+)"[^>]* open>', drawn)
    assert opened == REFUSED


def test_a_call_leads_to_tool_errors_arguments_and_breaker_under_the_filters(
    traced: Store,
) -> None:
    drawn = html(open_page("trace", {"trace": TRACE, "at": AT, "range": "1h"}))
    story = drawn.split(f'data-span="{REFUSED}"')[1]
    links = re.findall(r'<a href="([^"]+)" target="_self"><u>', story)
    assert links == [
        "tool?range=1h&amp;tool=weather&amp;region=eu-west",
        "errors?range=1h&amp;tool=weather&amp;class=L3_transient&amp;region=eu-west",
        "errors?range=1h&amp;tool=weather&amp;hash=v1%3Abb",
        "sessions?range=1h&amp;session=s-1&amp;at=2026-01-05T12%3A08%3A23.001000Z",
        "breakers?range=1h&amp;tool=weather&amp;region=eu-west",
    ]


def test_without_a_moment_the_trace_is_searched_and_the_moment_kept(traced: Store) -> None:
    app = open_page("trace", {"trace": TRACE})
    assert len(calls(html(app))) == 3
    assert parameter(app, "at") == "2026-01-05T12:08:23.001000Z"


def test_a_moment_that_is_wrong_is_no_obstacle(traced: Store) -> None:
    for moment in ("2025-01-01T00:00:00Z", "yesterday", ""):
        app = open_page("trace", {"trace": TRACE, "at": moment})
        assert len(calls(html(app))) == 3


def test_an_unknown_trace_is_searched_once_and_again_on_demand(
    traced: Store, flaky: FlakyReader
) -> None:
    serve(flaky)
    app = open_page("trace", {"trace": "ee" * 16})
    assert 'data-testid="fb-trace-unknown"' in html(app)
    searched = flaky.asked.count("page_trace_found")
    assert searched >= 1
    app.run()
    assert flaky.asked.count("page_trace_found") == searched
    app.button(key="fb_trace_again").click().run()
    assert not app.exception
    assert 'data-testid="fb-trace-unknown"' in html(app)


@pytest.mark.parametrize("text", ["", "xyz", "0" * 32, "<script>alert(1)</script>", "a" * 5000])
def test_what_is_no_trace_id_is_said_and_nothing_searched(
    traced: Store, flaky: FlakyReader, text: str
) -> None:
    serve(flaky)
    app = open_page("trace", {"trace": text})
    assert not app.exception
    assert 'data-testid="fb-trace-malformed"' in html(app)
    assert "<script>alert" not in html(app)
    assert "page_trace_found" not in flaky.asked


def test_a_pasted_traceparent_opens_its_trace(traced: Store) -> None:
    app = open_page("trace", {"at": "2025-01-01T00:00:00Z"})
    app.text_input(key="fb_trace_field").set_value(f" 00-{TRACE.upper()}-{'1' * 16}-01 ").run()
    assert parameter(app, "trace") == TRACE
    assert len(calls(html(app))) == 3
    app.text_input(key="fb_trace_field").set_value("nonsense").run()
    assert 'data-testid="fb-trace-wrong"' in html(app)
    assert parameter(app, "trace") == TRACE


def test_without_an_id_the_page_begins_with_traces_in_trouble(traced: Store) -> None:
    app = open_page("trace", {"tool": "weather"})
    assert "Traces with trouble" in html(app)
    (link,) = set(re.findall(r'href="(trace\?[^"]*trace=[^"]*)"', html(app)))
    assert link == (f"trace?tool=weather&amp;trace={TRACE}&amp;at=2026-01-05T12%3A08%3A23.001000Z")
    app = open_page("trace", {"tool": "nobody-calls-it"})
    assert "fb-problem" not in html(app)


def test_an_empty_window_says_so(traced: Store) -> None:
    serve(traced, now=UNTIL + timedelta(days=2))
    assert 'data-testid="fb-no-traces"' in html(open_page("trace"))


def test_hc_47_a_big_trace_stays_small_and_keeps_its_fault(store: Store) -> None:
    store.append(big_trace(2500, 2500)).result(60)
    serve(store)
    app = open_page("trace", {"trace": TRACE, "at": at(BASE + 10).isoformat()})
    assert not app.exception
    drawn = html(app)
    assert "fb-problem" not in drawn
    assert len(calls(drawn)) <= 150
    assert ("loop", "error") in calls(drawn)
    assert len(drawn) < 1_000_000
    assert len(app.dataframe[0].value) == 1000
    assert "This trace has 2,500 calls and 2,500 other spans" in drawn


def test_names_with_markup_stay_text(store: Store) -> None:
    evil = "<img src=x onerror=alert(1)>"
    call = ToolCall(evil, end=at(700), trace_id=TRACE, span_id="1" * 16, region=evil, agent=evil,
                    session=evil, error_type=evil, error_message=evil, outcome="error",
                    args_hash=evil, layer=evil, classifier_id=evil)  # fmt: skip
    store.append(Batch(calls=[call])).result(30)
    serve(store)
    drawn = html(open_page("trace", {"trace": TRACE, "at": at(700).isoformat()}))
    assert "fb-problem" not in drawn
    assert "<img src=x" not in drawn
    assert drawn.count("&lt;img") > 5


def test_a_failing_store_is_said_and_recovers(traced: Store, flaky: FlakyReader) -> None:
    serve(flaky)
    flaky.failing = "page_trace_calls"
    app = open_page("trace", {"trace": TRACE, "at": AT})
    assert "the disk has gone for a walk" in html(app)
    flaky.failing = None
    app.run()
    assert len(calls(html(app))) == 3
