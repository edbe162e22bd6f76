"""Run a framework's tool calls as fuseboard's, under policies given by the tools' names."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Token
from types import TracebackType
from typing import Any, Final, Literal, Self

from fuseboard.adapters.findings import judge_refusal
from fuseboard.adapters.runners import Runner, any_arguments, check_no_cache
from fuseboard.calls.current import CURRENT, LaterAttempt
from fuseboard.calls.invocation import RUNNING, Invocation, claim
from fuseboard.calls.judging import JudgedEnd, ReturnedFault, answer_to
from fuseboard.calls.packets import ErrorPacket, is_packet, packet_for
from fuseboard.calls.recording import close_call, open_call
from fuseboard.calls.registration import MAX_NAME, ON_ERROR, Tool
from fuseboard.calls.wrapping import MARK
from fuseboard.classification import BINDING
from fuseboard.classification.verdicts import input_fault
from fuseboard.conventions import OTHER_LABEL, Outcome
from fuseboard.errors import ConfigurationError
from fuseboard.forking import after_fork_in_child
from fuseboard.policy.config import Policy
from fuseboard.raising import KeptContext
from fuseboard.record import Fault
from fuseboard.runtime import RUNTIME
from fuseboard.telemetry.duplicates import mark_current

Answer = Callable[[Invocation, ErrorPacket], Any]
"""Returns or raises what stands for an error packet in a framework."""

OnError = Literal["raise", "packet"]
"""What becomes of a fault: it is raised, or the framework gets an error packet in its form."""

Policies = Policy | Mapping[str, Policy] | None
"""One policy for every tool, or one for each name; tools without one are only observed."""

MAX_TOOLS: Final = 500
"""Tools of one framework that become label values; as many as the metrics let in."""

MAX_UNCERTAIN: Final = 100
"""Names that become label values although nobody can tell whether there are such tools."""

UNKNOWN_TOOL: Final = input_fault("unknown_tool_matcher")
"""The verdict on a call of a tool that does not exist."""


class FrameworkCalls:
    """The tool calls of one framework.

    Args:
        owner: The installing function, for messages.
        answer: Puts an error packet into the framework's own form of a tool's error, and returns
            or raises it; None if the adapter has no such form.

    Attributes:
        answers: Whether faults become such answers.
    """

    def __init__(self, owner: str, answer: Answer | None = None) -> None:
        self.answers = False
        self._owner = owner
        self._answer = answer
        self._policies: Mapping[str, Policy] = {}
        self._default: Policy | None = None
        self._tools: dict[tuple[str, str | None], Runner] = {}
        self._uncertain = 0
        self._unknown = Runner(
            Tool(any_arguments, name=OTHER_LABEL, owner=owner, is_registered=False)
        )
        self.renew_lock()
        after_fork_in_child(self.renew_lock)

    def renew_lock(self) -> None:
        """Make a new lock, as a forked child must."""
        self._lock = threading.RLock()

    def configure(self, policy: Policies, on_error: str = "raise") -> None:
        """Take over new settings, for calls from now on.

        Args:
            policy: One policy for all tools, or a mapping of tools' names to policies.
            on_error: ``raise``, or ``packet`` for error packets in the framework's form.

        Raises:
            ConfigurationError: If one of them is wrong.
        """
        if on_error not in ON_ERROR:
            raise ConfigurationError(
                f"{self._owner}(on_error={on_error!r}): must be one of {ON_ERROR}"
            )
        default, policies = _split(self._owner, policy)
        check_no_cache(self._owner, (default, *policies.values()))
        with self._lock:
            self._default, self._policies = default, policies
            self._tools.clear()
            self._uncertain = 0
            self.answers = on_error == "packet" and self._answer is not None

    def is_recorded(self, tool: str, *, is_remote: bool = False) -> bool:
        """Tell whether a call of this tool is being recorded here, but not by this framework.

        Then it is one call seen twice: an MCP tool behind a LangChain tool, or a function that
        is decorated with ``fuseboard.tool`` and passes the call on. A framework that meets
        itself is a tool that calls itself, and a server in the same process as its client is
        the other side.

        Args:
            tool: The tool's name.
            is_remote: Whether it is a client that asks.
        """
        current = CURRENT.get()
        call = current.call if isinstance(current, LaterAttempt) else current
        if call is None or call.outcome is not None or call.tool.name != tool:
            return False
        running = RUNNING.get()
        if running is None:
            return True
        is_other_side = running.is_remote and not is_remote
        return running.owner is not self and not is_other_side

    def offer(self, invocation: Invocation) -> _Offer:
        """Return a context in which the tool is expected to be run, or refused.

        For frameworks that check a call before they run the tool: an exception that comes
        before :meth:`run` ends a call of its own, without an attempt.
        """
        invocation.owner = self
        mark_current(invocation.tool)
        return _Offer(self, invocation)

    def run(self, invocation: Invocation, proceed: Callable[[], Any]) -> Any:
        """Run a tool as a call.

        Args:
            invocation: The call, as the framework asks for it.
            proceed: Runs the tool; once per attempt. It may raise
                :class:`~fuseboard.calls.judging.ReturnedFault`.

        Returns:
            What the tool returned, or what its policy serves instead.
        """
        runner = self._begin(invocation, proceed)
        token = RUNNING.set(invocation)
        try:
            return runner.run_sync(**invocation.arguments)
        except ReturnedFault as returned:
            return returned.value
        except JudgedEnd as end:
            failure: Exception = end
        except Exception as error:
            if not self.answers:
                raise
            failure = error
        finally:
            _reset(token)
        try:
            return self._settle(runner.tool, invocation, failure)
        finally:
            del failure  # else its traceback, which has this frame, and it would hold each other

    async def run_async(self, invocation: Invocation, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Do the same for an async tool, in the caller's task."""
        runner = self._begin(invocation, proceed)
        token = RUNNING.set(invocation)
        try:
            return await runner.run_async(**invocation.arguments)
        except ReturnedFault as returned:
            return returned.value
        except JudgedEnd as end:
            failure: Exception = end
        except Exception as error:
            if not self.answers:
                raise
            failure = error
        finally:
            _reset(token)
        try:
            return self._settle(runner.tool, invocation, failure)
        finally:
            del failure  # else its traceback, which has this frame, and it would hold each other

    def in_form(self, invocation: Invocation, value: Any) -> Any:
        """Return what a tool of fuseboard's returned, a packet of its own in the framework's form.

        Args:
            invocation: The call.
            value: What the tool returned.
        """
        if self._answer is None or not is_packet(value):
            return value
        return self._answer(invocation, value)

    def _settle(self, tool: Tool, invocation: Invocation, failure: Exception) -> Any:
        """Answer with a packet where that was asked for; else hand on what there is."""
        error = failure.error if isinstance(failure, JudgedEnd) else failure
        if error is None:
            return failure.value if isinstance(failure, JudgedEnd) else None
        if self.answers and self._answer is not None:
            packet = packet_for(tool, failure, (), invocation.arguments, None)
            if packet is not None:
                return self._answer(invocation, packet)
        try:
            with KeptContext(error):
                raise error
        finally:
            del error, failure  # as above

    def tool_of(self, invocation: Invocation) -> Tool:
        """Return the tool that a call is for, with the policy that guards it."""
        return self._runner_of(invocation).tool

    def refuse(self, invocation: Invocation, error: BaseException) -> None:
        """Record a call that the framework refused before the tool ran."""
        tool = self.tool_of(invocation)
        self._record(tool, invocation, judge_refusal(tool, error))

    def refuse_returned(self, invocation: Invocation, message: str) -> None:
        """Record a call whose arguments the framework refused with a message for the model."""
        fault = Fault(BINDING, "invalid_arguments", message)
        self._record(self.tool_of(invocation), invocation, fault)

    def refuse_unknown(self, invocation: Invocation) -> None:
        """Record a call of a tool that the framework does not have.

        The model invents such names without end, so they stay out of labels, of the span's
        name and of the store's list of tools; the message has the name.
        """
        fault = Fault(UNKNOWN_TOOL, "unknown_tool", f"there is no tool named {invocation.tool!r}")
        self._record(self._unknown.tool, invocation, fault)

    def refuse_as(self, invocation: Invocation, fault: Fault, tool: Tool) -> None:
        """Record a call that was refused for a reason that the adapter has judged itself."""
        self._record(tool, invocation, fault)

    def interrupt(self, invocation: Invocation) -> None:
        """Record a call that the framework put off before the tool ran, to ask the user, say."""
        self._record(self._runner_of(invocation).tool, invocation, Outcome.INTERRUPTED)

    def _record(self, tool: Tool, invocation: Invocation, judged: Fault | Outcome) -> None:
        mark_current(invocation.tool)
        token = RUNNING.set(invocation)
        try:
            call = open_call(tool, (), invocation.arguments)
        finally:
            _reset(token)
            # Not before: a tool of fuseboard's own claims it, and takes over what it says.
            invocation.is_claimed = True
        now = RUNTIME.clock.monotonic()
        if isinstance(judged, Outcome):
            close_call(call, now, judged)
        else:
            close_call(call, now, Outcome.ERROR, judged, strategy=answer_to(judged))

    def _begin(self, invocation: Invocation, proceed: Callable[[], Any]) -> Runner:
        if invocation.owner is None:  # else it has been offered
            mark_current(invocation.tool)
        invocation.owner = self
        invocation.proceed = proceed
        invocation.is_claimed = True
        return self._runner_of(invocation)

    def _runner_of(self, invocation: Invocation) -> Runner:
        if invocation.is_known is False:
            return self._unknown
        key = (invocation.tool[:MAX_NAME], invocation.upstream)
        found = self._tools.get(key)
        return found if found is not None else self._meet(key, invocation.is_known is None)

    def _meet(self, key: tuple[str, str | None], is_uncertain: bool) -> Runner:
        with self._lock:
            if is_uncertain and self._uncertain >= MAX_UNCERTAIN:
                return self._unknown
            may_register = len(self._tools) < MAX_TOOLS
            made = Runner(self._make_tool(*key, may_register), is_listed=may_register)
            if may_register:
                self._tools[key] = made
                self._uncertain += is_uncertain
            return made

    def _make_tool(self, name: str, upstream: str | None, is_registered: bool) -> Tool:
        return Tool(
            any_arguments,
            name=name if name.strip() else OTHER_LABEL,
            policy=self._policies.get(name, self._default),
            upstream=upstream,
            owner=self._owner,
            is_registered=is_registered,
        )


