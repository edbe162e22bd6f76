"""LangChain and LangGraph: every run of a ``BaseTool``, and names that no tool has.

A run of a tool has two stages: LangChain checks the arguments, then it calls ``_run`` or
``_arun``. Policies act on the second, so that they see what the tool itself returned or raised;
callbacks, and with them other instrumentation, see one run however many attempts there were.
"""

from __future__ import annotations

from typing import Any, Final

from fuseboard import guard
from fuseboard.adapters.findings import checked
from fuseboard.adapters.installing import Installation, Target
from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.running import FrameworkCalls, OnError, Policies, is_own_tool
from fuseboard.calls.invocation import RUNNING, Invocation
from fuseboard.calls.packets import ErrorPacket, words_of
from fuseboard.classification import ResultFinding
from fuseboard.classification.inspecting import names_of
from fuseboard.classification.verdicts import semantic_fault

PACKAGE: Final = Package("langchain-core", extra="langchain", oldest="1.1", below="2")

_OWNER: Final = "instrument_langchain"


def _answer(invocation: Invocation, packet: ErrorPacket) -> Any:
    from langchain_core.messages import ToolMessage

    if invocation.call_id is None:
        return packet  # a tool that is run by hand, without a model that could read a message
    return ToolMessage(
        words_of(packet),
        artifact=packet,
        name=invocation.tool,
        tool_call_id=invocation.call_id,
        status="error",
    )


_CALLS: Final = FrameworkCalls(_OWNER, _answer)
_INSTALLATION: Final = Installation(_OWNER)
_MESSAGE: Final = "langchain_core.messages.tool.ToolMessage"
_RETURNED_ERROR: Final = semantic_fault("tool_message_error")


