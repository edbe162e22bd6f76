"""What validation refuses is a fault for everybody, and says what is wrong without the value."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pydantic
import pytest
from scripted_tools import BOTH, Script, make_tool

import fuseboard
from fuseboard import (
    Breaker,
    CircuitOpenError,
    ConfigurationError,
    ErrorClass,
    Fallback,
    InvalidResultError,
    Outcome,
    Policy,
    Problem,
    Retry,
    Validation,
    guard,
)
from fuseboard.conventions import Layer

SECRET = "hunter2-hunter2"


class Price(pydantic.BaseModel):
    amount: float
    currency: Literal["EUR", "USD"] = "EUR"

    @pydantic.field_validator("amount")
    @classmethod
    def not_too_much(cls, amount: float) -> float:
        if amount > 100:
            raise ValueError(f"{amount} is too much")
        return amount


@dataclass
class Line:
    item: str
    prices: list[Price]


SCHEMA = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1},
        "currency": {"enum": ["EUR", "USD"]},
    },
    "required": ["items"],
    "additionalProperties": False,
    "$defs": {"item": {"type": "object", "required": ["price"], "properties": {
        "price": {"type": "number", "minimum": 0}}}},
}  # fmt: skip


def refusal(validation: Validation, value: Any, *, is_async: bool = False) -> InvalidResultError:
    policy = Policy(validation=validation, effects="none")
    with pytest.raises(InvalidResultError) as caught:
        make_tool(Script(value), policy, is_async=is_async)()
    return caught.value


@BOTH
@pytest.mark.parametrize(
    ("validation", "good", "bad"),
    [
        (Validation(predicate=lambda value: value > 0), 1, -1),
        (Validation(model=Price), {"amount": 3}, {"amount": SECRET}),
        (Validation(model=list[Price]), [{"amount": 3}], [{"amount": 3}, {}]),
        (Validation(model=int), "7", "seven"),
        (Validation(schema=SCHEMA), {"items": [{"price": 1}]}, {"items": [{"price": -1}]}),
    ],
    ids=["predicate", "model", "generic", "scalar", "schema"],
)
def test_refused_value_is_an_error_and_a_good_one_passes_unchanged(
    telemetry: Any, validation: Validation, good: Any, bad: Any, is_async: bool
) -> None:
    policy = Policy(validation=validation, effects="none")
    assert make_tool(Script(good), policy, is_async=is_async)() is good
    assert telemetry.last.outcome is Outcome.OK
    error = refusal(validation, bad, is_async=is_async)
    assert error.value is bad
    assert error.problems
    call = telemetry.last
    assert (call.outcome, call.layer) == (Outcome.ERROR, Layer.VALIDATION)
    verdict = call.fault.verdict
    assert (verdict.error_class, verdict.classifier_id) == (
        ErrorClass.L5_SEMANTIC,
        "broken_contract",
    )
    assert call.layer_actions == (("validation", "failed"),)


@pytest.mark.parametrize(
    ("model", "value", "problems"),
    [
        (Price, {}, [("amount", "is missing")]),
        (
            Price,
            {"amount": SECRET},
            [("amount", "Input should be a valid number, unable to parse string as a number")],
        ),
        (Price, {"amount": 500}, [("amount", "is refused by a check of its own")]),
        (
            Price,
            {"amount": 1, "currency": SECRET},
            [("currency", "Input should be 'EUR' or 'USD'")],
        ),
        (
            Line,
            {"item": "tea", "prices": [{"amount": 1}, {"amount": None}]},
            [("prices[1].amount", "Input should be a valid number")],
        ),
        (pydantic.UUID4, SECRET, [("", "Input should be a valid UUID")]),
        (pydantic.Json, SECRET, [("", "Invalid JSON")]),
    ],
)
def test_problems_of_a_model_name_the_place_and_the_reason(
    telemetry: Any, model: Any, value: Any, problems: list[tuple[str, str]]
) -> None:
    error = refusal(Validation(model=model), value)
    assert [(problem.path, problem.reason) for problem in error.problems] == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ({}, [("", "lacks items")]),
        ({"items": []}, [("items", "has fewer items than 1")]),
        ({"items": "none"}, [("items", "is not of type array")]),
        ({"items": [{}, {"price": SECRET}]},
         [("items[0]", "lacks price"), ("items[1].price", "is not of type number")]),
        ({"items": [{"price": -3}]}, [("items[0].price", "is below 0")]),
        ({"items": [{"price": 1}], "currency": SECRET}, [("currency", "is none of EUR, USD")]),
        ({"items": [{"price": 1}], SECRET: 1}, [("", "has properties that are not allowed")]),
    ],
)  # fmt: skip
def test_problems_of_a_schema_name_the_place_and_the_reason(
    telemetry: Any, value: Any, problems: list[tuple[str, str]]
) -> None:
    error = refusal(Validation(schema=SCHEMA), value)
    assert [(problem.path, problem.reason) for problem in error.problems] == problems


@pytest.mark.parametrize(
    ("validation", "value"),
    [
        (Validation(schema=SCHEMA), {"items": [{"price": SECRET}], "currency": SECRET}),
        (Validation(model=Price), {"amount": SECRET, "currency": SECRET}),
        (Validation(model=dict[str, pydantic.UUID4]), {"a": SECRET}),
        (Validation(predicate=lambda value: False), SECRET),
    ],
    ids=["schema", "model", "uuid", "predicate"],
)
def test_hc_12_the_value_is_in_no_message(
    telemetry: Any, validation: Validation, value: Any
) -> None:
    error = refusal(validation, value)
    assert "hunter" not in str(error)
    assert "hunter" not in "".join(map(str, error.problems))
    assert "hunter" not in telemetry.last.fault.message


def test_a_predicate_may_say_what_is_wrong(telemetry: Any) -> None:
    error = refusal(Validation(predicate=lambda value: "has no city"), {})
    assert error.problems == (Problem("", "has no city"),)
    assert "(has no city)" in str(error)


def test_many_problems_are_bounded(telemetry: Any) -> None:
    error = refusal(Validation(model=list[int]), ["x"] * 1000)
    assert [problem.path for problem in error.problems] == [f"[{number}]" for number in range(8)]
    assert len(refusal(Validation(predicate=lambda value: "x" * 9999), 1).problems[0].reason) == 120


@pytest.mark.parametrize(
    "predicate", [lambda value: value["city"], lambda value: None], ids=["raises", "returns None"]
)
@BOTH
def test_a_predicate_that_decides_nothing_lets_the_answer_pass(
    telemetry: Any, caplog: pytest.LogCaptureFixture, predicate: Any, is_async: bool
) -> None:
    telemetry.may_fault = True
    caplog.set_level(logging.WARNING, "fuseboard")
    policy = Policy(validation=Validation(predicate=predicate))
    assert make_tool(Script({}, {}), policy, is_async=is_async)() == {}
    assert telemetry.last.outcome is Outcome.OK
    faults = guard.fault_counts()
    assert set(faults) <= {("validating a result", "KeyError")}


def test_each_answer_is_checked_once(telemetry: Any) -> None:
    seen: list[int] = []

    def predicate(value: int) -> bool:
        seen.append(value)
        return value > 2

    policy = Policy(
        validation=Validation(predicate=predicate),
        retry=Retry(wait_initial=0, semantic=True),
        effects="none",
    )
    assert make_tool(Script(1, 2, 3), policy)() == 3
    assert seen == [1, 2, 3]
    assert [attempt.fault is None for attempt in telemetry.last.attempts] == [False, False, True]


def test_all_that_is_given_must_hold(telemetry: Any) -> None:
    validation = Validation(
        non_empty=True, model=list[int], schema={"maxItems": 2}, predicate=lambda value: sum(value)
    )
    tool = Policy(validation=validation, effects="none")
    assert make_tool(Script([1, 2]), tool)() == [1, 2]
    assert "an empty list" in str(refusal(validation, []))
    assert "more items than 2" in str(refusal(validation, [1, 2, 3]))
    assert "valid integer" in str(refusal(validation, ["x"]))
    assert "the predicate" in str(refusal(validation, [0]))


def test_one_shot_values_are_not_used_up(telemetry: Any) -> None:
    items = iter([1, 2])
    policy = Policy(validation=Validation(model=list[str]))
    assert list(make_tool(Script(items), policy)()) == [1, 2]


def test_objects_of_a_model_are_their_own_proof(telemetry: Any) -> None:
    price = Price(amount=3)
    assert make_tool(Script(price), Policy(validation=Validation(model=Price)))() is price

    @dataclass
    class Other:
        amount: float

    assert refusal(Validation(model=Price), Other(3.0)).problems


def test_a_tools_own_error_packet_is_not_validated(telemetry: Any) -> None:
    packet = {"ok": False, "error_code": "not_found"}
    assert make_tool(Script(packet), Policy(validation=Validation(schema=SCHEMA)))() is packet
    assert telemetry.last.fault.verdict.classifier_id != "broken_contract"


def test_a_partial_result_must_satisfy_the_contract_too(telemetry: Any) -> None:
    partial = {"sent": 1, "partial_failures": [{"item": "b"}]}
    lenient = Policy(validation=Validation(schema={"required": ["sent"]}))
    assert make_tool(Script(partial), lenient)() is partial
    assert telemetry.last.outcome is Outcome.PARTIAL
    refusal(Validation(schema={"required": ["received"]}), partial)
    assert telemetry.last.outcome is Outcome.ERROR


def test_fallbacks_have_to_satisfy_the_same(telemetry: Any) -> None:
    policy = Policy(
        validation=Validation(model=list[int]),
        fallback=(Fallback(value=["x"]), Fallback(value=[0])),
    )
    assert make_tool(Script("no list"), policy)() == [0]
    assert telemetry.last.outcome is Outcome.DEGRADED
    assert ("fallback", "failed") in telemetry.last.layer_actions


def test_breaker_counts_broken_contracts_where_asked(telemetry: Any, clock: Any) -> None:
    breaker = Breaker(minimum_throughput=2, also_counts=[ErrorClass.L5_SEMANTIC])
    policy = Policy(validation=Validation(model=int), breaker=breaker)
    tool = make_tool(Script("x"), policy)
    for _ in range(2):
        with pytest.raises(InvalidResultError):
            tool()
    with pytest.raises(CircuitOpenError):
        tool()


def test_an_inner_tools_refusal_keeps_its_class_outside(telemetry: Any) -> None:
    inner = fuseboard.wrap(
        lambda: "x", name="inner", policy=Policy(validation=Validation(model=int))
    )
    outer = fuseboard.wrap(lambda: inner(), name="outer")
    with pytest.raises(InvalidResultError):
        outer()
    verdict = telemetry.last.fault.verdict
    assert (verdict.error_class, verdict.classifier_id) == (
        ErrorClass.L5_SEMANTIC,
        "broken_contract",
    )


def test_what_a_returned_coroutine_gives_is_validated(telemetry: Any) -> None:
    async def work() -> str:
        return "x"

    tool = fuseboard.wrap(
        lambda: work(), name="later", policy=Policy(validation=Validation(model=int))
    )
    with pytest.raises(InvalidResultError, match="coroutine function"):
        asyncio.run(tool())


def test_streams_refuse_all_but_non_empty() -> None:
    def stream() -> Iterator[int]:
        yield 1

    async def stream_later() -> AsyncIterator[int]:
        yield 1

    for function in (stream, stream_later):
        fuseboard.wrap(function, policy=Policy(validation=Validation(non_empty=True)))
        with pytest.raises(ConfigurationError, match="only non_empty can be checked"):
            fuseboard.wrap(function, policy=Policy(validation=Validation(model=int)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"non_empty": 1}, "must be a bool"),
        ({"predicate": "x"}, "must be a function of the value"),
        ({"schema": ["x"]}, "must be a dict"),
        ({"schema": {"type": "number or so"}}, "is no valid JSON Schema"),
        ({"model": 3}, "must be a type that pydantic understands"),
    ],
)
def test_mistakes_show_where_the_policy_is_written(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        Validation(**options)
    assert str(caught.value).startswith("Validation(")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "package"), [("schema={}", "jsonschema"), ("model=int", "pydantic")]
)
def test_a_missing_package_is_named_with_its_pip_line(option: str, package: str) -> None:
    script = f"""