class _Offer:
    """The time in which a framework checks a call and then runs the tool, or refuses it."""

    __slots__ = ("_calls", "_token", "invocation")

    def __init__(self, calls: FrameworkCalls, invocation: Invocation) -> None:
        self._calls = calls
        self.invocation = invocation

    def __enter__(self) -> Self:
        self._token = RUNNING.set(self.invocation)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _reset(self._token)
        if error is not None and not self.invocation.is_claimed:
            self._calls.refuse(self.invocation, error)


def is_own_tool(*functions: object) -> bool:
    """Tell whether one of a tool's functions is decorated with ``fuseboard.tool``.

    Such a tool records its calls itself, under its own policy. It learns here to take over what
    the framework knows of them.
    """
    tools = [getattr(function, MARK, None) for function in functions]
    own = [tool for tool in tools if isinstance(tool, Tool)]
    for tool in own:
        if tool.describe is None:
            tool.describe_calls(claim)
    return bool(own)


def _reset(token: Token[Invocation | None]) -> None:
    try:  # noqa: SIM105 - as elsewhere, without a generator context
        RUNNING.reset(token)
    except ValueError:
        pass  # ended in another context, which keeps its own value


def _split(owner: str, policy: object) -> tuple[Policy | None, Mapping[str, Policy]]:
    if policy is None or isinstance(policy, Policy):
        return policy, {}
    if isinstance(policy, Mapping) and all(
        isinstance(name, str) and isinstance(one, Policy) for name, one in policy.items()
    ):
        return None, dict(policy)
    raise ConfigurationError(
        f"{owner}(policy={policy!r}): must be a fuseboard.Policy, or a mapping of tools' names "
        "to policies"
    )