def instrument_langchain(policy: Policies = None, *, on_error: OnError = "raise") -> None:
    """Record every tool call that LangChain or LangGraph makes, and guard it by policy.

    A second call changes the policies and wraps nothing again.

    Args:
        policy: One policy for all tools, or a mapping of tools' names to policies.
        on_error: ``raise`` (the default), or ``packet``: answer a fault with an
            :class:`fuseboard.ErrorPacket`, as a ``ToolMessage`` whose status is ``error``.

    Raises:
        ConfigurationError: If langchain-core is missing or too old, or an argument is wrong.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    _CALLS.configure(policy, on_error)
    _INSTALLATION.install(_targets())


def uninstrument_langchain() -> None:
    """Let LangChain run its tools as before.

    Since 0.1.
    """
    _INSTALLATION.remove()


def _targets() -> list[Target]:
    base = "langchain_core.tools.base"
    found = [Target(base, "BaseTool.run", _run), Target(base, "BaseTool.arun", _arun)]
    try:
        import langgraph.prebuilt.tool_node  # noqa: F401
    except ImportError:
        return found  # LangChain's tools without an agent
    node = "langgraph.prebuilt.tool_node"
    return [*found, Target(node, "ToolNode._validate_tool_call", _validate)]


# --- The run of a tool, as a framework asks for it --------------------------------------------


def _run(original: Any, tool: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
    if _CALLS.is_recorded(tool.name):
        return original(tool, tool_input, *args, **kwargs)
    _meet(type(tool))
    with _CALLS.offer(_invocation(tool, tool_input, kwargs)) as offer:
        output = original(tool, tool_input, *args, **kwargs)
        _note_refusal(offer.invocation, output)
        return output


async def _arun(original: Any, tool: Any, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
    if _CALLS.is_recorded(tool.name):
        return await original(tool, tool_input, *args, **kwargs)
    _meet(type(tool))
    with _CALLS.offer(_invocation(tool, tool_input, kwargs)) as offer:
        output = await original(tool, tool_input, *args, **kwargs)
        _note_refusal(offer.invocation, output)
        return output


def _invocation(tool: Any, tool_input: Any, options: dict[str, Any]) -> Invocation:
    context = _context(options.get("config") or {})
    arguments = _arguments(tool, tool_input)
    return Invocation(tool.name, arguments, call_id=options.get("tool_call_id"), **context)


def _context(config: Any) -> dict[str, Any]:
    """Return thread and agent, as the configuration of a run names them."""
    metadata = config.get("metadata") or {}
    thread = (config.get("configurable") or {}).get("thread_id")
    return {"session": thread, "agent": metadata.get("lc_agent_name")}


def _arguments(tool: Any, tool_input: Any) -> dict[str, Any]:
    """Return what the model said, without state, store and runtime that LangGraph adds."""
    if not isinstance(tool_input, dict):
        return {"input": tool_input}
    try:
        # What LangChain itself does before it tells its callbacks of a call.
        added = tool_input.keys() - tool._filter_injected_args(tool_input).keys()
    except Exception as fault:
        guard.swallow("telling the model's arguments from LangChain's", fault)
        added = set()
    return {key: value for key, value in tool_input.items() if key not in added}


def _note_refusal(invocation: Invocation, output: Any) -> None:
    """Record arguments that ``handle_validation_error`` turned into words for the model."""
    if not invocation.is_claimed:
        content = getattr(output, "content", output)
        _CALLS.refuse_returned(invocation, str(content))


def _validate(original: Any, node: Any, call: Any) -> Any:
    answer = original(node, call)
    if answer is not None:
        from langchain_core.runnables.config import ensure_config

        context = _context(ensure_config())
        name, arguments = str(call["name"]), call.get("args")
        _CALLS.refuse_unknown(Invocation(name, arguments, call_id=call.get("id"), **context))
    return answer


# --- The tool itself --------------------------------------------------------------------------


def _meet(cls: type) -> None:
    """Wrap the methods in which a class of tools does its work."""
    for name, replacement in (("_run", _work), ("_arun", _work_async)):
        for base in cls.__mro__:
            if name in vars(base):
                if base.__name__ != "BaseTool":  # its _arun calls _run, its _run nothing
                    _INSTALLATION.add(base, name, replacement)
                break


def _work(original: Any, tool: Any, *args: Any, **kwargs: Any) -> Any:
    invocation = RUNNING.get()
    if invocation is None or invocation.is_claimed:
        return original(tool, *args, **kwargs)
    returned: Any = None

    def proceed() -> Any:
        nonlocal returned
        returned = original(tool, *args, **kwargs)
        return checked(returned, _finding)

    if _records_itself(tool, original):
        returned = original(tool, *args, **kwargs)
        value = _CALLS.in_form(invocation, returned)
    else:
        value = _CALLS.run(invocation, proceed)
    return value if value is returned else _in_place(tool, value)


async def _work_async(original: Any, tool: Any, *args: Any, **kwargs: Any) -> Any:
    invocation = RUNNING.get()
    if invocation is None or invocation.is_claimed:
        return await original(tool, *args, **kwargs)
    returned: Any = None

    async def proceed() -> Any:
        nonlocal returned
        returned = await original(tool, *args, **kwargs)
        return checked(returned, _finding)

    if _records_itself(tool, original):
        returned = await original(tool, *args, **kwargs)
        value = _CALLS.in_form(invocation, returned)
    else:
        value = await _CALLS.run_async(invocation, proceed)
    return value if value is returned else _in_place(tool, value)


def _in_place(tool: Any, value: Any) -> Any:
    """Return a fallback's value or a packet as the tool has to: some return an artifact as well."""
    is_pair = getattr(tool, "response_format", "content") == "content_and_artifact"
    return (value, None) if is_pair and not isinstance(value, tuple) else value


def _records_itself(tool: Any, method: Any) -> bool:
    return is_own_tool(method, getattr(tool, "func", None), getattr(tool, "coroutine", None))


def _finding(value: Any) -> ResultFinding | None:
    """Find the error in a message that a tool wrote itself."""
    if _MESSAGE in names_of(type(value)) and value.status == "error":
        return ResultFinding(_RETURNED_ERROR, "tool_error", str(value.content))
    return None
