"""CrewAI: every run of a tool, by native tool calling, by a text protocol, or by hand.

Native tool calls go to a tool's ``run``, those read from the model's text to the ``invoke`` of a
structured tool: that is where calls are recorded and policies act. CrewAI reads a tool's failure
as a reason to run it again, up to six times: these are the attempts of one call. A tool with a
policy is run as often as the policy says, and no more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final

from fuseboard.adapters.findings import checked
from fuseboard.adapters.installing import Installation, Replacement, Target
from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.repeating import RepeatedCall
from fuseboard.adapters.running import FrameworkCalls, OnError, Policies, is_own_tool
from fuseboard.calls.invocation import RUNNING, Invocation
from fuseboard.calls.judging import JudgedEnd
from fuseboard.calls.packets import ErrorPacket, words_of
from fuseboard.classification import ResultFinding
from fuseboard.classification.inspecting import names_of
from fuseboard.classification.verdicts import (
    input_fault,
    persistent_fault,
    semantic_fault,
    transient_fault,
)
from fuseboard.conventions import Origin
from fuseboard.record import Fault, Verdict

PACKAGE: Final = Package("crewai", extra="crewai", oldest="1.15", below="2")

_OWNER: Final = "instrument_crewai"


def _answer(invocation: Invocation, packet: ErrorPacket) -> Any:  # noqa: ARG001 - as it is called
    try:
        from crewai.tools.tool_failure import ToolFailure
    except ImportError:  # came after 1.15.0
        return words_of(packet)
    return ToolFailure(
        message=words_of(packet), code=packet["error_code"], retryable=packet["recoverable"]
    )


_CALLS: Final = FrameworkCalls(_OWNER, _answer)
_INSTALLATION: Final = Installation(_OWNER)
# Each release has some of them; they only know calls' ids, agents and names that no tool has.
_EXECUTORS: Final = (
    ("crewai.agents.agent_executor", "AgentExecutor._execute_single_native_tool_call"),
    ("crewai.agents.crew_agent_executor", "CrewAgentExecutor._execute_single_native_tool_call"),
    ("crewai.experimental.agent_executor", "AgentExecutor._execute_single_native_tool_call"),
    ("crewai.agents.step_executor", "execute_single_native_tool_call"),
)
_SPENT: Final = persistent_fault("tool_usage_limit", origin=Origin.ORCHESTRATION)
_FAILURE: Final = "crewai.tools.tool_failure.ToolFailure"
_FAILURES: Final[Mapping[str, Verdict]] = {
    "invalid_input": input_fault("tool_failure"),
    "unknown_tool": input_fault("tool_failure"),
    "usage_limit": _SPENT,
}
_REPORTED: Final = semantic_fault("tool_failure")
_MAY_PASS: Final = transient_fault("tool_failure", ambiguous=True)
# The tool whose methods are running: ``run`` of a subclass may pass on to its parent's.
_WITHIN: Final[ContextVar[Any]] = ContextVar("fuseboard_crewai_tool", default=None)


class _Use:
    """One tool that was read from the model's text, however often CrewAI runs it for that."""

    def __init__(self, usage: Any) -> None:
        self.usage = usage
        self.agent = getattr(getattr(usage, "agent", None), "role", None)
        self.call: RepeatedCall | None = None
        self.is_refused = False


_USE: Final[ContextVar[_Use | None]] = ContextVar("fuseboard_crewai_use", default=None)


