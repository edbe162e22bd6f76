"""Every page on seeded data and on an empty store, through Streamlit itself."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fuseboard_alerts.catalogue import CATALOGUE, rule_names
from fuseboard_collector.store import Batch, BreakerTransition, Store, ToolCall
from fuseboard_dashboard import empty, theme
from fuseboard_dashboard.data import CACHE

from .conftest import APP, UNTIL, FlakyReader, at, go_to, heartbeats, html, open_page, serve, stat

PAGES = {
    "": "What is wrong now?",
    "tool": "How is this one tool doing",
    "errors": "Which class, tool, region",
    "breakers": "Which breakers are open",
    "retries": "What do retries cost",
    "latency": "How slow, for whom",
    "degradation": "Which answers are not the real thing",
    "sessions": "Which runs of agents",
    "trace": "What happened in this run",
    "slos": "How much may still fail",
    "dependencies": "Who depends on what",
    "alerts": "What fires, what fired",
    "incident": "What happened in this window",
}
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</span></div><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "[x](javascript:alert(1)) **b** $\\frac{1}{2}$ :red[r]",
    "x" * 500,
    "ünï\u202ecode\x00\n☃",
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_answers_its_question_without_a_problem(store: Store, page: str) -> None:
    serve(store)
    app = open_page(page)
    assert not app.exception
    assert PAGES[page] in html(app)
    assert "fb-problem" not in html(app)
    assert 'data-until="2026-01-05T12:15:00Z"' in html(app)
    assert "data as of 12:15:00" in html(app)


def test_the_board_has_its_name_and_the_bare_address(store: Store) -> None:
    serve(store)
    bare, named = open_page(""), open_page("board")
    for app in (bare, named):
        assert not app.exception
        assert "<h1>Board</h1>" in html(app)
    assert stat(bare, "calls") == stat(named, "calls") == 12


def test_a_link_may_name_any_tool_where_not_all_are_offered(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter offers the 1,000 most used; a link from a fuse beyond them must not show all."""
    serve(store)
    assert stat(open_page("", {"tool": "gamma"}), "calls") == 12
    monkeypatch.setattr("fuseboard_dashboard.sidebar.MOST_OFFERED", 2)
    app = open_page("", {"tool": "gamma"})
    assert app.query_params == {"tool": "gamma"}
    assert "fb-no-match" in html(app)
    assert app.multiselect(key="fb_tools").value == ["gamma"]


def test_a_board_that_reads_not_all_fuses_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(store)
    assert "are read" not in html(open_page())
    monkeypatch.setattr("fuseboard_dashboard.screens.board.MOST_READ", 2)
    assert "Only the 2 with most errors are read" in html(open_page())


def test_a_blank_name_can_be_seen(empty_store: Store) -> None:
    empty_store.append(Batch(calls=[ToolCall(tool=" ", end=at(60))])).result(30)
    serve(empty_store)
    assert ">&#x27; &#x27;</span>" in html(open_page())


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_an_empty_store_says_how_to_begin(empty_store: Store, page: str) -> None:
    serve(empty_store, otlp_endpoint="http://127.0.0.1:14318")
    app = open_page(page)
    assert not app.exception
    assert "fb-problem" not in html(app)
    if page == "alerts":
        assert CATALOGUE[0].name in html(app)
        return
    assert "Waiting for the first call" in html(app)
    assert 'endpoint="http://127.0.0.1:14318"' in app.code[0].value


def test_no_folder_makes_streamlit_take_this_for_another_kind_of_app() -> None:
    assert not APP.with_name("pages").exists()


