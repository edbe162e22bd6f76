"""S1.6: what can only fail again is corrected by the caller and tried with other arguments."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pydantic
import pytest
from scripted_tools import BOTH, status_error

import fuseboard
from fuseboard import (
    AskUserError,
    Breaker,
    ConfigurationError,
    ErrorClass,
    Fallback,
    Feedback,
    InvalidResultError,
    Mistake,
    Outcome,
    Policy,
    Problem,
    Retry,
    Validation,
    guard,
)
from fuseboard.conventions import RetryEnd, RetryStrategy

Repairs = Callable[[Mistake], Any]


class Caller:
    """Corrects by a script and remembers what it was told."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.seen: list[Mistake] = []

    def __call__(self, mistake: Mistake) -> Any:
        self.seen.append(mistake)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def make(body: Callable[..., Any], caller: Any, *, is_async: bool = False, **policy: Any) -> Any:
    """Return a function that runs a tool with feedback to its end."""
    feedback = caller if isinstance(caller, Feedback) else Feedback(caller)
    settings = Policy(feedback=feedback, **{"effects": "none", **policy})
    if not is_async:
        return fuseboard.wrap(body, name="work", policy=settings)

    async def work(**arguments: Any) -> Any:
        await asyncio.sleep(0)
        return body(**arguments)

    tool = fuseboard.wrap(work, name="work", policy=settings)
    return lambda **arguments: asyncio.run(tool(**arguments))


def nothing() -> list[str]:
    return []


def only_oslo(city: str, days: int = 1) -> str:
    if city != "Oslo":
        raise status_error(422)
    return f"{city} {days}"


@BOTH
def test_a_corrected_request_is_tried_again_and_recorded_as_feedback(
    telemetry: Any, is_async: bool
) -> None:
    caller = Caller({"city": "Oslo", "days": 2})
    assert make(only_oslo, caller, is_async=is_async)(city="Osl") == "Oslo 2"
    (mistake,) = caller.seen
    assert (mistake.tool, mistake.attempt) == ("work", 1)
    assert mistake.arguments == {"city": "Osl"}
    assert mistake.error_class is ErrorClass.L1_INPUT
    call = telemetry.last
    assert (call.outcome, len(call.attempts)) == (Outcome.OK, 2)
    assert call.retry_strategy is RetryStrategy.FEEDBACK
    assert call.retry_end is RetryEnd.RECOVERED


@BOTH
def test_two_corrections_at_most_and_then_the_tools_own_error(
    telemetry: Any, is_async: bool
) -> None:
    caller = Caller(*[{"city": name} for name in ("a", "b", "c", "Oslo")])
    with pytest.raises(type(status_error(422))):
        make(only_oslo, caller, is_async=is_async)(city="x")
    assert [mistake.arguments["city"] for mistake in caller.seen] == ["x", "a"]
    call = telemetry.last
    assert (call.outcome, len(call.attempts)) == (Outcome.ERROR, 3)
    assert call.retry_strategy is RetryStrategy.FEEDBACK


@BOTH
def test_none_gives_up(telemetry: Any, is_async: bool) -> None:
    caller = Caller(None)
    with pytest.raises(type(status_error(422))):
        make(only_oslo, caller, is_async=is_async)(city="x")
    assert (len(caller.seen), len(telemetry.last.attempts)) == (1, 1)


def test_corrections_come_on_top_of_the_retries(telemetry: Any, clock: Any) -> None:
    faults = iter([503, 422, 503, 422, 503])

    def work(city: str) -> str:
        for status in faults:
            raise status_error(status, **({"Retry-After": "1"} if status == 503 else {}))
        return city

    caller = Caller({"city": "b"}, {"city": "c"})
    assert make(work, caller, retry=Retry(attempts=4, wait_initial=0))(city="a") == "c"
    assert len(telemetry.last.attempts) == 6
    assert [mistake.attempt for mistake in caller.seen] == [2, 4]


