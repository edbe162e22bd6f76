"""The page of an incident and its report: every entry, the summary, the golden Markdown."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from fuseboard_alerts import mutes
from fuseboard_collector.store import Batch, Store, ToolCall
from fuseboard_dashboard import bounded
from fuseboard_dashboard.filters import Filters
from fuseboard_dashboard.incidents import summary, timeline
from fuseboard_dashboard.incidents.report import Incident, incident, to_markdown
from fuseboard_dashboard.incidents.wording import plain
from fuseboard_dashboard.language import speaking
from fuseboard_dashboard.screens import incident as incident_page
from fuseboard_dashboard.source import Source
from fuseboard_dashboard.view import View
from fuseboard_dashboard.windows import Window

from .conftest import FlakyReader, html, open_page, serve, stat
from .incident_drama import SINCE, UNTIL, alerts, at, calls, fill

GOLDEN = Path(__file__).parents[1] / "golden" / "incident.md"
QUERY = {"from": "2026-01-05T12:00:00Z", "to": "2026-01-05T13:00:00Z"}

Look = Callable[..., Incident]


@pytest.fixture
def look(empty_store: Store) -> Look:
    """Return what is told of a part of the window."""

    def run(since: float = 0, until: float = 60, **chosen: tuple[str, ...]) -> Incident:
        window = Window(at(since), at(until))
        filters = Filters(since=window.since, to=window.until, **chosen)  # type: ignore[arg-type]
        return incident(View(Source(empty_store), filters, window, UTC, "UTC"))

    return run


def told(found: Incident, kind: str) -> list[tuple[float, str]]:
    """Return the entries of a kind: minute of the window, and sentence."""
    start = SINCE.replace(tzinfo=None)
    return [
        (round((entry.moment - start).total_seconds() / 60, 2), plain(entry.sentence))
        for entry in found.entries
        if entry.kind == kind
    ]


def test_the_summary(empty_store: Store, look: Look) -> None:
    fill(empty_store)
    lines = {line.id: (line.moment, plain(line.sentence)) for line in look().summary.milestones}
    assert lines == {
        "began": (at(20).replace(tzinfo=None), "first bad call of search, the worst tool"),
        "detected": (at(23).replace(tzinfo=None), ("ToolCallErrorRatioHigh fired, the first alert, "
                     "3 min after it began")),
        "mitigated": (at(25).replace(tzinfo=None), ("a stand-in answered for search, 5 min after "
                      "it began")),
        "over": ((at(40) - timedelta(seconds=10)).replace(tzinfo=None),
                 "last bad call of search; it lasted 19 min 50 s"),
    }  # fmt: skip
    assert [plain(words) for words in look().summary.impact] == [
        (
            "105 of 718 calls affected (14.6 %): 15 errors, 0 rejected, 90 answered by a stand-in, "
            "0 answered unusably."
        ),
        "Touched: 1 tool, 1 agent, 50 sessions.",
        "Affected calls cost 26.25 (105 of them tell what they cost).",
    ]


@pytest.mark.parametrize("until", [30, 33, 60])
def test_when_it_began_does_not_depend_on_the_window(
    empty_store: Store, look: Look, until: int
) -> None:
    fill(empty_store)
    trouble = look(until=until).summary.trouble
    assert trouble is not None
    assert (trouble.began, trouble.is_over) == (at(20).replace(tzinfo=None), until == 60)


def test_a_rise_is_told_of_where_it_began_not_at_a_bad_call_of_every_day(
    empty_store: Store, look: Look
) -> None:
    fill(empty_store)
    stray = [ToolCall("search", end=at(minute), region="us-east", service="agent", outcome="error",
                      error_class="L3_transient", attempts=1)
             for minute in (-50, -31, -12, 3, 11)]  # fmt: skip
    empty_store.append(Batch(calls=stray)).result(60)
    found = look()
    assert told(found, "first")[0][0] == 3
    assert [minute for minute, _ in told(found, "change")] == [20]
    without = dataclasses.replace(found.summary.trouble, tool="another")  # type: ignore[type-var]
    entries, _ = timeline.timeline(found.evidence, without)
    (change,) = (entry for entry in entries if entry.kind == "change")
    assert at(19.5) <= change.moment.replace(tzinfo=UTC) <= at(20.5)


def test_an_alert_about_another_tool_does_not_detect_the_trouble(
    empty_store: Store, look: Look
) -> None:
    fill(empty_store)
    other = alerts((21, "firing"))
    labels = json.dumps({"job": "agent", "tool": "calm"})
    place = other.column_names.index("labels")
    empty_store.insert("alert_events", other.set_column(place, "labels", pa.array([labels])))
    lines = {line.id: line.moment for line in look().summary.milestones}
    assert lines["detected"] == at(23).replace(tzinfo=None)


def test_the_first_opening_is_known_where_many_transitions_follow(
    empty_store: Store, look: Look
) -> None:
    fill(empty_store)
    found = look()
    assert found.summary.trouble is not None
    newest = dataclasses.replace(found.evidence, transitions=found.evidence.transitions.iloc[-2:])
    calm = dataclasses.replace(found.summary.trouble, first_degraded=None)
    line = summary._mitigated(newest, calm)
    assert line.moment == at(25).replace(tzinfo=None)
    assert plain(line.sentence) == "breaker search/us-east opened, 5 min after it began"


def test_links_are_of_all_classes_as_the_numbers_are(empty_store: Store, look: Look) -> None:
    fill(empty_store)
    found = look(classes=("L1_input",))
    assert found.evidence.totals["affected"] == 105
    assert "L1_input" not in to_markdown(found, UTC, "UTC")


def test_what_did_not_happen_is_said(empty_store: Store, look: Look) -> None:
    empty_store.append(Batch(calls=calls())).result(60)
    lines = {line.id: plain(line.sentence) for line in look(until=24).summary.milestones}
    assert lines["detected"] == "no alert fired"
    assert lines["mitigated"] == "no breaker opened and nothing stood in"
    assert lines["over"] == "not over at the end of this window"


def test_an_alert_that_fired_before_is_told_of(empty_store: Store, look: Look) -> None:
    fill(empty_store)
    lines = {line.id: plain(line.sentence) for line in look(since=26).summary.milestones}
    assert lines["detected"] == "ToolCallErrorRatioHigh fired since before this window"


def test_every_kind_of_entry(empty_store: Store, look: Look) -> None:
    fill(empty_store)
    found = look()
    about = "ToolCallErrorRatioHigh for search · us-east (agent): "
    assert told(found, "alert") == [
        (21, f"{about}pending at 50.0 %"), (23, f"{about}firing at 50.0 %"),
        (44, f"{about}resolved"),
    ]  # fmt: skip
    assert told(found, "breaker") == [
        (25, ("breaker search/us-east went from closed to open: failure ratio (15 of 30 calls "
             "failed)")),
        (26, "breaker search/us-east went from open to half-open: break over"),
        (26.1, ("breaker search/us-east went from half-open to open: probe failed (15 of 30 calls "
               "failed)")),
        (40, "breaker search/us-east went from open to half-open: break over"),
        (40.2, "breaker search/us-east went from half-open to closed: probe succeeded"),
    ]  # fmt: skip
    where = "search in us-east (L3 transient)"
    assert told(found, "first") == [(20, f"first of 105 bad calls of {where}")]
    assert told(found, "last") == [(39.83, f"last bad call of {where}")]
    assert told(found, "process") == [
        (10, "process p0 of agent sent its last heartbeat"),
        (12, "process p2 of agent started with version 1.1"),
        (12, "version 1.1 of agent was seen first"),
    ]
    ((minute, words),) = told(found, "degraded")
    assert (minute, words) == (25, "stand-ins answered 90 calls of search in 15 min")
    ((minute, words),) = told(found, "change")
    assert (minute, words.split(" rose ")[0]) == (20, "errors of search in us-east (L3 transient)")
    assert found.entries == tuple(sorted(found.entries, key=lambda entry: entry.moment))


def test_a_breaker_that_flaps_is_one_entry(empty_store: Store, look: Look) -> None:
    fill(empty_store, probes=13)
    assert told(look(), "breaker") == [
        (25, ("breaker search/us-east flapped: it opened 14 times in 15 min 12 s (29 transitions "
             "in 1 process); then it was closed")),
    ]  # fmt: skip


def test_an_alert_that_flaps_is_one_entry(empty_store: Store, look: Look) -> None:
    events = [(20 + n, state) for n in range(5) for state in ("firing", "resolved")]
    empty_store.insert("alert_events", alerts(*((m + (s == "resolved") / 2, s) for m, s in events)))
    assert told(look(), "alert") == [
        (20, ("ToolCallErrorRatioHigh for search · us-east (agent) changed its state 10 times in "
             "4 min 30 s and fired 5 times; then it was resolved")),
    ]  # fmt: skip


def test_who_muted_what_and_why(empty_store: Store, look: Look) -> None:
    fill(empty_store)
    mute = mutes.draft("ToolCallSlow", "known `bug`", at(90), at(30), tool="search", author="kim")
    mutes.save(empty_store, mute)
    mutes.save(empty_store, mutes.ended(mute, at(50), "kim"))
    about = "ToolCallSlow (search)"
    assert told(look(), "mute") == [
        (30, f"{about} was muted for 1 h: known `bug`, by kim"),
        (50, f"{about} is no longer muted, by kim"),
    ]
    assert told(look(tools=("calm",)), "mute") == []
    assert "`` known `bug` ``, by `kim`" in to_markdown(look(), UTC, "UTC")


def test_a_dip_in_calls_is_told_and_ragged_ends_are_none(empty_store: Store, look: Look) -> None:
    steady = [ToolCall("steady", end=at(n / 60), weight=2.0) for n in range(3600)
              if not 1800 < n <= 1860]  # fmt: skip
    empty_store.append(Batch(calls=steady)).result(60)
    ((minute, words),) = told(look(), "dip")
    assert minute == 30
    assert words == "only 0 calls in 1 min, usually 120"


def test_the_time_before_the_first_call_of_all_is_no_dip(empty_store: Store, look: Look) -> None:
    new = [ToolCall("new", end=at(n / 60), weight=2.0) for n in range(1830, 3600)]
    empty_store.append(Batch(calls=new)).result(60)
    assert told(look(), "dip") == []


def test_the_report_is_in_the_language_of_who_clicked(empty_store: Store, look: Look) -> None:
    """Streamlit makes a file when it is clicked, in a thread that no session belongs to."""
    fill(empty_store)
    view = View(Source(empty_store), Filters(since=SINCE, to=UNTIL), Window(SINCE, UNTIL), UTC,
                "UTC")  # fmt: skip
    with speaking("zh"):
        expected = to_markdown(look(), UTC, "UTC")
        make = incident_page.report_maker(look(), view, "")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(make).result() == expected
    assert expected != to_markdown(look(), UTC, "UTC")


def test_no_more_entries_than_a_page_holds(
    empty_store: Store, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(empty_store)
    number = len(look().entries)
    monkeypatch.setattr(timeline, "MOST", 5)
    found = look()
    assert (len(found.entries), found.left_out) == (5, number - 5)
    assert {entry.kind for entry in found.entries} == {"change", "alert", "breaker"}
    text = to_markdown(found, UTC, "UTC")
    assert f"{number - 5} more entries are left out: choose a shorter window." in text


def test_of_too_many_calls_the_last_are_counted_and_said(
    empty_store: Store, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(empty_store)
    monkeypatch.setattr(bounded.bounded, "__defaults__", (300,))
    found = look(until=41)
    assert found.evidence.totals["affected"] == 83  # of the last 15 minutes
    assert found.evidence.all_calls == 180
    assert "Bad calls are counted in the last 15 min only" in to_markdown(found, UTC, "UTC")


def test_a_trouble_before_what_is_counted_is_told_without_reading_its_calls(
    empty_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(empty_store)
    reader = FlakyReader(empty_store)
    asked: list[str] = []
    query = reader.query

    def watched(name: str, parameters: Mapping[str, object] | None = None) -> pa.Table:
        if name == "page_incident_slices":
            asked.append(str((parameters or {})["since"]))
        return query(name, parameters)

    monkeypatch.setattr(reader, "query", watched)
    monkeypatch.setattr(bounded.bounded, "__defaults__", (100,))
    filters = Filters(since=SINCE, to=UNTIL)
    found = incident(View(Source(reader), filters, Window(SINCE, UNTIL), UTC, "UTC"))
    assert found.evidence.counted == Window(at(55), UNTIL)
    assert min(asked) >= "2026-01-05T12:40:00Z"
    trouble = found.summary.trouble
    assert trouble is not None
    assert (trouble.tool, trouble.is_over) == ("search", True)
    # To a bucket of half a minute; what ends with a bucket belongs to it.
    assert (trouble.began, trouble.first_degraded) == (
        at(19.5).replace(tzinfo=None), at(24.5).replace(tzinfo=None))  # fmt: skip


def test_filters_leave_out_what_is_about_others(empty_store: Store, look: Look) -> None:
    fill(empty_store)
    found = look(tools=("calm",))
    assert {entry.kind for entry in found.entries} == {"process"}
    assert "Only tools `calm`." in to_markdown(found, UTC, "UTC")


def test_the_golden_report(empty_store: Store, look: Look) -> None:
    fill(empty_store, tool="search")
    text = to_markdown(
        look(), ZoneInfo("Asia/Shanghai"), "Asia/Shanghai", "https://board.example/f/"
    )
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_names_with_markup_stay_names(empty_store: Store, look: Look) -> None:
    tool = "<b>[x](javascript:1)`|\n# @all"
    fill(empty_store, tool=tool)
    text = to_markdown(look(), UTC, "UTC", "https://board.example")
    code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "javascript" not in code.replace("javascript%3A1", "")
    assert "<b>" not in code
    assert "@all" not in code
    assert not [line for line in text.splitlines() if line.startswith("# @")]


def test_an_empty_window_says_so(empty_store: Store, look: Look) -> None:
    empty_store.append(Batch(calls=[ToolCall("calm", end=at(-200))])).result(60)
    found = look()
    assert found.is_empty
    assert "Nothing happened in this window." in to_markdown(found, UTC, "UTC")
    serve(empty_store, now=UNTIL)
    app = open_page("incident", QUERY)
    assert not app.exception
    assert "fb-nothing-happened" in html(app)
    assert "fb-problem" not in html(app)


def test_the_page_shows_what_the_report_says(empty_store: Store, look: Look) -> None:
    fill(empty_store)
    serve(empty_store, now=UNTIL)
    app = open_page("incident", QUERY)
    assert not app.exception
    assert "fb-problem" not in html(app)
    page = html(app)
    shown = re.findall(r'data-testid="fb-entry" data-kind="(\w+)" data-time="([^"]+)"', page)
    assert shown == [(e.kind, f"{e.moment.isoformat()}Z") for e in look().entries]
    assert (stat(app, "affected"), stat(app, "sessions")) == (105, 50)
    assert stat(app, "incident-began") == at(20).timestamp()
    pinned = "from=2026-01-05T12%3A00%3A00Z&amp;to=2026-01-05T13%3A00%3A00Z"
    links = re.findall(r'data-testid="fb-entry".*?href="([^"]+)"', page)
    assert len(links) == len(shown)
    assert all(pinned in link for link in links)


def test_the_number_of_a_first_bad_call_leads_to_as_many(empty_store: Store) -> None:
    fill(empty_store)
    serve(empty_store, now=UNTIL)
    page = html(open_page("incident", QUERY))
    assert "errors?from=2026-01-05T12%3A00%3A00Z&amp;to=2026-01-05T13%3A00%3A00Z&amp;" in page
    there = {**QUERY, "tool": "search", "class": "L3_transient", "region": "us-east"}
    assert stat(open_page("errors", there), "faults") == 105