def test_the_first_run_lines_are_a_whole_program() -> None:
    text = empty.snippet("http://127.0.0.1:4318")
    compile(text, "snippet", "exec")
    assert "endpoint" not in text  # it is the default
    assert 'fuseboard.init(service="my-agent", region="us-east")' in text


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in ("alerts", "incident", "slos", "trace")]
)
def test_filters_that_match_nothing_offer_a_reset(store: Store, page: str) -> None:
    serve(store, now=UNTIL + timedelta(days=2))
    app = open_page(page, {"tool": "alpha"})
    assert "No calls match these filters" in html(app)
    assert "05 Jan 12:15:00" in html(app)
    app.button(key="fb_empty_reset").click().run()
    assert app.multiselect(key="fb_tools").value == []
    assert "tool" not in app.query_params


@pytest.mark.parametrize("page", ["", "breakers"])
def test_an_open_breaker_is_shown_where_the_window_has_no_call(store: Store, page: str) -> None:
    now = UNTIL + timedelta(hours=1)
    store.append(heartbeats("two", now - timedelta(seconds=5))).result(30)
    serve(store, now=now)
    app = open_page(page)
    assert not app.exception
    assert "fb-problem" not in html(app)
    assert stat(app, "open-breakers") == 1
    assert html(app).count('data-testid="fb-no-match"') == 1
    if page == "":
        assert 'data-tool="alpha" data-region="us-east" data-state="open"' in html(app)
        assert "ToolCallRetryRateHigh" in html(app)


def test_times_of_a_window_of_several_days_have_dates(store: Store) -> None:
    def formats(query: dict[str, str]) -> set[str]:
        return set(re.findall(r'"format": "([^"]*SSS)"', _columns(open_page("errors", query))))

    serve(store)
    assert formats({}) == {"HH:mm:ss.SSS"}
    serve(store, now=UNTIL + timedelta(days=1))
    assert formats({"range": "7d"}) == {"MM-DD HH:mm:ss.SSS"}


def _columns(app: AppTest) -> str:
    return " ".join(table.proto.columns for table in app.dataframe)


