"""Run the tool calls of a model's answer where no framework does: the loop is the user's own.

Each call runs under the guard of its tool; whatever goes wrong becomes an answer for the model.
What is particular to a provider is in :mod:`~fuseboard.adapters.openai_tools` and
:mod:`~fuseboard.adapters.anthropic_tools`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final

from fuseboard.adapters.running import UNKNOWN_TOOL, FrameworkCalls, Policies, is_own_tool
from fuseboard.adapters.tool_replies import Answered, Asked, failed, refused, returned
from fuseboard.calls.invocation import Invocation
from fuseboard.calls.packets import packet_of
from fuseboard.calls.registration import Tool
from fuseboard.calls.wrapping import tool as make_tool
from fuseboard.conventions import ErrorClass, Origin
from fuseboard.errors import ConfigurationError
from fuseboard.policy.config import Policy
from fuseboard.record import TOOL_MARK, Fault, Verdict

Tools = Mapping[str, Callable[..., Any]] | Iterable[Callable[..., Any]]
"""Functions by the names that the model knows them by, or functions that are called so."""

MALFORMED_ARGUMENTS: Final = Verdict(
    ErrorClass.L1_INPUT, "malformed_arguments_matcher", False, origin=Origin.MODEL
)
"""The verdict on arguments that are no JSON object: the model's mistake, and nothing was done."""

_CALLS: Final = FrameworkCalls("tool loop")

