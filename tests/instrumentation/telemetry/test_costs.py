"""What attempts cost, and how much of it was spent on results that nobody got."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_collector import as_dict
from prometheus_client import CollectorRegistry

import fuseboard
from fuseboard import (
    AttemptTimeoutError,
    Breaker,
    CircuitOpenError,
    ErrorClass,
    Fallback,
    Feedback,
    InvalidResultError,
    Policy,
    Retry,
    Validation,
)
from fuseboard.policy.registry import BREAKERS

RETRY = Retry(wait_initial=0, semantic=True)
EMPTY = Validation(non_empty=True)


def pay(cost: float) -> None:
    current = fuseboard.current_call()
    assert current is not None
    current.set_cost(cost)


class Spent:
    """What a registry and the spans say was spent."""

    def __init__(self, registry: CollectorRegistry, collector: Any) -> None:
        self._registry = registry
        self._collector = collector

    def counted(self) -> tuple[float, float]:
        """Return (used, wasted)."""
        found = {"true": 0.0, "false": 0.0}
        for family in self._registry.collect():
            for sample in family.samples:
                if sample.name == "fuseboard_tool_cost_total":
                    found[sample.labels["wasted"]] += sample.value
        return round(found["false"], 9), round(found["true"], 9)

    def on_spans(self) -> float:
        """Return what the spans of calls say in all."""
        fuseboard.flush()
        spans = [span for span in self._collector.spans() if span.name.startswith("execute_tool")]
        found = [as_dict(span.attributes).get("fuseboard.cost") for span in spans]
        return round(sum(cost for cost in found if cost is not None), 9)


@pytest.fixture
def spent(start: Any, registry: CollectorRegistry, collector: Any) -> Iterator[Spent]:
    start(region="eu-west")
    yield Spent(registry, collector)
    BREAKERS.clear()


def script(*steps: Any) -> Callable[..., Any]:
    """Return a tool body that pays and then does what the next step says."""
    left = list(steps)

    def work(value: str = "a") -> Any:
        cost, answer = left.pop(0)
        pay(cost)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return work


def call(
    body: Callable[..., Any], expected: type[BaseException] | None = None, **policy: Any
) -> Any:
    tool = fuseboard.wrap(
        body, name="work", policy=Policy(**{"effects": "none", **policy}) if policy else None
    )
    if expected is None:
        return tool()
    with pytest.raises(expected):
        tool()
    return None


LOST = ConnectionResetError()
CASES: dict[str, tuple[tuple[Any, ...], type[BaseException] | None, dict[str, Any], Any]] = {
    "ok": (((1.0, "x"),), None, {}, (1.0, 0.0)),
    "error": (((1.0, KeyError()),), KeyError, {}, (0.0, 1.0)),
    "retried": (((1.0, LOST), (2.0, "x")), None, {"retry": RETRY}, (2.0, 1.0)),
    "exhausted": (((1.0, LOST), (2.0, LOST), (4.0, LOST)), ConnectionResetError,
                  {"retry": RETRY}, (0.0, 7.0)),
    "degraded": (((1.0, LOST),), None, {"fallback": Fallback(value="y")}, (0.0, 1.0)),
    "refused": (((1.0, []),), InvalidResultError, {"validation": EMPTY}, (0.0, 1.0)),
    "refused, then good": (((1.0, []), (2.0, ["x"])), None,
                           {"validation": EMPTY, "retry": RETRY}, (2.0, 1.0)),
    "corrected": (((1.0, []), (2.0, ["x"])), None,
                  {"validation": EMPTY, "feedback": Feedback(lambda mistake: {"value": "b"})},
                  (2.0, 1.0)),
    "partial": (((1.0, {"partial_failures": [{"item": 1}]}),), None, {}, (1.0, 0.0)),
    "packet": (((1.0, {"ok": False}),), None, {}, (0.0, 1.0)),
    "interrupted": (((1.0, fuseboard.AskUserError("?")),), fuseboard.AskUserError, {}, (0.0, 1.0)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_cost_of_a_result_that_nobody_got_is_wasted(spent: Spent, case: str) -> None:
    steps, expected, policy, wanted = CASES[case]
    call(script(*steps), expected, **policy)
    assert spent.counted() == wanted
    assert spent.on_spans() == sum(wanted)


@pytest.mark.parametrize(
    ("fallbacks", "wanted"),
    [
        ([(0.5, "y")], (0.5, 1.0)),
        ([(0.5, KeyError()), (0.25, "y")], (0.25, 1.5)),
        ([(0.5, []), (0.25, ["y"])], (0.25, 1.5)),
    ],
    ids=["served", "one fails", "one is empty"],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_fallbacks_have_costs_of_their_own(
    spent: Spent, fallbacks: list[Any], wanted: Any, is_async: bool
) -> None:
    policy = Policy(validation=EMPTY, fallback=tuple(Fallback(script(step)) for step in fallbacks))
    body = script((1.0, LOST))
    if is_async:

        async def work(value: str = "a") -> Any:
            return body(value)

        asyncio.run(fuseboard.wrap(work, policy=policy)())
    else:
        fuseboard.wrap(body, name="work", policy=policy)()
    assert spent.counted() == wanted
    assert spent.on_spans() == sum(wanted)


def test_a_fallback_of_a_rejected_call_is_all_that_it_costs(spent: Spent) -> None:
    policy = Policy(
        breaker=Breaker(minimum_throughput=2),
        fallback=Fallback(script((4.0, "y")), on=list(ErrorClass)),
    )
    rejected = fuseboard.wrap(
        script((1.0, LOST), (1.0, LOST)), name="work", policy=Policy(breaker=policy.breaker)
    )
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            rejected()
    with pytest.raises(CircuitOpenError):
        rejected()
    assert fuseboard.wrap(script(), name="work", policy=policy)() == "y"
    assert spent.counted() == (4.0, 2.0)


def test_what_a_timed_out_attempt_costs_is_wasted_and_its_late_word_too(spent: Spent) -> None:
    let_go, is_late = threading.Event(), threading.Event()

    def work() -> str:
        current = fuseboard.current_call()
        assert current is not None
        if current.attempt > 1:
            let_go.set()
            assert is_late.wait(10)
            pay(2.0)
            return "x"
        pay(1.0)
        assert let_go.wait(10)
        pay(1.5)  # after its time, before the call has ended
        is_late.set()
        return "late"

    policy = Policy(timeout=2, retry=Retry(wait_initial=0, attempts=2), effects="none")
    assert fuseboard.wrap(work, policy=policy)() == "x"
    assert spent.counted() == (2.0, 1.5)

    def hangs() -> None:
        pay(8.0)
        threading.Event().wait(0.5)

    with pytest.raises(AttemptTimeoutError):
        fuseboard.wrap(hangs, policy=Policy(timeout=0.05))()
    assert spent.counted() == (2.0, 9.5)
    assert spent.on_spans() == 11.5


def test_what_a_cancelled_call_costs_is_wasted(spent: Spent) -> None:
    async def work() -> None:
        pay(1.0)
        await asyncio.sleep(60)

    async def cancel() -> None:
        task = asyncio.ensure_future(fuseboard.wrap(work)())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert spent.counted() == (0.0, 1.0)


@pytest.mark.parametrize(("taken", "wanted"), [(0, (0.0, 0.0)), (1, (1.0, 0.0)), (9, (1.0, 0.0))])
def test_of_a_stream_what_was_taken_was_used(spent: Spent, taken: int, wanted: Any) -> None:
    def stream() -> Iterator[int]:
        pay(1.0)
        yield from range(3)

    items = fuseboard.wrap(stream)()
    for _ in range(taken):
        next(items, None)
    items.close()  # type: ignore[attr-defined]
    assert spent.counted() == wanted


def test_costs_must_be_numbers(spent: Spent) -> None:
    for cost in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="set_cost"):
            call(script((cost, "x")))
    assert spent.counted() == (0.0, 0.0)
