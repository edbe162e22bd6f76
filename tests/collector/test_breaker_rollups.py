"""Breakers as the days of their processes tell them, against every transition there is."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollup_truth import wrong_rollups

from fuseboard_collector.store import (
    Batch,
    BreakerTransition,
    Heartbeat,
    Store,
    ToolCall,
    named_queries,
    open_store,
)
from fuseboard_collector.store.retention import Keep
from fuseboard_collector.store.rows import micros

NOW = datetime(2026, 3, 10, 9, 41, 23, tzinfo=UTC)
MIDNIGHT = datetime(2026, 3, 10, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
QUERIES = ("page_breaker_shares", "page_breaker_states", "page_breaker_timeline")
STATES = ("closed", "half_open", "open", "isolated")
WORST = {"isolated": 4, "open": 3, "half_open": 2, "unknown": 1, "closed": 0}

Rows = list[dict[str, Any]]
Window = tuple[datetime, datetime]


class FixedClock:
    """Stands at ``NOW``; monotonic time runs as it pleases."""

    def time_ns(self) -> int:
        return int(NOW.timestamp() * 1e9)

    def monotonic(self) -> float:
        return 0.0


@contextmanager
def opened() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "f.duckdb", retention_days=None, clock=FixedClock())
        try:
            yield store
        finally:
            store.close()


def parameters(
    window: Window, name: str = "page_breaker_timeline", **chosen: object
) -> dict[str, Any]:
    since, until = (moment.replace(tzinfo=None) for moment in window)
    bound = {"since": since, "until": until, "tools": None, "regions": None, **chosen}
    if name == "page_breaker_states":
        return bound
    width = {"bucket_us": 3_600_000_000} if name == "page_breaker_shares" else {}
    return {"breakers": None, **width, **bound}


def raw(store: Store, name: str, bound: dict[str, Any]) -> Rows:
    """Return the answer from the transitions alone."""
    with store._open_database().cursor() as cursor:
        sql = named_queries.load(name).statements[0].sql
        rows: Rows = cursor.sql(sql, params=bound).to_arrow_table().to_pylist()
        return rows


def check_equal(store: Store, window: Window, **chosen: object) -> None:
    for name in QUERIES:
        bound = parameters(window, name, **chosen)
        assert store.query(name, bound).to_pylist() == raw(store, name, bound), name


def move(when: datetime, change: str, **more: Any) -> BreakerTransition:
    before, after = change.split(" ")
    return BreakerTransition(micros(when), "alpha", "alpha", before, after, instance="one", **more)


# Few instants, so that things happen at once, on the stroke of days, and at the windows' ends.
seconds_ago = st.one_of(
    st.integers(0, 8 * 24).map(lambda n: 3600 * n),
    st.integers(0, 8).map(lambda n: int((NOW - MIDNIGHT + n * DAY).total_seconds())),
    st.integers(0, 8 * 86400),
)
instants = seconds_ago.map(lambda n: NOW - timedelta(seconds=n))
names = st.sampled_from(["alpha", "alpha/eu", "beta/us/api", "shared"])
processes = st.sampled_from(["one", "two", "three", None])


@st.composite
def transitions(draw: st.DrawFn) -> list[BreakerTransition]:
    """Draw transitions; they mostly begin with the state reported last: few reports get lost."""
    found: list[BreakerTransition] = []
    last: dict[tuple[str, str | None], str] = {}
    for number, when in enumerate(sorted(draw(st.lists(instants, max_size=40)))):
        name, process = draw(names), draw(processes)
        was = last.get((name, process), "closed")
        if draw(st.integers(0, 9)) == 0:
            was = draw(st.sampled_from(STATES))
        to = last[name, process] = draw(st.sampled_from(STATES))
        tool = draw(st.sampled_from(["alpha", "beta"])) if name == "shared" else name.split("/")[0]
        found.append(BreakerTransition(
            micros(when), name, tool, was, to, instance=process,
            region=name.split("/")[1] if "/" in name else None,
            reason=f"reason {number}", received_at=micros(when + timedelta(microseconds=number)),
        ))  # fmt: skip
    return found


@st.composite
def beats(draw: st.DrawFn) -> list[Heartbeat]:
    """Draw heartbeats; some list breakers that are not closed, known from elsewhere or not."""
    found = []
    for when in draw(st.lists(instants, max_size=8)):
        listed = draw(st.none() | st.lists(st.tuples(names, st.sampled_from(STATES)), max_size=2))
        items = [{"breaker": name, "tool": name.split("/")[0], "state": state,
                  "since": draw(instants).replace(tzinfo=None).isoformat()}
                 for name, state in dict(listed or []).items()]  # fmt: skip
        process = draw(st.sampled_from(["one", "two"]))
        found.append(Heartbeat(micros(when), process,
                               breakers=None if listed is None else json.dumps(items)))  # fmt: skip
    return found


@st.composite
def calls(draw: st.DrawFn) -> list[ToolCall]:
    return [
        ToolCall(draw(st.sampled_from(["alpha", "gamma"])), end=micros(when),
                 breaker_state="closed", instance=draw(processes))
        for when in draw(st.lists(instants, max_size=4))
    ]  # fmt: skip


@st.composite
def windows(draw: st.DrawFn) -> Window:
    first, second = draw(st.lists(instants, min_size=2, max_size=2, unique=True))
    return min(first, second), max(first, second)


CHOICES: list[dict[str, Any]] = [{}, {"tools": ["alpha"]}, {"regions": ["eu", "unknown"]}]


@settings(max_examples=4, deadline=None)
@given(transitions(), transitions(), beats(), calls(), windows(), st.sampled_from(CHOICES))
def test_breakers_of_any_history_are_the_same_from_rollups_and_from_rows(
    early: list[BreakerTransition],
    late: list[BreakerTransition],
    signs: list[Heartbeat],
    passed: list[ToolCall],
    asked: Window,
    chosen: dict[str, Any],
) -> None:
    """The late ones come when their days are rolled up already: in part, then whole again."""
    # Of what a process's breaker did twice at one instant no order is right.
    taken = {(item.time, item.breaker, item.instance) for item in early}
    late = [item for item in late if (item.time, item.breaker, item.instance) not in taken]
    with opened() as store:
        store.append(Batch(transitions=early, heartbeats=signs, calls=passed)).result(60)
        for more in ([], late):
            store.roll_up()
            store.append(Batch(transitions=more)).result(60)
            check_equal(store, asked, **chosen)
            check_equal(store, (NOW - 7 * DAY, NOW))
        store.roll_up()
        check_equal(store, asked, **chosen)
        with store._open_database().cursor() as cursor:
            assert not wrong_rollups(cursor)


@settings(max_examples=8, deadline=None)
@given(transitions(), windows(), st.sets(names, max_size=2))
def test_the_timeline_of_some_breakers_is_what_all_have_of_them(
    history: list[BreakerTransition], window: Window, some: set[str]
) -> None:
    with opened() as store:
        store.append(Batch(transitions=history)).result(60)
        for roll_up in (lambda: None, store.roll_up):
            roll_up()
            every, chosen = (
                store.query("page_breaker_timeline", parameters(window, breakers=names)).to_pylist()
                for names in (None, sorted(some))
            )
            assert chosen == [row for row in every if row["breaker"] in some]


@pytest.mark.parametrize("chosen", [{"breakers": ["beta"]}, {"tools": ["beta"]}])
def test_what_a_filter_hides_of_a_process_still_tells_that_it_lived(
    store: Store, chosen: dict[str, Any]
) -> None:
    """Its only heartbeat tells of a breaker that opened forty minutes earlier."""
    minute = timedelta(minutes=1)
    hidden = {"breaker": "alpha", "tool": "alpha", "state": "open",
              "since": (NOW - 50 * minute).replace(tzinfo=None).isoformat()}  # fmt: skip
    beat = Heartbeat(micros(NOW - 10 * minute), "one", breakers=json.dumps([hidden]))
    call = ToolCall("beta", end=NOW - 10 * minute, instance="one", breaker_state="closed")
    store.append(Batch(heartbeats=[beat], calls=[call])).result(60)
    window = (NOW - HOUR, NOW)
    every, some = (
        store.query("page_breaker_timeline", parameters(window, **filters)).to_pylist()
        for filters in ({}, chosen)
    )
    assert some == [row for row in every if row["breaker"] == "beta"]
    assert [row["state"] for row in some] == ["unknown", "closed", "unknown"]
    assert some[1]["began"] == (NOW - 50 * minute).replace(tzinfo=None)
    for roll_up in (lambda: None, store.roll_up):
        roll_up()
        check_equal(store, window, tools=chosen.get("tools"))


@settings(max_examples=8, deadline=None)
@given(transitions(), windows())
def test_timelines_show_the_worst_state_of_all_processes_at_every_moment(
    history: list[BreakerTransition], window: Window
) -> None:
    since, until = (micros(moment) for moment in window)
    with opened() as store:
        store.append(Batch(transitions=history)).result(60)
        store.roll_up()
        rows = store.query("page_breaker_timeline", parameters(window)).to_pylist()
    by_breaker: dict[str, Rows] = defaultdict(list)
    for row in rows:
        by_breaker[row["breaker"]].append(row)
    known = [item for item in history if item.time <= until]
    assert by_breaker.keys() == {item.breaker for item in known}
    for breaker, stretches in by_breaker.items():
        ends = [(micros(row["began"].replace(tzinfo=UTC)), micros(row["ended"].replace(tzinfo=UTC)))
                for row in stretches]  # fmt: skip
        assert [ends[0][0], *(end for _, end in ends)] == [*(start for start, _ in ends), until]
        assert ends[0][0] == since
        for row, (began, ended) in zip(stretches, ends, strict=True):
            inside = {
                began,
                ended - 1,
                *(item.time for item in known if began <= item.time < ended),
            }
            assert {worst(known, breaker, moment) for moment in inside} == {row["state"]}


def worst(known: Sequence[BreakerTransition], breaker: str, moment: int) -> str:
    """Return the worst state over processes that have given a sign; they never sent a heartbeat."""
    states = []
    for process in {item.instance for item in known if item.breaker == breaker}:
        mine = sorted((item for item in known if item.instance == process),
                      key=lambda item: (item.time, item.received_at))  # fmt: skip
        if mine[0].time <= moment:
            own = [item for item in mine if item.breaker == breaker]
            past = [item for item in own if item.time <= moment]
            states.append(past[-1].to_state if past else own[0].from_state)
    return max(states, key=WORST.__getitem__, default="unknown")


@pytest.fixture
def store(make_store: Callable[..., Store]) -> Store:
    return make_store("breakers.duckdb", retention_days=None, clock=FixedClock())


def state(store: Store, window: Window = (NOW - DAY, NOW)) -> tuple[str, datetime | None]:
    bound = parameters(window, "page_breaker_states")
    (row,) = store.query("page_breaker_states", bound).to_pylist()
    return row["state"], row["since_time"]


def test_a_breaker_whose_only_change_lies_twenty_days_back_is_still_open(store: Store) -> None:
    then = NOW - 20 * DAY
    store.append(Batch(transitions=[move(then, "closed open", reason="why")])).result(60)
    store.roll_up()
    bound = parameters((NOW - HOUR, NOW), "page_breaker_states")
    (row,) = store.query("page_breaker_states", bound).to_pylist()
    assert (row["state"], row["reason"]) == ("open", "why")
    assert row["since_time"] == then.replace(tzinfo=None)
    (stretch,) = store.query("page_breaker_timeline", parameters((NOW - HOUR, NOW))).to_pylist()
    assert (stretch["state"], stretch["began"]) == ("open", (NOW - HOUR).replace(tzinfo=None))


def test_a_transition_that_comes_after_its_day_was_rolled_up_counts_at_once(store: Store) -> None:
    store.append(Batch(transitions=[move(NOW - 3 * DAY, "closed open")])).result(60)
    store.roll_up()
    late = NOW - 3 * DAY + HOUR
    store.append(Batch(transitions=[move(late, "open closed")])).result(60)
    for _ in range(2):
        assert state(store) == ("closed", late.replace(tzinfo=None))
        check_equal(store, (NOW - 7 * DAY, NOW))
        store.roll_up()


def test_what_retention_deletes_leaves_the_rolled_up_days(store: Store) -> None:
    changes = ((9, "closed open"), (6, "open isolated"), (2, "isolated closed"))
    history = [move(NOW - n * DAY, change) for n, change in changes]
    store.append(Batch(transitions=history)).result(60)
    store.roll_up()
    store.apply_retention(Keep(days=4))
    long = (NOW - 10 * DAY, NOW)
    for _ in range(2):
        rows = store.query("page_breaker_timeline", parameters(long)).to_pylist()
        assert [row["state"] for row in rows] == ["unknown", "closed"]
        check_equal(store, long)
        store.roll_up()


def test_filters_look_into_a_breaker_that_tools_share(store: Store) -> None:
    history = [BreakerTransition(micros(NOW - 3 * DAY + n * HOUR), "shared", tool, *states,
                                 instance="one")
               for n, tool, states in ((0, "alpha", ("closed", "open")),
                                       (1, "beta", ("open", "closed")))]  # fmt: skip
    store.append(Batch(transitions=history)).result(60)
    store.roll_up()
    for tools, expected in ((["alpha"], "open"), (["beta"], "closed"), (None, "closed")):
        bound = parameters((NOW - DAY, NOW), "page_breaker_states", tools=tools)
        (row,) = store.query("page_breaker_states", bound).to_pylist()
        assert row["state"] == expected
        check_equal(store, (NOW - 5 * DAY, NOW), tools=tools)


def test_a_lost_report_between_two_days_is_not_taken_for_a_change(store: Store) -> None:
    """Open from the evening on; the next day's first report says that it had closed meanwhile."""
    opened_at, again = MIDNIGHT - 2 * DAY - HOUR, MIDNIGHT - DAY + HOUR
    history = [move(opened_at, "closed open"), move(again, "closed isolated")]
    store.append(Batch(transitions=history)).result(60)
    store.roll_up()
    rows = store.query("page_breaker_timeline", parameters((NOW - 4 * DAY, NOW))).to_pylist()
    assert [row["state"] for row in rows] == ["unknown", "open", "isolated"]
    assert rows[2]["began"] == again.replace(tzinfo=None)
