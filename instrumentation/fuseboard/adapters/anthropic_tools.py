"""Tool calls of Anthropic's answers, for loops of one's own.

    tools = AnthropicTools([search, book])
    answer = client.messages.create(model=..., messages=messages, tools=schemas, max_tokens=...)
    messages += [
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": tools.run(answer)},
    ]

No client is imported: answers are the client's objects or dicts of the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fuseboard.adapters.running import Policies
from fuseboard.adapters.tool_loops import ToolLoop, Tools, part_of
from fuseboard.adapters.tool_replies import Answered, Asked

_OWNER: Final = "AnthropicTools"


class AnthropicTools:
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
        """Run every tool call of an answer and return the blocks that reply to them.

        Args:
            answer: A ``Message``, or a list of content blocks.
            threads: How many calls may run at once, each in a thread of its own; 1 runs them
                here, one after the other.

        Returns:
            One ``tool_result`` block per call, in their order, for one message of the user's.
            What failed has ``is_error`` and an error packet in it.

        Raises:
            ConfigurationError: If a tool has to be awaited.
        """
        return [_block(each) for each in self._loop.run(_asked_in(answer), threads)]

    async def run_async(self, answer: Any, *, at_once: bool = True) -> list[dict[str, Any]]:
        """Do the same for tools that have to be awaited; the others run in worker threads.

        Args:
            answer: As for :meth:`run`.
            at_once: Whether the calls of one answer run beside each other.
        """
        answers = await self._loop.run_async(_asked_in(answer), at_once=at_once)
        return [_block(each) for each in answers]


def _asked_in(answer: Any) -> list[Asked]:
    blocks = answer if isinstance(answer, Sequence) else part_of(answer, "content") or ()
    return [
        Asked(
            str(part_of(block, "name") or ""),
            part_of(block, "input"),
            str(part_of(block, "id") or ""),
        )
        for block in blocks
        if part_of(block, "type") == "tool_use"
    ]


def _block(answered: Answered) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": answered.asked.call_id,
        "content": answered.text,
    }
    if answered.is_error:
        block["is_error"] = True
    return block
