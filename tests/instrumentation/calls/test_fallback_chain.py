"""The chain of what stands in: other tools, switching at once, people, and the user."""

from __future__ import annotations

import asyncio
import pickle
from functools import partial
from typing import Any

import pytest
from scripted_tools import BOTH, QUICK, Script, make_tool, status_error

import fuseboard
from fuseboard import (
    AskUserError,
    Breaker,
    Cache,
    Confidence,
    ConfigurationError,
    Effects,
    ErrorClass,
    Fallback,
    InvalidResultError,
    Outcome,
    Policy,
    ResultSource,
    Retry,
    Validation,
)
from fuseboard.conventions import Layer, RetryEnd, RetryStrategy


@BOTH
def test_tool_as_fallback_keeps_its_guard_and_gives_its_name(
    telemetry: Any, is_async: bool
) -> None:
    second = Script(status_error(503), "second")

    @fuseboard.tool(name="model_b", policy=Policy(retry=QUICK, effects="none"))
    def ask_b() -> Any:
        return second()

    @fuseboard.tool(name="model_b", policy=Policy(retry=QUICK, effects="none"))
    async def ask_b_later() -> Any:
        await asyncio.sleep(0)
        return second()

    policy = Policy(fallback=ask_b_later if is_async else ask_b)
    assert make_tool(Script(status_error(500)), policy, is_async=is_async)() == "second"
    inner, outer = telemetry.calls
    assert (inner.tool.name, inner.outcome, len(inner.attempts)) == ("model_b", Outcome.OK, 2)
    assert (outer.outcome, outer.fallback_tool) == (Outcome.DEGRADED, "model_b")
    assert outer.result_source is ResultSource.FALLBACK


def test_model_that_failed_three_times_is_skipped_for_five_minutes(
    telemetry: Any, clock: Any
) -> None:
    skip = Breaker(failure_ratio=1.0, minimum_throughput=3, break_duration=300)
    scripts = {name: Script(TimeoutError()) for name in "ab"}
    models = {
        name: fuseboard.wrap(script, name=name, policy=Policy(breaker=skip, effects="none"))
        for name, script in scripts.items()
    }
    ask = make_tool(
        Script(OSError()),
        Policy(fallback=(models["a"], models["b"], Fallback(value="later")), effects="none"),
    )
    for _ in range(5):
        assert ask() == "later"
    assert {name: script.runs for name, script in scripts.items()} == {"a": 3, "b": 3}
    clock.move(299)
    ask()
    assert scripts["a"].runs == 3
    clock.move(1)
    scripts["a"].events = ["recovered"]
    assert ask() == "recovered"


def test_names_of_what_is_served() -> None:
    tool = fuseboard.wrap(lambda city: city, name="second")

    class Callable:
        def __call__(self) -> None:
            pass

    assert Fallback(tool).name == "second"
    assert Fallback(partial(tool, city="Oslo")).name == "second"
    assert Fallback(partial(test_names_of_what_is_served)).name == "test_names_of_what_is_served"
    assert Fallback(Callable()).name == "Callable"
    assert Fallback(tool, name="mine").name == "mine"
    assert Fallback(value=None).name == "default"


