"""An answer that validation refuses is a failure for the caller too, not only on the board."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest
from scripted_tools import BOTH, Script, make_tool

import fuseboard
from fuseboard import (
    Breaker,
    ErrorClass,
    Fallback,
    FuseboardError,
    InvalidResultError,
    Outcome,
    Policy,
    ResultSource,
    Retry,
    Validation,
)
from fuseboard.conventions import Layer, RetryEnd

NON_EMPTY = Policy(validation=Validation(non_empty=True), effects="none")
SEMANTIC = Policy(
    retry=Retry(wait_initial=0, semantic=True),
    validation=Validation(non_empty=True),
    effects="none",
)


def check_refused(call: Any, attempts: int = 1) -> None:
    """Check that a call failed because validation refused what came of its last attempt."""
    assert (call.outcome, call.layer) == (Outcome.ERROR, Layer.VALIDATION)
    verdict = call.fault.verdict
    assert (verdict.error_class, verdict.classifier_id) == (ErrorClass.L5_SEMANTIC, "empty_result")
    assert [attempt.fault.verdict for attempt in call.attempts] == [verdict] * attempts
    assert call.layer_actions == (("validation", "failed"),) * attempts


@BOTH
@pytest.mark.parametrize(
    ("empty", "words"),
    [
        (None, "None"),
        ("", "an empty text"),
        (" \n", "blank text"),
        ([], "an empty list"),
        ({}, "an empty dict"),
        (b"", "an empty bytes"),
    ],
)
def test_refused_value_is_raised(telemetry: Any, empty: Any, words: str, is_async: bool) -> None:
    with pytest.raises(InvalidResultError) as caught:
        make_tool(Script(empty), NON_EMPTY, is_async=is_async)()
    error = caught.value
    assert isinstance(error, FuseboardError)
    assert (error.tool, error.value) == ("scripted", empty)
    assert f"'scripted' returned {words}, which" in str(error)
    assert "add a fallback" in str(error)
    check_refused(telemetry.last)


@BOTH
def test_refused_after_the_retries_are_used_up(telemetry: Any, is_async: bool) -> None:
    script = Script([], [], {})
    with pytest.raises(InvalidResultError) as caught:
        make_tool(script, SEMANTIC, is_async=is_async)()
    assert caught.value.value == {}, "the last answer"
    check_refused(telemetry.last, attempts=3)
    assert telemetry.last.retry_end is RetryEnd.EXHAUSTED


def test_the_last_attempt_says_what_the_caller_gets(telemetry: Any) -> None:
    packet = {"ok": False}
    assert make_tool(Script([], [], packet), SEMANTIC)() is packet, "the tool's own value"
    with pytest.raises(InvalidResultError):
        make_tool(Script(packet, packet, []), SEMANTIC)()
    with pytest.raises(KeyError):
        make_tool(Script([], KeyError("k")), SEMANTIC)()


def test_fallback_replaces_a_refused_value_unless_it_is_empty_itself(telemetry: Any) -> None:
    validation = Validation(non_empty=True)
    served = Policy(validation=validation, fallback=(Fallback(value=[]), Fallback(value=[1])))
    assert make_tool(Script([]), served)() == [1]
    assert telemetry.last.outcome is Outcome.DEGRADED
    with pytest.raises(InvalidResultError):
        make_tool(Script([]), Policy(validation=validation, fallback=Fallback(value=[])))()
    assert telemetry.last.outcome is Outcome.ERROR


def test_breaker_counts_a_refused_value_where_asked(telemetry: Any, clock: Any) -> None:
    breaker = Breaker(minimum_throughput=2, also_counts=[ErrorClass.L5_SEMANTIC])
    tool = make_tool(Script([]), Policy(validation=Validation(non_empty=True), breaker=breaker))
    for _ in range(2):
        with pytest.raises(InvalidResultError):
            tool()
    with pytest.raises(fuseboard.CircuitOpenError) as caught:
        tool()
    assert caught.value.error_class is ErrorClass.L5_SEMANTIC


@pytest.mark.parametrize("value", [{"ok": False}, {"isError": True}, {"error": "x", "status": 404}])
@pytest.mark.parametrize("retry", [None, Retry(wait_initial=0, semantic=True)])
def test_error_values_pass_where_validation_says_nothing(
    telemetry: Any, value: Any, retry: Retry | None
) -> None:
    assert make_tool(Script(value), Policy(retry=retry, effects="none"))() is value
    assert make_tool(Script(value), Policy(retry=retry, validation=Validation()))() is value
    assert [call.outcome for call in telemetry.calls] == [Outcome.ERROR] * 2


def test_refusal_within_another_tool_keeps_its_class(telemetry: Any) -> None:
    inner = make_tool(Script(None), NON_EMPTY)
    with pytest.raises(InvalidResultError):
        fuseboard.wrap(lambda: inner(), name="outer")()
    outer = telemetry.last
    assert outer.fault.verdict.classifier_id == "empty_result"
    assert outer.fault.verdict.error_class is ErrorClass.L5_SEMANTIC
    assert outer.fault.error_type == "fuseboard.errors.InvalidResultError"


# --- Streams ------------------------------------------------------------------------------


def silent() -> Generator[int, None, str]:
    """Deliver nothing and return something."""
    if False:
        yield 0
    return "nothing"


async def silent_later() -> AsyncIterator[int]:
    for item in ():
        yield item


def drain(tool: Callable[[], Any]) -> list[Any]:
    """Read a stream of either kind to its end."""
    stream = tool()
    if not hasattr(stream, "__aiter__"):
        return list(stream)

    async def read() -> list[Any]:
        return [item async for item in stream]

    return asyncio.run(read())


STREAMS = pytest.mark.parametrize(
    "make",
    [silent, silent_later, lambda: silent(), lambda: silent_later()],
    ids=["generator", "async generator", "returned generator", "returned async generator"],
)


@STREAMS
def test_stream_without_items_raises_at_its_end(telemetry: Any, make: Any) -> None:
    with pytest.raises(InvalidResultError, match="'silent' delivered no items") as caught:
        drain(fuseboard.wrap(make, name="silent", policy=NON_EMPTY))
    is_sync = make is silent or type(make()).__name__ == "generator"
    assert caught.value.value == ("nothing" if is_sync else None)
    check_refused(telemetry.last)
    assert telemetry.last.stream_items == 0
    assert "StopIteration" not in "".join(traceback.format_exception(caught.value))


@STREAMS
def test_stream_without_items_is_fine_unless_validation_refuses_it(
    telemetry: Any, make: Any
) -> None:
    assert drain(fuseboard.wrap(make, name="silent", policy=Policy(effects="none"))) == []
    assert telemetry.last.outcome is Outcome.OK


def streams_of(rounds: list[list[int]], *, is_async: bool) -> Callable[[], Any]:
    """Return a stream tool under SEMANTIC that delivers one list after the other."""

    @fuseboard.tool(policy=SEMANTIC)
    def stream() -> Iterator[int]:
        yield from rounds.pop(0)

    @fuseboard.tool(policy=SEMANTIC)
    async def stream_later() -> AsyncIterator[int]:
        for item in rounds.pop(0):
            yield item

    return stream_later if is_async else stream


@BOTH
def test_stream_without_items_is_tried_again(telemetry: Any, is_async: bool) -> None:
    assert drain(streams_of([[], [], [5]], is_async=is_async)) == [5]
    assert (telemetry.last.outcome, len(telemetry.last.attempts)) == (Outcome.OK, 3)
    with pytest.raises(InvalidResultError):
        drain(streams_of([[], [], []], is_async=is_async))
    check_refused(telemetry.last, attempts=3)


@pytest.mark.parametrize("make", [silent, silent_later])
def test_fallback_stands_in_for_a_stream_without_items(telemetry: Any, make: Any) -> None:
    policy = Policy(validation=Validation(non_empty=True), fallback=Fallback(value=[7, 8]))
    assert drain(fuseboard.wrap(make, policy=policy)) == [7, 8]
    call = telemetry.last
    assert (call.outcome, call.result_source) == (Outcome.DEGRADED, ResultSource.DEFAULT)


def test_what_no_fallback_can_stand_in_for_is_advised_otherwise(telemetry: Any) -> None:
    policy = Policy(validation=Validation(non_empty=True), fallback=Fallback(value=[1]))
    with pytest.raises(InvalidResultError, match="write the tool as a generator function"):
        list(fuseboard.wrap(lambda: silent(), name="silent", policy=policy)())


async def test_returned_coroutine_with_nothing_raises(telemetry: Any) -> None:
    async def work() -> list[int]:
        return []

    with pytest.raises(InvalidResultError, match="returned an empty list"):
        await fuseboard.wrap(lambda: work(), name="work", policy=NON_EMPTY)()
    check_refused(telemetry.last)
