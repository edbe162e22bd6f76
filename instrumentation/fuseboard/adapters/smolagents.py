"""smolagents: every call of a ``Tool``, by a tool-calling agent or from the code of a code agent.

Both kinds of agents call the tool object itself, so that is where calls are recorded and policies
act. A tool-calling agent checks names and arguments before; what it refuses becomes a call of its
own. ``final_answer`` ends a run and managed agents are agents: neither is a tool call.
"""

from __future__ import annotations

import functools
import inspect
import threading
from contextvars import ContextVar, copy_context
from typing import Any, Final
from weakref import WeakKeyDictionary

from fuseboard.adapters.findings import misfit
from fuseboard.adapters.installing import Installation, Target
from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.running import FrameworkCalls, OnError, Policies, is_own_tool
from fuseboard.calls.invocation import RUNNING, Invocation
from fuseboard.calls.packets import ErrorPacket, words_of
from fuseboard.errors import FuseboardError
from fuseboard.forking import after_fork_in_child

PACKAGE: Final = Package("smolagents", extra="smolagents", oldest="1.20", below="2")

_OWNER: Final = "instrument_smolagents"


class ToolAnswerError(FuseboardError):
    """Says in plain words why a tool failed; smolagents shows an exception's text to the model.

    Attributes:
        packet: The error packet that says more.

    Since 0.1.
    """

    def __init__(self, packet: ErrorPacket) -> None:
        super().__init__(words_of(packet))
        self.packet = packet


def _answer(invocation: Invocation, packet: ErrorPacket) -> Any:  # noqa: ARG001 - as it is called
    raise ToolAnswerError(packet)


_CALLS: Final = FrameworkCalls(_OWNER, _answer)
_INSTALLATION: Final = Installation(_OWNER)
_FINAL_ANSWER: Final = "final_answer"
_AGENT: Final[ContextVar[Any]] = ContextVar("fuseboard_smolagents_agent", default=None)


class _Asked:
    """What models asked for last, by agent: the only place where smolagents keeps calls' ids."""

    def __init__(self) -> None:
        self.calls: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
        self.renew_lock()

    def renew_lock(self) -> None:
        self.lock = threading.Lock()


_ASKED: Final = _Asked()
after_fork_in_child(_ASKED.renew_lock)


def instrument_smolagents(policy: Policies = None, *, on_error: OnError = "raise") -> None:
    """Record every tool call that smolagents makes, and guard it by policy.

    A second call changes the policies and wraps nothing again.

    Args:
        policy: One policy for all tools, or a mapping of tools' names to policies.
        on_error: ``raise`` (the default), or ``packet``: answer a fault with an
            :class:`fuseboard.ErrorPacket`, as a :class:`ToolAnswerError` whose text
            agents show to the model.

    Raises:
        ConfigurationError: If smolagents is missing or too old, or an argument is wrong.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    _CALLS.configure(policy, on_error)
    _INSTALLATION.install(_targets())


def uninstrument_smolagents() -> None:
    """Let smolagents run its tools as before.

    Since 0.1.
    """
    _INSTALLATION.remove()


def _targets() -> list[Target]:
    import smolagents.local_python_executor as executor

    agents = "smolagents.agents"
    found = [
        Target("smolagents.tools", "Tool.__call__", _call),
        Target("smolagents.tools", "PipelineTool.__call__", _call),
        Target(agents, "ToolCallingAgent.process_tool_calls", _process),
        Target(agents, "ToolCallingAgent.execute_tool_call", _execute),
        Target(agents, "MultiStepAgent.run", _run),
    ]
    if hasattr(executor, "timeout"):  # since 1.22: code runs in a thread of its own
        found.append(Target(executor.__name__, "timeout", _timeout))
    return found


# --- What an agent knows of a call --------------------------------------------------------------


def _run(original: Any, agent: Any, *args: Any, **kwargs: Any) -> Any:
    token = _AGENT.set(getattr(agent, "name", None))
    try:
        return original(agent, *args, **kwargs)
    finally:
        _AGENT.reset(token)


def _process(original: Any, agent: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
    with _ASKED.lock:
        _ASKED.calls[agent] = list(message.tool_calls or ())
    return original(agent, message, *args, **kwargs)


def _timeout(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Take the context along into the thread: the current span, the session, the agent."""
    decorate = original(*args, **kwargs)

    def decorate_in_context(function: Any) -> Any:
        return decorate(functools.partial(copy_context().run, function))

    return decorate_in_context


def _execute(original: Any, agent: Any, tool_name: str, arguments: Any) -> Any:
    if tool_name == _FINAL_ANSWER or tool_name in agent.managed_agents:
        return original(agent, tool_name, arguments)
    invocation = Invocation(
        tool_name,
        arguments if isinstance(arguments, dict) else {"input": arguments},
        call_id=_id_of(agent, tool_name, arguments),
        agent=getattr(agent, "name", None),
    )
    with _CALLS.offer(invocation):
        try:
            return original(agent, tool_name, arguments)
        except Exception as error:
            _note_refusal(invocation, agent, error)
            raise


def _note_refusal(invocation: Invocation, agent: Any, error: Exception) -> None:
    if invocation.is_claimed:
        return
    if invocation.tool not in agent.tools:
        _CALLS.refuse_unknown(invocation)
    elif type(error).__name__ == "AgentToolCallError":
        _CALLS.refuse_returned(invocation, str(error))


def _id_of(agent: Any, name: str, arguments: Any) -> str | None:
    """Return the id of the call that is about to be executed, and forget it."""
    with _ASKED.lock:
        asked = _ASKED.calls.get(agent, [])
        for place, call in enumerate(asked):
            told = call.function.arguments
            if call.function.name == name and (told is arguments or (told or {}) == arguments):
                del asked[place]
                return str(call.id)
    return None


# --- The tool itself ----------------------------------------------------------------------------


def _call(original: Any, tool: Any, *args: Any, **kwargs: Any) -> Any:
    if tool.name == _FINAL_ANSWER or _CALLS.is_recorded(tool.name):
        return original(tool, *args, **kwargs)
    invocation = RUNNING.get()
    is_offered = (
        invocation is not None
        and invocation.owner is _CALLS
        and invocation.tool == tool.name
        and not invocation.is_claimed
    )
    if invocation is None or not is_offered:
        named = dict(zip(tool.inputs, args, strict=False)) | _told(kwargs)
        invocation = Invocation(tool.name, named, agent=_AGENT.get())
    if is_own_tool(tool.forward, type(tool).forward):
        with _CALLS.offer(invocation):
            value = original(tool, *args, **kwargs)
        return _CALLS.in_form(invocation, value)
    return _CALLS.run(invocation, lambda: _proceed(original, tool, args, kwargs))


def _proceed(original: Any, tool: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        return original(tool, *args, **kwargs)
    except TypeError as error:
        # A tool made of a function shows a ``self`` that it does not take.
        end = misfit(inspect.unwrap(tool.forward), args, _told(kwargs), error)
        if end is None:
            raise
        raise end from error


def _told(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments without the framework's own."""
    return {key: value for key, value in kwargs.items() if key != "sanitize_inputs_outputs"}
