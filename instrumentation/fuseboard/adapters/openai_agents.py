"""OpenAI Agents SDK: every function tool, agents used as tools and MCP tools among them.

The SDK parses the model's arguments, runs the function, and turns an exception into words for the
model (``failure_error_function``). Policies act inside of that, so that they see the exception
itself; the words, guardrails and the SDK's own spans see one run however many attempts there were.
Handoffs are no tool calls.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import re
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final

from fuseboard.adapters.installing import Installation, Target
from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.running import FrameworkCalls, OnError, Policies, is_own_tool
from fuseboard.calls.invocation import Invocation
from fuseboard.calls.judging import JudgedEnd
from fuseboard.calls.packets import ErrorPacket, words_of
from fuseboard.classification import BINDING
from fuseboard.classification.inspecting import message_of, qualified_name
from fuseboard.classification.sdk_errors import ATTEMPT_TIMEOUT
from fuseboard.record import Fault

PACKAGE: Final = Package("openai-agents", extra="openai-agents", oldest="0.11.1", below="0.25")

_OWNER: Final = "instrument_openai_agents"


def _answer(invocation: Invocation, packet: ErrorPacket) -> Any:  # noqa: ARG001 - as it is called
    return words_of(packet)


_CALLS: Final = FrameworkCalls(_OWNER, _answer)
_INSTALLATION: Final = Installation(_OWNER)
_BAD_ARGUMENTS: Final = "Invalid JSON input for tool"
_NOT_FOUND: Final = re.compile(r"Tool (.+) not found in agent ")
# The task that a time limit of the SDK's has cancelled must not begin another attempt.
_TIMED_OUT: Final = replace(ATTEMPT_TIMEOUT, retryable=False)
# When the SDK began to run the tool, in seconds of the event loop's clock.
_ENTERED: Final[ContextVar[float | None]] = ContextVar(
    "fuseboard_openai_agents_entered", default=None
)


def instrument_openai_agents(policy: Policies = None, *, on_error: OnError = "raise") -> None:
    """Record every function tool that the OpenAI Agents SDK runs, and guard it by policy.

    A second call changes the policies and wraps nothing again.

    Args:
        policy: One policy for all tools, or a mapping of tools' names to policies.
        on_error: ``raise`` (the default), or ``packet``: answer a fault with the words of an
            :class:`fuseboard.ErrorPacket`, in place of those of ``failure_error_function``.

    Raises:
        ConfigurationError: If openai-agents is missing or too old, or an argument is wrong.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    _CALLS.configure(policy, on_error)
    _INSTALLATION.install(
        [
            Target("agents.tool", "_FailureHandlingFunctionToolInvoker.__call__", _invoke),
            Target("agents.run_internal.turn_resolution", "process_model_response", _process),
            *_entrances(),
        ]
    )


def uninstrument_openai_agents() -> None:
    """Let the OpenAI Agents SDK run its tools as before.

    Since 0.1.
    """
    _INSTALLATION.remove()


def _entrances() -> list[Target]:
    """Return the functions that run a tool, under each name that another module has for them."""
    import agents.run_internal.tool_execution as execution
    import agents.tool as tool

    name = "_invoke_function_tool_with_metadata"
    if not hasattr(tool, name):
        name = "invoke_function_tool"
    return [
        Target(module.__name__, name, _enter)
        for module in (tool, execution)
        if hasattr(module, name)
    ]


# --- Tools made of functions --------------------------------------------------------------------


async def _invoke(original: Any, invoker: Any, context: Any, text: str) -> Any:
    tool = invoker._function_tool
    if tool is None or _CALLS.is_recorded(tool.name):
        return await original(invoker, context, text)
    invocation = _invocation(tool, context, text)
    run = invoker._invoke_tool_impl

    if is_own_tool(_function_of(run)):
        with _CALLS.offer(invocation):
            return _CALLS.in_form(invocation, await original(invoker, context, text))

    async def observed(context: Any, text: str) -> Any:
        return await _CALLS.run_async(
            invocation, lambda: _in_time(tool, lambda: run(context, text))
        )

    # The SDK turns what is raised into words, by a copy that runs the function as a call.
    followed = copy.copy(invoker)
    followed._invoke_tool_impl = observed
    return await original(followed, context, text)