@BOTH
def test_label_is_no_better_than_what_the_tool_that_stands_in_says_of_its_own_answer(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    script = Script("kept", status_error(503), status_error(503))

    def read() -> Any:
        return script()

    async def read_later() -> Any:
        return script()

    second: Any = fuseboard.wrap(
        read_later if is_async else read,
        name="second",
        policy=Policy(
            cache=Cache(ttl=100, stale=5000), fallback=Fallback(value="poor"), effects="none"
        ),
    )
    fallback = Fallback(second, confidence="medium_high")
    ask = make_tool(Script(OSError()), Policy(fallback=fallback), is_async=is_async)
    seen = []
    for seconds in (0, 90, 2000, 4000):
        clock.move(seconds)
        answer = ask()
        call = telemetry.last
        assert (call.fallback_tool, call.result_source) == ("second", ResultSource.FALLBACK)
        seen.append((answer, call.result_age_seconds, call.confidence))
    assert seen == [
        ("kept", None, Confidence.MEDIUM_HIGH),  # live, but of the second tool
        ("kept", 90, Confidence.MEDIUM),
        ("kept", 2090, Confidence.LOW),
        ("poor", None, Confidence.LOW),
    ]


def test_failed_fallback_leaves_no_label_to_the_next(telemetry: Any) -> None:
    def old() -> None:
        current = fuseboard.current_call()
        assert current is not None
        current.set_result_age(500)
        raise OSError

    ask = make_tool(Script(OSError()), Policy(fallback=(old, lambda_named := Script("new"))))
    assert ask() == "new"
    assert lambda_named.runs == 1
    assert telemetry.last.result_age_seconds is None


# --- HC-24: every layer honours the declaration ---------------------------------------------
def test_hc_24_tool_that_acts_is_no_fallback_for_one_that_may_have_acted(telemetry: Any) -> None:
    sent: list[str] = []

    @fuseboard.tool(policy=Policy(breaker=Breaker()))  # effects: unsafe, the default
    def send_by_b() -> str:
        sent.append("b")
        return "sent"

    assert Fallback(send_by_b).effects is Effects.UNSAFE
    assert Fallback(partial(send_by_b)).effects is Effects.UNSAFE
    for fault, is_served in [
        (TimeoutError(), False),
        (ConnectionResetError(), False),
        (status_error(500), False),
        (ConnectionRefusedError(), True),
        (status_error(429), True),
    ]:
        sent.clear()
        tool = make_tool(Script(fault), Policy(fallback=send_by_b))
        if is_served:
            assert tool() == "sent"
        else:
            with pytest.raises(type(fault)):
                tool()
        assert sent == ["b"] * is_served


def test_hc_24_effects_of_a_fallback_follow_the_tool_unless_said() -> None:
    reading = fuseboard.wrap(len, name="reading", policy=Policy(effects="idempotent"))
    assert Fallback(reading).effects is Effects.IDEMPOTENT
    assert Fallback(reading, effects="unsafe").effects is Effects.UNSAFE
    assert Fallback(len).effects is Effects.NONE
    assert Fallback(fuseboard.wrap(len, name="bare")).effects is Effects.NONE


# --- Switching at once ----------------------------------------------------------------------
@BOTH
def test_rate_limit_switches_at_once(telemetry: Any, clock: Any, is_async: bool) -> None:
    script = Script(status_error(429, **{"Retry-After": "5"}))
    policy = Policy(retry=Retry(), switch_on=["rate_limited"], fallback=Fallback(value="other"))
    assert make_tool(script, policy, is_async=is_async)() == "other"
    call = telemetry.last
    assert (script.runs, clock.slept) == (1, [])
    assert (call.outcome, call.retry_strategy) == (Outcome.DEGRADED, RetryStrategy.SWITCH)
    assert call.retry_end is RetryEnd.NONE


@BOTH
def test_only_what_was_named_switches(telemetry: Any, clock: Any, is_async: bool) -> None:
    script = Script(status_error(503), status_error(429), "never")
    policy = Policy(
        retry=Retry(attempts=5),
        switch_on=["rate_limited"],
        fallback=Fallback(value="other"),
        effects="none",
    )
    assert make_tool(script, policy, is_async=is_async)() == "other"
    call = telemetry.last
    assert (script.runs, len(clock.slept)) == (2, 1)
    assert (call.retry_strategy, call.retry_end) == (RetryStrategy.SWITCH, RetryEnd.STOPPED)


@BOTH
def test_empty_answer_switches_at_once(telemetry: Any, clock: Any, is_async: bool) -> None:
    script = Script([])
    policy = Policy(
        retry=Retry(semantic=True),
        validation=Validation(non_empty=True),
        switch_on=("empty",),
        fallback=Fallback(value=["other"]),
        effects="none",
    )
    assert make_tool(script, policy, is_async=is_async)() == ["other"]
    assert (script.runs, telemetry.last.retry_strategy) == (1, RetryStrategy.SWITCH)


def test_rate_limit_is_retried_where_nothing_may_stand_in(telemetry: Any, clock: Any) -> None:
    script = Script(status_error(429), "live")
    policy = Policy(
        retry=Retry(),
        switch_on=["rate_limited"],
        fallback=Fallback(value="other", on=[ErrorClass.L4_PERSISTENT]),
    )
    assert make_tool(script, policy)() == "live"


def test_switching_to_fallbacks_that_fail_ends_with_the_tools_own_error(
    telemetry: Any, clock: Any
) -> None:
    script = Script(status_error(429))
    policy = Policy(retry=Retry(), switch_on=["rate_limited"], fallback=Script(OSError()))
    with pytest.raises(type(status_error(429))):
        make_tool(script, policy)()
    assert script.runs == 1
    assert telemetry.last.layer_actions == (("fallback", "failed"),)


def test_switching_to_a_stale_answer(telemetry: Any, clock: Any) -> None:
    script = Script("old", status_error(429))
    policy = Policy(
        cache=Cache(ttl=1, stale=60), retry=Retry(), switch_on=["rate_limited"], effects="none"
    )
    tool = make_tool(script, policy)
    assert tool() == "old"
    clock.move(2)
    assert tool() == "old"
    assert (script.runs, telemetry.last.retry_strategy) == (2, RetryStrategy.SWITCH)
    other = fuseboard.wrap(Script(status_error(429), "live"), name="other", policy=policy)
    assert other() == "live", "nothing is kept yet, so the rate limit is waited for"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"switch_on": ["rate_limited"]}, "nothing to switch to"),
        ({"switch_on": ["rate_limited"], "cache": Cache(), "effects": "none"}, "nothing to switch"),
        ({"switch_on": ["empty"], "fallback": len}, "Validation\\(non_empty=True\\)"),
        ({"switch_on": ["429"], "fallback": len}, "'rate_limited', 'empty'"),
        ({"switch_on": "empty", "fallback": len}, "must be a collection"),
    ],
)  # fmt: skip
def test_switches_that_could_not_work_are_refused(given: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Policy(**given)


# --- A person -------------------------------------------------------------------------------
@BOTH
@pytest.mark.parametrize("said", ["We will call you.", None, ""], ids=repr)
def test_hand_over_is_counted_and_served_whatever_it_says(
    telemetry: Any, is_async: bool, said: Any
) -> None:
    policy = Policy(
        validation=Validation(non_empty=True, predicate=lambda answer: answer == "good"),
        fallback=(Script(OSError()), Fallback(lambda: said, name="on duty", hand_over=True)),
    )
    assert make_tool(Script(status_error(503)), policy, is_async=is_async)() == said
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.DEGRADED, Layer.FALLBACK)
    assert (call.fallback_tool, call.confidence) == ("on duty", Confidence.LOW)
    assert call.layer_actions == (("fallback", "failed"), ("fallback", "handed_over"))


