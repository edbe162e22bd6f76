"""Tool loops of one's own: every call of an answer runs under its guard and is replied to."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.instrumentation.conftest import RecordingTelemetry

import fuseboard
from fuseboard import ConfigurationError, ErrorClass, Fallback, Outcome, Policy, Retry
from fuseboard.adapters.anthropic_tools import AnthropicTools
from fuseboard.adapters.openai_tools import OpenAITools
from fuseboard.conventions import Origin
from fuseboard.record import CallRecord

RETRY = Policy(retry=Retry(attempts=3, wait_initial=0), effects="none")


def weather(city: str, days: int = 1) -> dict[str, Any]:
    """Tell the weather."""
    return {"city": city, "days": days, "sky": "clear"}


async def news(topic: str) -> str:
    """Tell the news."""
    await asyncio.sleep(0)
    return f"nothing new of {topic}"


def asks_openai(*calls: tuple[str, Any], shape: str = "chat") -> Any:
    """Return what a model answers that asks for tools, as dicts."""
    items = [
        {
            "id": f"call-{number}",
            "type": "function",
            "function": {"name": name, "arguments": _text(arguments)},
        }
        for number, (name, arguments) in enumerate(calls)
    ]
    if shape == "responses":
        return {
            "output": [{"type": "reasoning", "summary": []}]
            + [
                {"type": "function_call", "call_id": one["id"], "id": "fc", **one["function"]}
                for one in items
            ]
        }
    message = {"role": "assistant", "content": None, "tool_calls": items}
    return {"choices": [{"message": message}]} if shape == "chat" else message


def asks_anthropic(*calls: tuple[str, Any]) -> Any:
    """Return the same of another provider, as objects."""
    text = SimpleNamespace(type="text", text="let me see")
    blocks = [
        SimpleNamespace(type="tool_use", id=f"call-{number}", name=name, input=arguments)
        for number, (name, arguments) in enumerate(calls)
    ]
    return SimpleNamespace(content=[text, *blocks])


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


class Both:
    """The same calls through either provider's adapter."""

    def __init__(self, kind: str, tools: Any, **options: Any) -> None:
        self.is_openai = kind == "openai"
        self.tools: Any = (OpenAITools if self.is_openai else AnthropicTools)(tools, **options)

    def asks(self, *calls: tuple[str, Any]) -> Any:
        return asks_openai(*calls) if self.is_openai else asks_anthropic(*calls)

    def run(self, *calls: tuple[str, Any], **options: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.tools.run(self.asks(*calls), **options)
        return found

    def run_async(self, *calls: tuple[str, Any], **options: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = asyncio.run(
            self.tools.run_async(self.asks(*calls), **options)
        )
        return found


PROVIDERS = pytest.mark.parametrize("kind", ["openai", "anthropic"])


def shown(reply: dict[str, Any]) -> Any:
    return json.loads(reply["content"])


@PROVIDERS
def test_each_call_gets_its_reply_in_order(kind: str, telemetry: RecordingTelemetry) -> None:
    both = Both(kind, [weather])
    first, second = both.run(("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"}))
    assert (shown(first)["city"], shown(second)["city"]) == ("Oslo", "Rome")
    if kind == "openai":
        assert first.keys() == {"role", "tool_call_id", "content"}
        assert (first["role"], second["tool_call_id"]) == ("tool", "call-1")
    else:
        assert first.keys() == {"type", "tool_use_id", "content"}
        assert (first["type"], second["tool_use_id"]) == ("tool_result", "call-1")
    assert [call.call_id for call in telemetry.calls] == ["call-0", "call-1"]
    assert {call.tool.name for call in telemetry.calls} == {"weather"}
    assert {call.outcome for call in telemetry.calls} == {Outcome.OK}


def test_every_shape_of_openais_answers_is_read(telemetry: RecordingTelemetry) -> None:
    tools = OpenAITools([weather])
    asked = ("weather", {"city": "Oslo"})
    for answer in (
        asks_openai(asked),
        asks_openai(asked, shape="message"),
        asks_openai(asked, shape="message")["tool_calls"],
    ):
        (reply,) = tools.run(answer)
        assert (reply["role"], reply["tool_call_id"]) == ("tool", "call-0")
    (reply,) = tools.run(asks_openai(asked, shape="responses"))
    assert reply.keys() == {"type", "call_id", "output"}
    assert (reply["type"], reply["call_id"]) == ("function_call_output", "call-0")
    assert json.loads(reply["output"])["city"] == "Oslo"
    assert len(telemetry.calls) == 4


@PROVIDERS
def test_an_answer_without_calls_needs_no_reply(kind: str) -> None:
    both = Both(kind, [weather])
    assert both.run() == []
    assert both.tools.run({"choices": [{"message": {"content": "done"}}]}) == []


@PROVIDERS
@pytest.mark.parametrize("arguments", ['{"city": ', "[1]", "7", '"Oslo"'])
def test_malformed_arguments_are_the_models_mistake(
    kind: str, arguments: str, telemetry: RecordingTelemetry
) -> None:
    ran: list[str] = []
    (reply,) = Both(kind, {"weather": ran.append}).run(("weather", arguments))
    assert ran == []
    assert is_error(kind, reply)
    assert "JSON object" in shown(reply)["suggestion"]
    (call,) = telemetry.calls
    verdict = verdict_of(call)
    assert (call.tool.name, call.call_id, call.outcome) == ("weather", "call-0", Outcome.ERROR)
    assert (verdict.error_class, verdict.origin) == (ErrorClass.L1_INPUT, Origin.MODEL)
    assert call.attempts == []


@PROVIDERS
@pytest.mark.parametrize("arguments", ["", None])
def test_no_arguments_are_none(kind: str, arguments: Any, telemetry: RecordingTelemetry) -> None:
    def now() -> str:
        return "noon"

    (reply,) = Both(kind, [now]).run(("now", arguments if kind == "anthropic" else ""))
    assert reply["content"] == "noon"
    assert not is_error(kind, reply)


@PROVIDERS
def test_arguments_that_do_not_fit_are_fed_back(kind: str, telemetry: RecordingTelemetry) -> None:
    (reply,) = Both(kind, [weather]).run(("weather", {"town": "Oslo"}))
    assert is_error(kind, reply)
    packet = shown(reply)
    assert (packet["ok"], packet["error_code"], packet["recoverable"]) == (
        False, "invalid_request", True
    )  # fmt: skip
    assert verdict_of(telemetry.last).error_class is ErrorClass.L1_INPUT


@PROVIDERS
def test_hc_49_names_that_the_model_invents_stay_out_of_labels(
    kind: str, telemetry: RecordingTelemetry
) -> None:
    both = Both(kind, [weather])
    for number in range(50):
        (reply,) = both.run((f"wether_{number}", {"city": "Oslo"}))
        assert is_error(kind, reply)
        assert "weather" in shown(reply)["suggestion"]
    assert {call.tool.name for call in telemetry.calls} == {"_other"}
    assert {verdict_of(call).error_class for call in telemetry.calls} == {ErrorClass.L1_INPUT}
    fault = telemetry.last.fault
    assert fault is not None
    assert "wether_49" in fault.message


@PROVIDERS
def test_a_failure_becomes_a_packet_for_the_model(kind: str, telemetry: RecordingTelemetry) -> None:
    def search(query: str) -> str:
        raise ConnectionRefusedError("db.internal:5432")

    (reply,) = Both(kind, [search]).run(("search", {"query": "x"}))
    assert is_error(kind, reply)
    packet = shown(reply)
    assert packet["ok"] is False
    assert packet.keys() == {"ok", "error_code", "recoverable", "message", "suggestion"}
    assert "db.internal" not in reply["content"]
    assert verdict_of(telemetry.last).error_class is ErrorClass.L3_TRANSIENT


@PROVIDERS
@pytest.mark.parametrize("value", [{"error": "no such city"}, {"ok": False}])
def test_an_error_that_is_returned_is_one(
    kind: str, value: Any, telemetry: RecordingTelemetry
) -> None:
    (reply,) = Both(kind, {"search": lambda: value}).run(("search", {}))
    assert is_error(kind, reply, in_words=False)
    assert shown(reply) == value
    assert telemetry.last.outcome is Outcome.ERROR


@PROVIDERS
def test_policies_guard_functions_by_name(kind: str, telemetry: RecordingTelemetry) -> None:
    tries: list[int] = []

    def search() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise TimeoutError
        return "found"

    (reply,) = Both(kind, [search, weather], policy={"search": RETRY}).run(("search", {}))
    assert (reply["content"], len(tries)) == ("found", 3)
    assert len(telemetry.last.attempts) == 3


@PROVIDERS
def test_a_tool_keeps_its_own_name_and_policy(kind: str, telemetry: RecordingTelemetry) -> None:
    @fuseboard.tool(name="find", policy=Policy(fallback=Fallback(value="unknown")))
    def search() -> str:
        raise TimeoutError

    (reply,) = Both(kind, [search]).run(("find", {}))
    assert reply["content"] == "unknown"
    call = telemetry.last
    assert (call.tool.name, call.call_id, call.outcome) == ("find", "call-0", Outcome.DEGRADED)


@PROVIDERS
def test_a_packet_of_the_tools_own_is_an_error(kind: str, telemetry: RecordingTelemetry) -> None:
    @fuseboard.tool(on_error="packet")
    def search() -> str:
        raise TimeoutError("secret.host")

    (reply,) = Both(kind, [search]).run(("search", {}))
    assert is_error(kind, reply)
    assert "debug_info" not in shown(reply)
    assert len(telemetry.calls) == 1


@PROVIDERS
def test_async_tools_run_beside_each_other(kind: str, telemetry: RecordingTelemetry) -> None:
    together = 3
    present = 0
    all_here = asyncio.Event()

    async def meet(name: str) -> str:
        nonlocal present
        present += 1
        if present == together:
            all_here.set()
        await asyncio.wait_for(all_here.wait(), 10)
        return name

    replies = Both(kind, [meet]).run_async(*(("meet", {"name": n}) for n in "abc"))
    assert [reply["content"] for reply in replies] == ["a", "b", "c"]
    assert sorted(str(call.call_id) for call in telemetry.calls) == ["call-0", "call-1", "call-2"]


@PROVIDERS
def test_async_tools_run_in_turn_where_asked(kind: str, telemetry: RecordingTelemetry) -> None:
    running: list[str] = []

    async def alone(name: str) -> str:
        assert not running
        running.append(name)
        await asyncio.sleep(0.001)
        running.remove(name)
        return name

    replies = Both(kind, [alone, weather]).run_async(
        ("alone", {"name": "a"}), ("weather", {"city": "x"}), ("alone", {"name": "b"}),
        at_once=False,
    )  # fmt: skip
    assert [reply["content"] for reply in (replies[0], replies[2])] == ["a", "b"]
    assert {call.outcome for call in telemetry.calls} == {Outcome.OK}


@PROVIDERS
def test_faults_of_async_tools_become_packets(kind: str, telemetry: RecordingTelemetry) -> None:
    async def search() -> str:
        raise TimeoutError

    replies = Both(kind, [search, news]).run_async(
        ("search", {}), ("news", {"topic": "Oslo"}), ("nothing", {}), ("news", "{")
    )
    assert [is_error(kind, one) for one in (replies[0], *replies[2:])] == [True] * 3
    assert replies[1]["content"] == "nothing new of Oslo"
    assert len(telemetry.calls) == 4


@PROVIDERS
def test_sync_tools_run_beside_each_other_in_threads(
    kind: str, telemetry: RecordingTelemetry
) -> None:
    both_here = threading.Barrier(2, timeout=10)

    def meet(name: str) -> str:
        both_here.wait()
        return name

    calls = [("meet", {"name": "a"}), ("meet", {"name": "b"})]
    with fuseboard.session("s-1"):
        replies = Both(kind, [meet]).run(*calls, threads=4)
    assert [reply["content"] for reply in replies] == ["a", "b"]
    assert [call.session for call in telemetry.calls] == ["s-1", "s-1"]
    replies = Both(kind, [meet]).run_async(*calls)
    assert [reply["content"] for reply in replies] == ["a", "b"]


@PROVIDERS
def test_an_async_tool_cannot_be_run_without_a_loop(
    kind: str, telemetry: RecordingTelemetry
) -> None:
    with pytest.raises(ConfigurationError, match=r"'news' has to be awaited; use run_async"):
        Both(kind, [weather, news]).run(("weather", {"city": "x"}), ("news", {"topic": "x"}))
    assert telemetry.calls == [], "before anything has run"


@PROVIDERS
def test_streams_are_answered_as_a_whole(kind: str, telemetry: RecordingTelemetry) -> None:
    def pages() -> Iterator[str]:
        yield "one"
        yield "two"

    async def pages_async() -> AsyncIterator[str]:
        yield "one"
        await asyncio.sleep(0)
        raise TimeoutError

    both = Both(kind, [pages, pages_async])
    (reply,) = both.run(("pages", {}))
    assert shown(reply) == ["one", "two"]
    good, bad = both.run_async(("pages", {}), ("pages_async", {}))
    assert shown(good) == ["one", "two"]
    assert is_error(kind, bad)
    assert [call.call_id for call in telemetry.calls] == ["call-0", "call-0", "call-1"]
    assert telemetry.last.outcome is Outcome.ERROR


@PROVIDERS
@pytest.mark.filterwarnings("ignore:coroutine 'news' was never awaited")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_function_that_returns_a_coroutine(kind: str, telemetry: RecordingTelemetry) -> None:
    both = Both(kind, {"news": lambda topic: news(topic)})
    (reply,) = both.run_async(("news", {"topic": "Oslo"}))
    assert reply["content"] == "nothing new of Oslo"
    with pytest.raises(ConfigurationError, match="use run_async"):
        both.run(("news", {"topic": "Oslo"}))


@PROVIDERS
def test_control_flow_is_raised_after_the_others_have_ended(
    kind: str, telemetry: RecordingTelemetry
) -> None:
    pause = type("GraphInterrupt", (Exception,), {"__module__": "langgraph.errors"})

    async def approve() -> str:
        raise pause

    async def slow() -> str:
        await asyncio.sleep(0.01)
        return "done"

    with pytest.raises(pause):
        Both(kind, [approve, slow]).run_async(("approve", {}), ("slow", {}))
    outcomes = {call.tool.name: call.outcome for call in telemetry.calls}
    assert outcomes == {"approve": Outcome.INTERRUPTED, "slow": Outcome.OK}


@pytest.mark.parametrize("make", [OpenAITools, AnthropicTools])
def test_wrong_tools_and_policies_are_refused(make: Any) -> None:
    name = make.__name__
    with pytest.raises(ConfigurationError, match=rf"{name}\(tools=7\)"):
        make(7)
    with pytest.raises(ConfigurationError, match="is no tool"):
        make({"x": 7})
    with pytest.raises(ConfigurationError, match=r"no tool 'wether'; there are weather"):
        make([weather], policy={"wether": RETRY})
    with pytest.raises(ConfigurationError, match=r"policy=7"):
        make([weather], policy=7)


def test_what_json_does_not_know_is_shown_as_text(telemetry: RecordingTelemetry) -> None:
    import pydantic

    class City(pydantic.BaseModel):
        name: str

    values: dict[str, Any] = {
        "model": City(name="Oslo"), "text": "Ærø", "none": None, "set": {1}, "bytes": b"x",
    }  # fmt: skip
    tools = OpenAITools({name: lambda value=value: value for name, value in values.items()})
    replies = tools.run(asks_openai(*((name, {}) for name in values)))
    assert [reply["content"] for reply in replies] == [
        '{"name": "Oslo"}', "Ærø", "null", '"{1}"', '"b\'x\'"',
    ]  # fmt: skip


def is_error(kind: str, reply: dict[str, Any], in_words: bool = True) -> bool:
    """Tell whether a reply reports an error, in the form of its provider."""
    if kind == "anthropic":
        return reply.get("is_error", False) is True
    assert "is_error" not in reply
    try:
        told = json.loads(reply["content"])
    except ValueError:
        return False
    return not in_words or (isinstance(told, dict) and told.get("ok") is False)


def verdict_of(call: CallRecord) -> Any:
    assert call.fault is not None
    return call.fault.verdict


@pytest.mark.parametrize("make", [OpenAITools, AnthropicTools])
def test_functions_that_names_do_not_tell_apart_are_refused(make: Any) -> None:
    def namesake(city: str) -> str:
        return city

    namesake.__name__ = weather.__name__
    with pytest.raises(ConfigurationError, match=r"same name; give a mapping of names"):
        make([weather, namesake])
    with pytest.raises(ConfigurationError, match=r"without a name; give a mapping of names"):
        make([lambda city: city])
    make({"weather": weather, "other": namesake, "third": lambda city: city})
