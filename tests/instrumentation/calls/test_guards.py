"""A fault of ours, of the telemetry or of plugged-in code never reaches the agent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import fuseboard
from fuseboard import ErrorClass, Outcome, Policy, Retry, guard
from fuseboard.calls.manual import MAX_NAMES
from fuseboard.runtime import RUNTIME


class BrokenTelemetry:
    def __getattr__(self, name: str) -> Any:
        def method(*arguments: object) -> None:
            raise RuntimeError(f"{name} is broken")

        return method


@pytest.fixture
def broken(telemetry: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    telemetry.may_fault = True
    monkeypatch.setattr(RUNTIME, "telemetry", BrokenTelemetry())
    return telemetry


@pytest.mark.parametrize(
    "policy", [None, Policy(retry=Retry(), breaker=fuseboard.Breaker(), effects="none")]
)
def test_broken_telemetry_changes_nothing(
    broken: Any, policy: Policy | None, caplog: pytest.LogCaptureFixture
) -> None:
    @fuseboard.tool(policy=policy)
    def add(a: int, b: int) -> int:
        return a + b

    @fuseboard.tool(policy=policy)
    def count() -> Any:
        yield 1
        yield 2

    with caplog.at_level(logging.WARNING, "fuseboard"):
        for _ in range(3):
            assert add(1, b=2) == 3
            assert list(count()) == [1, 2]
        with pytest.raises(TypeError):
            add(1)  # type: ignore[call-arg]
        with fuseboard.call("by_hand") as call:
            call.set_result(1)
    starts = [r for r in caplog.records if "the start of a call" in r.getMessage()]
    assert len(starts) == 1, "once per kind"
    assert "is broken" not in caplog.text, "a fault's own words may hold a secret"
    assert guard.fault_counts()["reporting the start of a call", "RuntimeError"] >= 7


def test_resolver_that_knows_no_region_leaves_the_process_own(telemetry: Any) -> None:
    def read(name: str) -> Callable[[Mapping[str, Any]], str | None]:
        return lambda arguments: arguments.get(name)

    @fuseboard.tool(region=read("region"), upstream=read("host"))
    def search(region: str | None = None, host: str | None = None) -> None: ...

    search()
    assert (telemetry.last.region, telemetry.last.upstream) == (None, None)
    search("eu", host="db")
    assert (telemetry.last.region, telemetry.last.upstream) == ("eu", "db")


def test_broken_resolvers_and_classifiers_change_nothing(telemetry: Any) -> None:
    telemetry.may_fault = True

    @fuseboard.classifier
    def broken(error: BaseException) -> Any:
        raise RuntimeError

    @fuseboard.classifier(on="result")
    def also_broken(value: object) -> Any:
        return "L5"

    @fuseboard.tool(region=lambda arguments: arguments["nowhere"])
    def fails(a: int) -> int:
        if a:
            raise KeyError(a)
        return a

    assert fails(0) == 0
    assert telemetry.last.outcome is Outcome.OK
    assert telemetry.last.region is None
    assert telemetry.last.args_hash is not None
    with pytest.raises(KeyError):
        fails(1)
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L4_PERSISTENT
    assert len(guard.fault_counts()) == 3


def test_call_context_manager(telemetry: Any, clock: Any) -> None:
    with fuseboard.call("search", {"q": "x"}, region="eu", upstream="db", call_id="c1") as call:
        current = fuseboard.current_call()
        assert current is not None
        assert current.idempotency_key == call.idempotency_key
        call.set_cost(0.1)
        clock.move(2)
        call.set_result({"ok": False, "error_code": "sold_out"})
    record = telemetry.last
    assert (record.tool.name, record.region, record.upstream) == ("search", "eu", "db")
    assert (record.outcome, record.duration, record.cost) == (Outcome.ERROR, 2, 0.1)
    assert record.fault.error_type == "sold_out"
    assert record.call_id == "c1"
    assert fuseboard.current_call() is None


async def test_call_context_manager_passes_exceptions_through(telemetry: Any) -> None:
    error = ConnectionResetError()
    with pytest.raises(ConnectionResetError) as caught:
        async with fuseboard.call("search"):
            raise error
    assert caught.value is error
    assert telemetry.last.fault.verdict.error_class is ErrorClass.L3_TRANSIENT
    with pytest.raises(SystemExit), fuseboard.call("search"):
        raise SystemExit(0)
    assert telemetry.last.outcome is Outcome.OK


def test_call_hashes_like_the_decorator(telemetry: Any) -> None:
    @fuseboard.tool
    def search(q: str, limit: int = 5) -> None: ...

    search("x")
    with fuseboard.call("search", {"q": "x"}):
        pass
    assert telemetry.calls[0].args_hash == telemetry.calls[1].args_hash


def test_call_is_made_once_and_used_within(telemetry: Any) -> None:
    call = fuseboard.call("once")
    with pytest.raises(RuntimeError, match="has not begun"):
        call.set_cost(1)
    with call:
        pass
    with pytest.raises(RuntimeError, match="has been made"):
        call.__enter__()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": ""}, "1 to 128"),
        ({"name": ["x"]}, "1 to 128"),
        ({"args": 5}, "call\\(args=5\\)"),
        ({"args": ["q"]}, "a mapping by name"),
        ({"call_id": 7}, "call_id=7"),
        ({"region": 7}, "region=7"),
        ({"ignore_arguments": "q"}, "ignore_arguments='q'"),
    ],
)
def test_call_refuses_wrong_arguments_by_name(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(fuseboard.ConfigurationError, match=words):
        fuseboard.call(**{"name": "search", **arguments})


@pytest.mark.parametrize("ignored", [(), ("session",)])
def test_names_that_a_model_invents_are_not_all_registered(
    telemetry: Any, ignored: tuple[str, ...]
) -> None:
    before = {tool.name for tool in RUNTIME.tools()}
    for n in range(MAX_NAMES + 50):
        with fuseboard.call(f"invented_{n}", ignore_arguments=ignored):
            pass
    new = {tool.name for tool in RUNTIME.tools()} - before
    assert 0 < len(new) <= MAX_NAMES
    assert len(telemetry.calls) == MAX_NAMES + 50, "recorded all the same"


def test_arguments_and_results_are_on_the_record_only_if_asked(
    telemetry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RUNTIME, "record_arguments", True)
    monkeypatch.setattr(RUNTIME, "record_results", True)

    @fuseboard.tool(hash_arguments=False)
    def add(a: int, *rest: int, b: int = 0) -> int:
        return a + b + sum(rest)

    assert add(1, 2, 3, b=4) == 10
    assert telemetry.last.arguments == {"a": 1, "rest": [2, 3], "b": 4}
    assert telemetry.last.result == 10
    assert telemetry.last.args_hash is None


def test_ignored_arguments_do_not_change_the_hash(telemetry: Any) -> None:
    @fuseboard.tool(ignore_arguments=("now",))
    def at(place: str, now: float) -> None: ...

    at("x", 1.0)
    at("x", now=2.0)
    at("y", 2.0)
    first, second, third = (call.args_hash for call in telemetry.calls)
    assert first == second != third


def test_hc_13_one_shot_arguments_are_not_consumed(telemetry: Any) -> None:
    @fuseboard.tool
    def upload(chunks: Any) -> int:
        return sum(len(chunk) for chunk in chunks)

    assert upload(chunk for chunk in ("ab", "c")) == 3


def test_nested_tools_see_their_own_call(telemetry: Any) -> None:
    names: list[str] = []

    def note() -> None:
        current = fuseboard.current_call()
        names.append(current.tool if current else "-")

    @fuseboard.tool
    def inner() -> None:
        note()

    @fuseboard.tool
    def outer() -> None:
        note()
        inner()
        note()

    outer()
    note()
    assert names == ["outer", "inner", "outer", "-"]
    assert [call.tool.name for call in telemetry.calls] == ["inner", "outer"]
