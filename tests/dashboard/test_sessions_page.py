"""The Sessions page: which runs go wrong, and one run step by step."""

from __future__ import annotations

import re
from datetime import timedelta

import pandas as pd
import pytest

from fuseboard_collector.store import Batch, Store, ToolCall
from fuseboard_dashboard import contexts, sessions
from fuseboard_dashboard.screens import sessions as screen

from .conftest import UNTIL, FlakyReader, at, html, open_page, serve, stat
from .runs import FAILING, FINE, LOOPING, call, long_run, many_runs, runs

AT = at(107).isoformat()


@pytest.fixture
def running(store: Store) -> Store:
    store.append(runs()).result(30)
    serve(store)
    return store


def listed(markup: str) -> list[tuple[str, float, float, int]]:
    """Return session, calls, faults and repeats of each line, by the hooks."""
    found = re.findall(
        r'data-testid="fb-session" data-session="([^"]*)" data-calls="([\d.]+)" '
        r'data-faults="([\d.]+)" data-repeats="(\d+)"',
        markup,
    )
    return [(name, float(calls), float(faults), int(again)) for name, calls, faults, again in found]


def test_sessions_are_listed_by_trouble(running: Store) -> None:
    app = open_page("sessions")
    assert not app.exception
    assert "fb-problem" not in html(app)
    assert listed(html(app)) == [(LOOPING, 7, 0, 5), (FAILING, 2, 1, 0), (FINE, 1, 0, 0)]
    assert (stat(app, "sessions"), stat(app, "sessions-troubled")) == (3, 2)
    assert (stat(app, "sessions-repeating"), stat(app, "calls-unnamed")) == (1, 12)
    assert "What gives calls a session" in [expander.label for expander in app.expander]


def test_the_context_counts_models_and_not_agents_that_sum_them_up(running: Store) -> None:
    line = html(open_page("sessions")).split(f'data-session="{LOOPING}"')[1].split("</tr>")[0]
    assert '3,000 <span class="fb-quiet">2.00×</span>' in line


def test_an_agent_can_be_chosen_and_is_in_the_url(running: Store) -> None:
    app = open_page("sessions", {"agent": "reader"})
    assert [name for name, *_ in listed(html(app))] == [LOOPING]
    app.selectbox(key="fb_session_agent").set_value("planner").run()
    assert len(listed(html(app))) == 3
    app = open_page("sessions", {"agent": "nobody"})
    assert 'data-testid="fb-no-sessions"' in html(app)
    assert "There is no filter" not in html(app)


def test_without_any_session_the_page_says_what_sets_one(store: Store) -> None:
    serve(store)
    app = open_page("sessions")
    assert 'data-testid="fb-no-sessions"' in html(app)
    compile(app.code[0].value, "snippet", "exec")


def test_ten_thousand_sessions_show_the_worst_and_say_so(store: Store) -> None:
    store.append(many_runs(10_000)).result(60)
    serve(store)
    app = open_page("sessions")
    lines = listed(html(app))
    assert len(lines) == screen.SHOWN
    assert lines[0][0] == "run-77"
    assert stat(app, "sessions") == 10_000
    assert f"The {screen.SHOWN} with most trouble of 10.0k sessions." in [
        caption.value for caption in app.caption
    ]
    assert len(html(app)) < 1_000_000


def test_a_window_with_too_many_calls_is_shortened_and_said(
    running: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "MOST_CALLS", 10)
    app = open_page("sessions", {"range": "1h"})
    assert 'data-testid="fb-bounded"' in html(app)
    assert "fb-problem" not in html(app)


def test_a_session_is_told_step_by_step(running: Store) -> None:
    app = open_page("sessions", {"session": LOOPING, "at": AT})
    assert not app.exception
    drawn = html(app)
    assert "fb-problem" not in drawn
    assert (stat(app, "session-steps"), stat(app, "session-repeats")) == (7, 5)
    assert (stat(app, "session-faults"), stat(app, "session-cost")) == (0, 1.75)
    assert stat(app, "session-seconds") == 7.5
    assert (stat(app, "session-tokens"), stat(app, "session-growth")) == (9080, 2.0)
    assert 'data-args-hash="v1:aa" data-calls="5" data-longest="4"' in drawn
    assert (
        "search was called 5 times with the same arguments, 4 of them in a row, "
        "from 12:01:40 to 12:01:45." in re.sub(r"<.*?>", "", drawn)
    )
    steps = app.dataframe[0].value
    assert list(steps["again"]) == ["⟳", "", "⟳", "⟳", "⟳", "⟳", ""]
    assert all(str(link).startswith("trace?") for link in steps["trace"])