def instrument_crewai(policy: Policies = None, *, on_error: OnError = "raise") -> None:
    """Record every tool call that CrewAI makes, and guard it by policy.

    A second call changes the policies and wraps nothing again.

    Args:
        policy: One policy for all tools, or a mapping of tools' names to policies.
        on_error: ``raise`` (the default), or ``packet``: answer a fault with an
            :class:`fuseboard.ErrorPacket`, as a ``ToolFailure`` where CrewAI has it.

    Raises:
        ConfigurationError: If crewai is missing or too old, or an argument is wrong.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    _CALLS.configure(policy, on_error)
    _INSTALLATION.install(_targets())


def uninstrument_crewai() -> None:
    """Let CrewAI run its tools as before.

    Since 0.1.
    """
    _INSTALLATION.remove()


def _targets() -> list[Target]:
    base, usage = "crewai.tools.base_tool", "crewai.tools.tool_usage"
    structured = "crewai.tools.structured_tool"
    known: list[tuple[str, str, Replacement]] = [
        (base, "BaseTool.run", _run),
        (base, "BaseTool.arun", _arun),
        (base, "Tool.run", _run),
        (base, "Tool.arun", _arun),
        (structured, "CrewStructuredTool.invoke", _invoke),
        (structured, "CrewStructuredTool.ainvoke", _ainvoke),
        (usage, "ToolUsage.use", _use),
        (usage, "ToolUsage.ause", _ause),
        (usage, "ToolUsage.parse_tool_calling", _parse),
    ]
    known += [(module, path, _native) for module, path in _EXECUTORS if _has(module, path)]
    return [Target(*one) for one in known]


def _has(module: str, path: str) -> bool:
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return True


# --- What an agent knows of a call --------------------------------------------------------------


def _native(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Take in one native tool call, of an executor's method or of the function of that name."""
    owner = args[0] if args and hasattr(args[0], "tools") else None
    told = _told(args[1:] if owner is not None else args, kwargs)
    if told is None:
        return original(*args, **kwargs)
    call_id, name, arguments = told
    available = kwargs.get("available_functions")
    if available is None:
        available = getattr(owner, "_available_functions", {})
    tool = getattr(available.get(name), "__self__", None)
    agent = kwargs.get("agent") or getattr(owner, "agent", None)
    invocation = Invocation(
        getattr(tool, "name", name),
        arguments if isinstance(arguments, dict) else _parsed(arguments),
        call_id=call_id,
        agent=getattr(agent, "role", None),
    )
    with _CALLS.offer(invocation):
        result = original(*args, **kwargs)
        if not invocation.is_claimed:
            if name not in available:
                _CALLS.refuse_unknown(invocation)
            elif isinstance(arguments, str) and _parsed(arguments) is None:
                _CALLS.refuse_returned(invocation, "the arguments are no JSON object")
        return result


def _told(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, str, Any] | None:
    if "func_name" in kwargs:
        return kwargs.get("call_id"), kwargs["func_name"], kwargs.get("func_args")
    from crewai.utilities.agent_utils import extract_tool_call_info

    found: tuple[Any, str, Any] | None = extract_tool_call_info(args[0]) if args else None
    return found


def _parsed(arguments: object) -> dict[str, Any] | None:
    try:
        found = json.loads(str(arguments))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _use(original: Any, usage: Any, *args: Any, **kwargs: Any) -> Any:
    current = _USE.get()
    if current is not None and current.usage is usage:
        return original(usage, *args, **kwargs)  # CrewAI tries once more
    use = _Use(usage)
    token = _USE.set(use)
    try:
        with _CALLS.offer(_asked(usage, args, kwargs, use)):
            return original(usage, *args, **kwargs)
    finally:
        _USE.reset(token)
        if use.call is not None:
            use.call.close()


async def _ause(original: Any, usage: Any, *args: Any, **kwargs: Any) -> Any:
    current = _USE.get()
    if current is not None and current.usage is usage:
        return await original(usage, *args, **kwargs)
    use = _Use(usage)
    token = _USE.set(use)
    try:
        with _CALLS.offer(_asked(usage, args, kwargs, use)):
            return await original(usage, *args, **kwargs)
    finally:
        _USE.reset(token)
        if use.call is not None:
            use.call.close()


def _asked(usage: Any, args: tuple[Any, ...], kwargs: dict[str, Any], use: _Use) -> Invocation:
    """Return the call that was read from the model's text."""
    calling = args[0] if args else kwargs.get("calling")
    name = str(getattr(calling, "tool_name", ""))
    known = next((one.name for one in usage.tools if _plain(one.name) == _plain(name)), name)
    return Invocation(known, getattr(calling, "arguments", None), agent=use.agent)


def _parse(original: Any, usage: Any, *args: Any, **kwargs: Any) -> Any:
    """Take in a call in the model's text that names no tool, or gives no arguments."""
    calling = original(usage, *args, **kwargs)
    if type(calling).__name__ == "ToolUsageError":
        name = str(getattr(usage.action, "tool", None) or "")
        agent = getattr(usage.agent, "role", None)
        known = next((one.name for one in usage.tools if _plain(one.name) == _plain(name)), None)
        if known is None:
            _CALLS.refuse_unknown(Invocation(name, agent=agent))
        else:
            _CALLS.refuse_returned(Invocation(known, agent=agent), str(calling.message))
    return calling


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


# --- The tool itself ----------------------------------------------------------------------------


def _run(original: Any, tool: Any, *args: Any, **kwargs: Any) -> Any:
    invocation = _begin(tool, _named(tool, args, kwargs), _check_of(tool, args, kwargs))
    if invocation is None:
        return original(tool, *args, **kwargs)
    return _work(tool, invocation, lambda: original(tool, *args, **kwargs), None)


