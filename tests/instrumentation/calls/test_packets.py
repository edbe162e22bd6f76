"""S1.2: an error packet tells the model what happened and what to do, and nothing of how."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pydantic
import pytest
from scripted_tools import status_error

import fuseboard
from fuseboard import (
    AskUserError,
    AttemptTimeoutError,
    BudgetExhaustedError,
    CircuitOpenError,
    ConfigurationError,
    ErrorClass,
    InvalidResultError,
    LimitExceededError,
    Outcome,
    Policy,
    Problem,
    RepeatedCallError,
    Retry,
    SessionBudgetError,
    Validation,
    guard,
)

SECRET = "hunter2hunter2"
REQUEST = httpx.Request("GET", f"https://user:{SECRET}@api.example.org/v1?token={SECRET}")
KEYS = ["ok", "error_code", "recoverable", "message", "suggestion", "debug_info"]


def raiser(error: BaseException) -> Callable[..., Any]:
    def work(city: str = "Oslo") -> Any:
        raise error

    return work


def answer(error: BaseException, *, is_async: bool = False, **options: Any) -> Any:
    """Return what a tool that raises gives its caller."""
    body = raiser(error)
    if not is_async:
        return fuseboard.wrap(body, name="work", on_error="packet", **options)()

    async def work() -> Any:
        await asyncio.sleep(0)
        return body()

    return asyncio.run(fuseboard.wrap(work, name="work", on_error="packet", **options)())


FAULTS: list[tuple[BaseException, str, ErrorClass]] = [
    (status_error(404), "not_found", ErrorClass.L1_INPUT),
    (status_error(422), "invalid_request", ErrorClass.L1_INPUT),
    (FileNotFoundError(2, "No such file", "/srv/data/x"), "not_found", ErrorClass.L1_INPUT),
    (status_error(401), "no_access", ErrorClass.L2_ACCESS),
    (PermissionError(13, "denied", "/srv/data"), "no_access", ErrorClass.L2_ACCESS),
    (status_error(503), "temporarily_unavailable", ErrorClass.L3_TRANSIENT),
    (status_error(429), "too_many_requests", ErrorClass.L3_TRANSIENT),
    (ConnectionRefusedError(111, "refused"), "temporarily_unavailable", ErrorClass.L3_TRANSIENT),
    (httpx.ReadTimeout("late", request=REQUEST), "timed_out", ErrorClass.L3_TRANSIENT),
    (AttemptTimeoutError("work", 5.0), "timed_out", ErrorClass.L3_TRANSIENT),
    (CircuitOpenError("work", "work/eu", 7.0, ErrorClass.L3_TRANSIENT), "switched_off",
     ErrorClass.L3_TRANSIENT),
    (BudgetExhaustedError("work", 5.0), "out_of_time", ErrorClass.L4_PERSISTENT),
    (SessionBudgetError("work", "turn", 15.0), "out_of_time", ErrorClass.L4_PERSISTENT),
    (SessionBudgetError("work", "requests", 30.0), "out_of_budget", ErrorClass.L4_PERSISTENT),
    (SessionBudgetError("work", "cost", 2.5), "out_of_budget", ErrorClass.L4_PERSISTENT),
    (RepeatedCallError("work", 4), "repeated_request", ErrorClass.L1_INPUT),
    (LimitExceededError("work", 1.0, None), "too_many_requests", ErrorClass.L3_TRANSIENT),
    (KeyError("city"), "unavailable", ErrorClass.L4_PERSISTENT),
    (status_error(501), "unavailable", ErrorClass.L4_PERSISTENT),
    (json.JSONDecodeError("bad", "{", 1), "unusable_answer", ErrorClass.L5_SEMANTIC),
    (RuntimeError(f"password={SECRET} at https://api.example.org"), "failed",
     ErrorClass.UNCLASSIFIED),
]  # fmt: skip
EACH = pytest.mark.parametrize(("error", "code", "error_class"), FAULTS, ids=lambda v: repr(v)[:40])


@EACH
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_fault_is_returned_as_a_packet_and_recorded_as_an_error(
    telemetry: Any, error: BaseException, code: str, error_class: ErrorClass, is_async: bool
) -> None:
    packet = answer(error, is_async=is_async)
    assert list(packet) == KEYS
    assert (packet["ok"], packet["error_code"]) == (False, code)
    assert packet["debug_info"]["error_class"] == error_class
    assert packet == {**fuseboard.error_packet(error)}, "adapters say the same"
    call = telemetry.last
    assert call.outcome in (Outcome.ERROR, Outcome.REJECTED)
    assert call.fault.verdict.error_class is error_class
    json.dumps(packet)


@EACH
def test_words_are_for_the_model_and_details_for_engineers(
    error: BaseException, code: str, error_class: ErrorClass
) -> None:
    packet = fuseboard.error_packet(error)
    words = f"{packet['message']} {packet['suggestion']}"
    for name in [cls.__name__ for cls in type(error).__mro__ if cls not in (object, Exception)]:
        assert name not in words
    assert not re.search(r"://|example|/srv|L[1-5]_|_matcher|\b\d{3}\b|Error|Exception", words)
    assert SECRET not in repr(packet)
    assert packet["message"].endswith(".")
    assert packet["message"][0].isupper()
    assert len(str(packet["debug_info"]["detail"])) <= 512


def test_details_are_bounded_and_redacted() -> None:
    packet = fuseboard.error_packet(RuntimeError(f"token={SECRET} " + "x" * 100_000))
    assert SECRET not in repr(packet)
    assert len(repr(packet)) < 2000


def test_what_may_have_taken_effect_is_recoverable_only_where_it_does_no_harm(
    telemetry: Any,
) -> None:
    late = AttemptTimeoutError("work", 5.0)
    careful = answer(late)
    assert careful["recoverable"] is False
    assert "not known whether the request took effect" in careful["suggestion"]
    assert answer(late, policy=Policy(effects="none"))["recoverable"] is True
    keyed = answer(late, policy=Policy(idempotency_key=lambda arguments: "k"))
    assert keyed["recoverable"] is True
    assert fuseboard.error_packet(late, effects="idempotent")["recoverable"] is True
    refused = answer(ConnectionRefusedError())
    assert refused["recoverable"] is True, "nothing was sent"


def test_it_says_when_to_come_back() -> None:
    packet = fuseboard.error_packet(status_error(429, **{"Retry-After": "17"}))
    assert "in about 17 seconds" in packet["suggestion"]
    assert packet["debug_info"]["retry_after_seconds"] == 17.0


class Trip(pydantic.BaseModel):
    city: str
    days: int = pydantic.Field(ge=1, le=14)


@pydantic.validate_call
def plan(city: str, days: int, trip: Trip | None = None) -> str:
    return city


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"city": "Oslo", "days": SECRET}, ["days: Input should be a valid integer"]),
        ({"town": "Oslo"}, ["city: is missing", "days: is missing", "town: is not known"]),
        ({"city": "Oslo", "days": 1, "trip": {"city": "Oslo", "days": 99}},
         ["trip.days: Input should be less than or equal to 14"]),
        ({"city": "Oslo", "days": 1, "trip": SECRET},
         ["trip: should be an object with named fields"]),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named_with_the_reason_and_without_the_value(
    telemetry: Any, arguments: dict[str, Any], said: list[str]
) -> None:
    tool: Any = fuseboard.wrap(plan, name="plan", on_error="packet")
    packet = tool(**arguments)
    assert (packet["error_code"], packet["recoverable"]) == ("invalid_request", True)
    assert all(words in packet["message"] for words in said), packet["message"]
    assert SECRET not in packet["message"]
    assert "Trip" not in packet["message"]
    assert "Correct the request" in packet["suggestion"]


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, ["a: is missing", "c: is missing"]),
        ((1,), {"c": 3, "x": SECRET}, ["x: is not known"]),
        ((1,), {"a": SECRET, "c": 3}, ["a: is given twice"]),
        ((1, 2, SECRET), {"c": 3}, ["there are too many arguments"]),
    ],
)
def test_arguments_that_do_not_fit_the_signature_are_named(
    telemetry: Any, args: tuple[Any, ...], kwargs: dict[str, Any], said: list[str]
) -> None:
    def work(a: int, b: int = 2, *, c: int) -> int:
        return a + b + c

    tool: Any = fuseboard.wrap(work, on_error="packet")
    packet = tool(*args, **kwargs)
    assert packet["message"] == f"The request can't be carried out as it is: {'; '.join(said)}."
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L1_INPUT


def test_a_refused_answer_says_what_is_wrong_with_it(telemetry: Any) -> None:
    error = InvalidResultError(
        "work", SECRET, "returned", "advice", [Problem("price", "is below 0")]
    )
    packet = fuseboard.error_packet(error, effects="none")
    assert packet["message"] == "The tool answered, but its answer is of no use: price: is below 0."
    assert (packet["error_code"], packet["recoverable"]) == ("unusable_answer", True)

    def search() -> list[str]:
        return []

    policy = Policy(validation=Validation(non_empty=True))
    tool: Any = fuseboard.wrap(search, on_error="packet", policy=policy)
    assert tool()["error_code"] == "unusable_answer"


PASSING: list[BaseException] = [
    KeyboardInterrupt(),
    SystemExit(3),
    GeneratorExit(),
    asyncio.CancelledError(),
    AskUserError("Which Oslo?"),
]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_hc_17_control_flow_and_cancellation_always_pass(telemetry: Any, error: Any) -> None:
    with pytest.raises(type(error)) as caught:
        answer(error)
    assert caught.value is error


async def test_hc_04_a_cancelled_task_is_cancelled(telemetry: Any) -> None:
    begun = asyncio.Event()

    @fuseboard.tool(on_error="packet")
    async def waits() -> None:
        begun.set()
        await asyncio.sleep(60)

    task = asyncio.ensure_future(waits())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert telemetry.last.outcome is Outcome.CANCELLED


def test_an_exception_of_a_users_own_interrupt_passes(telemetry: Any) -> None:
    class PauseError(Exception):
        pass

    @fuseboard.classifier
    def pauses(error: BaseException) -> Any:
        return Outcome.INTERRUPTED if isinstance(error, PauseError) else None

    with pytest.raises(PauseError):
        answer(PauseError())
    assert telemetry.last.outcome is Outcome.INTERRUPTED


def test_a_good_answer_passes_unchanged_and_so_does_the_signature(telemetry: Any) -> None:
    def work(city: str, days: int = 1) -> list[str]:
        """Work."""
        return [city]

    tool = fuseboard.wrap(work, on_error="packet")
    assert inspect.signature(tool) == inspect.signature(work)
    assert (tool.__name__, tool.__doc__) == ("work", "Work.")
    value = tool("Oslo")
    assert value == ["Oslo"]

    async def later() -> None: ...

    assert inspect.iscoroutinefunction(fuseboard.wrap(later, on_error="packet"))


def test_retries_and_fallbacks_come_first(telemetry: Any) -> None:
    policy = Policy(retry=Retry(wait_initial=0), effects="none")
    assert answer(ConnectionResetError(), policy=policy)["ok"] is False
    assert len(telemetry.last.attempts) == 3
    assert (
        answer(ConnectionResetError(), policy=Policy(fallback=lambda city="x": "other")) == "other"
    )


@pytest.mark.parametrize("policy", [None, Policy(effects="none")], ids=["observed", "guarded"])
@EACH
def test_an_inner_tools_packet_keeps_its_class_and_is_not_wrapped_again(
    telemetry: Any, error: BaseException, code: str, error_class: ErrorClass, policy: Any
) -> None:
    inner: Any = fuseboard.wrap(raiser(error), name="inner", on_error="packet", policy=policy)
    packets: list[Any] = []

    def work() -> Any:
        packets.append(inner())
        return packets[0]

    outer: Any = fuseboard.wrap(work, name="outer", on_error="packet", policy=policy)
    assert outer() is packets[0]
    inner_call, outer_call = telemetry.calls
    assert outer_call.outcome is Outcome.ERROR
    verdict = outer_call.fault.verdict
    assert verdict.error_class is inner_call.fault.verdict.error_class is error_class
    assert verdict.classifier_id == "error_packet"
    assert outer_call.fault.error_type == code
    assert outer_call.fault.message == packets[0]["message"]


def test_an_exception_through_two_guards_becomes_one_packet(telemetry: Any) -> None:
    inner = fuseboard.wrap(raiser(status_error(503)), name="inner")
    outer: Any = fuseboard.wrap(lambda: inner(), name="outer", on_error="packet")
    packet = outer()
    assert packet["error_code"] == "temporarily_unavailable"
    assert "ok" not in packet["debug_info"]


def test_methods_and_returned_coroutines_answer_in_packets(telemetry: Any) -> None:
    class Kitchen:
        @fuseboard.tool(on_error="packet")
        def cook(self, dish: str) -> str:
            raise TimeoutError

        @fuseboard.tool(on_error="packet")
        @staticmethod
        def serve(dish: str) -> str:
            raise TimeoutError

    kitchen: Any = Kitchen()
    assert kitchen.cook("soup")["ok"] is False
    assert kitchen.serve("soup")["ok"] is False
    assert "self" not in kitchen.cook()["message"]
    assert "dish: is missing" in kitchen.cook()["message"]

    async def later() -> str:
        raise TimeoutError

    tool: Any = fuseboard.wrap(lambda: later(), name="later", on_error="packet")
    assert asyncio.run(tool())["ok"] is False


def test_streams_are_refused_at_decoration() -> None:
    def stream() -> Iterator[int]:
        yield 1

    async def stream_later() -> AsyncIterator[int]:
        yield 1

    for function in (stream, stream_later):
        with pytest.raises(ConfigurationError, match=r"on_error='packet'.*stream"):
            fuseboard.wrap(function, on_error="packet")


def test_other_values_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"wrap\(on_error='ignore'\): must be one of"):
        fuseboard.wrap(len, on_error="ignore")  # type: ignore[call-overload]


def test_where_no_packet_can_be_made_the_exception_is_raised(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry.may_fault = True
    monkeypatch.setattr("fuseboard.calls.packets.packet_of", lambda *args, **kwargs: 1 / 0)
    error = TimeoutError("late")
    with pytest.raises(TimeoutError) as caught:
        answer(error)
    assert caught.value is error
    assert guard.fault_counts() == {("making an error packet", "ZeroDivisionError"): 1}


def test_what_is_no_fault_has_a_packet_too_for_adapters() -> None:
    packet = fuseboard.error_packet(AskUserError("Which Oslo?"))
    assert (list(packet), packet["error_code"]) == (KEYS, "interrupted")
    failed = subprocess.CalledProcessError(2, ["ls", "/secret"])
    assert "ls" not in fuseboard.error_packet(failed)["message"].split()
