"""HC-09 and HC-10: whatever goes in and comes out of a tool is recorded without harm."""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pydantic
import pytest
from fake_collector import as_dict
from opentelemetry import trace

import fuseboard
from fuseboard import conventions as c
from fuseboard import setup

MEBIBYTE = 2**20
GRPC_LIMIT = 4 * MEBIBYTE


@dataclass
class Parent:
    """Linked in a circle with its children."""

    children: list[Child] = field(default_factory=list)


@dataclass
class Child:
    """Knows its parent."""

    parent: Parent


class BadRepr:
    """Raises when somebody looks at it."""

    def __repr__(self) -> str:
        raise RuntimeError("must not be asked")

    __str__ = __repr__


class Deep:
    """Finds in each attribute another one of its kind."""

    def __getattr__(self, name: str) -> Deep:
        return Deep()


class Model(pydantic.BaseModel):
    """A model."""

    city: str = "Oslo"


def family() -> Parent:
    parent = Parent()
    parent.children = [Child(parent)]
    return parent


def selfish() -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["self"] = found
    return found


AWKWARD = {
    "circle of dataclasses": family,
    "dict that holds itself": selfish,
    "repr that raises": BadRepr,
    "a million rows": lambda: pd.DataFrame({"n": range(1_000_000)}),
    "ten million items": lambda: [0] * 10_000_000,
    "bytes": lambda: b"\xff\x00" * 1000,
    "model": Model,
    "not a number": lambda: float("nan"),
    "infinity": lambda: [float("inf"), float("-inf")],
    "large int": lambda: 2**70,
    "odd keys": lambda: {1: "a", None: "b", (1, 2): "c", 2.5: BadRepr()},
    "endless attributes": Deep,
    "lone surrogate": lambda: {"\ud83e": "\udc00"},
}


@pytest.mark.parametrize("path", ["fast", "sdk"])
@pytest.mark.parametrize("case", AWKWARD)
def test_hc_09_awkward_values_pass_unchanged_and_are_recorded_as_strict_json(
    start: Any, collector: Any, monkeypatch: pytest.MonkeyPatch, case: str, path: str
) -> None:
    if path == "sdk":
        monkeypatch.setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "100")
    start(record_arguments=True, record_results=True)
    value = AWKWARD[case]()

    @fuseboard.tool
    def passes_on(value: object) -> object:
        return value

    began = time.perf_counter()
    assert passes_on(value) is value
    assert time.perf_counter() - began < 2.0, "the caller waited"
    assert setup.flush(20.0)
    (span,) = collector.spans()
    attributes = as_dict(span.attributes)
    for key in (c.GEN_AI_TOOL_CALL_ARGUMENTS, c.GEN_AI_TOOL_CALL_RESULT):
        json.loads(attributes[key], parse_constant=lambda bad: pytest.fail(f"no JSON: {bad}"))
        assert len(attributes[key]) < 20_000
    assert attributes[c.OUTCOME] == "ok"


def refuse_large_requests(collector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a receiver answer 413 to what is larger than gRPC's default limit."""
    take = collector.take

    def take_small(handler: Any, body: bytes) -> None:
        if len(gzip.decompress(body)) > GRPC_LIMIT:
            collector.script.insert(0, 413)
        take(handler, body)

    monkeypatch.setattr(collector, "take", take_small)


def test_hc_10_a_huge_result_is_cut_and_costs_no_neighbour(
    start: Any, collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_large_requests(collector, monkeypatch)
    start(record_results=True, record_arguments=True)

    @fuseboard.tool
    def read(size: int, path: str) -> str:
        return "é" * size

    for number in range(512):
        read(11 * MEBIBYTE if number == 100 else 10, path="p" * (MEBIBYTE if number == 7 else 1))
    assert setup.flush(30.0)
    spans = [as_dict(span.attributes) for span in collector.spans()]
    assert len(spans) == 512
    results = sorted((span[c.GEN_AI_TOOL_CALL_RESULT] for span in spans), key=len)
    assert len(results[-1]) <= 8192
    cut = json.loads(results[-1])
    assert cut["length"] == 11 * MEBIBYTE
    assert cut["start"].endswith("…")
    assert max(len(span[c.GEN_AI_TOOL_CALL_ARGUMENTS]) for span in spans) <= 8192


def test_hc_10_what_the_tool_itself_puts_on_its_span_costs_no_neighbour(
    start: Any, collector: Any, monkeypatch: pytest.MonkeyPatch, registry: Any
) -> None:
    refuse_large_requests(collector, monkeypatch)
    start()

    @fuseboard.tool
    def read(size: int) -> None:
        if size:
            trace.get_current_span().set_attribute("body", "x" * size)

    for number in range(512):
        read(11 * MEBIBYTE if number == 100 else 0)
    setup.flush(30.0)
    lost = registry.get_sample_value(
        "fuseboard_telemetry_dropped_total", {"signal": "spans", "reason": "too_large"}
    )
    assert len(collector.spans()) + lost == 512
    assert lost <= 1


def test_hc_10_huge_messages_are_cut(start: Any, collector: Any) -> None:
    start()

    @fuseboard.tool
    def fails() -> None:
        raise RuntimeError("x" * 11 * MEBIBYTE)

    with pytest.raises(RuntimeError):
        fails()
    assert setup.flush(20.0)
    assert len(collector.spans()) == 2
    assert sum(len(body) for _, body in collector.bodies) < 100_000