@BOTH
def test_an_unusable_answer_is_corrected_before_it_is_tried_verbatim(
    telemetry: Any, is_async: bool
) -> None:
    asked: list[str] = []

    def search(query: str) -> list[str]:
        asked.append(query)
        return [query] if query == "fuse board" else []

    caller = Caller({"query": "fuse board"})
    found = make(
        search, caller, is_async=is_async,
        validation=Validation(non_empty=True), retry=Retry(wait_initial=0, semantic=True),
    )(query="fuze bord")  # fmt: skip
    assert (found, asked) == (["fuse board"], ["fuze bord", "fuse board"])
    assert caller.seen[0].error_class is ErrorClass.L5_SEMANTIC


def test_after_giving_up_the_policy_goes_on_as_without_feedback(telemetry: Any) -> None:
    answers = iter([[], [], ["x"]])

    def search(query: str) -> list[str]:
        return next(answers)

    tool = make(
        search, Caller(None),
        validation=Validation(non_empty=True), retry=Retry(wait_initial=0, semantic=True),
    )  # fmt: skip
    assert tool(query="q") == ["x"]
    fallback = make(
        lambda query: [], Caller(None), validation=Validation(non_empty=True),
        fallback=Fallback(value=["none"]),
    )  # fmt: skip
    assert fallback(query="q") == ["none"]
    assert telemetry.last.outcome is Outcome.DEGRADED


@pytest.mark.parametrize("answers", [(), ({}, None), ({}, {}, None)], ids=["0", "1", "2"])
def test_after_giving_up_the_retries_are_bounded_as_without_feedback(
    telemetry: Any, answers: tuple[Any, ...]
) -> None:
    retry = Retry(attempts=3, wait_initial=0, semantic=True)
    caller = Caller(*answers)
    with pytest.raises(InvalidResultError):
        make(nothing, caller, validation=Validation(non_empty=True), retry=retry)()
    corrections = sum(answer is not None for answer in answers)
    assert len(telemetry.last.attempts) == 3 + corrections


class Trip(pydantic.BaseModel):
    city: str
    days: int


def test_what_was_wrong_is_said_by_name_without_the_value(telemetry: Any) -> None:
    caller = Caller(None)
    with pytest.raises(pydantic.ValidationError):
        make(lambda **given: Trip(**given), caller)(city="Oslo", days="hunter2")
    (mistake,) = caller.seen
    assert [problem.path for problem in mistake.problems] == ["days"]
    assert mistake.message.startswith("days: Input should be a valid integer")
    assert "hunter2" not in mistake.message


def test_arguments_that_do_not_fit_are_named(telemetry: Any) -> None:
    caller = Caller({"city": "Oslo"})
    assert make(only_oslo, caller)(town="Oslo") == "Oslo 1"
    (mistake,) = caller.seen
    assert mistake.arguments == {"town": "Oslo"}
    assert mistake.problems == (Problem("city", "is missing"), Problem("town", "is not known"))


def test_problems_of_an_answer_reach_the_caller(telemetry: Any) -> None:
    caller = Caller(None)
    with pytest.raises(InvalidResultError):
        make(lambda: {"a": "x"}, caller, validation=Validation(model=dict[str, int]))()
    assert [problem.path for problem in caller.seen[0].problems] == ["a"]


def test_a_returned_error_packet_is_corrected_too(telemetry: Any) -> None:
    def work(city: str) -> Any:
        return {"ok": False, "http_status": 422, "message": "no such city"} if city == "x" else city

    caller = Caller({"city": "y"})
    assert make(work, caller)(city="x") == "y"
    assert caller.seen[0].message == "no such city"


def test_hc_24_an_answer_that_may_have_taken_effect_is_not_corrected_for_unsafe_tools(
    telemetry: Any,
) -> None:
    effects: list[str] = []

    def send(to: str) -> list[str]:
        effects.append(to)
        return []

    for settings in ({}, {"idempotency_key": lambda arguments: str(arguments["to"])}):
        caller = Caller({"to": "b"})
        with pytest.raises(InvalidResultError):
            make(send, caller, validation=Validation(non_empty=True), effects="unsafe", **settings)(
                to="a"
            )
        assert caller.seen == []
    assert effects == ["a", "a"]
    caller = Caller({"city": "Oslo"})
    assert make(only_oslo, caller, effects="unsafe")(city="x") == "Oslo 1", "nothing was done"


