"""Tool calls of OpenAI's answers, for loops of one's own: Chat Completions and Responses.

    tools = OpenAITools([search, book])
    answer = client.chat.completions.create(model=..., messages=messages, tools=schemas)
    messages += [answer.choices[0].message, *tools.run(answer)]

No client is imported: answers are the client's objects or dicts of the same shape, so servers
that speak the same protocol work as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fuseboard.adapters.running import Policies
from fuseboard.adapters.tool_loops import ToolLoop, Tools, part_of
from fuseboard.adapters.tool_replies import Answered, Asked

_OWNER: Final = "OpenAITools"
_FUNCTION_CALL: Final = "function_call"


class OpenAITools:
    """Tools that answer the tool calls of a model.

    Args:
        tools: Functions, or a mapping of names to functions. Those that are decorated with
            ``fuseboard.tool`` keep their policy; the others become tools.
        policy: For the others: one policy for all, or a mapping of names to policies.

    Raises:
        ConfigurationError: If the tools or the policies are wrong.

    Since 0.1.
    """

    def __init__(self, tools: Tools, *, policy: Policies = None) -> None:
        self._loop = ToolLoop(_OWNER, tools, policy)

    def run(self, answer: Any, *, threads: int = 1) -> list[dict[str, Any]]:
        """Run every tool call of an answer and return the messages that reply to them.

        Args:
            answer: A ``ChatCompletion``, its message, a ``Response``, or a list of tool calls.
            threads: How many calls may run at once, each in a thread of its own; 1 runs them
                here, one after the other.

        Returns:
            One message per call, in their order: ``role: tool`` for Chat Completions,
            ``function_call_output`` for Responses. What failed is an error packet in it.

        Raises:
            ConfigurationError: If a tool has to be awaited.
        """
        calls = _calls_of(answer)
        answers = self._loop.run([_asked(call) for call in calls], threads)
        return [_message(call, each) for call, each in zip(calls, answers, strict=True)]

    async def run_async(self, answer: Any, *, at_once: bool = True) -> list[dict[str, Any]]:
        """Do the same for tools that have to be awaited; the others run in worker threads.

        Args:
            answer: As for :meth:`run`.
            at_once: Whether the calls of one answer run beside each other.
        """
        calls = _calls_of(answer)
        answers = await self._loop.run_async([_asked(call) for call in calls], at_once=at_once)
        return [_message(call, each) for call, each in zip(calls, answers, strict=True)]


def _calls_of(answer: Any) -> list[Any]:
    if isinstance(answer, Sequence):
        return [call for call in answer if _is_call(call)]
    choices = part_of(answer, "choices")
    if choices:
        answer = part_of(choices[0], "message")
    return [call for call in part_of(answer, "tool_calls", "output") or () if _is_call(call)]


def _is_call(item: Any) -> bool:
    # The output of Responses has messages and reasoning beside the calls.
    return part_of(item, "function") is not None or part_of(item, "type") == _FUNCTION_CALL


def _asked(call: Any) -> Asked:
    function = part_of(call, "function") or call
    call_id = part_of(call, "call_id", "id")
    name, arguments = part_of(function, "name"), part_of(function, "arguments")
    return Asked(str(name or ""), arguments, str(call_id or ""))


def _message(call: Any, answered: Answered) -> dict[str, Any]:
    asked = answered.asked
    if part_of(call, "type") == _FUNCTION_CALL:
        return {
            "type": "function_call_output",
            "call_id": asked.call_id,
            "output": answered.text,
        }
    return {"role": "tool", "tool_call_id": asked.call_id, "content": answered.text}
