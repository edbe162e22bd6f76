"""Google ADK: every ``run_async`` of a tool, whichever class it is of and whoever calls it.

All of ADK's ways to a tool (turns, live sessions, thread pools, workflows) call ``run_async``,
which each class of tools has for itself: classes are wrapped when the adapter is installed, later
ones when the first tool of theirs is made. A call that waits for a person's confirmation or for
consent, and a transfer to another agent, are interrupts. ``set_model_response`` is the run's
answer and no tool; streaming tools of live sessions are not recorded.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final

from fuseboard.adapters.installing import Installation, Replacement, Target
from fuseboard.adapters.packages import Package, require
from fuseboard.adapters.running import FrameworkCalls, OnError, Policies, is_own_tool
from fuseboard.calls.invocation import Invocation
from fuseboard.calls.judging import JudgedEnd
from fuseboard.calls.packets import ErrorPacket, words_of
from fuseboard.classification import BINDING
from fuseboard.conventions import Outcome
from fuseboard.record import Fault

PACKAGE: Final = Package("google-adk", extra="google-adk", oldest="2.6", below="3")

_OWNER: Final = "instrument_google_adk"


def _answer(invocation: Invocation, packet: ErrorPacket) -> Any:  # noqa: ARG001 - as it is called
    return {
        "error": words_of(packet),
        "error_code": packet["error_code"],
        "recoverable": packet["recoverable"],
    }


_CALLS: Final = FrameworkCalls(_OWNER, _answer)
_INSTALLATION: Final = Installation(_OWNER)
_ANSWER: Final = "set_model_response"
_REJECTED: Final = "This tool call is rejected."
_FLOWS: Final = "google.adk.flows.llm_flows"
# ADK moves these about; they only say of calls that never reach a tool.
_CHECKS: Final = (
    ("_get_tool", (f"{_FLOWS}.tools._caller", f"{_FLOWS}.functions")),
    ("apply_confirmation_gate", (f"{_FLOWS}.tools._caller",)),
)
# The call whose tool is running: a class's ``run_async`` may pass on to its parent's.
_WITHIN: Final[ContextVar[tuple[int, Any] | None]] = ContextVar(
    "fuseboard_google_adk_call", default=None
)


def instrument_google_adk(policy: Policies = None, *, on_error: OnError = "raise") -> None:
    """Record every tool call that Google ADK makes, and guard it by policy.

    A second call changes the policies and wraps nothing again.

    Args:
        policy: One policy for all tools, or a mapping of tools' names to policies.
        on_error: ``raise`` (the default), or ``packet``: answer a fault with an
            :class:`fuseboard.ErrorPacket`, as a response with ``error``.

    Raises:
        ConfigurationError: If google-adk is missing or too old, or an argument is wrong.

    Since 0.1.
    """
    require(_OWNER, PACKAGE)
    _CALLS.configure(policy, on_error)
    base = "google.adk.tools.base_tool"
    _INSTALLATION.install([Target(base, "BaseTool.__init__", _make), *_checks()])
    _meet_all(import_module(base).BaseTool)


def uninstrument_google_adk() -> None:
    """Let Google ADK run its tools as before.

    Since 0.1.
    """
    _INSTALLATION.remove()


def _checks() -> list[Target]:
    replacements: dict[str, Replacement] = {"_get_tool": _find, "apply_confirmation_gate": _confirm}
    found = []
    for name, modules in _CHECKS:
        module = next((one for one in modules if _has(one, name)), None)
        if module is not None:
            found.append(Target(module, name, replacements[name]))
    return found


def _has(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name)
    except ImportError:
        return False


# --- Classes of tools ---------------------------------------------------------------------------


def _make(original: Any, tool: Any, *args: Any, **kwargs: Any) -> None:
    original(tool, *args, **kwargs)
    for cls in type(tool).__mro__:
        _meet(cls)


def _meet_all(cls: Any) -> None:
    for one in cls.__subclasses__():
        _meet(one)
        _meet_all(one)


def _meet(cls: type) -> None:
    """Wrap a class's own way of running; the base class has none."""
    if "run_async" in vars(cls) and cls.__name__ != "BaseTool":
        _INSTALLATION.add(cls, "run_async", _run)


# --- Calls that never reach a tool --------------------------------------------------------------


def _find(original: Any, call: Any, tools: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return original(call, tools, *args, **kwargs)
    except ValueError:
        _CALLS.refuse_unknown(Invocation(str(call.name), call.args, call_id=call.id))
        raise


async def _confirm(original: Any, tool: Any, args: Any, context: Any) -> Any:
    answer = await original(tool, args, context)
    if answer is not None:
        _CALLS.refuse(_invocation(tool, args, context), JudgedEnd(Outcome.INTERRUPTED))
    return answer


# --- The tool itself ----------------------------------------------------------------------------


async def _run(original: Any, tool: Any, *, args: dict[str, Any], tool_context: Any) -> Any:
    call = (id(tool), tool_context.function_call_id)
    if tool.name == _ANSWER or _WITHIN.get() == call or _CALLS.is_recorded(tool.name):
        return await original(tool, args=args, tool_context=tool_context)

    async def proceed() -> Any:
        return _judged(tool, await original(tool, args=args, tool_context=tool_context),
                       tool_context)  # fmt: skip

    invocation = _invocation(tool, args, tool_context)
    token = _WITHIN.set(call)
    try:
        if is_own_tool(getattr(tool, "func", None)):
            with _CALLS.offer(invocation):
                response = await original(tool, args=args, tool_context=tool_context)
                if not invocation.is_claimed:
                    _note_refusal(invocation, tool, response, tool_context)
                return _CALLS.in_form(invocation, response)
        return await _CALLS.run_async(invocation, proceed)
    finally:
        _WITHIN.reset(token)


def _invocation(tool: Any, args: dict[str, Any], context: Any) -> Invocation:
    return Invocation(
        tool.name,
        args,
        call_id=context.function_call_id,
        session=getattr(getattr(context, "session", None), "id", None),
        agent=getattr(context, "agent_name", None),
    )


def _note_refusal(invocation: Invocation, tool: Any, response: Any, context: Any) -> None:
    """Record a call that ADK refused before it reached a tool that records itself."""
    try:
        _judged(tool, response, context)
    except JudgedEnd as end:
        _CALLS.refuse(invocation, end)


def _judged(tool: Any, response: Any, context: Any) -> Any:
    """Return a response, unless it is ADK's own word in place of the tool's."""
    actions = context.actions
    waits_for = (actions.requested_tool_confirmations, actions.requested_auth_configs)
    is_waiting = any(context.function_call_id in requests for requests in waits_for if requests)
    error = response.get("error") if isinstance(response, dict) else None
    if is_waiting or actions.transfer_to_agent or error == _REJECTED:
        raise JudgedEnd(Outcome.INTERRUPTED, value=response)
    if isinstance(error, str) and error.startswith(f"Invoking `{tool.name}()` failed"):
        raise JudgedEnd(Fault(BINDING, "invalid_arguments", error), value=response)
    return response
