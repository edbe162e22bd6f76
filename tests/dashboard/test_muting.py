"""Muting on the Alerts page: the form, the list, and how muted alerts look on it and the board."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from fuseboard_alerts import memory as documents
from fuseboard_alerts.memory import Memory
from fuseboard_alerts.mute_book import StoreMutes
from fuseboard_alerts.mutes import LONGEST_REASON, Mute, draft, load, save
from fuseboard_alerts.state import Instance, State
from fuseboard_collector.errors import StoreBusyError, StoreReadOnlyError
from fuseboard_collector.store import Store

from .conftest import UNTIL, at, html, open_page, serve

RETRY = "ToolCallRetryRateHigh"
HOUR = timedelta(hours=1)


def opened(store: Store, page: str = "alerts", **options: object) -> AppTest:
    serve(store, **{"mutes": StoreMutes(store, lambda: UNTIL), **options})
    app = open_page(page)
    assert not app.exception
    return app


def fill(app: AppTest, reason: str, length: str = "2h") -> AppTest:
    app.radio(key="fb_mute_for").set_value(length)
    app.text_area(key="fb_mute_reason").set_value(reason)
    return app.button[[b.label for b in app.button].index("Mute")].click().run()


def muted(store: Store) -> list[Mute]:
    return load(store, UNTIL)


def lines(app: AppTest) -> list[tuple[str, str]]:
    """Return name and whether it is muted of every alert on the page."""
    found = re.findall(r'data-alert="(\w+)" data-state="\w+" data-severity="\w+" '
                       r'data-muted="(\w+)"', html(app))  # fmt: skip
    return list(found)


def test_the_form_begins_with_the_first_active_alert_and_mutes_it(store: Store) -> None:
    app = opened(store)
    assert app.selectbox(key="fb_mute_alert").value == RETRY
    app.text_input(key="fb_mute_author").set_value("Ann")
    app = fill(app, "  deploying\nnow ")
    (one,) = muted(store)
    assert (one.alert, one.tool, one.region) == (RETRY, "alpha", "us-east")
    assert (one.reason, one.author, one.ends) == ("deploying now", "Ann", UNTIL + 2 * HOUR)
    assert 'data-testid="fb-mute-done"' in html(app)
    assert lines(app)[-1] == (RETRY, "true")
    assert "muted until 14:15:00 by Ann: deploying now" in html(app)


def test_muted_alerts_stay_on_the_board_as_muted_and_last(store: Store) -> None:
    save(store, draft(RETRY, "known", UNTIL + HOUR, UNTIL))
    app = opened(store, "")
    assert lines(app) == [("ToolCallErrorRatioHigh", "false"), (RETRY, "true")]
    assert "∅" in html(app)
    assert "muted until 13:15:00: known" in html(app)


def test_a_mute_until_a_time_is_in_the_viewers_wall_time(store: Store) -> None:
    app = opened(store)
    app.datetime_input(key="fb_mute_until").set_value(datetime(2026, 1, 5, 18, 30))
    fill(app, "until the deploy", "until")
    assert muted(store)[0].ends == datetime(2026, 1, 5, 18, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "until", "words"),
    [("", None, "needs a reason"), ("why", datetime(2026, 1, 5, 12, 0), "in the past"),
     ("why", datetime(2026, 3, 5), "more than 30 days away")],
)  # fmt: skip
def test_what_makes_no_sense_is_said_and_nothing_muted(
    store: Store, reason: str, until: datetime | None, words: str
) -> None:
    app = opened(store)
    if until is not None:
        app.datetime_input(key="fb_mute_until").set_value(until)
    app = fill(app, reason, "until" if until else "30m")
    assert 'data-testid="fb-mute-problem"' in html(app)
    assert words in html(app)
    assert muted(store) == []


def test_a_reason_with_markup_is_shown_as_text(store: Store) -> None:
    reason = ("<script>alert(1)</script> " * 20)[:LONGEST_REASON].strip()
    app = fill(opened(store), reason)
    assert muted(store)[0].reason == reason
    assert "<script>alert" not in html(app)
    assert "&lt;script&gt;" in html(app)


def test_unmuting_brings_the_alert_back(store: Store) -> None:
    one, other = (draft(RETRY, why, UNTIL + HOUR, UNTIL - HOUR) for why in ("a", "b"))
    save(store, one)
    save(store, other)
    app = opened(store)
    assert html(app).count('data-testid="fb-mute"') == 2
    app = app.button(key=f"fb_unmute_{one.id}").click().run()
    assert [m.id for m in load(store, UNTIL + timedelta(seconds=1))] == [other.id]
    assert "Not muted any more" in html(app)


def test_two_people_who_mute_at_once_both_count(store: Store) -> None:
    ann, bob = opened(store), opened(store)
    fill(ann, "Ann's", "30m")
    fill(bob, "Bob's", "8h")
    assert [one.reason for one in muted(store)] == ["Ann's", "Bob's"]
    assert "Bob&#x27;s" in html(opened(store, ""))


def test_who_unmutes_what_somebody_unmuted_already_has_what_they_want(store: Store) -> None:
    one = draft(RETRY, "why", UNTIL + HOUR, UNTIL - HOUR)
    save(store, one)
    app = opened(store)
    assert StoreMutes(store, lambda: UNTIL).end(one.id)
    app = app.button(key=f"fb_unmute_{one.id}").click().run()
    assert "Not muted any more: " in html(app)
    assert "fb-mute-done" in html(app)


def test_who_unmutes_what_is_forgotten_is_told(store: Store) -> None:
    class Forgetful(StoreMutes):
        def end(self, mute_id: str, author: str | None = None) -> bool:
            return False

    one = draft(RETRY, "why", UNTIL + HOUR, UNTIL - HOUR)
    save(store, one)
    app = opened(store, mutes=Forgetful(store))
    app = app.button(key=f"fb_unmute_{one.id}").click().run()
    assert "It was not muted any more" in html(app)


def test_a_store_that_is_only_read_says_why_nothing_was_muted(store: Store) -> None:
    class ReadOnly:
        def add(self, mute: Mute) -> None:
            raise StoreReadOnlyError("the disk is damaged & the store only read")

        def end(self, mute_id: str, author: str | None = None) -> bool:
            raise StoreReadOnlyError("only read")

    app = fill(opened(store, mutes=ReadOnly()), "why")
    assert "The store did not take it: the disk is damaged &amp; the store only read" in html(app)
    assert lines(app)[0] == (RETRY, "false")


def test_a_dashboard_that_can_only_read_says_so_and_has_no_form(store: Store) -> None:
    save(store, draft(RETRY, "known", UNTIL + HOUR, UNTIL))
    app = opened(store, mutes=None)
    assert 'data-testid="fb-mute-read-only"' in html(app)
    assert 'data-testid="fb-mute"' in html(app)
    assert not [button for button in app.button if button.label in ("Mute", "Unmute")]


class Without:
    """A store that does not answer some queries."""

    def __init__(self, store: Store, *names: str) -> None:
        self._store = store
        self._names = names

    def query(self, name: str, parameters: Any = None) -> pa.Table:
        if name in self._names:
            raise StoreBusyError("the store is <busy>")
        return self._store.query(name, parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("page", ["", "alerts"])
def test_alerts_are_shown_though_nobody_knows_what_is_muted(store: Store, page: str) -> None:
    save(store, draft(RETRY, "known", UNTIL + HOUR, UNTIL))
    serve(Without(store, "alert_mutes", "alert_memory_load"), mutes=None)
    app = open_page(page)
    assert dict(lines(app)) == {"ToolCallErrorRatioHigh": "false", RETRY: "false"}
    assert 'data-testid="fb-mutes-unknown"' in html(app)
    assert "Mutes could not be read (the store is &lt;busy&gt;)" in html(app)
    assert not app.exception


def test_where_mutes_are_known_nothing_is_said_of_it(store: Store) -> None:
    assert "fb-mutes-unknown" not in html(opened(store, ""))


def test_a_mute_that_has_ended_is_gone(store: Store) -> None:
    save(store, draft(RETRY, "known", UNTIL, UNTIL - HOUR))
    app = opened(store)
    assert "No alert is muted." in html(app)
    assert lines(app)[0] == (RETRY, "false")


def test_an_active_alert_shows_its_value_then_the_worst_and_now(store: Store) -> None:
    labels = (("job", "agent"), ("tool", "alpha"), ("region", "us-east"))
    instance = Instance(labels, State.FIRING, at(100), at(890), 0.21, at(220), peak=0.4)
    text = documents.dump(Memory(UNTIL, {(f"{RETRY}/warning", labels): instance}))
    saved = {"saved_at": UNTIL.replace(tzinfo=None), "document": text}
    store.execute("alert_memory_save", saved)
    assert "began at 29.0 %, worst 40.0 %, now 21.0 %" in html(opened(store))
    serve(store)
    past = open_page("alerts", {"to": "2026-01-05T12:14:00Z"})
    assert "began at 29.0 %" in html(past)
    assert "worst" not in html(past).split("History")[0]


def test_memory_of_another_version_is_left_out(store: Store) -> None:
    saved = {"saved_at": UNTIL.replace(tzinfo=None), "document": '{"version": 99}'}
    store.execute("alert_memory_save", saved)
    assert "began at 29.0 %" in html(opened(store))


def test_the_history_tells_how_long_each_alert_lasted_and_its_worst(store: Store) -> None:
    def event(seconds: float, state: str, value: float, peak: float) -> dict[str, object]:
        began, fired = at(100).replace(tzinfo=None), at(220).replace(tzinfo=None)
        moment = at(seconds).replace(tzinfo=None)
        return {"time": moment, "alert": "ToolCallSlow", "severity": "warning",
                "labels": '{"job":"a","region":"eu","tool":"beta"}', "state": state,
                "active_at": began, "fired_at": fired if seconds >= 220 else None,
                "resolved_at": moment if state == "resolved" else None, "value": value,
                "peak": peak}  # fmt: skip

    rows = [event(100, "pending", 0.02, 0.02), event(220, "firing", 0.03, 0.03),
            event(700, "resolved", 0.001, 0.25)]  # fmt: skip
    times = {name: pa.timestamp("us") for name in ("time", "active_at", "fired_at", "resolved_at")}
    texts = dict.fromkeys(("alert", "severity", "labels", "state"), pa.string())
    kinds = {**times, **texts, "value": pa.float64(), "peak": pa.float64()}
    schema = pa.schema([(name, kinds[name]) for name in rows[0]])
    store.insert("alert_events", pa.Table.from_pylist(rows, schema=schema))
    shown = next(f.value for f in opened(store).dataframe if "lasted" in f.value)
    row = shown[shown["about"].str.contains("beta")].iloc[0]
    assert (row["lasted"], row["begin"], row["worst"], row["last"]) == (
        "8 min", "2.0 %", "25.0 %", "0.1 %")  # fmt: skip
    assert row["state"].endswith("Resolved")
    firing = shown[shown["alert"] == RETRY].iloc[0]
    assert firing["lasted"] == "11 min 20 s"
    assert firing["state"].endswith("Firing")


@pytest.mark.parametrize("query", [{"to": "2026-01-05T12:15:00Z"}, {"from": "2026-01-05T12:00:00Z",
                                   "to": "2026-01-05T12:10:00Z"}])  # fmt: skip
def test_a_paused_page_lists_the_mutes_of_now(store: Store, query: dict[str, str]) -> None:
    now = UNTIL + 24 * HOUR
    save(store, draft(RETRY, "over since", UNTIL + 2 * HOUR, UNTIL - HOUR))
    serve(store, now=now, mutes=StoreMutes(store, lambda: now))
    app = open_page("alerts", query)
    assert 'data-testid="fb-mute" ' not in html(app)
    assert app.datetime_input(key="fb_mute_until").value == (now + 8 * HOUR).replace(tzinfo=None)
    assert "just set" in html(fill(app, "just set"))
    assert len(re.findall('data-testid="fb-mute" ', html(app))) == 1
