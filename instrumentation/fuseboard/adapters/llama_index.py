"""LlamaIndex: every tool that a workflow agent, ``predict_and_call`` or a program runs.

Whoever runs a tool calls its ``call`` or ``acall``, so that is where calls are recorded and
policies act; agents turn what is raised there into a ``ToolOutput`` with ``is_error``, as before.
The agents' step ``call_tool`` knows the call's id and which names no tool has.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

from fuseboard.adapters.findings import checked, misfit
from fuseboard.adapters.installing import Installation, Target
from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.running import FrameworkCalls, OnError, Policies, is_own_tool
from fuseboard.calls.binding import make_binder
from fuseboard.calls.invocation import RUNNING, Invocation
from fuseboard.calls.judging import JudgedEnd
from fuseboard.calls.packets import ErrorPacket, words_of
from fuseboard.classification import ResultFinding, judge_exception, judge_result
from fuseboard.classification.verdicts import semantic_fault
from fuseboard.conventions import Outcome
from fuseboard.record import Fault
from fuseboard.runtime import RUNTIME

PACKAGE: Final = Package("llama-index-core", extra="llama-index", oldest="0.14.8", below="0.15")

_OWNER: Final = "instrument_llama_index"


def _answer(invocation: Invocation, packet: ErrorPacket) -> Any:
    from llama_index.core.tools import ToolOutput

    return ToolOutput(
        content=words_of(packet),
        tool_name=invocation.tool,
        raw_input={"args": (), "kwargs": invocation.arguments},
        raw_output=packet,
        is_error=True,
    )


_CALLS: Final = FrameworkCalls(_OWNER, _answer)
_INSTALLATION: Final = Installation(_OWNER)
_RETURNED_ERROR: Final = semantic_fault("tool_output_error")
_AGENTS: Final = (
    ("llama_index.core.agent.workflow.base_agent", "BaseWorkflowAgent"),
    ("llama_index.core.agent.workflow.multi_agent_workflow", "AgentWorkflow"),
)
# The tool whose methods are running: ``acall`` of a subclass may pass on to its parent's.
_WITHIN: Final[ContextVar[Any]] = ContextVar("fuseboard_llama_index_tool", default=None)


def instrument_llama_index(policy: Policies = None, *, on_error: OnError = "raise") -> None:
    """Record every tool call that LlamaIndex makes, and guard it by policy.

    A second call changes the policies and wraps nothing again.

    Args:
        policy: One policy for all tools, or a mapping of tools' names to policies.
        on_error: ``raise`` (the default), or ``packet``: answer a fault with an
            :class:`fuseboard.ErrorPacket`, as a ``ToolOutput`` with ``is_error``.

    Raises:
        ConfigurationError: If llama-index-core is missing or too old, or an argument is wrong.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    _CALLS.configure(policy, on_error)
    _INSTALLATION.install(_targets())


def uninstrument_llama_index() -> None:
    """Let LlamaIndex run its tools as before.

    Since 0.1.
    """
    _INSTALLATION.remove()


def _targets() -> list[Target]:
    found = []
    for module, cls in _AGENTS:
        found.append(Target(module, f"{cls}.call_tool", _step))
        found.append(Target(module, f"{cls}._call_tool", _meet_for_agent))
    for name, replacement in (("call_tool", _meet_sync), ("acall_tool", _meet_async)):
        found.append(Target("llama_index.core.tools.calling", name, replacement))
    for cls in ("FunctionTool", "QueryEngineTool", "RetrieverTool"):
        for name, method in (("call", _call), ("acall", _acall)):
            found.append(Target("llama_index.core.tools", f"{cls}.{name}", method))
    return found


# --- What an agent knows of a call --------------------------------------------------------------


async def _step(original: Any, agent: Any, *args: Any, **kwargs: Any) -> Any:
    given = [*args, *kwargs.values()]
    event = next((one for one in given if hasattr(one, "tool_kwargs")), None)
    context = next((one for one in given if hasattr(one, "store")), None)
    if event is None:
        return await original(agent, *args, **kwargs)
    invocation = Invocation(
        event.tool_name,
        event.tool_kwargs,
        call_id=event.tool_id,
        session=getattr(await _stored(context, "memory"), "session_id", None),
        agent=await _stored(context, "current_agent_name") or getattr(agent, "name", None),
    )
    with _CALLS.offer(invocation):
        result = await original(agent, *args, **kwargs)
        output = getattr(result, "tool_output", None)
        if output is not None and output.is_error and not invocation.is_claimed:
            _CALLS.refuse_unknown(invocation)
        return result


async def _stored(context: Any, key: str) -> Any:
    try:
        return await context.store.get(key, default=None)
    except Exception:
        return None  # a store of the user's own may know no such key


# --- Classes of tools ---------------------------------------------------------------------------


async def _meet_for_agent(original: Any, agent: Any, context: Any, tool: Any, given: Any) -> Any:
    _meet(tool)
    return await original(agent, context, tool, given)


def _meet_sync(original: Any, tool: Any, *args: Any, **kwargs: Any) -> Any:
    _meet(tool)
    return original(tool, *args, **kwargs)