MAX_NAMED: Final = 20
"""Tools that the answer to an invented name lists."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """A call that has begun and has to be awaited."""

    invocation: Invocation
    asked: Asked
    function: Callable[..., Any]
    arguments: dict[str, Any]
    work: Any


class ToolLoop:
    """The tools of one loop.

    Args:
        owner: The class that the user knows, for messages.
        tools: The tools. What is decorated with ``fuseboard.tool`` keeps its policy.
        policy: For the others: one policy for all, or a mapping of names to policies.

    Raises:
        ConfigurationError: If the tools or the policies are wrong.
    """

    def __init__(self, owner: str, tools: Tools, policy: Policies = None) -> None:
        self._owner = owner
        named = _named(owner, tools)
        policies = _policies_for(owner, named, policy)
        self._tools = {
            name: _as_tool(name, function, policies.get(name)) for name, function in named.items()
        }

    def run(self, asked: Sequence[Asked], threads: int) -> list[Answered]:
        """Run calls and return their answers in the same order.

        Args:
            asked: The calls.
            threads: How many may run at once; 1 runs them here, one after the other.

        Raises:
            ConfigurationError: If one of them has to be awaited.
            BaseException: What is no fault of a tool: control flow, cancellation.
        """
        for each in asked:
            if inspect.iscoroutinefunction(self._tools.get(each.name)):
                raise ConfigurationError(
                    f"{self._owner}.run: {each.name!r} has to be awaited; use run_async"
                )
        if threads <= 1 or len(asked) <= 1:
            return [self._answer(each) for each in asked]
        with ThreadPoolExecutor(min(threads, len(asked)), "fuseboard-tools") as pool:
            work = [pool.submit(copy_context().run, self._answer, each) for each in asked]
        return [each.result() for each in work]

    async def run_async(self, asked: Sequence[Asked], *, at_once: bool) -> list[Answered]:
        """Do the same and await what has to be awaited; the others run in worker threads."""
        if not at_once:
            return [await self._answer_async(each) for each in asked]
        answers = await asyncio.gather(
            *(self._answer_async(each) for each in asked), return_exceptions=True
        )
        for answer in answers:
            # Not before all have ended: a pause must not leave the others running.
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if isinstance(answer, Answered)]

    def _answer(self, asked: Asked) -> Answered:
        done = self._call(asked)
        if isinstance(done, Answered):
            return done
        if isinstance(done.work, CoroutineType):
            done.work.close()
        raise ConfigurationError(
            f"{self._owner}.run: {asked.name!r} returned something to be awaited; use run_async"
        )

    async def _answer_async(self, asked: Asked) -> Answered:
        if inspect.iscoroutinefunction(self._tools.get(asked.name)):
            done = self._call(asked)
        else:
            done = await asyncio.to_thread(self._call, asked)
        return done if isinstance(done, Answered) else await self._await(done)

    def _call(self, asked: Asked) -> Answered | _Pending:
        """Run a call, or begin one that has to be awaited."""
        invocation, arguments, refusal = self._prepare(asked)
        if refusal is not None:
            return refusal
        function = self._tools[asked.name]
        try:
            with _CALLS.offer(invocation):
                value = function(**arguments)
                if isinstance(value, CoroutineType | AsyncGeneratorType):
                    return _Pending(invocation, asked, function, arguments, value)
                if isinstance(value, GeneratorType):
                    value = list(value)
        except Exception as error:
            return failed(asked, function, arguments, error)
        return returned(asked, value)

    async def _await(self, pending: _Pending) -> Answered:
        work = pending.work
        try:
            with _CALLS.offer(pending.invocation):
                if isinstance(work, AsyncGeneratorType):
                    value: Any = [item async for item in work]
                else:
                    value = await work
        except Exception as error:
            return failed(pending.asked, pending.function, pending.arguments, error)
        return returned(pending.asked, value)

    def _prepare(self, asked: Asked) -> tuple[Invocation, dict[str, Any], Answered | None]:
        """Return what is to be run with which arguments, or the answer if nothing is."""
        function = self._tools.get(asked.name)
        arguments = _read(asked.arguments)
        invocation = Invocation(asked.name, arguments, call_id=asked.call_id)
        if function is None:
            _CALLS.refuse_unknown(invocation)
            return invocation, {}, self._unknown(asked)
        if arguments is None:
            fault = Fault(
                MALFORMED_ARGUMENTS, "malformed_arguments", "the arguments are no JSON object"
            )
            _CALLS.refuse_as(invocation, fault, getattr(function, TOOL_MARK))
            return invocation, {}, refused(asked, packet_of(fault, (), may_repeat=True), _NO_JSON)
        return invocation, arguments, None

    def _unknown(self, asked: Asked) -> Answered:
        fault = Fault(UNKNOWN_TOOL, "unknown_tool", "there is no tool of this name")
        names = ", ".join(list(self._tools)[:MAX_NAMED]) or "none"
        advice = f"There is no tool of this name. The tools are: {names}."
        return refused(asked, packet_of(fault, (), may_repeat=True), advice)


_NO_JSON: Final = "Write the arguments as one JSON object and call the tool again."


def _named(owner: str, tools: object) -> dict[str, Callable[..., Any]]:
    if isinstance(tools, Mapping):
        named = dict(tools)
    elif isinstance(tools, Iterable) and not isinstance(tools, str | bytes):
        named = _by_names_of_their_own(owner, tools)
    else:
        raise ConfigurationError(f"{owner}(tools={tools!r}): must be functions, or a mapping")
    for name, function in named.items():
        if not isinstance(name, str) or not name or not callable(function):
            raise ConfigurationError(f"{owner}(tools=…): {name!r}: {function!r} is no tool")
    return named


def _by_names_of_their_own(
    owner: str, functions: Iterable[Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    named: dict[str, Callable[..., Any]] = {}
    for function in functions:
        name = _name_of(function)
        problem = "a second tool of the same name" if name in named else "without a name"
        if name in named or (callable(function) and name in _NAMELESS):
            raise ConfigurationError(
                f"{owner}(tools=…): {function!r} is {problem}; give a mapping of names to functions"
            )
        named[name] = function
    return named


_NAMELESS: Final = ("", "<lambda>")


def _name_of(function: object) -> str:
    known = getattr(function, TOOL_MARK, None)
    if isinstance(known, Tool):
        return known.info.name
    return str(getattr(function, "__name__", ""))


def _policies_for(owner: str, tools: Mapping[str, Any], policy: Policies) -> dict[str, Policy]:
    if policy is None:
        return {}
    if isinstance(policy, Policy):
        return dict.fromkeys(tools, policy)
    if not isinstance(policy, Mapping):
        raise ConfigurationError(f"{owner}(policy={policy!r}): must be a Policy, or a mapping")
    if unknown := sorted(set(policy) - tools.keys()):
        raise ConfigurationError(
            f"{owner}(policy=…): there is no tool {', '.join(map(repr, unknown))}; there are "
            f"{', '.join(sorted(tools))}"
        )
    return dict(policy)


def _as_tool(name: str, function: Callable[..., Any], policy: Policy | None) -> Callable[..., Any]:
    if not is_own_tool(function):
        made: Callable[..., Any] = make_tool(name=name, policy=policy)(function)
        is_own_tool(made)
        return made
    return function


def _read(arguments: object) -> dict[str, Any] | None:
    """Return the arguments by name; None where they are no object."""
    if isinstance(arguments, str | bytes):
        # A call without arguments comes as an empty text from some servers.
        if not arguments.strip():
            return {}
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return None
    if arguments is None:
        return {}
    return dict(arguments) if isinstance(arguments, Mapping) else None


def part_of(holder: object, *names: str) -> Any:
    """Return a part of an answer, an object of the client's or a dict; None where it has none.

    Args:
        holder: The object.
        names: Where to look, first wins.
    """
    for name in names:
        found = holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)
        if found is not None:
            return found
    return None