async def _arun(original: Any, tool: Any, *args: Any, **kwargs: Any) -> Any:
    invocation = _begin(tool, _named(tool, args, kwargs), _check_of(tool, args, kwargs))
    if invocation is None:
        return await original(tool, *args, **kwargs)
    return await _work_async(tool, invocation, lambda: original(tool, *args, **kwargs), None)


def _invoke(original: Any, tool: Any, input: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002 - CrewAI's name
    named = input if isinstance(input, dict) else _parsed(input)
    invocation = _begin(tool, named, lambda: tool._parse_args(input))
    if invocation is None:
        return original(tool, input, *args, **kwargs)
    return _work(tool, invocation, lambda: original(tool, input, *args, **kwargs), _USE.get())


async def _ainvoke(
    original: Any,
    tool: Any,
    input: Any,  # noqa: A002 - CrewAI's name
    *args: Any,
    **kwargs: Any,
) -> Any:
    named = input if isinstance(input, dict) else _parsed(input)
    invocation = _begin(tool, named, lambda: tool._parse_args(input))
    if invocation is None:
        return await original(tool, input, *args, **kwargs)
    return await _work_async(
        tool, invocation, lambda: original(tool, input, *args, **kwargs), _USE.get()
    )


def _begin(
    tool: Any, arguments: Mapping[str, Any] | None, check: Callable[[], object]
) -> Invocation | None:
    """Return the call to record; None if there is one, or if the tool will not be reached."""
    if _WITHIN.get() is tool or _CALLS.is_recorded(tool.name):
        return None
    use, offered = _USE.get(), RUNNING.get()
    invocation = Invocation(tool.name, arguments, agent=use.agent if use is not None else None)
    if offered is not None and offered.owner is _CALLS and not offered.is_claimed:
        invocation = offered
    refusal = _refusal(tool, check)
    if refusal is None:
        return invocation
    if use is None or not use.is_refused:
        _CALLS.refuse(invocation, refusal)
    if use is not None:
        use.is_refused = True
    return None


def _refusal(tool: Any, check: Callable[[], object]) -> Exception | None:
    """Return why CrewAI will not run the tool, if it will not."""
    try:
        check()
    except Exception as error:
        return error
    limit = getattr(tool, "max_usage_count", None)
    if limit is not None and tool.current_usage_count >= limit:
        return JudgedEnd(Fault(_SPENT, "usage_limit", f"it has been used {limit} times"))
    return None


def _check_of(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], object]:
    return (lambda: None) if args else (lambda: tool._validate_kwargs(kwargs))


def _named(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    fields = getattr(tool.args_schema, "model_fields", {})
    return dict(zip(fields, args, strict=False)) | kwargs


def _work(tool: Any, invocation: Invocation, act: Callable[[], Any], use: _Use | None) -> Any:
    token = _WITHIN.set(tool)
    try:
        if _records_itself(tool):
            with _CALLS.offer(invocation):
                value = act()
            return _CALLS.in_form(invocation, value)
        run = _CALLS.run if use is None else _repeated(use, invocation).run
        return run(invocation, lambda: checked(act(), _finding))
    finally:
        _WITHIN.reset(token)


async def _work_async(
    tool: Any, invocation: Invocation, act: Callable[[], Any], use: _Use | None
) -> Any:
    async def proceed() -> Any:
        return checked(await act(), _finding)

    token = _WITHIN.set(tool)
    try:
        if _records_itself(tool):
            with _CALLS.offer(invocation):
                value = await act()
            return _CALLS.in_form(invocation, value)
        run = _CALLS.run_async if use is None else _repeated(use, invocation).run_async
        return await run(invocation, proceed)
    finally:
        _WITHIN.reset(token)


def _repeated(use: _Use, invocation: Invocation) -> RepeatedCall:
    if use.call is None:
        use.call = RepeatedCall(_CALLS, invocation)
    return use.call


def _records_itself(tool: Any) -> bool:
    inner = getattr(tool, "_original_tool", None) or tool
    methods = (getattr(type(inner), name, None) for name in ("_run", "_arun"))
    return is_own_tool(getattr(inner, "func", None), *methods)


def _finding(value: Any) -> ResultFinding | None:
    """Find the failure that a tool reports in CrewAI's own form."""
    if _FAILURE not in names_of(type(value)):
        return None
    reason = str(getattr(value.reason, "value", value.reason))
    verdict = _FAILURES.get(reason) or (_MAY_PASS if value.retryable else _REPORTED)
    return ResultFinding(verdict, value.code or reason, value.message)