def test_a_corrected_request_has_a_key_of_its_own(telemetry: Any) -> None:
    keys: list[str] = []

    def work(city: str) -> str:
        current = fuseboard.current_call()
        assert current is not None
        keys.append(current.idempotency_key)
        return only_oslo(city)

    make(work, Caller({"city": "y"}, {"city": "Oslo"}))(city="x")
    assert keys[1:] == [f"{keys[0]}:c1", f"{keys[0]}:c2"]
    keys.clear()
    make(work, Caller({"city": "Oslo"}), idempotency_key=lambda given: given["city"])(city="x")
    assert keys == ["x", "Oslo"]


@pytest.mark.parametrize("found", [None, KeyError("city")], ids=["none", "raises"])
def test_a_corrected_request_never_has_the_key_of_the_one_before(
    telemetry: Any, found: KeyError | None
) -> None:
    telemetry.may_fault = found is not None
    keys: list[str] = []

    def work(city: str) -> str:
        current = fuseboard.current_call()
        assert current is not None
        keys.append(current.idempotency_key)
        return only_oslo(city)

    def make_key(given: Any) -> Any:
        if given["city"] == "x":
            return "x"
        if found is not None:
            raise found
        return None

    make(work, Caller({"city": "y"}, {"city": "Oslo"}), idempotency_key=make_key)(city="x")
    assert keys == ["x", "x:c1", "x:c2"]


@BOTH
def test_a_repair_that_raises_gives_up(telemetry: Any, is_async: bool) -> None:
    telemetry.may_fault = True
    with pytest.raises(type(status_error(422))):
        make(only_oslo, Caller(KeyError("bug")), is_async=is_async)(city="x")
    assert guard.fault_counts() == {("asking for a correction", "KeyError"): 1}
    assert telemetry.last.outcome is Outcome.ERROR


@pytest.mark.parametrize("answer", ["Oslo", 7, [("city", "Oslo")], {1: "Oslo"}])
def test_a_repair_that_returns_nonsense_gives_up(telemetry: Any, answer: Any) -> None:
    telemetry.may_fault = True
    with pytest.raises(type(status_error(422))):
        make(only_oslo, Caller(answer))(city="x")
    assert guard.fault_counts() == {("asking for a correction", "TypeError"): 1}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (AskUserError("Which?"), Outcome.INTERRUPTED),
        (KeyboardInterrupt(), Outcome.CANCELLED),
        (SystemExit(1), Outcome.ERROR),
    ],
)
@BOTH
def test_control_flow_of_a_repair_passes(
    telemetry: Any, error: BaseException, outcome: Outcome, is_async: bool
) -> None:
    with pytest.raises(type(error)):
        make(only_oslo, Caller(error), is_async=is_async)(city="x")
    assert telemetry.last.outcome is outcome


async def test_an_async_repair_is_awaited_in_the_callers_task(telemetry: Any, clock: Any) -> None:
    tasks = []

    async def repair(mistake: Mistake) -> Mapping[str, Any]:
        clock.move(3)
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        return {"city": "Oslo"}

    async def work(city: str) -> str:
        return only_oslo(city)

    tool = fuseboard.wrap(work, policy=Policy(feedback=Feedback(repair)))
    assert await tool("x") == "Oslo 1"
    assert tasks == [asyncio.current_task()]
    call = telemetry.last
    assert (call.backoff_seconds, call.attempts[1].delay) == (3.0, 3.0)


