"""What each breaker did: time open, calls turned away and whose, the last probe and the next."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pandas as pd
import pytest

from fuseboard.conventions import ErrorClass
from fuseboard.errors import CircuitOpenError
from fuseboard_collector.store import Batch, BreakerTransition, Store, ToolCall
from fuseboard_dashboard.blast import Blast, blasts, due_at, sentence, to_frame
from fuseboard_dashboard.blasted import next_probe

from .conftest import SINCE, UNTIL, at, heartbeats, html, open_page, serve

Ask = Callable[..., list[dict[str, object]]]
LENGTH = timedelta(minutes=15)


def change(seconds: float, states: str, instance: str = "one") -> BreakerTransition:
    old, new = states.split()
    return BreakerTransition(
        at(seconds), "gamma/eu/api", "gamma", old, new, region="eu", upstream="api",
        instance=instance, reason="failure_ratio",
    )  # fmt: skip


def refused(seconds: float, **more: object) -> ToolCall:
    values = {
        "tool": "gamma", "region": "eu", "upstream": "api", "outcome": "rejected", "attempts": 0,
        "layer": "breaker", "breaker_state": "open", "error_class": "L3_transient",
        "classifier_id": "circuit_open", "instance": "one", "end": at(seconds),
        "duration_seconds": 0.001, **more,
    }  # fmt: skip
    return ToolCall(**values)  # type: ignore[arg-type]


def told(seconds: float) -> str:
    return str(CircuitOpenError("gamma", "gamma/eu/api", seconds, ErrorClass.L3_TRANSIENT))


def story() -> Batch:
    """Return a breaker that opens twice, the second time 20 s after it had closed."""
    return Batch(
        transitions=[
            change(100, "closed open"), change(160, "open half_open"),
            change(165, "half_open closed"), change(185, "closed open"),
            change(245, "open half_open"), change(246, "half_open open"),
        ],
        calls=[
            refused(110, session="s1", agent="planner", weight=2.0),
            refused(120, session="s2", agent="planner"),
            refused(130, session="s2", agent="writer", outcome="degraded", layer="fallback"),
            refused(190, instance="two", error_message=told(9.0)),
            refused(200, attempts=1, outcome="error", breaker_state="closed"),
            refused(UNTIL.timestamp() - SINCE.timestamp() - 10, error_message=told(42.5)),
            ToolCall("gamma", end=at(164), region="eu", upstream="api", instance="one",
                     breaker_state="half_open"),
            ToolCall("gamma", end=at(246), region="eu", upstream="api", instance="one",
                     breaker_state="half_open",
                     outcome="degraded", error_class="L3_transient",
                     classifier_id="http_5xx_matcher"),
        ],
    )  # fmt: skip


@pytest.fixture
def opened(store: Store) -> Store:
    store.append(story()).result(30)
    store.append(heartbeats("one", at(90), UNTIL)).result(30)
    return store


def found(ask: Ask, **chosen: object) -> list[Blast]:
    frames = [pd.DataFrame(ask(name, bucket_us=900_000_000, tools=["gamma"], **chosen))
              for name in ("page_breaker_states", "page_breaker_shares", "page_breaker_damage")
              ]  # fmt: skip
    return blasts(*frames)


def test_damage_counts_calls_that_a_breaker_turned_away_and_whose(opened: Store, ask: Ask) -> None:
    (row,) = ask("page_breaker_damage", tools=["gamma"])
    assert row["breaker"] == "gamma/eu/api"
    counts = ("turned_away", "rejected", "degraded", "stopped", "sessions", "agents", "processes")
    assert [row[name] for name in counts] == [7, 5, 1, 1, 2, 2, 2]
    assert row["agent"] == "planner, writer"
    assert (row["probes"], row["probe_outcome"]) == (2, "degraded")
    assert row["last_probe"] == at(246).replace(tzinfo=None)


def test_a_failed_probe_is_no_damage_of_the_breaker(opened: Store, ask: Ask) -> None:
    since = at(245).isoformat().replace("+00:00", "Z")
    until = at(247).isoformat().replace("+00:00", "Z")
    (row,) = ask("page_breaker_damage", tools=["gamma"], since=since, until=until)
    assert (row["turned_away"], row["degraded"], row["probes"]) == (0, 0, 1)
    assert row["last_turned_away"] is None


def test_shares_are_the_seconds_in_each_bucket_that_the_stretches_have(
    opened: Store, ask: Ask
) -> None:
    rows = ask("page_breaker_shares", tools=["gamma"])
    start = SINCE.replace(tzinfo=None)
    told = {
        ((r["bucket"] - start).total_seconds(), r["state"]): r["seconds"]  # type: ignore[operator]
        for r in rows if r["state"] != "unknown"
    }  # fmt: skip
    assert {key: told[key] for key in list(told) if key[0] <= 240} == {
        (60, "open"): 20, (120, "open"): 40, (120, "half_open"): 5, (180, "open"): 55,
        (240, "open"): 59, (240, "half_open"): 1,
    }  # fmt: skip
    assert sum(float(str(r["seconds"])) for r in rows if r["state"] == "open") == 60 + 60 + 654
    assert [(r["periods"], r["reopened"]) for r in rows if r["periods"]] == [(1, 0), (1, 1)]


def test_shares_add_up_to_the_timeline(store: Store, ask: Ask) -> None:
    """The hand-computed breakers too: one of them is open when the window begins."""
    lasted: dict[tuple[object, object], float] = {}
    for row in ask("page_breaker_timeline"):
        key = (row["breaker"], row["state"])
        seconds = (row["ended"] - row["began"]).total_seconds()  # type: ignore[operator]
        lasted[key] = lasted.get(key, 0.0) + seconds
    summed: dict[tuple[object, object], float] = {}
    for row in ask("page_breaker_shares", bucket_us=7_000_000):
        key = (row["breaker"], row["state"])
        summed[key] = summed.get(key, 0.0) + float(str(row["seconds"]))
    assert summed == pytest.approx({k: v for k, v in lasted.items() if k[1] != "closed"})
    assert any(key[1] == "open" for key in summed)


def test_a_breaker_that_was_open_when_the_window_began_did_not_open_in_it(
    opened: Store, ask: Ask
) -> None:
    since = at(130).isoformat().replace("+00:00", "Z")
    until = at(170).isoformat().replace("+00:00", "Z")
    rows = ask("page_breaker_shares", tools=["gamma"], since=since, until=until)
    assert sum(float(str(r["seconds"])) for r in rows if r["state"] == "open") > 0
    assert [r["periods"] for r in rows if r["periods"]] == []


def test_a_blast_says_what_it_did_in_one_sentence(opened: Store, ask: Ask) -> None:
    (one,) = found(ask)
    assert (one.open_seconds, one.half_open_seconds) == (774, 5 + 1)
    assert sentence(one, LENGTH) == (
        "open 12 min 54 s (86.0 % of the window), half-open 6 s, "
        "now not closed in 1 of 2 processes; "
        "5 calls rejected, 1 call degraded, 1 retry cut short; 2 sessions of 2 agents; "
        "opened 2 times, 1 within a minute after it had closed"
    )
    assert to_frame([one])["open_seconds"].tolist() == [774]


def test_the_most_damaging_breaker_comes_first_and_calm_ones_not_at_all(
    opened: Store, ask: Ask
) -> None:
    call = ToolCall("calm", end=at(60), region="eu", breaker_state="closed")
    opened.append(Batch(calls=[call])).result(30)
    frames = [pd.DataFrame(ask(name, bucket_us=900_000_000)) for name in
              ("page_breaker_states", "page_breaker_shares", "page_breaker_damage")]  # fmt: skip
    assert "calm/eu" in set(frames[0]["breaker"])
    named = [one.breaker for one in blasts(*frames)]
    assert named == ["gamma/eu/api", "alpha/us-east", "alpha/eu-west"]


def test_the_next_probe_is_what_the_newest_turned_away_call_was_told(
    opened: Store, ask: Ask
) -> None:
    (one,) = found(ask)
    assert one.due == (UNTIL + timedelta(seconds=32.5)).replace(tzinfo=None)
    assert next_probe(one, UNTIL)[0] == "in 32 s"
    assert next_probe(one, UNTIL + timedelta(minutes=1))[0] == "with the next call"


@pytest.mark.parametrize(
    ("words", "seconds"),
    [(told(0.0), 0), (told(61.25), 61.2), ("(next probe in 1e9 s)", None), (None, None),
     ("tool said: (next probe in 5.0 s), or so", None), ("(next probe in 99999999999 s)", None)],
)  # fmt: skip
def test_only_the_breakers_own_words_tell_of_a_probe(
    words: str | None, seconds: float | None
) -> None:
    moment = datetime(2026, 1, 5)
    due = None if seconds is None else moment + timedelta(seconds=seconds)
    found = due_at(words, moment)
    assert (found is None) == (due is None)
    if due is not None and found is not None:
        assert abs(found - due) <= timedelta(seconds=0.1)


def test_a_breaker_held_by_hand_says_that_it_does_not_probe(store: Store, ask: Ask) -> None:
    store.append(Batch(transitions=[change(100, "closed isolated")])).result(30)
    (one,) = found(ask)
    assert next_probe(one, UNTIL)[0] == "by hand"
    assert one.open_seconds == 800


def test_the_page_tells_the_blast_radius_with_links(opened: Store) -> None:
    serve(opened)
    app = open_page("breakers")
    assert not app.exception
    shown = re.search(r'data-testid="fb-blast" data-breaker="gamma/eu/api"[^>]*', html(app))
    assert shown is not None
    for hook in ('data-state="open"', 'data-open-seconds="774.0"', 'data-rejected="5.0"',
                 'data-degraded="1.0"', 'data-sessions="2"', 'data-reopened="1"'):  # fmt: skip
        assert hook in shown[0]
    for page in ("tool", "errors"):
        assert f'href="{page}?tool=gamma&amp;region=eu"' in html(app)
    # Others of the tool were degraded by other faults.
    own = "degradation?tool=gamma&amp;region=eu&amp;classifier=circuit_open"
    assert f'href="{own}"' in html(app)
    assert "in 32 s" in html(app)
    # The call turned away last and the last probe of one, then the newest of the other.
    shown_links = re.findall(r'href="trace\?trace=[0-9a-f]{32}&amp;at=([^"]+)"', html(app))
    assert shown_links == ["2026-01-05T12%3A14%3A50Z", "2026-01-05T12%3A04%3A06Z",
                           "2026-01-05T12%3A05%3A00Z"]  # fmt: skip
    assert "the newest 10 s ago" in html(app)


def test_what_a_breaker_did_leads_to_calls_of_all_classes(opened: Store) -> None:
    serve(opened)
    drawn = html(open_page("breakers", {"class": "L1_input"}))
    for page in ("errors", "degradation"):
        assert f'href="{page}?tool=gamma&amp;region=eu' in drawn


def test_a_page_of_calm_breakers_says_that_none_opened(empty_store: Store) -> None:
    call = ToolCall("calm", end=at(60), region="eu", breaker_state="closed")
    empty_store.append(Batch(calls=[call])).result(30)
    serve(empty_store)
    assert 'data-testid="fb-no-blast"' in html(open_page("breakers"))