import sys
sys.modules[{package!r}] = None
sys.modules["jsonschema.validators"] = None
import fuseboard
fuseboard.Validation(non_empty=True)
try:
    fuseboard.Validation({option})
except fuseboard.ConfigurationError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith(f"Validation({option.partition('=')[0]}="), done.stderr
    assert f"needs the package '{package}'; install it with pip install {package}" in done.stdout


def test_references_are_not_fetched(telemetry: Any) -> None:
    telemetry.may_fault = True
    validation = Validation(schema={"$ref": "http://127.0.0.1:9/schema.json"})
    assert make_tool(Script(1), Policy(validation=validation))() == 1
    assert [where for where, _ in guard.fault_counts()] == ["validating a result"]


def test_settings_compare_and_print_as_they_were_written() -> None:
    written = Validation(model=int, non_empty=True)
    assert written == Validation(model=int, non_empty=True)
    assert repr(written) == (
        "Validation(non_empty=True, predicate=None, model=<class 'int'>, schema=None)"
    )


def test_settings_can_be_copied_and_pickled(telemetry: Any) -> None:
    written = Validation(model=Price, schema={"type": "object"}, non_empty=True)
    for copied in (copy.deepcopy(written), pickle.loads(pickle.dumps(written))):
        assert copied == written
        assert refusal(copied, {"amount": "x"}).problems