async def test_a_cancelled_async_repair_is_cancelled(telemetry: Any) -> None:
    begun = asyncio.Event()

    async def repair(mistake: Mistake) -> None:
        begun.set()
        await asyncio.sleep(60)

    async def work(city: str) -> str:
        return only_oslo(city)

    tool = fuseboard.wrap(work, policy=Policy(feedback=Feedback(repair)))
    task = asyncio.ensure_future(tool("x"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert telemetry.last.outcome is Outcome.CANCELLED


async def test_the_budget_bounds_an_async_repair(telemetry: Any) -> None:
    async def repair(mistake: Mistake) -> None:
        await asyncio.sleep(60)

    async def work(city: str) -> str:
        return only_oslo(city)

    tool = fuseboard.wrap(work, policy=Policy(feedback=Feedback(repair), budget=0.05))
    with pytest.raises(type(status_error(422))):
        await tool("x")
    assert telemetry.last.duration < 30


def test_no_attempt_begins_after_the_budget(telemetry: Any, clock: Any) -> None:
    class Slow(Caller):
        def __call__(self, mistake: Mistake) -> Any:
            clock.move(10)
            return super().__call__(mistake)

    with pytest.raises(type(status_error(422))):
        make(only_oslo, Slow({"city": "Oslo"}), budget=5)(city="x")
    assert len(telemetry.last.attempts) == 1


def test_nobody_is_asked_while_the_breaker_is_open(telemetry: Any, clock: Any) -> None:
    breaker = Breaker(minimum_throughput=2, also_counts=[ErrorClass.L5_SEMANTIC])
    caller = Caller({}, {}, {})
    tool = make(nothing, caller, breaker=breaker, validation=Validation(non_empty=True))
    with pytest.raises(InvalidResultError):
        tool()
    assert len(caller.seen) == 1
    assert len(telemetry.last.attempts) == 2


def test_self_and_other_kinds_of_parameters_are_put_back(telemetry: Any) -> None:
    def soup(mistake: Mistake) -> dict[str, object]:
        return {**mistake.arguments, "dish": "soup"}

    class Kitchen:
        @fuseboard.tool(
            policy=Policy(feedback=Feedback(lambda mistake: {**mistake.arguments, "dish": "soup"}))
        )
        def cook(self, dish: str, /, *extras: str, hot: bool = True, **more: Any) -> Any:
            if dish != "soup":
                raise status_error(422)
            return (type(self), dish, extras, hot, more)

    assert Kitchen().cook("sand", "salt", "dill", hot=False, with_="bread") == (
        Kitchen, "soup", ("salt", "dill"), False, {"with_": "bread"},
    )  # fmt: skip


def test_streams_are_corrected_before_their_first_item(telemetry: Any) -> None:
    def stream(city: str) -> Iterator[str]:
        yield only_oslo(city)

    tool = fuseboard.wrap(stream, policy=Policy(feedback=Feedback(Caller({"city": "Oslo"}))))
    assert list(tool("x")) == ["Oslo 1"]


def test_only_the_classes_asked_for_are_corrected(telemetry: Any) -> None:
    caller = Caller({"city": "Oslo"})
    with pytest.raises(type(status_error(422))):
        make(only_oslo, Feedback(caller, on=[ErrorClass.L5_SEMANTIC]))(city="x")
    assert caller.seen == []


def test_a_mistake_cannot_be_changed() -> None:
    mistake = Mistake("work", {}, ErrorClass.L1_INPUT, "x", (), 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mistake.tool = "other"  # type: ignore[misc]


async def _async_repair(mistake: Mistake) -> None: ...


@pytest.mark.parametrize(
    ("make_it", "words"),
    [
        (lambda: Feedback("x"), "must be a function"),  # type: ignore[arg-type]
        (lambda: Feedback(Caller(), corrections=0), "must be an int from 1 to 10"),
        (lambda: Feedback(Caller(), on=[ErrorClass.L3_TRANSIENT]), "must be one of"),
        (lambda: Policy(feedback=Caller()), "must be a fuseboard.Feedback"),  # type: ignore[arg-type]
        (lambda: fuseboard.wrap(only_oslo, policy=Policy(feedback=Feedback(_async_repair))),
         "needs an async tool"),
    ],
)  # fmt: skip
def test_mistakes_show_where_the_policy_is_written(make_it: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make_it()


def test_an_awaitable_from_a_plain_function_gives_up_for_a_sync_tool(telemetry: Any) -> None:
    telemetry.may_fault = True
    with pytest.raises(type(status_error(422))):
        make(only_oslo, Feedback(lambda mistake: _async_repair(mistake)))(city="x")
    assert guard.fault_counts() == {("asking for a correction", "TypeError"): 1}
