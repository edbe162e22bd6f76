"""Answers that are served again: which, for how long, how labelled, and to whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from scripted_tools import status_error

import fuseboard
from fuseboard import (
    Breaker,
    Cache,
    Confidence,
    ConfigurationError,
    ErrorClass,
    Fallback,
    Outcome,
    Policy,
    RedisStore,
    ResultSource,
    Retry,
    Validation,
)
from fuseboard.conventions import Layer

INPUT = fuseboard.Verdict(ErrorClass.L1_INPUT, "mine", retryable=False)


class Source:
    """What a tool reads: counts how often, and fails when told to."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.fault: BaseException | None = None
        self.reads = 0

    def read(self, *about: Any) -> Any:
        self.reads += 1
        if self.fault is not None:
            raise self.fault
        return self.answer if self.answer is not None else f"{about[0]} #{self.reads}"


def make(source: Source, is_async: bool, policy: Policy, **options: Any) -> Callable[..., Any]:
    """Return a tool that reads a source, run to its end."""
    if is_async:

        @fuseboard.tool(name="read", policy=policy, **options)
        async def read_later(city: Any, day: Any = "today") -> Any:
            await asyncio.sleep(0)
            return source.read(city)

        return lambda *args, **kwargs: asyncio.run(read_later(*args, **kwargs))

    @fuseboard.tool(name="read", policy=policy, **options)
    def read(city: Any, day: Any = "today") -> Any:
        return source.read(city)

    return read


def cached(cache: Cache | None = None, **parts: Any) -> Policy:
    return Policy(cache=cache or Cache(), effects="none", **parts)


