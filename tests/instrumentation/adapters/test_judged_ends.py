"""What only an adapter can judge: it goes through policies, and reaches the caller unchanged."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from tests.instrumentation.conftest import RecordingTelemetry

import fuseboard
from fuseboard.adapters.findings import misfit
from fuseboard.adapters.installing import Installation, Target
from fuseboard.adapters.running import FrameworkCalls
from fuseboard.calls.invocation import Invocation
from fuseboard.calls.judging import JudgedEnd
from fuseboard.calls.packets import words_of
from fuseboard.classification import BINDING
from fuseboard.conventions import ErrorClass, Outcome
from fuseboard.record import Fault

POLICY = fuseboard.Policy(
    retry=fuseboard.Retry(attempts=3), breaker=fuseboard.Breaker(minimum_throughput=2),
    fallback=fuseboard.Fallback(value="served", on=["L3_transient"]), effects="none",
)  # fmt: skip


def run(proceed: Callable[[], Any], *, is_async: bool, policy: Any = None, **options: Any) -> Any:
    calls = FrameworkCalls("instrument_framework", lambda _, packet: words_of(packet))
    calls.configure(policy, **options)
    invocation = Invocation("weather", {"city": "Oslo"})
    if not is_async:
        return calls.run(invocation, proceed)

    async def later() -> Any:
        return proceed()

    return asyncio.run(calls.run_async(invocation, later))


def raising(end: JudgedEnd) -> Callable[[], Any]:
    def proceed() -> Any:
        raise end

    return proceed


both = pytest.mark.parametrize("is_async", [False, True])
policies = pytest.mark.parametrize("policy", [None, POLICY])


@both
@policies
def test_an_exception_is_raised_as_it_was_with_the_adapters_verdict(
    telemetry: RecordingTelemetry, is_async: bool, policy: Any
) -> None:
    cause = OSError("why")
    error = ValueError("words of the framework")
    error.__cause__ = cause
    fault = Fault(BINDING, "refused", "words")
    with pytest.raises(ValueError, match="words of") as caught:
        run(raising(JudgedEnd(fault, error=error)), is_async=is_async, policy=policy)
    assert caught.value is error
    assert (error.__cause__, error.__context__) == (cause, None)
    (call,) = telemetry.calls
    assert (call.outcome, len(call.attempts)) == (Outcome.ERROR, 1)
    assert call.fault == fault


@both
@policies
def test_a_value_may_be_an_interrupt(
    telemetry: RecordingTelemetry, is_async: bool, policy: Any
) -> None:
    value = {"please": "confirm"}
    end = JudgedEnd(Outcome.INTERRUPTED, value=value)
    assert run(raising(end), is_async=is_async, policy=policy) is value
    (call,) = telemetry.calls
    assert (call.outcome, call.fault) == (Outcome.INTERRUPTED, None)
    assert call.attempts[0].cut_by == "interrupted"
    assert not telemetry.transitions


@both
def test_a_value_is_never_replaced_by_a_packet_an_exception_is(
    telemetry: RecordingTelemetry, is_async: bool
) -> None:
    fault = Fault(BINDING, "refused", "words")
    kept = run(raising(JudgedEnd(fault, value="kept")), is_async=is_async, on_error="packet")
    assert kept == "kept"
    end = JudgedEnd(fault, error=ValueError("secret"))
    said = run(raising(end), is_async=is_async, on_error="packet")
    assert "can't be carried out" in said
    assert "secret" not in said


def test_a_type_error_is_the_models_only_where_the_arguments_do_not_fit() -> None:
    def tool(city: str) -> str:
        return city

    error = TypeError("x")
    assert misfit(tool, (), {"city": "Oslo"}, error) is None
    assert misfit(None, (), {}, error) is None
    end = misfit(tool, (), {"town": "Oslo"}, error)
    assert end is not None
    assert end.error is error
    assert isinstance(end.judged, Fault)
    assert end.judged.verdict.error_class is ErrorClass.L1_INPUT


def test_an_unknown_way_of_answering_is_refused() -> None:
    with pytest.raises(fuseboard.ConfigurationError, match=r"instrument_framework\(on_error='say'"):
        FrameworkCalls("instrument_framework").configure(None, "say")


class _Stand:
    """Stands in the place of a method, as other instrumentation's objects do."""

    def __init__(self, function: Any, instance: Any = None) -> None:
        self.__wrapped__ = function
        self._instance = instance

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return _Stand(self.__wrapped__, instance)

    def __call__(self, *args: Any) -> Any:
        assert self._instance is not None, "called without having been bound"
        return self.__wrapped__(self._instance, *args)


def test_what_stands_for_a_method_is_called_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stood, "double", _Stand(Stood.double))
    installation = Installation("instrument_framework")
    heard: list[Any] = []

    def replacement(original: Any, stood: Any, number: int) -> Any:
        heard.append(stood)
        return original(stood, number)

    installation.install([Target(__name__, "Stood.double", replacement)])
    stood = Stood()
    assert stood.double(2) == 4
    assert heard == [stood]
    installation.remove()
    assert stood.double(3) == 6
    assert heard == [stood]


class Stood:
    def double(self, number: int) -> int:
        return 2 * number


def test_an_exception_keeps_what_its_tool_was_handling(telemetry: RecordingTelemetry) -> None:
    def proceed() -> Any:
        try:
            try:
                raise OSError("why")
            except OSError:
                raise ValueError("words of the framework")  # noqa: B904 - not its cause
        except ValueError as error:
            raise JudgedEnd(Fault(BINDING, "invalid_arguments", "no city"), error=error) from error

    caller = KeyError("what the caller is at")
    try:
        raise caller
    except KeyError:
        with pytest.raises(ValueError, match="words") as caught:
            run(proceed, is_async=False)
    assert str(caught.value.__context__) == "why"


@both
def test_an_exception_that_was_passed_on_goes_when_its_caller_lets_go_of_it(
    telemetry: RecordingTelemetry, is_async: bool
) -> None:
    def proceed() -> Any:
        try:
            raise _PauseError
        except _PauseError as error:
            raise JudgedEnd(Outcome.INTERRUPTED, error=error) from error

    calls = FrameworkCalls("instrument_framework", lambda _, packet: words_of(packet))
    calls.configure(None, "packet")

    async def later() -> Any:
        return proceed()

    async def ask() -> weakref.ref[Any]:
        invocation = Invocation("weather")
        try:
            await calls.run_async(invocation, later) if is_async else calls.run(invocation, proceed)
        except _PauseError as error:
            return weakref.ref(error)
        raise AssertionError

    gc.collect()
    gc.disable()
    try:
        left = asyncio.run(ask())
        telemetry.calls.clear()
        assert left() is None
    finally:
        gc.enable()


class _PauseError(Exception):
    """What a framework raises to pause, say."""
