"""What a user's type checker sees; checked with ``mypy --strict`` by test_typing.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import assert_type, overload

import fuseboard
from fuseboard import (
    Breaker,
    ErrorClass,
    ErrorPacket,
    Fallback,
    Feedback,
    Limit,
    Mistake,
    Pending,
    Policy,
    Poll,
    Retry,
    Validation,
    Verdict,
    testing,
)


@fuseboard.tool
def bare(city: str, days: int = 1) -> list[float]:
    return [0.0] * days


@fuseboard.tool(
    policy=Policy(
        retry=Retry(attempts=4),
        breaker=Breaker(scope="call"),
        timeout=5,
        budget=20.0,
        fallback=(Fallback(bare), Fallback(value=[])),
        validation=Validation(non_empty=True),
        effects="none",
    ),
    region=lambda arguments: str(arguments["region"]),
    upstream="api.example.org",
    regions=("us-east", "eu-west"),
)
async def guarded(city: str, *, region: str) -> dict[str, float]:
    return {city: 1.0}


@fuseboard.tool(name="stream")
def stream(n: int) -> Iterator[int]:
    yield from range(n)


@fuseboard.tool
async def stream_later(n: int) -> AsyncIterator[str]:
    yield str(n)


@fuseboard.tool(on_error="packet", name="answering")
def answering(city: str) -> list[str]:
    return [city]


@fuseboard.tool(on_error="packet")
async def answering_later(city: str, *, days: int) -> int:
    return days


@fuseboard.tool(on_error="raise", name="raising")
def raising(city: str) -> str:
    return city


def correct(mistake: Mistake) -> Mapping[str, object] | None:
    return {**mistake.arguments, "city": mistake.message}


async def correct_later(mistake: Mistake) -> Mapping[str, object] | None:
    return None


async def check(ticket: str) -> str | Pending:
    return Pending(progress=0.5)


@fuseboard.tool(
    policy=Policy(
        feedback=Feedback(correct_later, corrections=1),
        poll=Poll(check, interval=0.5),
        validation=Validation(predicate=lambda value: bool(value), schema={"type": "string"}),
    )
)
async def submitted(city: str) -> str:
    return city


@fuseboard.tool(policy=Policy(feedback=Feedback(correct)))
def corrected(city: str) -> str:
    return city


class Kitchen:
    @fuseboard.tool
    def instance(self, a: int) -> int:
        return a

    @fuseboard.tool
    @staticmethod
    def static(a: int) -> int:
        return a

    @fuseboard.tool
    async def later(self, a: int) -> int:
        return a

    @classmethod
    @fuseboard.tool
    def of_class(cls, a: int) -> int:
        return a


@overload
def either(a: int) -> int: ...
@overload
def either(a: str) -> str: ...
@fuseboard.tool
def either(a: int | str) -> int | str:
    return a


@fuseboard.classifier
def house(error: BaseException) -> Verdict | None:
    return None


@fuseboard.classifier(on="result")
def stale(value: object) -> ErrorClass | None:
    return None


def tell(progress: fuseboard.Progress) -> None:
    assert_type(progress.seconds, float)


def limited() -> Policy:
    return Policy(
        limit=Limit(concurrency=20, rate=30, burst=50),
        breaker=Breaker(slow_call_seconds=5, key=lambda arguments: str(arguments["host"])),
    )


async def use() -> None:
    assert_type(bare("Oslo", days=2), list[float])
    assert_type(await guarded("Oslo", region="eu-west"), dict[str, float])
    assert_type(stream(3), Iterator[int])
    assert_type(stream_later(3), AsyncIterator[str])
    assert_type(Kitchen().instance(1), int)
    assert_type(Kitchen.static(1), int)
    assert_type(Kitchen.of_class(1), int)
    assert_type(fuseboard.wrap(bare, name="other")("x"), list[float])
    assert_type(answering("x"), list[str] | ErrorPacket)
    assert_type(await answering_later("x", days=3), int | ErrorPacket)
    assert_type(raising("x"), str)
    assert_type(fuseboard.wrap(raising, name="r", on_error="packet")("x"), str | ErrorPacket)
    assert_type(await submitted("x"), str)
    assert_type(corrected("x"), str)
    assert_type(fuseboard.reflection_hint({}), str | None)
    packet = fuseboard.error_packet(ValueError("x"), effects="none")
    assert_type(packet["recoverable"], bool)
    with fuseboard.call("search", {"q": "x"}) as call:
        call.set_result(1)
        assert_type(call.idempotency_key, str)
    budget = fuseboard.Budget(retries=5, cost=1)
    async with fuseboard.session("s1", budget=budget, on_progress=tell) as session:
        assert_type(session.spent, fuseboard.Spent)
        with session.step(timeout=10) as turn:
            assert_type(turn.step, str | None)
    for status in fuseboard.breakers():
        assert_type(fuseboard.breaker(status.name).state, fuseboard.BreakerState)
    current = fuseboard.current_call()
    if current is not None:
        assert_type(current.attempt, int)

    with fuseboard.session("s-1", agent="planner") as run:
        assert_type(run, fuseboard.session)
    assert_type(fuseboard.reload(), list[str])
    assert_type(fuseboard.configure("bare", None), None)
    fuseboard.configure("bare", Policy(timeout=3))
    fuseboard.configure("bare")
    fuseboard.init("agent", config=Path("fuseboard.toml"), log_calls="all")
    with testing.capture(clock=testing.FakeClock(), uniform=max) as calls:
        assert_type(calls, testing.CapturedCalls)
        assert_type(calls[0], testing.CapturedCall)
        assert_type(calls.one(tool="bare").attempts, tuple[testing.CapturedAttempt, ...])
    with testing.forced_faults("bare", [ValueError, testing.Delay(3), testing.PASS]) as faults:
        assert_type(faults.used, int)

    fuseboard.configure("bare", "fast")  # type: ignore[arg-type]
    fuseboard.init(log_calls="some")  # type: ignore[arg-type]
    fuseboard.init(config=3)  # type: ignore[arg-type]
    testing.capture(clock=3)  # type: ignore[arg-type]
    calls[0].outcome = "ok"  # type: ignore[misc]
    Kitchen().instance("x")  # type: ignore[arg-type]
    Kitchen.static()  # type: ignore[call-arg]
    Kitchen.of_class(b=1)  # type: ignore[call-arg]
    assert_type(await Kitchen().later(1), int)
    Kitchen().later("x")  # type: ignore[arg-type, unused-coroutine]
    assert_type(either(1), int)
    assert_type(either("x"), str)
    either(None)  # type: ignore[call-overload]
    assert_type(fuseboard.wrap(partial(bare, days=2), name="p")("x"), list[float])
    bare(7)  # type: ignore[arg-type]
    bare()  # type: ignore[call-arg]
    await guarded("Oslo")  # type: ignore[call-arg]
    fuseboard.tool(retries=3)  # type: ignore[call-overload]
    answering(7)  # type: ignore[arg-type]
    fuseboard.tool(on_error="nothing")  # type: ignore[call-overload]
    Retry(attempts="3")  # type: ignore[arg-type]
    Limit(20)  # type: ignore[call-arg]
    fuseboard.session("s1", budget=5)  # type: ignore[arg-type]
    fuseboard.Repeats(action="stop")  # type: ignore[arg-type]
    Policy(effects="some")  # type: ignore[arg-type]
