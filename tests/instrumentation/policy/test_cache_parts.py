"""The parts of the cache by themselves: digests, memory, flights."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import enum
import threading
import uuid
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseboard.policy.cache_flights import Ending, Flight, Flights
from fuseboard.policy.cache_key import IndistinctError, digest_of
from fuseboard.policy.cache_memory import Entry, MemoryLevel, copy_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.dates()
    | st.uuids()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 3), inner, max_size=3)
        | st.frozensets(st.integers(0, 9) | st.text(max_size=2), max_size=3)
    ),
    max_leaves=8,
)


def exactly(value: Any) -> Any:
    """Return what two values share only if nobody can tell them apart."""
    kind = type(value)
    if kind is dict:
        return kind, frozenset((exactly(key), exactly(item)) for key, item in value.items())
    if kind in (list, tuple):
        return kind, tuple(exactly(item) for item in value)
    if kind in (set, frozenset):
        return "set", frozenset(exactly(item) for item in value)
    return kind, repr(value)


@given(VALUES, VALUES)
def test_equal_digests_mean_equal_values_and_the_other_way_round(one: Any, two: Any) -> None:
    assert (digest_of(one) == digest_of(two)) == (exactly(one) == exactly(two))


@given(VALUES)
def test_a_copy_is_equal_and_shares_nothing_that_can_change(value: Any) -> None:
    copied = copy_of(value)
    assert exactly(copied) == exactly(value)
    if type(value) in (list, dict):
        assert copied is not value


class Colour(enum.Enum):
    RED = 1


class Shade(enum.IntEnum):
    RED = 1


class Text(str):
    """A text that may mean more than it says."""


Point = namedtuple("Point", "x")

ALIKE = [
    1, 1.0, True, "1", b"1", decimal.Decimal(1), decimal.Decimal("1.0"), Colour.RED, Shade.RED,
    [1], (1,), {1}, {1: 1}, {"1": 1}, [[1]], [1, 1], ["11"], [11], None, "None", "", b"", [], (),
    {}, set(), [[]], [None], dt.date(2026, 1, 1), dt.datetime(2026, 1, 1),
    dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "2026-01-01", uuid.UUID(int=1),
    dt.timedelta(1), 0.0, -0.0, float("nan"), float("inf"), 10**40, 1j, "\ud800", "a" * 70_000,
    "a" * 70_001,
]  # fmt: skip


def test_values_that_look_alike_have_digests_of_their_own() -> None:
    assert len({digest_of(value) for value in ALIKE}) == len(ALIKE)


def test_order_of_keys_does_not_matter_and_the_key_of_the_hash_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = digest_of({"a": 1, "b": 2})
    assert before == digest_of({"b": 2, "a": 1})
    for key in ("mine", "m" * 200):
        monkeypatch.setenv("FUSEBOARD_HASH_KEY", key)
        assert digest_of({"a": 1, "b": 2}) != before


@given(st.dictionaries(st.text(max_size=3), SCALARS, max_size=3), VALUES)
def test_arguments_of_any_kind_are_told_apart(one: dict[str, Any], two: Any) -> None:
    values = [one, dict(reversed(one.items())), two, {"a": two}, {**one, "more": two}]
    for value in values:
        for other in values:
            assert (digest_of(value) == digest_of(other)) == (exactly(value) == exactly(other))


def test_places_are_told_apart() -> None:
    places = [(), (None,), ("None",), ("a", "b"), ("a, b",), ("a', 'b",), ("a", None), ("", "")]
    digests = {digest_of({"x": 1}, place) for place in places}
    assert len(digests) == len(places)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def doubled(depth: int) -> list[Any]:
    value: list[Any] = [1]
    for _ in range(depth):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        object(), iter([1]), (n for n in ""), Text("a"), Point(1), OrderedDict(a=1), [object()],
        {"a": {"b": object()}}, len, bytearray(b"a"), nested(40), endless(), doubled(25),
        dt.datetime(2026, 1, 1, tzinfo=type("Zone", (dt.tzinfo,), {})()), Exception("a"), range(3),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_says_too_little_has_no_digest(value: Any) -> None:
    with pytest.raises(IndistinctError):
        digest_of(value)


def test_a_fresher_entry_is_not_replaced() -> None:
    memory = MemoryLevel(10)
    fresh, old = Entry("fresh", 5.0, 100.0), Entry("old", 0.0, 50.0)
    memory.put("k", fresh)
    memory.put("k", old)
    assert memory.get("k") is fresh
    memory.drop("k", old)
    assert memory.get("k") is fresh
    memory.drop("k", fresh)
    assert memory.get("k") is None


def test_memory_stays_bounded_under_threads() -> None:
    memory = MemoryLevel(50)

    def work(seed: int) -> None:
        for number in range(2000):
            key = str((seed * 31 + number) % 120)
            if memory.get(key) is None:
                memory.put(key, Entry(number, 0.0, float(number)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(memory) == 50


def test_only_the_first_end_of_a_flight_counts() -> None:
    flight = Flight()
    flight.end(Ending.SHARED, Entry(1, 0.0, 0.0))
    flight.end(Ending.FAILED)
    assert flight.ending is Ending.SHARED
    assert flight.wait(0)


async def test_waiting_ends_at_once_late_or_never() -> None:
    flight = Flight()
    assert not await flight.wait_async(0.01)
    assert not flight.wait(0.01)
    assert flight._wakers == {}, "who has left is not woken"
    flight.end(Ending.FAILED)
    assert await flight.wait_async(None)


def test_a_closed_event_loop_is_no_reason_not_to_wake_the_others() -> None:
    flight = Flight()

    def leave_a_waiter_behind() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(flight.wait_async(None))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        kept.append(task)

    kept: list[Any] = []
    thread = threading.Thread(target=leave_a_waiter_behind)
    thread.start()
    thread.join(20)
    waiting = threading.Thread(target=flight.wait, args=(20,))
    waiting.start()
    flight.end(Ending.SHARED)
    waiting.join(20)
    assert not waiting.is_alive()


def test_who_comes_after_the_end_leads_another_flight() -> None:
    flights = Flights()
    first, leads = flights.join("k")
    assert leads
    assert flights.join("k") == (first, False)
    assert flights.join("other")[1]
    flights.end("k", first, Ending.FAILED)
    second, leads = flights.join("k")
    assert leads
    assert second is not first
    flights.end("k", first, Ending.FAILED)
    assert flights.join("k") == (second, False), "an old flight ends nobody else's"