async def _meet_async(original: Any, tool: Any, *args: Any, **kwargs: Any) -> Any:
    _meet(tool)
    return await original(tool, *args, **kwargs)


def _meet(tool: Any) -> None:
    """Wrap the methods in which a class of tools does its work."""
    inner = getattr(tool, "base_tool", tool)  # an adapter for tools that are not async
    names = ("call", "acall") if hasattr(type(inner), "acall") else ("__call__",)
    for name in names:
        owner = next((base for base in type(inner).__mro__ if name in vars(base)), None)
        if owner is not None:
            _INSTALLATION.add(owner, name, _acall if name == "acall" else _call)


# --- The tool itself ----------------------------------------------------------------------------


def _call(original: Any, tool: Any, *args: Any, **kwargs: Any) -> Any:
    invocation = _invocation(tool, args, kwargs)
    if invocation is None:
        return original(tool, *args, **kwargs)

    def proceed() -> Any:
        try:
            return _checked(tool, original(tool, *args, **kwargs))
        except TypeError as error:
            end = _misfit(error, tool, args, kwargs)
            if end is None:
                raise
            raise end from error

    token = _WITHIN.set(tool)
    try:
        if is_own_tool(*_functions_of(tool)):
            with _CALLS.offer(invocation):
                output = original(tool, *args, **kwargs)
            return _own_output(invocation, output)
        return _as_output(tool, _CALLS.run(invocation, proceed), invocation)
    finally:
        _WITHIN.reset(token)


async def _acall(original: Any, tool: Any, *args: Any, **kwargs: Any) -> Any:
    invocation = _invocation(tool, args, kwargs)
    if invocation is None:
        return await original(tool, *args, **kwargs)

    async def proceed() -> Any:
        try:
            return _checked(tool, await original(tool, *args, **kwargs))
        except TypeError as error:
            end = _misfit(error, tool, args, kwargs)
            if end is None:
                raise
            raise end from error

    token = _WITHIN.set(tool)
    try:
        if is_own_tool(*_functions_of(tool)):
            with _CALLS.offer(invocation):
                output = await original(tool, *args, **kwargs)
            return _own_output(invocation, output)
        return _as_output(tool, await _CALLS.run_async(invocation, proceed), invocation)
    finally:
        _WITHIN.reset(token)


def _invocation(tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Invocation | None:
    """Return the call that an agent has announced, or a new one; None if it is recorded."""
    name = _name_of(tool)
    if _WITHIN.get() is tool or _CALLS.is_recorded(name):
        return None
    offered = RUNNING.get()
    if offered is not None and offered.owner is _CALLS and not offered.is_claimed:
        offered.alias = type(tool).__name__
        return offered
    injected = getattr(tool, "ctx_param_name", None)
    function = getattr(tool, "real_fn", None)
    bound = make_binder(function)(args, kwargs) if callable(function) else dict(kwargs)
    if args and not callable(function):
        bound["input"] = args[0] if len(args) == 1 else list(args)
    made = Invocation(name, {key: value for key, value in bound.items() if key != injected})
    made.alias = type(tool).__name__
    return made


def _name_of(tool: Any) -> str:
    return tool.metadata.name or type(tool).__name__


def _functions_of(tool: Any) -> tuple[Any, ...]:
    return tuple(getattr(tool, name, None) for name in ("real_fn", "fn", "async_fn"))


def _misfit(
    error: TypeError, tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> JudgedEnd | None:
    hidden = {**getattr(tool, "_field_defaults", {}), **getattr(tool, "partial_params", {})}
    return misfit(getattr(tool, "real_fn", None), args, {**hidden, **kwargs}, error)


def _checked(tool: Any, output: Any) -> Any:
    """Return a tool's output, unless it reports an error or hands over to another agent."""
    function = getattr(tool, "real_fn", None)
    if getattr(function, "__module__", None) == _AGENTS[1][0]:
        raise JudgedEnd(Outcome.INTERRUPTED, value=output)
    return checked(output, _finding)


def _finding(output: Any) -> ResultFinding | None:
    """Find the error in an output, which holds what the tool's function returned."""
    now = RUNTIME.clock.time_ns() / 1e9
    if not getattr(output, "is_error", False):
        return judge_result(getattr(output, "raw_output", None), now)
    error = getattr(output, "exception", None)
    judged = judge_exception(error, now) if error is not None else None
    if isinstance(judged, Fault):
        return ResultFinding(judged.verdict, judged.error_type, judged.message)
    return ResultFinding(_RETURNED_ERROR, "tool_error", str(output.content))


def _own_output(invocation: Invocation, output: Any) -> Any:
    raw = getattr(output, "raw_output", None)
    formed = _CALLS.in_form(invocation, raw)
    return output if formed is raw else formed


def _as_output(tool: Any, value: Any, invocation: Invocation) -> Any:
    """Return what a policy served instead in the form of a tool's output."""
    from llama_index.core.tools import ToolOutput

    if isinstance(value, ToolOutput):
        return value
    return ToolOutput(
        content=str(value),
        tool_name=_name_of(tool),
        raw_input={"args": (), "kwargs": invocation.arguments},
        raw_output=value,
    )
