"""Pydantic AI: every tool that an agent's tool manager runs, whichever toolset it comes from.

Pydantic AI checks the arguments, then runs its hooks (its own instrumentation is one), and inside
of them the toolset. Policies act on the toolset's part, so that they see what the tool itself
raised and hooks see one run however many attempts there were. ``ModelRetry`` asks the model to
try again: that is control flow, no fault. Output functions are no tools.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fuseboard.adapters.installing import Installation, Target
from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.running import FrameworkCalls, OnError, Policies, is_own_tool
from fuseboard.calls.invocation import Invocation
from fuseboard.calls.judging import JudgedEnd
from fuseboard.calls.packets import ErrorPacket, words_of
from fuseboard.classification import judge_exception
from fuseboard.runtime import RUNTIME

PACKAGE: Final = Package("pydantic-ai-slim", extra="pydantic-ai", oldest="2.0", below="3")

_OWNER: Final = "instrument_pydantic_ai"


def _answer(invocation: Invocation, packet: ErrorPacket) -> Any:  # noqa: ARG001 - as it is called
    from pydantic_ai import exceptions

    failed = getattr(exceptions, "ToolFailed", None)  # came after 2.0
    if failed is None:
        return packet
    raise failed(words_of(packet))


_CALLS: Final = FrameworkCalls(_OWNER, _answer)
_INSTALLATION: Final = Installation(_OWNER)
_MODULE: Final = "pydantic_ai.tool_manager"


def instrument_pydantic_ai(policy: Policies = None, *, on_error: OnError = "raise") -> None:
    """Record every tool call that Pydantic AI makes, and guard it by policy.

    A second call changes the policies and wraps nothing again.

    Args:
        policy: One policy for all tools, or a mapping of tools' names to policies.
        on_error: ``raise`` (the default), or ``packet``: answer a fault with an
            :class:`fuseboard.ErrorPacket`, as a ``ToolFailed`` where Pydantic AI has it.

    Raises:
        ConfigurationError: If pydantic-ai is missing or too old, or an argument is wrong.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    _CALLS.configure(policy, on_error)
    _INSTALLATION.install(
        [
            Target(_MODULE, "ToolManager.validate_tool_call", _validate),
            Target(_MODULE, "ToolManager._raw_execute", _execute),
        ]
    )


def uninstrument_pydantic_ai() -> None:
    """Let Pydantic AI run its tools as before.

    Since 0.1.
    """
    _INSTALLATION.remove()


# --- Arguments that Pydantic AI refuses, and names that no tool has -----------------------------


async def _validate(original: Any, manager: Any, call: Any, **options: Any) -> Any:
    try:
        validated = await original(manager, call, **options)
    except Exception as error:
        # The last of the retries that the framework allows ends the run; its cause says why.
        _refuse(manager, call, error.__cause__ or error)
        raise
    refusal = getattr(validated, "deferral", None) or validated.validation_error
    if refusal is not None:
        _refuse(manager, call, refusal)
    return validated


def _refuse(manager: Any, call: Any, error: BaseException) -> None:
    invocation = _invocation(call, manager.ctx)
    known = (manager.tools or {}).get(call.tool_name)
    if known is None:
        _CALLS.refuse_unknown(invocation)
    elif known.tool_def.kind == "output":
        return
    elif type(error).__name__ in _DEFERRALS:
        _CALLS.refuse(invocation, error)
    else:
        _CALLS.refuse_returned(invocation, str(error))


_DEFERRALS: Final = frozenset({"ApprovalRequired", "CallDeferred"})


# --- The tool itself ----------------------------------------------------------------------------


async def _execute(original: Any, manager: Any, validated: Any, **options: Any) -> Any:
    # A manager of the same state, of which only the toolset is another.
    observed = copy.copy(manager)
    observed.toolset = _ObservedToolset(manager.toolset, validated.call)
    return await original(observed, validated, **options)


class _ObservedToolset:
    """A toolset of which one call is recorded."""

    def __init__(self, toolset: Any, call: Any) -> None:
        self._toolset = toolset
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._toolset, name)

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        """Run the tool as a call, unless it is one that records itself."""

        async def proceed() -> Any:
            return await self._toolset.call_tool(name, tool_args, ctx, tool)

        if _CALLS.is_recorded(name):
            return await proceed()
        invocation = _invocation(self._call, ctx)
        if is_own_tool(_function_of(tool)):
            with _CALLS.offer(invocation):
                value = await proceed()
            return _CALLS.in_form(invocation, value)
        return await _CALLS.run_async(invocation, lambda: _in_time(proceed))


async def _in_time(proceed: Callable[[], Awaitable[Any]]) -> Any:
    """Tell a tool's time limit, which Pydantic AI reports as a ``ModelRetry``, from a real one."""
    try:
        return await proceed()
    except Exception as error:
        late = error.__context__
        if not (error.__suppress_context__ and isinstance(late, TimeoutError)):
            raise
        judged = judge_exception(late, RUNTIME.clock.time_ns() / 1e9)
        raise JudgedEnd(judged, error=error) from late


def _invocation(call: Any, ctx: Any) -> Invocation:
    return Invocation(
        call.tool_name,
        _arguments(call),
        call_id=call.tool_call_id,
        session=getattr(ctx, "conversation_id", None),
        agent=getattr(getattr(ctx, "agent", None), "name", None),
    )


def _arguments(call: Any) -> dict[str, Any]:
    """Return what the model said, which may be no JSON at all."""
    try:
        found = call.args_as_dict()
    except Exception:
        found = None
    return found if isinstance(found, dict) else {"args": call.args}


def _function_of(tool: Any) -> Any:
    """Return the function behind a tool of a function toolset, however it was combined."""
    for _ in range(8):
        inner = getattr(tool, "source_tool", None)
        if inner is None:
            break
        tool = inner
    schema = getattr(getattr(tool, "call_func", None), "__self__", None)
    return getattr(schema, "function", None)