BOTH = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@BOTH
def test_fresh_answer_is_served_again_and_labelled(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    source = Source()
    read = make(source, is_async, cached(Cache(ttl=3600)))
    assert read("Oslo") == "Oslo #1"
    live = telemetry.last
    assert live.layer_actions == (("cache", "miss"),)
    assert (live.result_source, live.confidence) == (ResultSource.LIVE, Confidence.HIGH)
    for seconds, confidence in [
        (60, Confidence.MEDIUM_HIGH),
        (1740, Confidence.MEDIUM),
        (1799, Confidence.LOW),
    ]:
        clock.move(seconds)
        assert read(city="Oslo") == "Oslo #1", "the same argument, by name"
        call = telemetry.last
        assert (call.outcome, call.layer, call.fault) == (Outcome.OK, Layer.CACHE, None)
        assert (call.result_source, call.confidence) == (ResultSource.CACHE, confidence)
        assert call.layer_actions == (("cache", "hit_memory"),)
        assert call.attempts == []
        assert call.breaker_state is None
    assert call.result_age_seconds == pytest.approx(3599)
    clock.move(1)
    assert read("Oslo") == "Oslo #2", "its time is over"


@BOTH
def test_every_argument_counts_and_so_does_where_the_call_goes(
    telemetry: Any, is_async: bool
) -> None:
    source = Source()
    read = make(
        source, is_async, cached(), region=lambda args: args.get("day"), ignore_arguments=["day"]
    )
    answers = [read("Oslo"), read("Bergen"), read("Oslo", "eu-west"), read("Oslo", "us-east")]
    assert answers == ["Oslo #1", "Bergen #2", "Oslo #3", "Oslo #4"]
    assert read("Oslo", "eu-west") == "Oslo #3"


def test_upstreams_do_not_share(telemetry: Any) -> None:
    source = Source()
    read = make(
        source, False, cached(), upstream=lambda args: args["day"], ignore_arguments=["day"]
    )
    assert [read("Oslo", day) for day in ("a", "b", "a")] == ["Oslo #1", "Oslo #2", "Oslo #1"]


@BOTH
@pytest.mark.parametrize(
    "answer", [{"partial_failures": [{"item": 1}], "items": []}, {"ok": False}, []], ids=repr
)
def test_only_good_answers_are_kept(telemetry: Any, is_async: bool, answer: Any) -> None:
    source = Source(answer)
    policy = cached(validation=Validation(non_empty=True), fallback=Fallback(value="instead"))
    read = make(source, is_async, policy)
    read("Oslo")
    read("Oslo")
    assert source.reads == 2
    assert all(call.outcome is not Outcome.OK for call in telemetry.calls)


@BOTH
@pytest.mark.parametrize("answer", [0, "", False, [], {"a": {"b": [1]}}, (1, [2]), {3}], ids=repr)
def test_any_good_answer_is_kept(telemetry: Any, is_async: bool, answer: Any) -> None:
    source = Source()
    source.read = lambda *_: answer  # type: ignore[method-assign]
    read = make(source, is_async, cached())
    assert read("Oslo") == answer
    again = read("Oslo")
    assert again == answer
    assert type(again) is type(answer)
    assert telemetry.last.result_source is ResultSource.CACHE


@pytest.mark.parametrize("nested", [False, True])
def test_what_a_caller_does_to_an_answer_stays_its_own(telemetry: Any, nested: bool) -> None:
    source = Source({"cities": ["Oslo"]} if nested else ["Oslo"])
    read = make(source, False, cached())

    def list_in(answer: Any) -> list[str]:
        found: list[str] = answer["cities"] if nested else answer
        return found

    for _ in range(3):
        answer = list_in(read("all"))
        assert answer == ["Oslo"]
        answer.append("changed")
        source.answer = {"cities": ["Oslo"]} if nested else ["Oslo"]
    assert source.reads == 1


def test_what_cannot_be_copied_is_not_kept(telemetry: Any) -> None:
    telemetry.may_fault = True
    source = Source(iter_of_a_generator := (n for n in range(3)))
    made = make(source, False, cached())

    @fuseboard.tool(name="lock", policy=cached())
    def lock() -> Any:
        import threading

        return threading.Lock()

    assert lock() is not lock()
    assert list(made("x")) == [0, 1, 2], "followed to its end, and not kept"
    assert list(made("x")) == []
    assert source.reads == 2
    assert iter_of_a_generator is source.answer


def test_least_recently_used_goes_first(telemetry: Any) -> None:
    source = Source()
    read = make(source, False, cached(Cache(max_entries=2)))
    for city in ("Oslo", "Rome", "Oslo", "Lima"):
        read(city)
    assert source.reads == 3
    read("Oslo")
    assert source.reads == 3
    read("Rome")
    assert source.reads == 4


@BOTH
def test_key_function_says_which_calls_are_equal(telemetry: Any, is_async: bool) -> None:
    source = Source()
    cache = Cache(key=lambda args: None if args["city"] == "Rome" else args["city"].lower())
    read = make(source, is_async, cached(cache))
    assert read("Oslo") == read("OSLO", day="tomorrow") == "Oslo #1"
    assert read("Rome") != read("Rome"), "None: not cached"
    assert telemetry.last.layer_actions == ()


def test_key_function_that_raises_only_costs_the_cache(telemetry: Any) -> None:
    telemetry.may_fault = True
    source = Source()
    read = make(source, False, cached(Cache(key=lambda args: args["missing"])))
    assert [read("Oslo"), read("Oslo")] == ["Oslo #1", "Oslo #2"]
    assert fuseboard.guard.fault_counts() != {}


class Untouchable:
    """Fails when anybody looks at it."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"somebody looked at {name}")

    def __iter__(self) -> Any:
        raise AssertionError("somebody iterated")


@BOTH
def test_hc_13_arguments_that_say_nothing_are_never_answered_from_the_cache(
    telemetry: Any, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source()
    read = make(source, is_async, cached())
    items = iter([1, 2, 3])
    for argument in (items, Untouchable(), object(), (n for n in "ab"), [object()], {1: object()}):
        first, second = read(argument), read(argument)
        assert first != second
        assert telemetry.last.layer_actions == ()
    assert list(items) == [1, 2, 3], "nobody consumed it"
    said = [record.getMessage() for record in caplog.records if "not cached" in record.getMessage()]
    assert len(said) == 1, "once for each tool"
    assert "list_iterator" in said[0]


def test_long_texts_that_begin_alike_are_not_equal(telemetry: Any) -> None:
    source = Source()
    read = make(source, False, cached())
    long = "x" * 200_000
    read(long + "a")
    read(long + "b")
    assert source.reads == 2


@BOTH
def test_stale_answer_stands_in_before_the_fallbacks(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    source = Source()
    policy = cached(Cache(ttl=60, stale=600), fallback=Fallback(value="default"))
    read = make(source, is_async, policy)
    read("Oslo")
    source.fault = status_error(503)
    clock.move(300)
    assert read("Oslo") == "Oslo #1"
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.DEGRADED, Layer.CACHE)
    assert call.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
    assert (call.result_source, call.result_age_seconds) == (ResultSource.CACHE, 300)
    assert (call.confidence, call.fallback_tool) == (Confidence.MEDIUM, None)
    assert call.layer_actions == (("cache", "miss"), ("cache", "stale"))
    assert len(call.attempts) == 1
    assert read("Rome") == "default", "nothing is kept of this one"
    clock.move(361)
    assert read("Oslo") == "default", "too old even for that"


@BOTH
def test_stale_answer_is_never_served_for_what_the_caller_has_to_correct(
    telemetry: Any, clock: Any, is_async: bool
) -> None:
    source = Source()
    read = make(source, is_async, cached(Cache(ttl=1, stale=600)))
    read("Oslo")
    clock.move(2)
    source.fault = status_error(422)
    with pytest.raises(type(source.fault)):
        read("Oslo")
    assert telemetry.last.outcome is Outcome.ERROR
    with pytest.raises(ConfigurationError, match="stale_on"):
        Cache(stale_on=[ErrorClass.L1_INPUT])


def test_stale_answer_stands_in_for_a_rejected_call(telemetry: Any, clock: Any) -> None:
    source = Source()
    policy = cached(
        Cache(ttl=1, stale=600), breaker=Breaker(minimum_throughput=2, failure_ratio=0.6)
    )
    read = make(source, False, policy)
    read("Oslo")
    source.fault = ConnectionResetError()
    clock.move(2)
    for _ in range(3):
        assert read("Oslo") == "Oslo #1"
    call = telemetry.last
    assert (call.outcome, call.attempts) == (Outcome.DEGRADED, [])
    assert call.fault.verdict.classifier_id == "circuit_open"


def test_cancelled_or_interrupted_calls_are_not_answered_from_the_cache(
    telemetry: Any, clock: Any
) -> None:
    source = Source()
    read = make(source, False, cached(Cache(ttl=1, stale=600)))
    read("Oslo")
    clock.move(2)
    for fault, outcome in [
        (KeyboardInterrupt(), Outcome.CANCELLED),
        (fuseboard.AskUserError("Which Oslo?"), Outcome.INTERRUPTED),
    ]:
        source.fault = fault
        with pytest.raises(type(fault)):
            read("Oslo")
        assert telemetry.last.outcome is outcome


def test_retries_come_before_the_stale_answer_and_a_recovered_one_is_kept(
    telemetry: Any, clock: Any
) -> None:
    answers = iter(["one", ConnectionRefusedError(), "two"])

    @fuseboard.tool(policy=cached(Cache(ttl=1, stale=600), retry=Retry(wait_initial=0)))
    def read() -> Any:
        answer = next(answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    assert read() == "one"
    clock.move(2)
    assert read() == "two"
    assert len(telemetry.last.attempts) == 2
    assert read() == "two"
    assert telemetry.last.attempts == []


def test_age_that_the_tool_states_is_part_of_the_age_of_a_hit(telemetry: Any, clock: Any) -> None:
    @fuseboard.tool(policy=cached())
    def read() -> str:
        current = fuseboard.current_call()
        assert current is not None
        current.set_result_age(100)
        return "old"

    read()
    clock.move(10)
    read()
    assert telemetry.last.result_age_seconds == 110


class Account:
    def __init__(self, name: str) -> None:
        self.name = name

    @fuseboard.tool(policy=cached(Cache(key=lambda args: (args["self"].name, args.get("day")))))
    def balance(self, day: str = "today") -> str:
        return f"of {self.name}"


def test_methods_name_what_matters_of_their_object(telemetry: Any) -> None:
    assert Account("a").balance("x") == "of a"
    assert Account("b").balance("x") == "of b"
    assert Account("a").balance("x") == "of a"
    assert telemetry.last.result_source is ResultSource.CACHE
    with pytest.raises(ConfigurationError, match="'self' is no part of the key"):

        class Careless:
            @fuseboard.tool(policy=cached())
            def balance(self) -> str:
                return "?"


def test_two_tools_of_one_name_do_not_share(telemetry: Any) -> None:
    first, second = Source("first"), Source("second")
    tools = [make(source, False, cached()) for source in (first, second)]
    assert [tool("x") for tool in tools] == ["first", "second"]


def test_hc_24_unsafe_tools_are_not_cached_unless_said(telemetry: Any) -> None:
    for effects in (None, "unsafe"):
        given = {} if effects is None else {"effects": effects}
        with pytest.raises(ConfigurationError, match="effects"):
            Policy(cache=Cache(), **given)
    assert Policy(cache=Cache(allow_unsafe=True)).cache is not None
    assert Policy(cache=Cache(), effects="idempotent").cache is not None


def test_streams_are_refused_at_decoration() -> None:
    with pytest.raises(ConfigurationError, match="a stream can't be served twice"):

        @fuseboard.tool(policy=cached())
        def items() -> Iterator[int]:
            yield 1

    with pytest.raises(ConfigurationError, match="a stream can't be served twice"):

        @fuseboard.tool(policy=cached())
        async def later() -> AsyncIterator[int]:
            yield 1


def test_cache_outlives_changes_of_other_settings(telemetry: Any) -> None:
    source = Source()
    read = make(source, False, cached(Cache(ttl=60)))
    read("Oslo")
    fuseboard.configure("read", cached(Cache(ttl=60), retry=Retry()))
    assert read("Oslo") == "Oslo #1"
    fuseboard.configure("read", cached(Cache(ttl=61)))
    assert read("Oslo") == "Oslo #2", "settings of its own"
    fuseboard.configure("read", None)
    assert read("Oslo") == "Oslo #3"
    fuseboard.configure("read")
    assert read("Oslo") == "Oslo #4", "nobody kept the cache that nobody used"


def test_equal_stores_are_one_setting(telemetry: Any) -> None:
    pytest.importorskip("redis")
    url = "redis://127.0.0.1:1"
    assert Cache(redis=url) == Cache(redis=url)
    assert Cache(redis=url) != Cache(redis=RedisStore(url, prefix="other"))
    assert len({RedisStore(url), RedisStore(url)}) == 1


def test_adapters_refuse_a_cache_and_keep_what_else_a_policy_says(telemetry: Any) -> None:
    from fuseboard.adapters.running import FrameworkCalls, Invocation

    calls = FrameworkCalls("instrument_x")
    for policy in (cached(), {"read": cached()}):
        with pytest.raises(ConfigurationError, match="to the function itself"):
            calls.configure(policy)

    async def later() -> str:
        return "later"

    calls.configure(Policy(fallback=later, switch_on=["rate_limited"], effects="none"))

    def limited() -> str:
        raise status_error(429)

    with pytest.raises(type(status_error(429))):
        calls.run(Invocation("read", {}), limited)


@BOTH
def test_answer_to_corrected_arguments_is_not_kept_for_the_wrong_ones(
    telemetry: Any, is_async: bool
) -> None:
    asked: list[str] = []

    def read(city: str) -> str:
        asked.append(city)
        if city == "Osl":
            raise ValueError("unknown city")
        return city

    async def read_later(city: str) -> str:
        return read(city)

    policy = cached(feedback=fuseboard.Feedback(lambda mistake: {"city": "Oslo"}))
    tool: Any = fuseboard.wrap(read_later if is_async else read, name="r", policy=policy)
    fuseboard.classifier(lambda e: INPUT if isinstance(e, ValueError) else None)
    for _ in range(2):
        assert (asyncio.run(tool("Osl")) if is_async else tool("Osl")) == "Oslo"
    assert asked == ["Osl", "Oslo"] * 2
