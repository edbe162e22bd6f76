"""Loops with the real clients: what they answer is read, what is replied they send."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import openai
from tests.instrumentation.classification.places import Places
from tests.instrumentation.conftest import RecordingTelemetry

from fuseboard import ErrorClass, Outcome
from fuseboard.adapters.anthropic_tools import AnthropicTools
from fuseboard.adapters.openai_tools import OpenAITools

SEEN: list[str] = []


def weather(city: str) -> dict[str, str]:
    """Tell the weather."""
    SEEN.append(city)
    return {"sky": "clear"}


def search(query: str) -> str:
    """Find nothing, because nobody is there."""
    raise ConnectionRefusedError


def chat(*calls: tuple[str, str], content: str | None = None) -> Any:
    asked = [
        {"id": f"call-{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, "refusal": None}
    if asked:
        message["tool_calls"] = asked  # type: ignore[assignment]
    reason = "tool_calls" if asked else "stop"
    choice = {"index": 0, "finish_reason": reason, "message": message, "logprobs": None}
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]
    }  # fmt: skip


def message(*blocks: Any, reason: str = "tool_use") -> Any:
    return {
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": list(blocks),
        "stop_reason": reason, "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def asks(number: int, name: str, arguments: Any) -> Any:
    return {"type": "tool_use", "id": f"toolu-{number}", "name": name, "input": arguments}


CALLS = (("weather", '{"city": "Oslo"}'), ("search", '{"query": "x"}'), ("wether", "{}"),
         ("weather", '{"city"'))  # fmt: skip


def check(telemetry: RecordingTelemetry) -> None:
    calls = telemetry.calls
    assert [call.tool.name for call in calls] == ["weather", "search", "_other", "weather"]
    assert [call.outcome for call in calls] == [Outcome.OK, *[Outcome.ERROR] * 3]
    classes = [call.fault.verdict.error_class for call in calls if call.fault is not None]
    assert classes == [ErrorClass.L3_TRANSIENT, ErrorClass.L1_INPUT, ErrorClass.L1_INPUT]


def test_a_loop_with_openais_client(places: Places, telemetry: RecordingTelemetry) -> None:
    url, told = places.script(chat(*CALLS), chat(content="done"))
    tools = OpenAITools([weather, search])
    messages: list[Any] = [{"role": "user", "content": "?"}]
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
        answer = client.chat.completions.create(model="m", messages=messages)
        messages += [answer.choices[0].message, *tools.run(answer)]
        final = client.chat.completions.create(model="m", messages=messages)
    assert final.choices[0].message.content == "done"
    replies = told[1]["messages"][2:]
    assert [reply["tool_call_id"] for reply in replies] == [f"call-{n}" for n in range(4)]
    assert json.loads(replies[0]["content"]) == {"sky": "clear"}
    assert [json.loads(reply["content"])["ok"] for reply in replies[1:]] == [False] * 3
    check(telemetry)


def test_a_loop_with_openais_async_client(places: Places, telemetry: RecordingTelemetry) -> None:
    url, told = places.script(chat(*CALLS), chat(content="done"))
    tools = OpenAITools([weather, search])

    async def loop() -> None:
        messages: list[Any] = [{"role": "user", "content": "?"}]
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            answer = await client.chat.completions.create(model="m", messages=messages)
            replies = await tools.run_async(answer, at_once=False)
            messages += [answer.choices[0].message, *replies]
            await client.chat.completions.create(model="m", messages=messages)

    asyncio.run(loop())
    assert len(told[1]["messages"]) == 6
    check(telemetry)


def test_a_loop_with_anthropics_client(places: Places, telemetry: RecordingTelemetry) -> None:
    blocks = [
        asks(n, name, json.loads(text) if text.endswith("}") else text)
        for n, (name, text) in enumerate(CALLS)
    ]
    text = {"type": "text", "text": "let me see"}
    url, told = places.script(
        message(text, *blocks), message({"type": "text", "text": "done"}, reason="end_turn")
    )
    tools = AnthropicTools([weather, search])
    messages: list[Any] = [{"role": "user", "content": "?"}]
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        answer = client.messages.create(model="m", max_tokens=9, messages=messages)
        messages += [
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": tools.run(answer)},
        ]
        final = client.messages.create(model="m", max_tokens=9, messages=messages)
    assert final.content[0].text == "done"  # type: ignore[union-attr]
    replies = told[1]["messages"][2]["content"]
    assert [reply["tool_use_id"] for reply in replies] == [f"toolu-{n}" for n in range(4)]
    assert [reply.get("is_error", False) for reply in replies] == [False, True, True, True]
    check(telemetry)