def test_a_number_of_alerts_that_are_not_all_has_a_plus(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(store)
    assert ">2+<" not in html(open_page("alerts"))
    monkeypatch.setattr("fuseboard_dashboard.screens.alerts.MOST_CHANGES", 5)
    assert ">2+<" in html(open_page("alerts"))


def test_headline_numbers_follow_the_definitions(store: Store) -> None:
    serve(store)
    app = open_page()
    assert stat(app, "calls") == 12
    assert stat(app, "error-ratio") == pytest.approx(3 / 11)
    assert stat(app, "retry-ratio") == pytest.approx(2 / 10)
    assert stat(app, "amplification") == pytest.approx(13 / 10)
    assert stat(app, "degraded-ratio") == pytest.approx(1 / 11)
    assert stat(app, "p99") == 5.0
    assert stat(app, "open-breakers") == 1


def test_retry_page_numbers(store: Store) -> None:
    serve(store)
    app = open_page("retries", {"region": "us-east"})
    assert stat(app, "retry-ratio") == pytest.approx(2 / 5)
    assert stat(app, "first-try-ratio") == pytest.approx(1 / 5)
    assert stat(app, "final-ratio") == pytest.approx(2 / 5)
    assert (stat(app, "recovered"), stat(app, "exhausted")) == (1, 1)


def test_the_board_puts_the_tripped_fuse_first(store: Store) -> None:
    serve(store)
    fuses = re.findall(
        r'data-testid="fb-fuse" data-tool="(\w+)" data-region="([\w-]+)" data-state="(\w*)" '
        r'data-level="(\w+)" data-alerts="([\w ]*)" data-calls="([\d.]+)"',
        html(open_page()),
    )
    assert fuses == [
        ("alpha", "us-east", "open", "tripped", "ToolCallRetryRateHigh", "6.0"),
        ("beta", "unknown", "", "few", "", "4.0"),
        ("alpha", "eu-west", "closed", "few", "", "2.0"),
    ]


def test_a_tool_without_a_breaker_shows_a_dash_and_not_closed(store: Store) -> None:
    bare = [ToolCall("bare", end=at(60 + i), region="us-east") for i in range(30)]
    kept = [ToolCall("kept", end=at(60 + i), region="us-east", breaker_state="closed")
            for i in range(30)]  # fmt: skip
    store.append(Batch(calls=bare + kept)).result(30)
    serve(store)
    for page in ("", "tool"):
        cards = html(open_page(page, {"tool": "bare"}))
        assert 'class="fb-no-breaker" title="No breaker' in cards
        assert "Closed" not in cards
        assert "Closed" in html(open_page(page, {"tool": "kept"}))
    assert "kept/us-east" in html(open_page("breakers"))
    assert "bare" not in html(open_page("breakers"))


def test_a_tool_of_input_faults_alone_has_no_success(store: Store) -> None:
    calls = [ToolCall("wrong", end=at(60 + i), region="us-east", outcome="error",
                      error_class="L1_input", error_type="TypeError")
             for i in range(30)]  # fmt: skip
    store.append(Batch(calls=calls)).result(30)
    serve(store)
    app = open_page("", {"tool": "wrong"})
    assert 'data-level="strained"' in html(app)
    assert "input faults 30" in html(app)
    assert "no call succeeded" in html(app)
    assert ">100 %<" not in html(app)
    assert stat(app, "error-ratio") == 0


def test_a_fuse_with_few_calls_is_grey_and_says_so(store: Store) -> None:
    serve(store)
    markup = html(open_page("", {"region": "eu-west"}))
    assert f'class="fb-fuse is-few" style="--c:{theme.GREY}"' in markup
    assert "too few calls to judge" in markup


def test_a_fuse_names_the_alerts_that_fire_for_it_and_leads_to_their_cause(store: Store) -> None:
    serve(store)
    card = html(open_page()).split('class="fb-fuse is-tripped"')[1].split('class="fb-fuse ')[0]
    assert "ToolCallRetryRateHigh" in card
    assert "firing for 11 min 20 s" in card
    assert 'href="retries?tool=alpha&amp;region=us-east"' in card
    assert "ToolCallErrorRatioHigh" not in card  # only pending


def test_a_tripped_breaker_without_calls_still_has_its_fuse(store: Store) -> None:
    change = BreakerTransition(at(10), "gamma/us-east", "gamma", "closed", "open", region="us-east")
    store.append(Batch(transitions=[change])).result(30)
    serve(store)
    assert 'data-tool="gamma" data-region="us-east" data-state="open"' in html(open_page())


def test_a_fuse_leads_to_its_tool_and_keeps_the_filters(store: Store) -> None:
    serve(store)
    markup = html(open_page("", {"range": "1h", "class": "L3_transient"}))
    href = "tool?range=1h&amp;tool=alpha&amp;class=L3_transient&amp;region=us-east"
    assert f'href="{href}"' in markup
    assert f'href="{href.replace("tool?", "errors?")}"' in markup


def test_hundreds_of_fuses_become_cards_and_lines(store: Store) -> None:
    calls = [ToolCall(f"tool_{i}", end=at(60 + i % 600), region="us-east") for i in range(400)]
    store.append(Batch(calls=calls)).result(30)
    serve(store)
    app = open_page()
    assert html(app).count('class="fb-fuse ') == 60
    assert html(app).count('class="fb-tile"') == 343
    app.text_input(key="fb_find").set_value("TOOL_39").run()
    assert html(app).count('data-testid="fb-fuse"') == 11  # 39, 390 … 399


def test_active_alerts_are_on_the_board(store: Store) -> None:
    serve(store)
    found = re.findall(r'data-alert="(\w+)" data-state="(\w+)"', html(open_page()))
    assert found == [("ToolCallRetryRateHigh", "firing"), ("ToolCallErrorRatioHigh", "pending")]


def test_an_active_alert_brings_its_runbook_first_and_the_others_stay_at_hand(
    store: Store,
) -> None:
    serve(store)
    app = open_page("alerts")
    own = {"Mute an alert", "Every change of state"}
    names = [item.label for item in app.expander if item.label not in own]
    assert names[:2] == ["ToolCallRetryRateHigh", "ToolCallErrorRatioHigh"]
    assert [name.split(" ")[0] for name in names[2:]] == [rule.name for rule in CATALOGUE]
    assert {name.split(" ")[0] for name in names} == set(rule_names())
    assert any("It is the earliest sign of an outage" in item.value for item in app.markdown)


def test_a_page_that_breaks_is_our_box_and_no_traceback(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("page is broken")

    serve(store)
    monkeypatch.setattr("fuseboard_dashboard.screens.tool.sidebar.known_values", broken)
    app = open_page("tool")
    assert not app.exception
    assert "page is broken" in html(app)
    assert "fb-problem" in html(app)


@pytest.mark.parametrize("page", ["", "alerts"])
def test_the_alert_time_scale_is_said_where_alerts_are_shown(store: Store, page: str) -> None:
    serve(store, alert_time_scale=0.1)
    assert "Alert time scale 0.1" in html(open_page(page))
    serve(store)
    assert "Alert time scale" not in html(open_page(page))


def test_the_rules_are_those_of_the_catalogue(store: Store) -> None:
    serve(store)
    markup = html(open_page("alerts"))
    assert all(rule.name in markup for rule in CATALOGUE)
    assert "retried calls above 5 %, of at least 20 calls and 3 events" in markup


def test_scaled_rules_show_both_times(store: Store) -> None:
    serve(store, alert_time_scale=0.1)
    assert "12 s (2 min)" in html(open_page("alerts"))


def test_the_tool_page_without_a_choice_shows_the_most_troubled(store: Store) -> None:
    serve(store)
    app = open_page("tool")
    assert "Showing alpha" in html(app)
    app.selectbox(key="fb_pick").select("beta").run()
    assert app.query_params["tool"] == "beta"
    assert stat(app, "calls") == 4


def test_an_argument_hash_narrows_the_sample_calls(store: Store) -> None:
    serve(store)
    app = open_page("errors", {"hash": "v1:bb"})
    assert "Only calls with argument hash v1:bb" in html(app)
    assert app.dataframe[0].value["arguments"].to_list() == ["v1:bb"]


def test_a_cell_of_the_matrix_carries_its_count(store: Store) -> None:
    serve(store)
    cell = 'data-class="L3_transient" data-tool="alpha" data-region="us-east" data-value="2.0"'
    assert cell in html(open_page("errors"))


def test_every_class_is_explained_in_place(store: Store) -> None:
    serve(store)
    markup = html(open_page("errors"))
    assert "The request itself is wrong." in markup
    assert "Who acts: owner of the credential." in markup


def test_an_all_closed_board_of_breakers_says_so(empty_store: Store) -> None:
    empty_store.append(Batch(calls=[ToolCall("alpha", end=at(60))])).result(30)
    serve(empty_store)
    assert "No breaker is known here" in html(open_page("breakers"))
    call = ToolCall("alpha", end=at(70), region="us-east", breaker_state="closed")
    empty_store.append(Batch(calls=[call])).result(30)
    CACHE.clear()
    app = open_page("breakers")
    assert stat(app, "closed-breakers") == 1
    assert "never changed" in html(app)


def test_a_transition_that_no_window_decided_has_no_counts(store: Store) -> None:
    change = BreakerTransition(
        at(800), "alpha/us-east", "alpha", "half_open", "open", region="us-east",
        reason="probe_failed", calls=0, failures=0,
    )  # fmt: skip
    store.append(Batch(transitions=[change])).result(30)
    serve(store)
    shown = open_page("breakers").dataframe[0].value
    columns = ["reason", "ratio", "failures", "calls"]
    assert shown[columns].iloc[0].to_list() == ["probe failed", "–", "–", "–"]
    assert shown[columns].iloc[1].to_list() == ["failure ratio", "60.0 %", "12", "20"]


def test_a_sample_call_shows_its_message_beside_its_type(store: Store) -> None:
    serve(store)
    shown = open_page("errors", {"class": "L3_transient"}).dataframe[0].value
    place = shown.columns.get_loc("error")
    assert shown.columns[place + 1] == "message"
    row = shown[shown["message"] != ""].iloc[0]
    assert (row["error"], row["full_type"]) == ("HTTPStatusError", "httpx.HTTPStatusError")


def test_unclassified_faults_lead_to_the_page_on_classification(store: Store) -> None:
    serve(store)
    assert "docs/classification.md" in html(open_page("errors"))
    page = Path(__file__).parents[2] / "docs" / "classification.md"
    assert "fuseboard.classifier" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_no_page_promises_what_does_not_exist(store: Store, page: str) -> None:
    serve(store)
    app = open_page(page)
    words = " ".join([html(app), *(text.value for text in (*app.markdown, *app.caption))]).lower()
    for promise in ("feedback", "submit-and-poll", "by hand", "drill"):
        assert promise not in words, promise


def test_breakers_of_a_silent_process_are_unknown(store: Store) -> None:
    store.append(heartbeats("two", at(100))).result(30)
    serve(store)
    app = open_page("breakers")
    assert stat(app, "unknown-breakers") == 1
    assert "was open" in html(app)


@pytest.mark.parametrize("page", PAGES)
def test_hostile_names_are_text_everywhere(store: Store, page: str) -> None:
    calls = [
        ToolCall(name, end=at(400 + i), region=name, outcome="error", error_class="L3_transient",
                 error_type=name, classifier_id=name, args_hash=name, attempts=2)
        for i, name in enumerate(HOSTILE)
    ]  # fmt: skip
    changes = [BreakerTransition(at(300), n, n, "closed", "open", region=n, reason=n)
               for n in HOSTILE]  # fmt: skip
    store.append(Batch(calls=calls, transitions=changes)).result(30)
    serve(store)
    app = open_page(page)
    assert not app.exception
    markup = re.sub(r'<script>document\.documentElement\.lang = "en"</script>', "", html(app))
    assert 'data-testid="fb-problem"' not in markup
    for raw in ("<img src=x", "<script", '" onmouseover="', "\x00", "\u202e"):
        assert raw not in markup
    assert not re.search(r"(?<!title=\")(?<!=\")x{200}", re.sub(r'="[^"]*"', "", markup))


def test_the_viewers_zone_is_used_and_named(store: Store) -> None:
    serve(store)
    app = open_page()
    app.context = {"timezone": "Asia/Tokyo"}
    app.run()
    assert "21:00:00 – 21:15:00 Asia/Tokyo" in html(app)


def test_an_unknown_zone_falls_back_to_utc(store: Store) -> None:
    serve(store)
    app = open_page()
    app.context = {"timezone": "Mars/Olympus"}
    assert "12:00:00 – 12:15:00 UTC" in html(app.run())


def test_a_session_visits_every_page_in_turn(flaky: FlakyReader) -> None:
    serve(flaky)
    app = open_page("", {"tool": "alpha", "range": "1h"})
    for page, words in PAGES.items():
        go_to(app, page)
        assert words in html(app)
        assert app.query_params == {"tool": "alpha", "range": "1h"}


def test_tools_that_only_other_instrumentation_tells_of_are_listed(store: Store) -> None:
    foreign = "opentelemetry.instrumentation.langchain"
    calls = [
        ToolCall("<b>gamma</b>", end=at(700), instrumentation=foreign, framework="langchain",
                 outcome=outcome, error_class=error_class)
        for outcome, error_class in (("ok", None), ("error", "L3_transient"))
    ]  # fmt: skip
    serve(store)
    assert "fb-unguarded" not in html(open_page(""))
    CACHE.clear()
    store.append(Batch(calls=calls)).result(30)
    page = html(open_page(""))
    assert 'data-testid="fb-unguarded" data-tool="&lt;b&gt;gamma&lt;/b&gt;"' in page
    assert "Unguarded tools (1)" in page
    assert "langchain" in page