async def _in_time(tool: Any, run: Callable[[], Awaitable[Any]]) -> Any:
    """Run a tool; tell arguments that the SDK refuses and its time limit from other faults."""
    try:
        return await run()
    except asyncio.CancelledError as error:
        limit = getattr(tool, "timeout_seconds", None)
        entered = _ENTERED.get()
        if limit is None or entered is None or _seconds() - entered < limit:
            raise
        text = f"{tool.name!r} did not answer within the SDK's limit of {limit:g} s"
        fault = Fault(_TIMED_OUT, "agents.exceptions.ToolTimeoutError", text)
        raise JudgedEnd(fault, error=error) from error
    except Exception as error:
        if type(error).__name__ != "ModelBehaviorError" or _BAD_ARGUMENTS not in str(error):
            raise
        fault = Fault(BINDING, qualified_name(type(error)), message_of(error))
        raise JudgedEnd(fault, error=error) from error


def _seconds() -> float:
    """Return the time by the clock that the SDK's limits go by."""
    return asyncio.get_running_loop().time()


def _function_of(run: Any) -> Any:
    """Return the function that was made a tool."""
    code = getattr(run, "__code__", None)
    names = code.co_freevars if code is not None else ()
    if "the_func" not in names:
        return None
    return run.__closure__[names.index("the_func")].cell_contents


# --- Tools with a function of the user's own for all of it --------------------------------------


async def _enter(original: Any, *, function_tool: Any, context: Any, arguments: str) -> Any:
    # Before the SDK's limit begins to run, which holds for all attempts together.
    token = _ENTERED.set(_seconds())
    try:
        observed = _observed(function_tool, context)
        return await original(function_tool=observed, context=context, arguments=arguments)
    finally:
        _ENTERED.reset(token)


def _observed(tool: Any, context: Any) -> Any:
    """Return a tool whose function runs as a call, unless that is recorded further inside."""
    own = tool.on_invoke_tool
    if type(own).__name__ == "_FailureHandlingFunctionToolInvoker":
        return tool

    # With its annotations: the SDK looks at them for what context to pass.
    @functools.wraps(own)
    async def invoke(narrowed: Any, text: str) -> Any:
        async def proceed() -> Any:
            return await _in_time(tool, lambda: own(narrowed, text))

        if _CALLS.is_recorded(tool.name):
            return await own(narrowed, text)
        invocation = _invocation(tool, context, text)
        if is_own_tool(own):
            with _CALLS.offer(invocation):
                return _CALLS.in_form(invocation, await own(narrowed, text))
        return await _CALLS.run_async(invocation, proceed)

    # Not by copy.copy, with which the SDK checks a tool's schema again.
    observed = object.__new__(type(tool))
    observed.__dict__.update(tool.__dict__, on_invoke_tool=invoke)
    return observed


# --- Names that no tool has ---------------------------------------------------------------------


def _process(original: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        processed = original(*args, **kwargs)
    except Exception as error:
        found = _NOT_FOUND.match(str(error))
        if found is not None:
            _CALLS.refuse_unknown(_unknown(found.group(1), kwargs))
        raise
    for missing in getattr(processed, "function_tools_not_found", ()):
        call = missing.tool_call
        arguments = _arguments(call.arguments)
        _CALLS.refuse_unknown(Invocation(call.name, arguments, call_id=call.call_id))
    return processed


def _unknown(name: str, options: dict[str, Any]) -> Invocation:
    output = getattr(options.get("response"), "output", None) or []
    call = next((one for one in output if getattr(one, "name", None) == name), None)
    arguments = _arguments(getattr(call, "arguments", None))
    agent = getattr(options.get("agent"), "name", None)
    return Invocation(name, arguments, call_id=getattr(call, "call_id", None), agent=agent)


# --- What the SDK says of a call ----------------------------------------------------------------


def _invocation(tool: Any, context: Any, text: str) -> Invocation:
    from agents.tracing import get_current_trace

    return Invocation(
        tool.name,
        _arguments(text),
        call_id=getattr(context, "tool_call_id", None),
        session=getattr(get_current_trace(), "group_id", None),
        agent=getattr(getattr(context, "agent", None), "name", None),
    )


def _arguments(text: Any) -> dict[str, Any]:
    """Return the model's arguments, which may be no JSON at all."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"input": text}