def test_a_circle_leads_to_its_calls_whatever_the_viewers_window_is(running: Store) -> None:
    serve(running, now=UNTIL + timedelta(days=2))
    drawn = html(open_page("sessions", {"session": LOOPING, "at": AT, "class": "L1_input"}))
    for page in ("errors", "tool"):
        (query,) = re.findall(rf'href="{page}\?(from=[^"]*tool=search[^"]*)"', drawn)
        assert query.startswith("from=2026-01-05T11%3A31%3A45Z&amp;to=2026-01-05T12%3A31%3A46Z")
        assert "class" not in query


def test_the_spent_budget_counts_attempts_and_retries(running: Store) -> None:
    app = open_page("sessions", {"session": FAILING, "at": AT})
    assert stat(app, "session-attempts") == 4
    assert "2 retries" in html(app)
    assert "No span of a model" in html(app)


def test_without_a_moment_the_session_is_searched_and_unknown_ones_only_once(
    running: Store, flaky: FlakyReader
) -> None:
    app = open_page("sessions", {"session": FAILING})
    assert stat(app, "session-steps") == 2
    serve(flaky)
    app = open_page("sessions", {"session": "<b>nobody</b>"})
    assert 'data-testid="fb-session-unknown"' in html(app)
    assert "<b>nobody" not in html(app)
    searched = flaky.asked.count("page_session_found")
    app.run()
    assert flaky.asked.count("page_session_found") == searched
    app.button(key="fb_session_again").click().run()
    assert 'data-testid="fb-session-unknown"' in html(app)


def test_hc_47_a_long_session_shows_its_newest_calls_and_says_so(store: Store) -> None:
    store.append(long_run(3000)).result(60)
    serve(store)
    app = open_page("sessions", {"session": "long", "at": at(550).isoformat()})
    assert "Shown are the newest 1000 calls of 3,000." in html(app)
    assert len(app.dataframe[0].value) == 1000
    assert "fb-problem" not in html(app)


def test_a_session_is_found_when_the_window_is_elsewhere(running: Store) -> None:
    serve(running, now=UNTIL + timedelta(days=3))
    app = open_page("sessions", {"session": LOOPING, "at": AT})
    assert stat(app, "session-steps") == 7
    assert "No calls match" not in html(app)


def test_names_with_markup_stay_text(store: Store) -> None:
    evil = "<img src=x onerror=alert(1)>"
    calls = [
        call(evil, evil, 500 + n, evil, agent=evil, service=evil, region=evil) for n in range(4)
    ]
    store.append(Batch(calls=calls)).result(30)
    serve(store)
    for query in ({}, {"session": evil, "at": at(503).isoformat()}):
        drawn = html(open_page("sessions", query))
        assert "fb-problem" not in drawn
        assert "<img src=x" not in drawn
        assert "&lt;img" in drawn


def frame_of(*calls: ToolCall) -> pd.DataFrame:
    return pd.DataFrame([{"tool": c.tool, "args_hash": c.args_hash, "start": c.start}
                         for c in calls])  # fmt: skip


def test_circles_need_a_hash_and_three_calls() -> None:
    twice = frame_of(*(call("s", "a", n, "v1:aa") for n in range(2)))
    assert sessions.circles(twice) == []
    unnamed = frame_of(*(ToolCall("a", end=at(n)) for n in range(9)))
    assert sessions.circles(unnamed) == []
    assert not sessions.is_repeated(unnamed).any()


def test_the_most_frequent_circle_comes_first_with_its_longest_run() -> None:
    order = "aabaabbcaaa"
    calls = frame_of(*(call("s", tool, n, "v1:aa") for n, tool in enumerate(order)))
    found = [(c.tool, len(c.calls), c.longest) for c in sessions.circles(calls)]
    assert found == [("a", 7, 3), ("b", 3, 2)]


def test_growth_is_measured_against_the_first_reading() -> None:
    assert contexts.growth(pd.Series([None, 100, 50, 250])) == 2.5
    assert contexts.growth(pd.Series([], dtype=float)) is None
    assert contexts.growth(pd.Series([0, 9])) is None
