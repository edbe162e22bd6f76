"""Whose calls they are: session, agent and step, over threads, tasks, nesting and generators."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import fuseboard
from fuseboard import Breaker, ConfigurationError, Limit, Policy, Retry
from fuseboard.calls.wrapping import MARK
from fuseboard.runtime import RUNTIME
from fuseboard.sessions.blocks import caller
from fuseboard.sessions.scope import current_scope


def _bare() -> str | None:
    current = fuseboard.current_call()
    return current.idempotency_key if current else None


@pytest.fixture
def bare() -> Any:
    return fuseboard.wrap(_bare, name="bare")


def names(call: Any) -> tuple[str | None, str | None, str | None]:
    return call.session, call.agent, call.step


def test_calls_belong_to_the_session_they_begin_in(telemetry: Any, bare: Any) -> None:
    bare()
    with fuseboard.session("s1", agent="planner") as opened:
        assert opened.id == "s1"
        bare()
        with opened.step():
            bare()
        with opened.step():
            bare()
        with opened.step("sum up"):
            bare()
        with opened.step():
            bare()
        bare()
    bare()
    planner = ("s1", "planner")
    assert [names(call) for call in telemetry.calls] == [
        (None, None, None),
        (*planner, None),
        (*planner, "1"),
        (*planner, "2"),
        (*planner, "sum up"),
        (*planner, "3"),
        (*planner, None),
        (None, None, None),
    ]


def test_numbering_goes_on_from_a_number_that_was_given(telemetry: Any, bare: Any) -> None:
    with fuseboard.session("s1") as opened:
        for name in (7, None):
            with opened.step(name):
                bare()
    assert [call.step for call in telemetry.calls] == ["7", "8"]


def test_session_without_an_id_gets_one_of_its_own(telemetry: Any, bare: Any) -> None:
    for _ in range(2):
        with fuseboard.session() as opened:
            bare()
            bare()
            assert opened.id
    ids = [call.session for call in telemetry.calls]
    assert ids[0] == ids[1] != ids[2] == ids[3]


def test_sessions_nest(telemetry: Any, bare: Any) -> None:
    with fuseboard.session("outer", agent="boss"), fuseboard.turn(1):
        with fuseboard.session(agent="helper"):
            bare()
        with fuseboard.session("inner"):
            bare()
            with fuseboard.turn("a"), fuseboard.turn(timeout=60):
                bare()
        bare()
    assert [names(call) for call in telemetry.calls] == [
        ("outer", "helper", "1"),
        ("inner", "boss", None),
        ("inner", "boss", "a"),
        ("outer", "boss", "1"),
    ]


def test_turn_works_without_a_session(telemetry: Any, bare: Any) -> None:
    with fuseboard.turn("first"):
        bare()
    assert names(telemetry.last) == (None, None, "first")


def test_idempotency_key_is_session_step_call(telemetry: Any, bare: Any) -> None:
    with fuseboard.session("s1"), fuseboard.turn(4), fuseboard.call("pay", call_id="c9") as call:
        assert call.idempotency_key == "s1:4:c9"
        assert call.request_id == "s1:4:c9:1"
    with fuseboard.session("s1") as opened, opened.step():
        keys = {bare() for _ in range(3)}
    assert len(keys) == 3
    assert all(str(key).startswith("s1:1:") for key in keys)


@pytest.mark.parametrize(
    "policy",
    [Policy(retry=Retry()), Policy(breaker=Breaker()), Policy(limit=Limit(concurrency=1)),
     Policy(timeout=30), Policy(budget=30)],
    ids=["retry", "breaker", "limit", "timeout", "budget"],
)  # fmt: skip
async def test_guarded_calls_of_every_kind_are_named(telemetry: Any, policy: Policy) -> None:
    @fuseboard.tool(policy=policy)
    def sync() -> None: ...

    @fuseboard.tool(policy=policy)
    async def later() -> None: ...

    async with fuseboard.session("s1", agent="a"), fuseboard.turn(1):
        sync()
        await later()
    assert [names(call) for call in telemetry.calls] == [("s1", "a", "1")] * 2


async def test_streams_are_named_where_they_are_consumed(telemetry: Any) -> None:
    @fuseboard.tool
    def numbers() -> Iterator[int]:
        yield 1

    @fuseboard.tool
    async def later() -> AsyncIterator[int]:
        yield 1

    with fuseboard.session("s1"):
        assert list(numbers()) == [1]
        assert [item async for item in later()] == [1]
    assert [call.session for call in telemetry.calls] == ["s1", "s1"]


async def test_tasks_and_threads_with_a_copy_of_the_context_belong_to_it(
    telemetry: Any, bare: Any
) -> None:
    @fuseboard.tool
    async def later() -> None:
        await asyncio.sleep(0)

    async with fuseboard.session("s1") as opened:

        async def in_step(name: str) -> None:
            async with opened.step(name):
                await later()

        await asyncio.gather(*(in_step(str(number)) for number in range(20)))
        await asyncio.to_thread(bare)
        copied = contextvars.copy_context()
        thread = threading.Thread(target=copied.run, args=(bare,))
        thread.start()
        thread.join(20)
        stranger = threading.Thread(target=bare)
        stranger.start()
        stranger.join(20)
    assert sorted(int(call.step) for call in telemetry.calls[:20]) == list(range(20))
    assert [call.session for call in telemetry.calls[20:]] == ["s1", "s1", None]


async def test_block_left_in_another_context_changes_nothing_there(
    telemetry: Any, bare: Any
) -> None:
    async def lines() -> AsyncIterator[int]:
        with fuseboard.session("of the generator"):
            yield 1

    stream: Any = lines()
    await anext(stream)
    assert current_scope() is not None, "as with every context variable set in a generator"

    async def close() -> None:
        await stream.aclose()
        bare()

    with fuseboard.session("s1"):
        await asyncio.create_task(close())
    assert telemetry.last.session == "s1"


def test_same_object_may_be_entered_again_and_within_itself(telemetry: Any, bare: Any) -> None:
    opened = fuseboard.session("s1")
    with opened:
        with opened:
            bare()
        bare()
    bare()
    with opened:
        bare()
    assert [call.session for call in telemetry.calls] == ["s1", "s1", None, "s1"]


def test_blocks_may_end_in_any_order(telemetry: Any, bare: Any) -> None:
    outer, inner = fuseboard.session("outer"), fuseboard.session("inner")
    with contextlib.ExitStack() as stack:
        stack.enter_context(outer)
        inner.__enter__()
    bare()
    inner.__exit__(None, None, None)
    bare()
    assert [call.session for call in telemetry.calls] == ["inner", None]
    assert current_scope() is None


def test_generator_that_ends_within_somebody_elses_block_leaves_that_alone(
    telemetry: Any, bare: Any
) -> None:
    def lines() -> Iterator[int]:
        with fuseboard.session("of the generator"):
            yield 1
            yield 2

    stream = lines()
    next(stream)
    with fuseboard.session("s1"), fuseboard.turn(1):
        stream.close()  # type: ignore[attr-defined]
        bare()
    bare()
    assert [names(call) for call in telemetry.calls] == [("s1", None, "1"), (None, None, None)]


def test_framework_knows_the_agent_better_and_the_application_the_session(
    telemetry: Any, bare: Any
) -> None:
    def describe(call: Any) -> None:
        call.session, call.agent = "thread-1", "react"

    getattr(bare, MARK).describe_calls(describe)
    bare()
    with fuseboard.session("mine", agent="own"):
        bare()
    with fuseboard.session(agent="own"):
        bare()
    assert [names(call) for call in telemetry.calls] == [
        ("thread-1", "react", None),
        ("mine", "react", None),
        ("thread-1", "react", None),
    ]


def test_exception_passes_through_and_the_session_ends(telemetry: Any) -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught, fuseboard.session("s1"):
        raise error
    assert caught.value is error
    assert current_scope() is None


def test_adapter_says_who_calls_and_the_application_has_the_last_word(
    telemetry: Any, bare: Any
) -> None:
    with caller(session="thread-1", agent="react"):
        bare()
        with fuseboard.session(agent="own"):
            bare()
    with fuseboard.session("mine"), caller(session="thread-1", agent="react", step="3"):
        bare()
    with fuseboard.session(), caller(session="thread-1"):
        bare()
    assert [names(call) for call in telemetry.calls] == [
        ("thread-1", "react", None),
        ("thread-1", "own", None),
        ("mine", "react", "3"),
        ("thread-1", None, None),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": ""},
        {"id": 7},
        {"id": "x" * 300},
        {"agent": " "},
        {"budget": 3},
        {"budget": fuseboard.Repeats()},
        {"repeats": 3},
        {"timeout": 0},
        {"timeout": True},
        {"on_progress": 3},
        {"progress_seconds": 0},
        {"progress_seconds": None},
    ],
    ids=repr,
)
def test_wrong_settings_of_a_session_are_named(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ConfigurationError, match=rf"^session\({name}="):
        fuseboard.session(**wrong)


@pytest.mark.parametrize("wrong", [{"step": True}, {"step": ""}, {"step": 1.5}, {"timeout": -1}])
def test_wrong_settings_of_a_turn_are_named(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ConfigurationError, match=rf"^turn\({name}="):
        fuseboard.turn(**wrong)


def test_without_a_session_no_call_looks_for_one(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch, bare: Any
) -> None:
    from fuseboard.calls import bare as bare_calls
    from fuseboard.calls import recording

    monkeypatch.setattr(RUNTIME, "has_scopes", False)
    monkeypatch.setattr(RUNTIME, "has_gates", False)
    monkeypatch.setattr(recording, "SCOPE", None)
    monkeypatch.setattr(bare_calls, "current_gate", None)
    bare()
    assert telemetry.last.outcome == "ok"
    assert not RUNTIME.has_scopes
    with fuseboard.session("s1"):
        assert RUNTIME.has_scopes
        assert not RUNTIME.has_gates, "a session that only names its calls costs no more"


def test_steps_of_many_threads_have_numbers_of_their_own(telemetry: Any) -> None:
    opened = fuseboard.session()
    barrier = threading.Barrier(8)
    steps: list[str | None] = []
    ids: set[str | None] = set()

    def work() -> None:
        barrier.wait(30)
        with opened:
            ids.add(opened.id)
            for _ in range(200):
                steps.append(opened.step().step)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(map(int, filter(None, steps))) == list(range(1, 1601))
    assert len(ids) == 1