@pytest.mark.parametrize("event", [OSError(), {"ok": False}], ids=repr)
def test_hand_over_that_fails_hands_nothing_over(telemetry: Any, event: Any) -> None:
    policy = Policy(fallback=Fallback(Script(event), hand_over=True))
    with pytest.raises(type(status_error(503))):
        make_tool(Script(status_error(503)), policy)()
    assert telemetry.last.layer_actions == (("fallback", "failed"),)


def test_hand_over_needs_somebody() -> None:
    with pytest.raises(ConfigurationError, match="function that hands over"):
        Fallback(value="a colleague", hand_over=True)
    with pytest.raises(ConfigurationError, match="must be a bool"):
        Fallback(len, hand_over=1)  # type: ignore[arg-type]


# --- The user -------------------------------------------------------------------------------
@BOTH
@pytest.mark.parametrize("asks", ["tool", "fallback", "tool within the fallback"])
def test_hc_17_asking_the_user_interrupts_and_nothing_else(
    telemetry: Any, is_async: bool, asks: str
) -> None:
    question = AskUserError("Which Springfield?")
    asking = Script(question)
    if asks == "tool within the fallback":
        asking = fuseboard.wrap(asking, name="inner", policy=Policy(retry=Retry(), effects="none"))
    policy = Policy(
        retry=QUICK,
        breaker=Breaker(minimum_throughput=2, failure_ratio=1.0),
        fallback=(Fallback(asking, name="asks"), Fallback(value="never")),
        effects="none",
    )
    script = Script(question if asks == "tool" else NotImplementedError())
    tool = make_tool(script, policy, is_async=is_async)
    with pytest.raises(AskUserError) as raised:
        tool()
    assert raised.value is question
    assert raised.value.question == "Which Springfield?"
    call = telemetry.last
    assert (call.outcome, call.fault) == (Outcome.INTERRUPTED, None)
    assert call.layer_actions == ()
    assert script.runs == 1
    if asks == "tool":
        for _ in range(3):
            with pytest.raises(AskUserError):
                tool()
    assert telemetry.transitions == []


def test_question_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(AskUserError("Which?")))
    assert (again.question, str(again)) == ("Which?", "Which?")


def test_asking_the_user_is_no_error_of_fuseboards_own() -> None:
    assert not issubclass(AskUserError, fuseboard.FuseboardError)


# --- Streams --------------------------------------------------------------------------------
def nothing_at_all() -> Any:
    yield from ()


def breaks_at_once() -> Any:
    raise OSError
    yield


async def nothing_later() -> Any:
    return
    yield


async def breaks_later() -> Any:
    raise OSError
    yield


def stream_with(policy: Policy, is_async: bool) -> Any:
    """Return a function that returns the items of a stream that fails."""

    if not is_async:

        @fuseboard.tool(policy=policy)
        def items() -> Any:
            raise ConnectionRefusedError
            yield

        return lambda: list(items())

    @fuseboard.tool(policy=policy)
    async def items_later() -> Any:
        raise ConnectionRefusedError
        yield

    async def collect() -> list[Any]:
        return [item async for item in items_later()]

    return lambda: asyncio.run(collect())


@BOTH
def test_fallback_stream_that_gives_nothing_is_passed_over(telemetry: Any, is_async: bool) -> None:
    first = (nothing_later, breaks_later) if is_async else (nothing_at_all, breaks_at_once)
    policy = Policy(
        validation=Validation(non_empty=True), fallback=(*first, Fallback(value=[7, 8]))
    )
    assert stream_with(policy, is_async)() == [7, 8]
    assert telemetry.last.layer_actions == (
        ("fallback", "failed"),
        ("fallback", "failed"),
        ("fallback", "served"),
    )


@BOTH
def test_empty_stream_stands_in_where_an_empty_one_is_good(telemetry: Any, is_async: bool) -> None:
    policy = Policy(fallback=nothing_later if is_async else nothing_at_all)
    assert stream_with(policy, is_async)() == []
    assert telemetry.last.outcome is Outcome.DEGRADED
    assert telemetry.last.layer_actions == (("fallback", "served"),)


@BOTH
def test_nothing_but_empty_fallbacks_leaves_the_tools_own_error(
    telemetry: Any, is_async: bool
) -> None:
    policy = Policy(
        validation=Validation(non_empty=True),
        fallback=nothing_later if is_async else nothing_at_all,
    )
    with pytest.raises(ConnectionRefusedError):
        stream_with(policy, is_async)()
    assert telemetry.last.outcome is Outcome.ERROR


def test_consumer_talks_to_the_fallback_stream(telemetry: Any) -> None:
    heard: list[Any] = []

    def talking() -> Any:
        for number in range(3):
            try:
                heard.append((yield number))
            except LookupError as error:
                heard.append(error)
        return "done"

    @fuseboard.tool(policy=Policy(fallback=talking))
    def items() -> Any:
        raise ConnectionRefusedError
        yield

    stream = items()
    assert next(stream) == 0
    assert stream.send("a") == 1
    assert stream.throw(LookupError("b")) == 2
    with pytest.raises(StopIteration) as stop:
        next(stream)
    assert stop.value.value == "done"
    assert [str(word) for word in heard] == ["a", "b", "None"]


@BOTH
def test_fallback_stream_is_closed_when_the_consumer_leaves(telemetry: Any, is_async: bool) -> None:
    closed: list[bool] = []

    def endless() -> Any:
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    async def endless_later() -> Any:
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    @fuseboard.tool(policy=Policy(fallback=endless))
    def items() -> Any:
        raise ConnectionRefusedError
        yield

    @fuseboard.tool(policy=Policy(fallback=endless_later))
    async def items_later() -> Any:
        raise ConnectionRefusedError
        yield

    async def leave_early() -> None:
        stream = items_later()
        assert await anext(stream) == 1
        await stream.aclose()

    if is_async:
        asyncio.run(leave_early())
    else:
        stream = items()
        assert next(stream) == 1
        stream.close()
    assert closed == [True]


def test_refused_empty_stream_still_tells_why(telemetry: Any) -> None:
    policy = Policy(validation=Validation(non_empty=True), fallback=nothing_at_all)

    @fuseboard.tool(policy=policy)
    def items() -> Any:
        yield from ()

    with pytest.raises(InvalidResultError):
        list(items())
